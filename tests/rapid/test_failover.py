"""Failover of a Redis: clients move to the new primary, and lose no write that had reached it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.rpc.errors import Unavailable
from rapid.store import functions
from rapid.store.bulk_transfer import set_values
from rapid.store.connection import connect, require_reachable
from rapid.store.errors import StoreRefused, StoreUnreachable
from rapid.store.parameters import ParameterStore
from rapid.store.sentinel import parse_sentinel_url
from rapid.store.state import RunState
from tests.rapid.conftest import same, tensors
from tests.rapid.replicated_redis import Node, Writer
from tests.tcp_forwarder import TcpForwarder
from tests.waiting import eventually

CONFIG = StoreConfig(timeout_seconds=10, reconnect_seconds=20, chunk_mebibytes=0.0625)
PASSWORD = "of-the-redis"  # noqa: S105


class Pair:
    """A primary and its replica behind one address."""

    def __init__(self, folder: Path) -> None:
        self.first, self.second = Node(folder / "first"), Node(folder / "second")
        self.second.follow(self.first)
        self.address = TcpForwarder(self.first.port)
        self.url = f"redis://127.0.0.1:{self.address.port}/0"

    def fail_over(self) -> None:
        """Promote the replica and demote the primary, whose connections stay open."""
        self.second.promote()
        self.address.target = self.second.port
        self.first.follow(self.second)

    def close(self) -> None:
        self.address.close()
        self.first.close()
        self.second.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = Pair(tmp_path)
    yield found
    found.close()


def test_writes_go_on_after_a_demotion(pair: Pair) -> None:
    client = connect(pair.url, CONFIG)
    client.set("before", 1)
    pair.fail_over()
    for i in range(60):
        client.set("after", i)
    assert pair.second.admin.get("after") == b"59" and pair.second.admin.get("before") == b"1"
    pipeline: Any = client.pipeline(transaction=True)
    assert pipeline.set("x", 1).get("x").execute() == [True, b"1"]


def test_transactions_and_functions_move_too(pair: Pair) -> None:
    """The replica has the functions, which nobody loads again."""
    transactions, caller = connect(pair.url, CONFIG), connect(pair.url, CONFIG)
    lease = RunState(caller, "r").lease("rollout", "0", 60)
    lease.renew({"steps": 1})
    assert transactions.ping()
    pair.fail_over()
    assert pair.second.admin.fcall(f"{functions.LIBRARY}_probe", 0)
    pipeline: Any = transactions.pipeline(transaction=True)
    assert pipeline.set("x", 1).get("x").execute() == [True, b"1"]
    lease.renew({"steps": 2})
    assert pair.second.admin.get("x") == b"1"
    assert [i.stats for i in RunState(pair.second.admin, "r").services()] == [{"steps": 2}]


def demote(pair: Pair, state: RunState) -> None:
    """Demote the primary of a run while the address still leads to it. It accepts WATCH and refuses writes."""
    state.create({}, "test")
    eventually(lambda: RunState(pair.second.admin, "r").events.read())
    pair.second.promote()
    pair.first.follow(pair.second)


def test_transactions_wait_until_the_address_moves(pair: Pair) -> None:
    state = RunState(connect(pair.url, CONFIG), "r")
    demote(pair, state)
    mover = threading.Timer(1.5, setattr, (pair.address, "target", pair.second.port))
    mover.start()
    state.events.append("ada", "noted")
    mover.join()
    assert [e.what for e in RunState(pair.second.admin, "r").events.read()] == ["run.created", "noted"]


def test_transaction_fails_when_the_address_does_not_move(pair: Pair) -> None:
    state = RunState(connect(pair.url, CONFIG.model_copy(update={"timeout_seconds": 1.0})), "r")
    demote(pair, state)
    with pytest.raises(redis.ConnectionError, match="not the primary"):
        state.events.append("ada", "noted")


def test_load_loses_no_replicated_write(pair: Pair) -> None:
    client = connect(pair.url, CONFIG)
    writers = [Writer(client, f"w{i}") for i in range(4)]
    eventually(lambda: all(len(w.replicated) > 20 for w in writers))
    pair.fail_over()
    after = [w.count for w in writers]
    eventually(lambda: all(w.count > a + 20 for w, a in zip(writers, after, strict=True)))
    for writer in writers:
        writer.stop()
        assert not writer.errors
        missing = [key for key in writer.replicated if not pair.second.admin.exists(key)]
        assert not missing


def test_one_refusal_renews_the_whole_pool(pair: Pair) -> None:
    """A reader that was never refused must not stay with the demoted server, and neither must a subscription."""
    client: Any = connect(pair.url, CONFIG)
    subscription = client.pubsub(ignore_subscribe_messages=True)
    subscription.subscribe("news")
    subscription.get_message(timeout=1)
    held = [client.connection_pool.get_connection() for _ in range(3)]
    for connection in held:
        client.connection_pool.release(connection)
    pair.fail_over()
    client.set("x", 1)
    for _ in range(3):
        assert client.info("replication")["role"] == "master"
    subscription.get_message(timeout=0.1)
    eventually(lambda: pair.second.admin.pubsub_numsub("news") == [(b"news", 1)])
    pair.second.admin.publish("news", "x")
    assert eventually(lambda: subscription.get_message(timeout=0.1))["data"] == b"x"
    subscription.close()


def test_no_version_is_lost(pair: Pair, blobs: BlobStore) -> None:
    """An optimizer publishes while the Redis of its parameters and state fails over."""
    client = connect(pair.url, CONFIG.model_copy(update={"timeout_seconds": 2}))
    store = ParameterStore(client, client, "r", CONFIG, blobs)
    store.publish(1, tensors(1), {})
    moved = threading.Event()

    def move() -> None:
        time.sleep(0.2)
        pair.fail_over()
        moved.set()

    thread = threading.Thread(target=move)
    thread.start()
    version = 1
    while version < 20 or not moved.is_set() or pair.second.admin.get("end") is None:
        version += 1
        while True:  # as `VersionWriter` does
            try:
                store.publish(version, tensors(version), {})
                break
            except (redis.RedisError, Unavailable):
                time.sleep(0.1)
        if moved.is_set():
            client.set("end", 1)
    thread.join()
    assert store.head() == version
    fresh = connect(f"redis://127.0.0.1:{pair.second.port}/0", CONFIG)
    reader = ParameterStore(fresh, fresh, "r", CONFIG, blobs)
    for number in range(1, version + 1):
        same(reader.fetch(number)[0], tensors(number))


def test_bulk_transfer_reconnects(pair: Pair) -> None:
    client = connect(pair.url, CONFIG)
    set_values(client, [("a", [memoryview(b"1")])], 60_000)
    pair.fail_over()
    with pytest.raises(redis.ConnectionError, match="not the primary"):
        set_values(client, [("a", [memoryview(b"2")])], 60_000)
    set_values(client, [("a", [memoryview(b"2")])], 60_000)
    assert pair.second.admin.get("a") == b"2"


class Watched:
    """A primary and a replica with a Sentinel. Clients need passwords for both."""

    def __init__(self, folder: Path) -> None:
        self.first, self.second = (Node(folder / name, PASSWORD) for name in ("first", "second"))
        self.second.follow(self.first)
        self.sentinel = Node(folder / "sentinel", "of-the-sentinel", (
            f"sentinel monitor mine 127.0.0.1 {self.first.port} 1", f"sentinel auth-pass mine {PASSWORD}",
            "sentinel down-after-milliseconds mine 500", "sentinel failover-timeout mine 3000"), sentinel=True)
        eventually(lambda: self.state()["num-slaves"])

    def state(self) -> Any:
        return self.sentinel.admin.sentinel_masters()["mine"]

    def fail_over(self) -> bool:
        """Order a failover. Return False while the Sentinel does not know the replica well enough."""
        try:
            self.sentinel.admin.sentinel_failover("mine")
        except redis.ResponseError:
            return False
        return True

    @property
    def url(self) -> str:
        return f"redis+sentinel://:{PASSWORD}@127.0.0.1:1,127.0.0.1:{self.sentinel.port}/mine/0"

    def close(self) -> None:
        for node in (self.sentinel, self.first, self.second):
            node.close()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setenv("FIVE_SENTINEL_PASSWORD", "of-the-sentinel")
    found = Watched(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("killed", [False, True], ids=["ordered", "killed"])
def test_sentinel_names_the_new_primary(watched: Watched, killed: bool) -> None:
    client = connect(watched.url, CONFIG, most=2)
    require_reachable(client, watched.url, "state")
    writers = [Writer(client, f"w{i}") for i in range(2)]
    eventually(lambda: all(len(w.replicated) > 20 for w in writers))
    if killed:
        watched.first.close()
    else:
        eventually(watched.fail_over)
    eventually(lambda: watched.state()["port"] == watched.second.port, 60)
    after = [w.count for w in writers]
    eventually(lambda: all(w.count > a + 5 for w, a in zip(writers, after, strict=True)), 60)
    for writer in writers:
        writer.stop()
        missing = [key for key in writer.replicated if not watched.second.admin.exists(key)]
        assert not missing
        assert not writer.errors


def test_sentinel_errors_name_the_cause(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    other = watched.url.replace("/mine/", "/yours/")
    with pytest.raises(StoreUnreachable, match=r"no Sentinel knows the primary 'yours'.*no primary of that name"):
        require_reachable(connect(other, CONFIG, retries=0), other, "state")
    monkeypatch.setenv("FIVE_SENTINEL_PASSWORD", "wrong")
    only = watched.url.replace("127.0.0.1:1,", "")
    with pytest.raises(StoreRefused, match="FIVE_SENTINEL_PASSWORD") as caught:
        require_reachable(connect(only, CONFIG, retries=0), only, "state")
    assert PASSWORD not in str(caught.value) and "wrong" not in str(caught.value)


def test_sentinel_password_is_read_from_a_file(watched: Watched, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIVE_SENTINEL_PASSWORD")
    monkeypatch.setenv("FIVE_SENTINEL_PASSWORD_FILE", str(tmp_path / "password"))
    (tmp_path / "password").write_text("of-the-sentinel\n")
    require_reachable(connect(watched.url, CONFIG, retries=0), watched.url, "state")


def test_sentinel_urls_are_parsed() -> None:
    found = parse_sentinel_url("rediss+sentinel://u:p%40@[::1]:26380,there/mine/2?health_check_interval=5")
    assert found.sentinels == (("::1", 26380), ("there", 26379)) and found.primary == "mine"
    assert found.redis_url == "rediss://u:p%40@primary/2?health_check_interval=5"
    for wrong, why in (("redis+sentinel://here:1", "name of the primary is missing"),
                       ("redis+sentinel://here:x/mine", "'here:x' is not HOST:PORT"),
                       ("redis+sentinel://:secret@/mine", "'' is not HOST:PORT"),
                       ("redis+sentinel://here/mine/x", "database 'x' is not a number")):
        with pytest.raises(ValueError, match=why) as caught:
            connect(wrong, CONFIG)
        assert "secret" not in str(caught.value)
