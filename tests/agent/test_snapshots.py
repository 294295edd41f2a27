"""Order of snapshot copies, on CUDA streams that only record calls."""

import threading

import pytest
import torch

from five.agent.learning.snapshots import SnapshotCopier
from tests.agent.streams import COPY, LOG, write_down


@pytest.fixture
def copier(monkeypatch: pytest.MonkeyPatch) -> SnapshotCopier:
    write_down(monkeypatch)
    made = SnapshotCopier(torch.device("cpu"))
    made._stream = COPY  # type: ignore[assignment]
    return made


def test_host_copy_runs_on_the_reading_thread(copier: SnapshotCopier) -> None:
    weights = {"w": torch.full((2, 3), 1.0), "count": torch.tensor(4)}
    first = copier.copy(weights)
    assert LOG == ["main: record main@0"] and first.nbytes == 32
    weights["w"].fill_(2.0)  # the next step
    brought: list[float] = []
    beside = threading.Thread(target=lambda: brought.append(float(first.arrays()["w"][1, 2])), name="beside")
    beside.start()
    beside.join()
    assert LOG[1:] == ["copy: wait for main@0", "copy: record copy@2", "beside sleeps until copy@2"]
    assert brought == [1.0] and first.arrays()["count"].shape == () and first.arrays()["count"] == 4
    assert len(LOG) == 4  # cached


def test_host_memory_is_reused_and_released(copier: SnapshotCopier) -> None:
    first = copier.copy({"a": torch.ones(3), "b": torch.ones(2)}).arrays()
    second = copier.copy({"a": torch.full((3,), 2.0), "b": torch.ones(4)}).arrays()
    assert first["a"] is not second["a"] and first["a"].ctypes.data == second["a"].ctypes.data
    assert second["a"].tolist() == [2.0] * 3 and second["b"].shape == (4,)
    shorter = copier.copy({"a": torch.ones(2), "b": torch.ones(5, dtype=torch.int32)}).arrays()
    assert shorter["a"].shape == (2,) and (shorter["b"].shape, shorter["b"].dtype.name) == ((5,), "int32")
    copier.copy({"a": torch.ones(3)}).arrays()
    assert copier._memory.keys() == {"a"}


def test_cpu_copies_are_host_arrays() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    taken = SnapshotCopier(torch.device("cpu")).copy({"w": weight, "half": torch.ones(2).half()})
    with torch.no_grad():
        weight.fill_(5.0)
    assert taken.arrays()["w"].tolist() == [1.0] * 3 and taken.arrays()["half"].dtype == "float16"
    copy = torch.zeros(2)
    assert SnapshotCopier(torch.device("cpu")).from_copies({"w": copy}).arrays()["w"].ctypes.data == copy.data_ptr()


@pytest.mark.gpu
def test_gpu_snapshot_is_asynchronous() -> None:
    copier, weight = SnapshotCopier(torch.device("cuda")), torch.zeros(1 << 24, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        taken = copier.copy({"w": weight})
        weight.add_(1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    arrays: list[float] = []
    beside = threading.Thread(target=lambda: arrays.append(float(taken.arrays()["w"].sum())))
    beside.start()
    beside.join()
    assert arrays == [0.0] and float(weight.sum()) == 1 << 24
