"""Groups of one and of two optimizers, the device of a rank, the wait for rank 0, and a rank's end."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore

from five.services.optimizer import process_group
from five.services.optimizer.__main__ import train
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, OptimizerGroup, device_of, join, leave
from rapid.lifecycle import Lifecycle
from tests.services.forked_ranks import run_two_ranks


def test_group_of_one_decides_alone() -> None:
    group = SINGLE_OPTIMIZER
    assert (group.rank, group.size, group.restarts, group.reduce, group.begin) == (0, 1, 0, None, None)
    assert group.start_seconds == 1800
    assert group.all_ranks(True, False) == [True, False] and group.all_ranks() == []
    assert group.sum_over_ranks([2, 0.5]) == [2.0, 0.5] and group.broadcast([3, 1e300]) == [3.0, 1e300]
    group.wait_for_first()


@pytest.mark.parametrize(("configured", "rank", "device"), [
    ("cuda", "3", torch.device("cuda", 3)), ("cuda", None, torch.device("cuda")), ("cpu", "3", torch.device("cpu")),
    ("cuda:1", "3", torch.device("cuda", 1))])
def test_ranks_of_a_machine_use_one_gpu_each(configured: str, rank: str | None, device: torch.device,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert device_of(configured) == device


@pytest.mark.parametrize(("device", "current"), [("cuda:3", ["cuda:3"]), ("cuda", []), ("cpu", [])])
def test_training_thread_uses_the_gpu_of_its_rank(device: str, current: list[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """The current GPU belongs to a thread, and a new thread has the first one."""
    used, order = list[str](), list[str]()
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: used.append(str(device)))
    training: Any = SimpleNamespace(learner=SimpleNamespace(device=torch.device(device)),
                                    run=lambda *arguments: order.extend([*used, "run"]))
    watchdog: Any = SimpleNamespace(stop=lambda: None)
    train(training, watchdog, Lifecycle(20.0))
    assert order == [*current, "run"]


@pytest.mark.parametrize("size", [None, "1"])
def test_process_without_an_agent_is_alone(size: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size is not None:
        monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")  # of no importance to a process that shares nothing
    assert join(torch.device("cpu")) is SINGLE_OPTIMIZER
    assert leave(SINGLE_OPTIMIZER)() is None  # type: ignore[func-returns-value]


def test_others_wait_for_rank_0() -> None:
    store, waited = HashStore(), threading.Event()
    other = OptimizerGroup(rank=1, size=2, start_seconds=60.0, _store=store)

    def wait() -> None:
        other.wait_for_first()
        waited.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not waited.wait(0.1)
    OptimizerGroup(rank=0, size=2, _store=store).wait_for_first()
    assert waited.wait(30)
    thread.join()
    late = replace(other, start_seconds=0.1, _store=HashStore())
    with pytest.raises(RuntimeError, match=r"optimizer 0 has not started after \d+ s .*start_timeout_seconds 0\.1"):
        late.wait_for_first()


@pytest.fixture
def initialized() -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_first_rank_sends_its_bytes_in_chunks(initialized: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 has the bytes already, and gets none."""
    sent: list[bytes] = []
    broadcast = dist.broadcast

    def recorded(tensor: torch.Tensor, *arguments: object, **options: object) -> object:
        if tensor.dtype is torch.uint8:
            sent.append(tensor.numpy().tobytes())
        return broadcast(tensor, *arguments, **options)

    monkeypatch.setattr(dist, "broadcast", recorded)
    monkeypatch.setattr(process_group, "CHUNK_BYTES", 4)
    group = OptimizerGroup(rank=0, size=2, _decisions=dist.group.WORLD)
    assert len(group.broadcast_bytes([memoryview(b"abcde"), memoryview(b"fghi")])) == 0
    assert sent == [b"abcd", b"efgh", b"i"]


def test_averages_are_made_in_place(initialized: None) -> None:
    tensors = [torch.tensor([2.0, 4.0]), torch.tensor([[1.0]])]
    process_group.average(tensors)
    assert [tensor.tolist() for tensor in tensors] == [[2.0, 4.0], [[1.0]]]


@pytest.mark.parametrize("here", [0, 1])
def test_two_ranks_agree_sum_and_average(here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "3")

    def work(rank: int) -> Any:
        group = join(torch.device("cpu"), 7.0)
        deciding = group.begin_all_ranks(True, group.rank == 0, group.rank == 1)
        assert group.reduce is not None and group.begin is not None
        tensors = [torch.tensor([2.0 * rank, 4.0]), torch.tensor([[float(rank)]])]
        group.reduce(tensors)
        bucket = torch.tensor([8.0 * rank])
        group.begin(bucket)()
        found = (group.rank, group.size, group.restarts, group.start_seconds, deciding(),
                 group.all_ranks(), group.sum_over_ranks([1.0, rank]), group.broadcast([7.0 + rank]),
                 [tensor.tolist() for tensor in tensors], bucket.tolist())
        leave(group)
        return found

    for rank, found in enumerate(run_two_ranks(work, here)):
        assert found == (rank, 2, 3, 7.0, [True, False, False], [], [2.0, 1.0], [7.0], [[1.0, 4.0], [[0.5]]], [4.0])


