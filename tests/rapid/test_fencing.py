"""The publisher's lease, and writes refused inside Redis after its loss."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store import functions
from rapid.store.errors import Corrupt, FencedOut, LeaseHeld
from rapid.store.fencing import REFUSED, FencingToken, PublisherLease, fenced_write, publisher_name
from rapid.store.keys import Keys
from rapid.store.state import RunState

ROOT = Path(__file__).parents[2]
KEYS = Keys("r")


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    run = RunState(database, "r")
    run.create({}, "test")
    return run


def lease(state: RunState, who: str = "optimizer-0", ttl: float = 30.0) -> PublisherLease:
    return PublisherLease(state.redis, "r", who, ttl)


def next_epoch(state: RunState) -> None:
    record = state.record()
    assert record is not None
    state.redis.set(KEYS.record, record.changed(new_epoch=True).to_json())


def put(state: RunState, fencing_token: FencingToken, value: str = "1") -> None:
    fenced_write(state.redis, KEYS, fencing_token, [("SET", "mark", value)], "the mark")


def stored(state: RunState) -> Any:
    return json.loads(state.redis.get(KEYS.publisher))  # type: ignore[arg-type]


def refused(reason: str) -> float:
    return float(REFUSED.labels(reason)._value.get())  # type: ignore[no-untyped-call]


def test_second_publisher_is_refused_with_the_holder(state: RunState) -> None:
    first = lease(state).acquire()
    assert (first.epoch, first.fence) == (1, 1)
    says = r"'r' is published by optimizer-0 on .*, process \d+ since 20.*within 30 s"
    with pytest.raises(LeaseHeld, match=says) as e:
        lease(state, "optimizer-1").acquire()
    assert e.value.holder.startswith("optimizer-0 on ") and time.time() - e.value.since < 60
    assert publisher_name(state.redis, "r") == e.value.holder


def test_repeated_acquire_returns_the_same_lease(state: RunState) -> None:
    mine = lease(state)
    assert mine.acquire() == mine.acquire()


def test_expired_lease_fences_out_the_old_holder(state: RunState) -> None:
    old = lease(state, ttl=0.05)
    before = old.acquire()
    put(state, before, "before")
    time.sleep(0.1)
    put(state, before, "late")  # no other holder: it is still the last publisher
    after = lease(state, "optimizer-1").acquire()
    assert after.fence == 2
    count = refused("lease")
    for _ in range(2):
        with pytest.raises(FencedOut, match=r"optimizer-0 .* no longer holds the publisher's lease") as caught:
            put(state, before, "zombie")
        assert caught.value.reason == "lease"
    assert refused("lease") == count + 2 and state.redis.get("mark") == b"late"
    with pytest.raises(FencedOut):
        old.renew(before)
    put(state, after, "after")
    assert state.redis.get("mark") == b"after"


def test_renewal_extends_the_lease(state: RunState) -> None:
    mine = lease(state, ttl=60.0)
    fencing_token = mine.acquire()
    for _ in range(3):
        until = stored(state)["until"]
        time.sleep(0.01)
        mine.renew(fencing_token)
        assert until < stored(state)["until"] <= time.time() + 60.1
    with pytest.raises(LeaseHeld):
        lease(state, "optimizer-1").acquire()


def test_released_lease_is_fenced_out_and_free(state: RunState) -> None:
    mine = lease(state)
    fencing_token = mine.acquire()
    mine.release()
    with pytest.raises(FencedOut):
        put(state, fencing_token)
    assert publisher_name(state.redis, "r") is None
    assert lease(state, "optimizer-1").acquire().fence == 2
    mine.release()  # no longer its lease: no effect
    assert publisher_name(state.redis, "r") is not None


def test_older_epoch_is_fenced_out(state: RunState) -> None:
    fencing_token = lease(state).acquire()
    next_epoch(state)
    count = refused("epoch")
    with pytest.raises(FencedOut, match="the mark is refused: the run has left epoch 1") as caught:
        put(state, fencing_token)
    assert caught.value.reason == "epoch" and refused("epoch") == count + 1
    assert not state.redis.exists("mark")


def test_token_without_fence_needs_only_the_epoch(state: RunState) -> None:
    lease(state).acquire()
    put(state, FencingToken("controller", 1, None))
    assert state.redis.get("mark") == b"1"
    with pytest.raises(FencedOut):
        put(state, FencingToken("controller", 2, None))


def test_expected_texts_are_compared_atomically(state: RunState) -> None:
    fencing_token = lease(state).acquire()
    fenced_write(state.redis, KEYS, fencing_token, [("SET", "a", "1")], "a", {"a": None})
    with pytest.raises(FencedOut) as caught:
        fenced_write(state.redis, KEYS, fencing_token, [("SET", "a", "2"), ("SET", "b", "2")], "a", {"a": None})
    assert caught.value.reason == "moved" and not state.redis.exists("b")
    fenced_write(state.redis, KEYS, fencing_token, [("SET", "a", "2")], "a", {"a": "1", "b": None})
    assert state.redis.get("a") == b"2"


def test_acquire_needs_a_run(database: redis.Redis) -> None:
    with pytest.raises(LookupError, match="run 'r' does not exist"):
        PublisherLease(database, "r", "optimizer-0", 1.0).acquire()


def test_renewal_restores_a_lease_that_redis_lost(state: RunState) -> None:
    lease(state, "optimizer-before").acquire()
    forgotten = state.redis.get(KEYS.publisher)
    assert forgotten is not None
    state.redis.delete(KEYS.publisher)
    state.redis.set(KEYS.publisher, json.dumps({**json.loads(forgotten), "released": True}))  # type: ignore[arg-type]
    mine = lease(state)
    fencing_token = mine.acquire()
    state.redis.set(KEYS.publisher, forgotten)  # the earlier state
    with pytest.raises(FencedOut):
        put(state, fencing_token)
    mine.renew(fencing_token)
    put(state, fencing_token)


def test_lost_lease_is_restored_for_its_holder(state: RunState) -> None:
    mine = lease(state, ttl=60.0)
    fencing_token = mine.acquire()
    state.redis.delete(KEYS.publisher)
    before = time.time()
    mine.renew(fencing_token)
    put(state, fencing_token)
    row = stored(state)
    assert (row["holder"], row["fence"], row["released"]) == (mine.holder, 1, False)
    assert abs(row["since"] - before) < 5 and 55 < row["until"] - before < 65
    with pytest.raises(LeaseHeld, match="by optimizer-0 on .*within 60 s"):
        lease(state, "optimizer-1").acquire()


@pytest.mark.parametrize("lost", ["lease", "fence"])
def test_refused_renewal_does_not_restore_a_lease(state: RunState, lost: str) -> None:
    """Redis lost the acquisition and the new epoch together. The lease stays free for a holder in the old epoch."""
    mine = lease(state)
    fencing_token = mine.acquire()
    if lost == "lease":
        state.redis.delete(KEYS.publisher)
    else:
        state.redis.set(KEYS.publisher, json.dumps({**stored(state), "fence": 0, "released": True}))
    before = state.redis.get(KEYS.publisher)
    for epoch in (0, 2):
        with pytest.raises(FencedOut) as caught:
            mine.renew(FencingToken(fencing_token.holder, epoch, fencing_token.fence))
        assert caught.value.reason == "epoch" and state.redis.get(KEYS.publisher) == before
    assert lease(state, "optimizer-1").acquire().fence == 1


def test_renewal_after_the_release_or_the_epoch_is_refused(state: RunState) -> None:
    mine = lease(state)
    fencing_token = mine.acquire()
    mine.release()
    with pytest.raises(FencedOut) as caught:
        mine.renew(fencing_token)
    assert caught.value.reason == "lease" and stored(state)["released"]
    again = mine.acquire()
    assert again.fence == 2
    next_epoch(state)
    before = stored(state)
    with pytest.raises(FencedOut) as caught:
        mine.renew(again)
    assert caught.value.reason == "epoch" and stored(state) == before


def test_time_of_the_acquisition_is_that_of_its_holder(state: RunState) -> None:
    mine = lease(state)
    fencing_token = mine.acquire()
    began = stored(state)["since"]
    time.sleep(0.01)
    mine.renew(fencing_token)
    mine.acquire()
    assert stored(state)["since"] == began
    mine.release()
    lease(state, "optimizer-1").acquire()
    assert stored(state)["since"] > began


def test_release_without_a_lease_changes_nothing(state: RunState) -> None:
    lease(state).release()
    assert not state.redis.exists(KEYS.publisher)
    assert lease(state).acquire().fence == 1


def test_shortest_lease_is_a_millisecond(state: RunState) -> None:
    """A lease of no time would be lost before the first write."""
    before = time.time()
    lease(state, ttl=0.0).acquire()
    assert 0.0 < stored(state)["until"] - before and stored(state)["until"] - stored(state)["since"] == pytest.approx(
        0.001, abs=1e-4)


@pytest.mark.parametrize(("since", "valid"), [(0, True), (-1, False), ((1 << 36) - 1, True), (1 << 36, False)])
def test_time_of_a_stored_lease_is_possible(state: RunState, since: int, valid: bool) -> None:
    mine = lease(state)
    mine.acquire()
    state.redis.set(KEYS.publisher, json.dumps({**stored(state), "since": since}))
    if valid:
        assert publisher_name(state.redis, "r") == mine.holder.partition("#")[0]
    else:
        with pytest.raises(Corrupt, match=f"time {float(since)}: 0 to {1 << 36} is possible"):
            publisher_name(state.redis, "r")


HOLDER = """
    import sys, redis
    from rapid.store.fencing import PublisherLease
    lease = PublisherLease(redis.Redis.from_url(sys.argv[1]), "r", "optimizer-0", 600.0)
    print(lease.acquire().fence, flush=True)
    sys.stdin.read()
