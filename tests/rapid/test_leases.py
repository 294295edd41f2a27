"""Leases of live instances, and the cost of listing them."""

import json
import time

import pytest
import redis

from rapid.store import functions, leases
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


def test_keys_of_an_instance_expire(state: RunState, database: redis.Redis) -> None:
    """The lease and its name after the lease's duration, the acknowledgement of a pause after 30 days."""
    lease, month = state.lease("rollout", "0", 30), 30 * 24 * 3600 * 1000
    lease.renew()
    number = state.transition(Status.PAUSING, "test").pause
    quiet = state.keys.quiet("rollout", "0")
    for step in (lambda: lease.renew({}, 1, 1, number, True), lease.release):
        database.delete(quiet)
        step()
        assert month - 5000 < database.pttl(quiet) <= month
    lease.renew()
    seconds, microseconds = database.time()
    score = database.zscore(state.keys.leases("rollout"), "0")
    assert 25_000 < database.pttl(state.keys.lease("rollout", "0")) <= 30_000
    assert 25_000 < score - 1000 * seconds - microseconds / 1000 <= 30_000


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0.0, "1"), (0.0004, "1"), (0.0025, "2"), (30.0, "30000")])
def test_lease_of_no_time_lasts_a_millisecond(state: RunState, monkeypatch: pytest.MonkeyPatch, seconds: float,
                                              milliseconds: str) -> None:
    """Redis refuses an expiry of 0."""
    sent: list[str] = []
    monkeypatch.setattr(functions, "call", lambda _, name, keys, *arguments: sent.append(arguments[2]))
    state.lease("rollout", "0", seconds).renew()
    assert sent == [milliseconds]


def test_instance_is_quiet_only_when_it_is_idle(state: RunState) -> None:
    lease = state.lease("rollout", "0", 30)
    for pause, quiet, listed in ((3, True, 3), (3, False, 0), (0, False, 0)):
        lease.renew({"n": 1}, 5, 6, pause, quiet)
        (found,) = state.services("rollout")
        assert (found.quiet, found.epoch, found.revision, found.stats) == (listed, 5, 6, {"n": 1})


def test_instance_is_busy_and_without_a_revision_by_default(state: RunState, database: redis.Redis) -> None:
    lease = state.lease("rollout", "0", 30)
    lease.renew()
    (found,) = state.services("rollout")
    assert (found.stats, found.epoch, found.revision, found.quiet) == ({}, 0, 0, 0)
    assert (found.address, found.metrics_address) == ("", "")
    assert not database.exists(state.keys.quiet("rollout", "0"), state.keys.quiet_names("rollout"))
    lease.renew({}, 1, 1, 3)
    (found,) = state.services("rollout")
    assert found.quiet == 0
    assert json.loads(database.get(state.keys.quiet("rollout", "0")))["quiet"] is False  # type: ignore[arg-type]


