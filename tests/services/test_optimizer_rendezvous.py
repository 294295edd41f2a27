"""Rendezvous of a node's optimizers: how it waits for the other nodes."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from torch.distributed.elastic.rendezvous import RendezvousInfo

from five.services.optimizer import rendezvous as module
from five.services.optimizer.rendezvous import RedisRendezvous
from rapid.store.rendezvous import GroupRendezvous
from tests.waiting import eventually

LEASE = 60.0  # no test waits for its end


started: list[RedisRendezvous] = []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.02)
    yield
    while started:
        started.pop().shutdown()  # or it would renew its lease during other tests


def node(state: redis.Redis, name: str, waiting: Path | None = None, unseen: bool = False, port: int = 7,
         nodes: int = 2) -> RedisRendezvous:
    """Return the handler of one of the nodes; its host has its name."""
    group = GroupRendezvous(state, "r", "g", name, nodes, nodes, LEASE, LEASE)
    started.append(RedisRendezvous(group, "g", name, lambda: port, 0.05, waiting, unseen))
    return started[-1]


class Joining:
    """A call of next_rendezvous on another thread."""

    def __init__(self, handler: RedisRendezvous) -> None:
        self.found: list[RendezvousInfo] = []
        self._thread = threading.Thread(target=lambda: self.found.append(handler.next_rendezvous()), daemon=True)
        self._thread.start()

    def result(self) -> RendezvousInfo:
        """Return the round within 20 seconds, before a lease ends."""
        self._thread.join(20)
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


def test_reason_of_a_wait_follows_the_group(redis_client: redis.Redis, tmp_path: Path,
                                            caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "waiting"

    def shows(reason: str) -> None:
        eventually(lambda: file.exists() and file.read_text() == f"{reason}\n")

    with caplog.at_level(logging.INFO):
        joining = Joining(node(redis_client, "pod-2", file, nodes=3))
        shows("1 nodes wait")
        other = GroupRendezvous(redis_client, "r", "g", "pod-1", 3, 3, LEASE, LEASE)
        other.begin()
        other.join("pod-1", 7)
        shows("2 nodes wait")
        other.leave()
        shows("1 nodes wait")
        others = [Joining(node(redis_client, name, nodes=3)) for name in ("pod-0", "pod-1")]
        assert [one.result().rank for one in (joining, *others)] == [2, 0, 1]
    assert not file.exists()
    waits = [message.rpartition(": ")[2] for message in caplog.messages if "next round: " in message]
    assert waits[:3] == ["1 nodes wait", "2 nodes wait", "1 nodes wait"]


def test_node_waits_for_those_that_are_still_at_work(redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "waiting"
    joining = Joining(node(redis_client, "pod-1"))
    first = node(redis_client, "pod-0")
    first.next_rendezvous()
    joining.result()
    again = Joining(node(redis_client, "pod-1", file))  # restarted
    eventually(lambda: file.exists() and file.read_text() == "1 nodes wait; still at work: pod-0\n")
    assert first.next_rendezvous().world_size == again.result().world_size == 2


def test_long_wait_is_logged_again(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOG_SECONDS", 0.05)
    with caplog.at_level(logging.INFO):
        joining = Joining(node(redis_client, "pod-1"))
        eventually(lambda: caplog.text.count("next round: 1 nodes wait") >= 3)
        node(redis_client, "pod-0").next_rendezvous()
        joining.result()


def test_late_renewal_counts_no_node_of_the_next_round(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
                                                       ) -> None:
    """The group would restart once more for nodes that are in the round already."""
    first, joining = node(redis_client, "pod-0"), Joining(node(redis_client, "pod-1"))
    first.next_rendezvous()
    joining.result()
    begun, answered, counts = threading.Event(), threading.Event(), list[int]()

    def renew() -> int:
        if begun.is_set():
            counts.append(first.num_nodes_waiting())
            return 0
        begun.set()
        answered.wait(30)
        return 1

    monkeypatch.setattr(first._group, "beat", renew)
    assert begun.wait(30)
    again = Joining(node(redis_client, "pod-1"))
    first.next_rendezvous()
    again.result()
    answered.set()
    eventually(lambda: counts)
    assert counts[0] == 0


def test_node_that_shuts_down_leaves_the_group_at_once(redis_client: redis.Redis,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    first = node(redis_client, "pod-0")
    joining = Joining(node(redis_client, "pod-1"))
    first.next_rendezvous()
    joining.result()
    assert first.shutdown()
    replacing = Joining(node(redis_client, "pod-2", port=9))
    joining = Joining(node(redis_client, "pod-1"))
    assert replacing.result().rank == 1 and joining.result().rank == 0, "no lease of pod-0 is waited for"

    def refuse(*_: object) -> bytes:
        raise redis.ConnectionError("no server")

    monkeypatch.setattr(GroupRendezvous, "_call", refuse)
    assert not first.shutdown(), "without Redis the lease expires by itself"


def test_lease_does_not_keep_the_process_alive(redis_client: redis.Redis) -> None:
    node(redis_client, "pod-0")
    threads = [thread for thread in threading.enumerate() if thread.name == "rendezvous-lease"]
    assert threads and all(thread.daemon for thread in threads)


def test_group_is_never_closed(redis_client: redis.Redis) -> None:
    """A closed rendezvous would end the agents; here the group may always form another round."""
    handler = node(redis_client, "pod-0")
    handler.set_closed()
    assert not handler.is_closed() and handler.num_nodes_waiting() == 0
    assert (handler.get_backend(), handler.get_run_id()) == ("redis", "g")


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


def test_every_outage_is_reported_once(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch,
                                       caplog: pytest.LogCaptureFixture) -> None:
    first, joining = node(redis_client, "pod-0"), Joining(node(redis_client, "pod-1"))
    first.next_rendezvous()
    joining.result()
    calls: list[bool] = []
    call = GroupRendezvous._call

    def sometimes(group: GroupRendezvous, *arguments: Any) -> bytes:
        if group is not first._group or arguments[0] != "beat":
            return call(group, *arguments)
        calls.append(len(calls) % 4 < 2 and len(calls) < 8)
        if calls[-1]:
            raise redis.ConnectionError("no server")
        return call(group, *arguments)

    monkeypatch.setattr(GroupRendezvous, "_call", sometimes)
    eventually(lambda: len(calls) > 6)  # two outages of two renewals each
    assert caplog.text.count("rendezvous lease not renewed: no server") == 2
