"""The order of copies and steps on a GPU, shown on streams that only write down what they are told."""

from typing import Any

import numpy as np
import pytest
import torch

from five.agent.learning.batch_transfer import BatchTransfer, DeviceBatch
from tests.agent.streams import COPY, LOG, write_down


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> BatchTransfer:
    write_down(monkeypatch)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    made = BatchTransfer(torch.device("cpu"))
    made._stream = COPY  # type: ignore[assignment]
    return made


def step(batch: DeviceBatch) -> dict[str, Any]:
    """Reads a batch as a learner does."""
    batch.acquire()
    LOG.append("main: step")
    batch.release()
    return {name: tensor.clone() for name, tensor in batch.tensors.items()}


def test_the_next_batch_is_copied_while_a_step_is_computed_and_places_are_used_again(ways: BatchTransfer) -> None:
    arrays = [{"x": np.full((2, 3), i, np.float32)} for i in range(4)]
    first, second = ways.start(arrays[0], None), ways.start(arrays[1], None)
    assert LOG == ["copy: record copy@0", "copy: record copy@1"]  # neither waits for a step, nor the host for either
    assert step(first)["x"][0, 0] == 0
    assert LOG[2:] == ["main: wait for copy@0", "main: step", "main: record main@4"]
    ways.wait()
    # The arrays of the first may be filled again, those of the second not.
    assert LOG[5:] == ["MainThread waits until copy@0"]
    third = ways.start(arrays[2], None)
    # Into the first's place, once the step that read it is over.
    assert LOG[6:] == ["copy: wait for main@4", "copy: record copy@7"]
    assert third.tensors["x"] is first.tensors["x"] and third.tensors["x"] is not second.tensors["x"]
    assert step(second)["x"][0, 0] == 1 and step(third)["x"][0, 0] == 2
    ways.wait(0)
    assert LOG[-2:] == ["MainThread waits until copy@1", "MainThread waits until copy@7"]


def test_a_batch_of_another_size_has_memory_of_its_own(ways: BatchTransfer) -> None:
    one = ways.start({"x": np.zeros((2, 3), np.float32), "y": np.zeros(2, np.int16)}, None)
    step(one)
    step(ways.start({"x": np.ones((2, 3), np.float32)}, None))
    other = ways.start({"x": np.ones((4, 3), np.float32)}, None)
    assert other.tensors["x"].shape == (4, 3) and "y" not in other.tensors
    assert one.tensors["x"].shape == (2, 3)


def test_what_was_found_goes_along(ways: BatchTransfer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def __init__(self, *parts: torch.Tensor) -> None:
            self.parts = parts

        def tensors(self) -> tuple[torch.Tensor, ...]:
            return self.parts

        def moved(self, tensors: tuple[torch.Tensor, ...]) -> "Found":
            return Found(*tensors)

    pinned: list[int] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor.numel()) or tensor)
    batch = ways.start({"x": np.zeros(2, np.float32)}, Found(torch.arange(3), torch.arange(5)))
    assert pinned == [3, 5] and [len(part) for part in batch.found.parts] == [3, 5]


def test_on_a_cpu_nothing_is_copied() -> None:
    array = np.zeros(3, np.float32)
    ways = BatchTransfer(torch.device("cpu"))
    batch = ways.start({"x": array}, None)
    ways.wait()
    array[1] = 7
    assert step(batch)["x"].tolist() == [0, 7, 0]
