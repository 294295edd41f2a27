"""Rehearsals over REST and in the run's state, with real Redis: accepted, refused and abandoned ones."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from five.agent.surgery import AgentSpec
from five.services.controller.operations.document import OperatorDecision
from five.services.controller.surgery.rehearsals import (
    LEASE_MS,
    MAX_RECORDS,
    Rehearsal,
    RehearsalInProgress,
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    RehearsalWorker,
    new_rehearsal,
)
from tests.services.live_controller import VIEWER, LiveController, live, problem
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
HERE = RehearsalWorker(host="workstation", pid=4711)
SCOPE = RehearsalScope(versions=3, games=8)


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, agent=OLD) as found:
        yield found


@pytest.fixture
def kept(rest: LiveController) -> Rehearsals:
    return Rehearsals(rest.state)


@pytest.fixture
def plan(rest: LiveController) -> dict[str, Any]:
    answer = rest.ask("POST", "/v1/surgery/plan", json={"name": "wider", "overrides": ["model.lstm=16"]})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def of(name: str = "wider", **changes: Any) -> Rehearsal:
    """Return a requested rehearsal."""
    return new_rehearsal(f"name: {name}\n", "ab" * 32, name, 1, "ada", SCOPE).model_copy(update=changes)


def told(rest: LiveController) -> list[tuple[str, str]]:
    return [(e.who, e.what) for e in rest.state.events.read() if e.what.startswith("rehearsal.")]


def test_rehearsal_without_a_worker_names_the_command(rest: LiveController, plan: dict[str, Any]
                                                                         ) -> None:
    answer = rest.ask("POST", "/v1/surgery/rehearse", json={"plan": plan["plan"], "versions": 5, "games": 20})
    said = problem(answer, 409, "no-rehearsal-worker")
    assert said["command"] == "five surgery rehearse wider.yaml --versions 5 --games 20 --minutes 60"
    assert said["command"] in said["detail"] and "containers" in said["detail"]
    assert rest.ask("GET", "/v1/surgery/rehearsals").json() == {
        "items": [], "total": 0, "next": None, "worker": None}
    assert told(rest) == []


def test_a_request_is_stored_once_with_its_author(rest: LiveController, kept: Rehearsals, plan: dict[str, Any]) -> None:
    kept.announce(HERE)
    body = {"plan": plan["plan"], "versions": 5, "games": 20, "reason": "is it worth it?"}
    problem(rest.ask("POST", "/v1/surgery/rehearse", VIEWER, json=body), 403, "forbidden")
    dry = rest.ask("POST", "/v1/surgery/rehearse?dry_run=true", json=body)
    assert dry.status_code == 200 and kept.all() == [] and told(rest) == []
    first, again = (rest.ask("POST", "/v1/surgery/rehearse", json=body, headers={"Idempotency-Key": "k"})
                    for _ in range(2))
    assert first.status_code == again.status_code == 202 and first.json() == again.json()
    made = first.json()
    assert (made["state"], made["who"], made["digest"], made["by"]) == ("waiting", "ada", plan["digest"], "run")
    assert rest.ask("GET", first.headers["Location"], VIEWER).json() == made
    listed = rest.ask("GET", "/v1/surgery/rehearsals", VIEWER).json()
    assert listed["items"] == [made] and listed["worker"] == {"host": "workstation", "pid": 4711}
    other = problem(rest.ask("POST", "/v1/surgery/rehearse", json=body), 409, "rehearsal-in-progress")
    assert other["rehearsal"] == made["id"]
    event = rest.state.events.last(1)[0]
    assert (event.who, event.what, event.details["digest"]) == ("ada", "rehearsal.asked", plan["digest"])
    assert told(rest) == [("ada", "rehearsal.asked")]


@pytest.mark.parametrize(("body", "status", "kind"), [
    ({"plan": "name: wider\nsteps: [{kind: none}]\n"}, 422, "invalid"),
    ({"plan": "x", "versions": 0}, 422, "invalid"),
    ({"plan": "x", "games": 1}, 422, "invalid"),
    ({"plan": "name: wider\nparent: 0123456789abcdef\nsteps:\n- kind: grow_lstm\n  to: 16\n"}, 409, "stale-plan")])
def test_invalid_rehearsals_are_refused(rest: LiveController, kept: Rehearsals, body: dict[str, Any], status: int,
                                        kind: str) -> None:
    kept.announce(HERE)
    problem(rest.ask("POST", "/v1/surgery/rehearse", json=body), status, kind)
    assert kept.all() == []


def test_cancel_ends_queued_and_signals_running_rehearsals(rest: LiveController, kept: Rehearsals
                                                                         ) -> None:
    kept.announce(HERE)
    waiting = kept.begin(of())
    path = f"/v1/surgery/rehearsals/{waiting.id}/cancel"
    assert rest.ask("POST", path + "?dry_run=true").json()["state"] == "waiting"
    assert rest.ask("POST", path, json={"reason": "no"}).json()["state"] == "cancelled"
    assert rest.ask("POST", path).json()["state"] == "cancelled"  # again: it stays so
    assert told(rest) == [("ada", "rehearsal.asked"), ("ada", "rehearsal.cancelled")]
    going = kept.begin(of(state=RehearsalState.LEARNING))
    assert kept.hold(going.id)
    path = f"/v1/surgery/rehearsals/{going.id}/cancel"
    problem(rest.ask("POST", path, VIEWER), 403, "forbidden")
    answer = rest.ask("POST", path).json()
    assert answer["state"] == "learning" and answer["cancel"]["who"] == "ada"  # the worker's result takes precedence
    kept.change(going.id, lambda r: r.model_copy(update={"state": RehearsalState.DONE}))
    problem(rest.ask("POST", path), 409, "conflict")
    problem(rest.ask("POST", "/v1/surgery/rehearsals/none/cancel"), 404, "not-found")
    problem(rest.ask("GET", "/v1/surgery/rehearsals/none"), 404, "not-found")


def test_orphaned_rehearsal_is_abandoned_and_blocks_nothing(rest: LiveController, kept: Rehearsals
                                                                           ) -> None:
    kept.announce(HERE)
    waiting = kept.begin(of())
    assert kept.get(waiting.id) == waiting
    kept.withdraw()
    assert [r.state for r in kept.all()] == [RehearsalState.ABANDONED]
    going = kept.begin(of("deeper", state=RehearsalState.PLAYING))  # an abandoned rehearsal does not block it
    assert kept.hold(going.id)
    seen = {r.id: r.state for r in kept.all()}
    assert seen == {waiting.id: RehearsalState.ABANDONED, going.id: RehearsalState.PLAYING}
    with pytest.raises(RehearsalInProgress, match="deeper"):
        kept.begin(of())
    kept.settle()
    assert kept.get(going.id) == going  # held: it is not the one's who comes
    kept.release(going.id)
    kept.settle()
    assert rest.state.table("rehearsals").all()[going.id]["state"] == "abandoned"
    problem(rest.ask("POST", f"/v1/surgery/rehearsals/{going.id}/cancel"), 409, "conflict")


def test_only_one_is_held_and_a_hold_ends_by_itself(rest: LiveController, kept: Rehearsals) -> None:
    assert kept.hold("one") and kept.hold("one") and not kept.hold("two")
    kept.release("two")
    assert not kept.hold("two")
    key = rest.state.keys.rehearsing
    assert 0 < int(rest.state.redis.pttl(key)) <= LEASE_MS  # type: ignore[arg-type]
    rest.state.redis.delete(key)
    assert kept.hold("two")


def test_the_newest_are_kept(rest: LiveController, kept: Rehearsals) -> None:
    for n in range(MAX_RECORDS + 5):
        kept.begin(of(f"plan-{n}", state=RehearsalState.DONE, asked_at=float(n)))
    assert [r.name for r in kept.all()] == [f"plan-{n}" for n in range(MAX_RECORDS + 4, 4, -1)]


def test_second_decision_changes_nothing(rest: LiveController, kept: Rehearsals) -> None:
    going = kept.begin(of(state=RehearsalState.LEARNING))
    kept.hold(going.id)
    first = OperatorDecision(who="ada", at=time.time(), reason="")
    assert kept.cancel(going.id, first) == kept.cancel(going.id, OperatorDecision(who="eve", at=time.time(), reason=""))
    assert kept.cancel("none", first) is None