@pytest.mark.parametrize("here", [0, 1])
def test_other_rank_receives_the_bytes_of_the_first(here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_group, "CHUNK_BYTES", 4)
    sent = (b"", b"abc", b"abcd", b"abcdefgh", b"abcdefghi")

    def work(rank: int) -> list[bytes]:
        group = join(torch.device("cpu"))
        received = [group.broadcast_bytes([memoryview(data)] if rank == 0 else []).tobytes() for data in sent]
        leave(group)
        return received

    first, second = run_two_ranks(work, here)
    assert second == list(sent) and first == [b""] * len(sent), "rank 0 has the bytes already"


@pytest.mark.parametrize("here", [0, 1])
def test_damaged_bytes_are_refused_by_their_receiver(here: int) -> None:
    def work(rank: int) -> list[str]:
        group, errors, damage = join(torch.device("cpu")), list[str](), 0
        broadcast = dist.broadcast

        def damaging(tensor: torch.Tensor, *arguments: Any, **options: Any) -> None:
            broadcast(tensor, *arguments, **options)
            if rank == 1 and tensor.dtype is torch.uint8:
                tensor[5] += damage

        dist.broadcast = damaging
        try:
            while damage < 6:  # digests of damaged bytes are greater or less than the right one
                try:
                    group.broadcast_bytes([memoryview(bytes(100))] if rank == 0 else [])
                    errors.append("")
                except RuntimeError as error:
                    errors.append(str(error).partition(" bytes")[0])
                damage += 1
        finally:
            dist.broadcast = broadcast
        leave(group)
        return errors

    first, second = run_two_ranks(work, here)
    assert first == [""] * 6
    assert second == ["", *["optimizer 1 received other"] * 5]


def test_rank_that_left_waits_until_rank_0_closes_the_store() -> None:
    """Otherwise it would join the old store in the next round."""
    def work(rank: int) -> bool:
        group = join(torch.device("cpu"))
        wait = leave(group)
        assert group.size == 2 and not dist.is_initialized()
        if rank == 0:
            time.sleep(0.1)  # its store is open until its process ends
        wait()
        with socket.socket() as store:
            return store.connect_ex(("127.0.0.1", int(os.environ["MASTER_PORT"]))) == 0

    assert run_two_ranks(work, 1) == [True, False], "rank 1 must find the store closed, rank 0 must not wait for it"


def test_others_wait_for_the_last_writes_of_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may take longer than a collective operation."""
    monkeypatch.setattr(process_group, "TIMEOUT", timedelta(seconds=3))

    def work(rank: int) -> float:
        group = join(torch.device("cpu"))
        began = time.monotonic()
        if rank == 0:
            time.sleep(3.5)
        leave(group)
        return time.monotonic() - began

    assert min(run_two_ranks(work, 1)) >= 3.4


def test_rank_0_that_is_lost_before_its_last_writes_is_named() -> None:
    with pytest.raises(RuntimeError, match="optimizer 0 ended before its last writes"):
        LostStore.group().wait_for_last_writes()


class LostStore(HashStore):
    """The store of a process that has ended."""

    @classmethod
    def group(cls) -> OptimizerGroup:
        return OptimizerGroup(rank=1, size=2, _store=cls())

    def wait(self, *arguments: Any) -> None:
        raise dist.DistNetworkError("Connection reset by peer")


def test_first_rank_does_not_wait_after_it_has_left(initialized: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    wait = leave(SINGLE_OPTIMIZER)
    assert not dist.is_initialized()
    wait()


class Store:
    """A server of this machine at the address of the ranks' store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(self.server.getsockname()[1]))


def test_others_wait_until_the_store_of_rank_0_closes(monkeypatch: pytest.MonkeyPatch,
                                                      caplog: pytest.LogCaptureFixture) -> None:
    store = Store(monkeypatch)
    monkeypatch.setattr(process_group, "LEAVING_SECONDS", 60.0)
    threading.Timer(0.2, store.server.close).start()
    process_group._wait_until_store_closes()
    assert store.server.fileno() == -1 and "still open" not in caplog.text, "the wait has not timed out"


def test_wait_for_the_store_has_an_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Rank 0 may have restarted already."""
    store = Store(monkeypatch)
    monkeypatch.setattr(process_group, "LEAVING_SECONDS", 0.2)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING), store.server:
        process_group._wait_until_store_closes()
    assert 0.2 <= time.monotonic() - began < 30 and "still open" in caplog.text