"""


def test_only_a_dead_local_holder_is_replaced_at_once(
        state: RunState, redis_server: RunningRedis) -> None:
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLDER), redis_server.url],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env={"PYTHONPATH": "libs:."})
    assert process.stdout is not None and process.stdout.readline() == b"1\n"
    with pytest.raises(LeaseHeld, match=f"process {process.pid} "):
        lease(state).acquire()
    process.kill()
    process.wait()
    assert lease(state).acquire().fence == 2


def test_holder_that_took_over_from_the_dead_one_stays(state: RunState) -> None:
    """Two processes found the same dead holder. The slower one does not replace the faster one."""
    faster = lease(state).acquire()
    answer: Any = functions.call(state.redis, "acquire_publisher", [KEYS.publisher, KEYS.record], "slower", "[]", "30",
                                 "the dead holder")
    assert answer[0] == b"held" and stored(state)["holder"] == faster.holder


def test_remote_holder_is_never_assumed_dead(state: RunState) -> None:
    lease(state, "optimizer-0").acquire()
    row = json.loads(state.redis.get(KEYS.publisher))  # type: ignore[arg-type]
    process = json.loads(row["process"])
    # The same host name with an unknown process id, as in another container of that name.
    row["process"] = json.dumps([process[0] + "-other", 2 ** 22 + 1, "1", "x"])
    state.redis.set(KEYS.publisher, json.dumps(row))
    with pytest.raises(LeaseHeld):
        lease(state, "optimizer-1").acquire()
