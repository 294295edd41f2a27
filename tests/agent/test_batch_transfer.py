"""Order of batch copies and steps, on CUDA streams that only record calls."""

from typing import Any

import numpy as np
import pytest
import torch

from five.agent.learning.batch_transfer import BatchTransfer, DeviceBatch
from tests.agent.streams import COPY, LOG, write_down


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> BatchTransfer:
    write_down(monkeypatch)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    made = BatchTransfer(torch.device("cpu"))
    made._stream = COPY  # type: ignore[assignment]
    return made


def step(batch: DeviceBatch) -> dict[str, Any]:
    """Read a batch as a learner does."""
    batch.acquire()
    LOG.append("main: step")
    batch.release()
    return {name: tensor.clone() for name, tensor in batch.tensors.items()}


def test_copies_overlap_steps_and_slots_are_reused(transfer: BatchTransfer) -> None:
    arrays = [{"x": np.full((2, 3), i, np.float32)} for i in range(4)]
    first, second = transfer.start(arrays[0], None), transfer.start(arrays[1], None)
    assert LOG == ["copy: record copy@0", "copy: record copy@1"]  # no wait for a step or by the host
    assert step(first)["x"][0, 0] == 0
    assert LOG[2:] == ["main: wait for copy@0", "main: step", "main: record main@4"]
    transfer.wait()
    # The arrays of the first batch may be overwritten, those of the second may not.
    assert LOG[5:] == ["MainThread waits until copy@0"]
    third = transfer.start(arrays[2], None)
    # Into the first slot, after the step that read it.
    assert LOG[6:] == ["copy: wait for main@4", "copy: record copy@7"]
    assert third.tensors["x"] is first.tensors["x"] and third.tensors["x"] is not second.tensors["x"]
    assert step(second)["x"][0, 0] == 1 and step(third)["x"][0, 0] == 2
    transfer.wait(0)
    assert LOG[-2:] == ["MainThread waits until copy@1", "MainThread waits until copy@7"]


def test_batch_of_another_size_gets_new_memory(transfer: BatchTransfer) -> None:
    one = transfer.start({"x": np.zeros((2, 3), np.float32), "y": np.zeros(2, np.int16)}, None)
    step(one)
    step(transfer.start({"x": np.ones((2, 3), np.float32)}, None))
    other = transfer.start({"x": np.ones((4, 3), np.float32)}, None)
    assert other.tensors["x"].shape == (4, 3) and "y" not in other.tensors
    assert one.tensors["x"].shape == (2, 3)


def test_indices_are_transferred(transfer: BatchTransfer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Index:
        def __init__(self, *parts: torch.Tensor) -> None:
            self.parts = parts

        def tensors(self) -> tuple[torch.Tensor, ...]:
            return self.parts

        def moved(self, tensors: tuple[torch.Tensor, ...]) -> "Index":
            return Index(*tensors)

    pinned: list[int] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor.numel()) or tensor)
    batch = transfer.start({"x": np.zeros(2, np.float32)}, Index(torch.arange(3), torch.arange(5)))
    assert pinned == [3, 5] and [len(part) for part in batch.index.parts] == [3, 5]


def test_cpu_batch_is_not_copied() -> None:
    array = np.zeros(3, np.float32)
    transfer = BatchTransfer(torch.device("cpu"))
    batch = transfer.start({"x": array}, None)
    transfer.wait()
    array[1] = 7
    assert step(batch)["x"].tolist() == [0, 7, 0]
