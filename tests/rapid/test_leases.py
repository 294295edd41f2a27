"""Leases of live instances, and the cost of listing them."""

import time

import pytest
import redis

from rapid.store import leases
from rapid.store.idle import idle_report
from rapid.store.keys import Keys
from rapid.store.leases import Lease, Leases
from rapid.store.state import RunState, Status


def calls(client: redis.Redis) -> dict[str, int]:
    return {name.removeprefix("cmdstat_"): row["calls"] for name, row in client.info("commandstats").items()}


def test_live_instances_are_listed_without_a_scan(state: RunState, database: redis.Redis) -> None:
    pipeline = database.pipeline()
    for i in range(5000):
        pipeline.set(f"five:r:idempotency:{i}", "x")
    pipeline.execute()
    for kind in ("rollout", "optimizer"):
        for i in range(3):
            state.lease(kind, str(i), 30).renew({"n": i}, 1, 1)
    before = calls(database)
    found = state.services()
    number = state.transition(Status.PAUSING, "test").pause
    report = state.idle_report()
    after = calls(database)
    assert [(i.kind, i.id, i.stats["n"]) for i in found] == [
        (kind, str(i), i) for kind in ("optimizer", "rollout") for i in range(3)]
    assert report.pause == number and len(report.waiting_for) == 6
    assert after.get("scan", 0) == before.get("scan", 0) and after.get("keys", 0) == before.get("keys", 0)


def test_lease_ends_by_release_and_expiry(state: RunState, database: redis.Redis) -> None:
    gone, silent, living = (state.lease("rollout", name, ttl) for name, ttl in (
        ("gone", 30), ("silent", 0.05), ("living", 30)))
    for lease in (gone, silent, living):
        lease.renew()
    gone.release()
    time.sleep(0.1)
    assert [i.id for i in state.services("rollout")] == ["living"]
    living.renew()  # which removes expired names
    assert database.zrange(state.keys.leases("rollout"), 0, -1) == [b"living"]


def test_leases_ignore_the_clients_clock(state: RunState, monkeypatch: pytest.MonkeyPatch
                                                               ) -> None:
    lease = state.lease("rollout", "0", 30)
    for now in (time.time() - 1e6, time.time() + 1e6):
        monkeypatch.setattr("rapid.store.leases.time.time", lambda now=now: now)
        lease.renew()
        state.lease("rollout", "1", 30).renew()
        assert [i.id for i in Leases(state.redis, "r").live("rollout")] == ["0", "1"]


def test_kinds_cover_every_service(state: RunState) -> None:
    from rapid.store import acl

    assert sorted(acl.SERVICES) == list(leases.KINDS)


def test_damaged_lease_hides_no_other_instance(database: redis.Redis) -> None:
    Lease(database, "r", "rollout", "good", 10).renew({"games": 3})
    keys = Keys("r")
    other = database.get(keys.lease("rollout", "good"))
    for name, text in {"not-json": b"{", "deep": b"[" * 3000, "list": b"[]", "number": b'{"kind": 5}', "other": other
                       }.items():
        database.set(keys.lease("rollout", name), text)  # type: ignore[arg-type]
        database.zadd(keys.leases("rollout"), {name: 2.0**40})
    assert [i.id for i in Leases(database, "r").live()] == ["good"]
    assert idle_report(database, "r").waiting_for == []
