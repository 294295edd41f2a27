"""Stored surgery plans: the newest checks stay, and plans stay for good."""

import time

import pytest
import redis

from rapid.store import surgery_plans
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanChecks, PlanStore


@pytest.fixture
def run(database: redis.Redis) -> RunState:
    return RunState(database, "r")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def known(checks: PlanChecks, digests: str) -> str:
    return "".join(digest for digest in digests if checks.get(digest) is not None)


def test_check_is_stored_with_its_plan_and_time(run: RunState, clock: list[float]) -> None:
    checks = PlanChecks(run)
    assert checks.get("a") is None
    checks.put("a", {"ok": True, "reasons": []})
    checks.put("b", {"ok": False})
    assert PlanChecks(run).get("a") == {"ok": True, "reasons": [], "digest": "a", "at": 1000.0}
    clock[0] = 1001.0
    checks.put("a", {"ok": False})
    checks.put("c", {"ok": True})
    assert checks.get("a") == {"ok": False, "digest": "a", "at": 1001.0}
    assert checks.get("b") == {"ok": False, "digest": "b", "at": 1000.0}


def test_oldest_checks_are_removed(run: RunState, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Age decides, not the digest, and a plan that is checked again is the newest."""
    monkeypatch.setattr(surgery_plans, "MAX_CHECKS", 3)
    checks = PlanChecks(run)
    left = []
    for digest in "czaczabxcx":
        clock[0] += 1
        checks.put(digest, {})
        left.append(known(checks, "abcxz"))
    assert left == ["c", "cz", "acz", "acz", "acz", "acz", "abz", "abx", "bcx", "bcx"]


def test_hundred_checks_are_kept(run: RunState, clock: list[float]) -> None:
    checks = PlanChecks(run)
    run.table(surgery_plans.CHECKS_TABLE).update(
        lambda rows: {f"{i:03}": {"digest": f"{i:03}", "at": float(i)} for i in range(99)})
    checks.put("new", {})
    assert checks.get("000") is not None
    clock[0] += 1
    checks.put("newer", {})
    assert checks.get("000") is None and checks.get("001") is not None and checks.get("new") is not None


def test_plan_is_stored_by_its_digest(run: RunState) -> None:
    plans = PlanStore(run)
    assert plans.get("a") is None and plans.all() == {}
    plans.put("a", {"plan": "widen", "game": {}})
    plans.put("b", {"plan": "deepen"})
    plans.put("b", {"plan": "other"})
    assert PlanStore(run).get("a") == {"plan": "widen", "game": {}}
    assert plans.all() == {"a": {"plan": "widen", "game": {}}, "b": {"plan": "other"}}
    PlanChecks(run).put("a", {})
    assert plans.get("a") == {"plan": "widen", "game": {}}, "a check must not replace the plan's text"