def test_time_of_an_acknowledgement_is_that_of_its_first_sending(state: RunState, database: redis.Redis,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal repeats the acknowledgement; another one has its own time."""
    lease, now = state.lease("rollout", "0", 30), [0.0]
    monkeypatch.setattr("rapid.store.leases.time.time", lambda: now[0])
    times = []
    for at, pause, epoch, quiet in ((5.0, 3, 1, False), (6.0, 3, 1, False), (7.0, 3, 1, True), (8.0, 3, 1, True),
                                    (9.0, 4, 1, True), (10.0, 4, 2, True), (11.0, 4, 2, False), (12.0, 3, 1, False)):
        now[0] = at
        lease.renew({}, epoch, 1, pause, quiet)
        row = json.loads(database.get(state.keys.quiet("rollout", "0")))  # type: ignore[arg-type]
        assert (row["pause"], row["epoch"], row["quiet"]) == (pause, epoch, quiet)
        times.append(row["at"])
    assert times == [5.0, 5.0, 7.0, 7.0, 9.0, 10.0, 11.0, 12.0]


def test_stats_are_numbers_that_json_has(state: RunState) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        state.lease("rollout", "0", 30).renew({"loss": float("nan")})
    assert state.services() == []


def test_lease_of_an_earlier_release_is_listed(database: redis.Redis) -> None:
    """It has neither a revision nor a pause."""
    keys, lease = Keys("r"), {"kind": "rollout", "id": "0", "address": "h:1", "metrics_address": "", "started_at": 5,
                              "beaten_at": 6, "stats": {"n": 1}}
    database.set(keys.lease("rollout", "0"), json.dumps(lease))
    database.zadd(keys.leases("rollout"), {"0": 2.0**42})
    (found,) = Leases(database, "r").live("rollout")
    assert found == ("rollout", "0", "h:1", "", 5.0, 6.0, {"n": 1}, 0, 0, 0, "")


@pytest.mark.parametrize(("status", "pause", "acknowledged"), [
    ("pausing", 1, True), ("paused", 2, True), ("operating", 3, True), ("running", 1, False), ("warming", 1, False),
    ("paused", 0, False), ("paused", None, False)])
def test_release_acknowledges_in_a_pause_alone(state: RunState, database: redis.Redis, status: str, pause: int | None,
                                               acknowledged: bool) -> None:
    lease = state.lease("rollout", "0", 30)
    lease.renew()
    database.set(state.keys.status, json.dumps({"status": status, **({} if pause is None else {"pause": pause})}))
    before = time.time()
    lease.release()
    text = database.get(state.keys.quiet("rollout", "0"))
    assert (text is not None) == acknowledged == (database.zcard(state.keys.quiet_names("rollout")) == 1)
    if text is not None:
        row = json.loads(text)  # type: ignore[arg-type]
        assert (row["pause"], row["quiet"], row["gone"]) == (pause, True, True) and abs(row["at"] - before) < 5


@pytest.mark.parametrize("restarting", [False, True])
def test_instance_that_restarts_is_still_waited_for(state: RunState, database: redis.Redis, restarting: bool) -> None:
    lease = state.lease("rollout", "0", 30)
    lease.renew()
    state.transition(Status.PAUSING, "test")
    lease.release(restarting)
    row = json.loads(database.get(state.keys.quiet("rollout", "0")))  # type: ignore[arg-type]
    assert row["quiet"] is not restarting and row["gone"] is True
    assert state.idle_report().waiting_for == ["rollout/0"] * restarting
    assert state.services() == []


def test_release_without_a_run_ends_the_lease(database: redis.Redis) -> None:
    lease = Lease(database, "r", "rollout", "0", 30)
    lease.renew()
    lease.release()
    assert Leases(database, "r").live() == []
    assert not database.exists(Keys("r").leases("rollout"), Keys("r").lease("rollout", "0"))


def test_renewal_removes_expired_names_alone(state: RunState, database: redis.Redis) -> None:
    names = state.keys.leases("rollout")
    now = 1000 * int(database.time()[0])
    database.zadd(names, {"expired": now - 1000, "soon": now + 5000, "later": now + 50_000})
    state.lease("rollout", "0", 30).renew()
    assert database.zrange(names, 0, -1) == [b"soon", b"0", b"later"]


def test_kinds_cover_every_service(state: RunState) -> None:
    from rapid.store import acl

    assert sorted(acl.SERVICES) == list(leases.KINDS)


def test_damaged_lease_hides_no_other_instance(database: redis.Redis) -> None:
    Lease(database, "r", "rollout", "good", 10).renew({"games": 3})
    keys = Keys("r")
    other = database.get(keys.lease("rollout", "good"))
    good = json.loads(other)  # type: ignore[arg-type]
    for name, change in {"address": {"address": 5}, "life": {"life": None}, "stats": {"stats": []}}.items():
        database.set(keys.lease("rollout", name), json.dumps({**good, "id": name, **change}))
        database.zadd(keys.leases("rollout"), {name: 2.0**40})
    for name, text in {"not-json": b"{", "deep": b"[" * 3000, "list": b"[]", "number": b'{"kind": 5}', "other": other
                       }.items():
        database.set(keys.lease("rollout", name), text)  # type: ignore[arg-type]
        database.zadd(keys.leases("rollout"), {name: 2.0**40})
    database.zadd(keys.leases("rollout"), {b"\xff": 2.0**40})
    assert [i.id for i in Leases(database, "r").live()] == ["good"]
    assert idle_report(database, "r").waiting_for == []
