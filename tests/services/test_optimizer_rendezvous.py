"""Rendezvous of a node's optimizers: how it waits for the other nodes."""

import logging
import threading
import time
from pathlib import Path

import pytest
import redis
from torch.distributed.elastic.rendezvous import RendezvousInfo

from five.services.optimizer import rendezvous as module
from five.services.optimizer.rendezvous import RedisRendezvous
from rapid.store.rendezvous import GroupRendezvous
from tests.waiting import eventually

LEASE = 2.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.02)


def node(state: redis.Redis, name: str, waiting: Path | None = None, unseen: bool = False, port: int = 7
         ) -> RedisRendezvous:
    """Return the handler of one of two nodes; its host has its name."""
    group = GroupRendezvous(state, "r", "g", name, 2, 2, LEASE, LEASE)
    return RedisRendezvous(group, "g", name, lambda: port, 0.05, waiting, unseen)


class Joining:
    """A call of next_rendezvous on another thread."""

    def __init__(self, handler: RedisRendezvous) -> None:
        self.found: list[RendezvousInfo] = []
        self._thread = threading.Thread(target=lambda: self.found.append(handler.next_rendezvous()), daemon=True)
        self._thread.start()

    def result(self) -> RendezvousInfo:
        """Return the round within ten seconds."""
        self._thread.join(10)
        return self.found[0]


def test_nodes_meet_and_the_first_offers_its_store(redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "waiting"
    second = node(redis_client, "pod-1", file)
    joining = Joining(second)
    eventually(lambda: file.exists() and file.read_text() == "1 nodes wait\n")
    first = node(redis_client, "pod-0", port=9)
    mine, other = first.next_rendezvous(), joining.result()
    assert (mine.rank, other.rank, mine.world_size) == (0, 1, 2)
    for info in (mine, other):
        assert info.bootstrap_store_info is not None
        assert (info.bootstrap_store_info.master_addr, info.bootstrap_store_info.master_port) == ("pod-0", 9)
    assert not file.exists() and first.num_nodes_waiting() == 0

    third = Joining(node(redis_client, "pod-1"))  # restarted under the same name
    eventually(lambda: first.num_nodes_waiting() == 1)
    again = first.next_rendezvous()
    assert (again.rank, third.result().rank) == (0, 1) and first.num_nodes_waiting() == 0


def test_node_that_is_replaced_last_does_not_count_as_started_while_it_waits(redis_client: redis.Redis, tmp_path: Path
                                                                             ) -> None:
    file = tmp_path / "waiting"
    first = node(redis_client, "pod-0", file, unseen=True)
    joining = Joining(first)
    time.sleep(0.2)
    assert not file.exists(), "helm --wait would report a group that has never started"
    other = node(redis_client, "pod-1")
    other.next_rendezvous()
    joining.result()
    other.shutdown()
    again = Joining(first)  # later a wait for a lost pod must not look dead
    eventually(file.exists)
    node(redis_client, "pod-1").next_rendezvous()
    again.result()


def test_wait_is_logged_once_for_each_reason(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        joining = Joining(node(redis_client, "pod-1"))
        time.sleep(0.3)  # many polls
        node(redis_client, "pod-0").next_rendezvous()
        joining.result()
    waits = [message for message in caplog.messages if "next round: 1 nodes wait" in message]
    assert len(waits) == 1 and sum("round complete" in message for message in caplog.messages) == 2


def test_unavailable_redis_ends_no_round(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = node(redis_client, "pod-0"), node(redis_client, "pod-1")
    joining = Joining(second)
    first.next_rendezvous()
    joining.result()
    away: list[str] = []

    def refuse(*_: object) -> bytes:
        away.append("refused")
        raise redis.ConnectionError("no server")

    with monkeypatch.context() as broken:
        broken.setattr(GroupRendezvous, "_call", refuse)
        eventually(lambda: len(away) > 4)
        assert first.num_nodes_waiting() == 0 == second.num_nodes_waiting()
        again = Joining(first)
        time.sleep(0.1)
        assert not again.found
    eventually(lambda: second.num_nodes_waiting() == 1)
    second.next_rendezvous()
    assert again.result().rank == 0
