"""Rehearsals over REST and in the run's state, with real Redis: accepted, refused and abandoned ones."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from pydantic import ValidationError

from five.agent.surgery import AgentSpec
from five.services.controller.operations.document import OperatorDecision
from five.services.controller.surgery.rehearsals import (
    LEASE_MS,
    Rehearsal,
    RehearsalInProgress,
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    RehearsalWorker,
    new_rehearsal,
)
from rapid.store.state import RunState
from tests.services.live_controller import RUN, VIEWER, LiveController, live, problem
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
HERE = RehearsalWorker(host="workstation", pid=4711)
SCOPE = RehearsalScope(versions=3, games=8)


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, agent=OLD) as found:
        yield found


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, RUN)


@pytest.fixture
def kept(state: RunState) -> Rehearsals:
    return Rehearsals(state)


@pytest.fixture
def plan(rest: LiveController) -> dict[str, Any]:
    answer = rest.ask("POST", "/v1/surgery/plan", json={"name": "wider", "overrides": ["model.lstm=16"]})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def of(name: str = "wider", **changes: Any) -> Rehearsal:
    """Return a requested rehearsal."""
    return new_rehearsal(f"name: {name}\n", "ab" * 32, name, 1, "ada", SCOPE).model_copy(update=changes)


def told(state: RunState) -> list[tuple[str, str]]:
    return [(e.who, e.what) for e in state.events.read() if e.what.startswith("rehearsal.")]


def test_rehearsal_without_a_worker_names_the_command(rest: LiveController, plan: dict[str, Any]
                                                                         ) -> None:
    answer = rest.ask("POST", "/v1/surgery/rehearse", json={"plan": plan["plan"], "versions": 5, "games": 20})
    said = problem(answer, 409, "no-rehearsal-worker")
    assert said["command"] == "five surgery rehearse wider.yaml --versions 5 --games 20 --minutes 60"
    assert said["command"] in said["detail"] and "containers" in said["detail"]
    assert rest.ask("GET", "/v1/surgery/rehearsals").json() == {
        "items": [], "total": 0, "next": None, "worker": None}
    assert told(rest.state) == []


def test_a_request_is_stored_once_with_its_author(rest: LiveController, kept: Rehearsals, plan: dict[str, Any]) -> None:
    kept.announce(HERE)
    body = {"plan": plan["plan"], "versions": 5, "games": 20, "reason": "is it worth it?"}
    problem(rest.ask("POST", "/v1/surgery/rehearse", VIEWER, json=body), 403, "forbidden")
    dry = rest.ask("POST", "/v1/surgery/rehearse?dry_run=true", json=body)
    assert dry.status_code == 200 and kept.all() == [] and told(rest.state) == []
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
    assert told(rest.state) == [("ada", "rehearsal.asked")]


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
    assert told(rest.state) == [("ada", "rehearsal.asked"), ("ada", "rehearsal.cancelled")]
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


def test_only_one_is_held_and_a_hold_ends_by_itself(state: RunState, kept: Rehearsals) -> None:
    assert kept.hold("one") and kept.hold("one") and not kept.hold("two")
    kept.release("two")
    assert not kept.hold("two")
    key = state.keys.rehearsing
    assert 0 < int(state.redis.pttl(key)) <= LEASE_MS  # type: ignore[arg-type]
    state.redis.delete(key)
    assert kept.hold("two")


@pytest.mark.parametrize("other", ["a", "z"])
def test_hold_and_release_compare_ids(state: RunState, kept: Rehearsals, other: str) -> None:
    assert kept.hold("m") and not kept.hold(other)
    kept.release(other)
    assert not kept.hold(other), "released by another rehearsal"
    kept.release("m")
    assert kept.hold(other), "not released by its own rehearsal"
    state.redis.pexpire(state.keys.rehearsing, 100)
    assert kept.hold(other)
    assert int(state.redis.pttl(state.keys.rehearsing)) > 1000, "not renewed"  # type: ignore[arg-type]


def test_twenty_newest_are_kept(state: RunState, kept: Rehearsals) -> None:
    for n in range(25):
        kept.begin(of(f"plan-{n}", state=RehearsalState.DONE, asked_at=float(n)))
    assert [r.name for r in kept.all()] == [f"plan-{n}" for n in range(24, 4, -1)]


def test_rehearsals_of_one_instant_are_ordered_by_id(kept: Rehearsals) -> None:
    for identity in ("b", "c", "a"):
        kept.begin(of(id=identity, state=RehearsalState.DONE, asked_at=1.0))
    assert [r.id for r in kept.all()] == ["c", "b", "a"]


def test_begin_replaces_itself_and_a_dry_run_stores_nothing(state: RunState, kept: Rehearsals) -> None:
    kept.announce(HERE)
    waiting = of(reason="why")
    kept.begin(waiting, dry_run=True)
    assert kept.all() == [] and told(state) == []
    kept.begin(waiting)
    kept.begin(waiting.model_copy(update={"state": RehearsalState.PREPARING}))  # its worker has accepted it
    details = state.events.last(1)[0].details
    assert {"rehearsal": waiting.id, "plan": "wider", "by": "run", "reason": "why", **SCOPE.model_dump()}.items() <= \
        details.items()
    assert kept.hold(waiting.id)
    assert [r.state for r in kept.all()] == [RehearsalState.PREPARING]
    for dry_run in (True, False):
        with pytest.raises(RehearsalInProgress) as refused:
            kept.begin(of("deeper"), dry_run)
        assert refused.value.rehearsal.id == waiting.id


def test_begin_stores_orphans_as_abandoned(state: RunState, kept: Rehearsals) -> None:
    orphan = kept.begin(of(state=RehearsalState.LEARNING))
    kept.begin(of("deeper", state=RehearsalState.DONE))
    row = state.table("rehearsals").all()[orphan.id]
    assert (row["state"], row["ended_at"]) == ("abandoned", None) and "ended unexpectedly" in row["error"]


def test_a_change_without_effect_has_no_event(state: RunState, kept: Rehearsals) -> None:
    done = kept.begin(of(state=RehearsalState.DONE))
    before = told(state)
    event = ("ada", "rehearsal.noted", {})
    assert kept.change("none", lambda r: r, event) is None
    assert kept.change(done.id, lambda r: r, event) == done
    assert told(state) == before
    changed = kept.change(done.id, lambda r: r.model_copy(update={"played": 3}), event)
    assert changed is not None and changed.played == 3 and kept.get(done.id) == changed
    assert told(state) == [*before, ("ada", "rehearsal.noted")]


def test_new_worker_abandons_requests_to_the_previous_one(state: RunState, kept: Rehearsals) -> None:
    kept.announce(HERE)
    done = kept.begin(of("done", state=RehearsalState.DONE))
    waiting = kept.begin(of())
    going = of("deeper", state=RehearsalState.PLAYING)
    state.table("rehearsals").set(going.id, going.model_dump(mode="json"))
    assert kept.hold(going.id)
    kept.settle()
    assert {row["name"]: row["state"] for row in state.table("rehearsals").all().values()} == {
        "wider": "abandoned", "done": "done", "deeper": "playing"}
    assert [r.is_over for r in (waiting, done, going)] == [False, True, False]
    assert kept.cancel(waiting.id, OperatorDecision(who="ada", at=5.0, reason="")) == kept.get(waiting.id)
    assert told(state).count(("ada", "rehearsal.cancelled")) == 0, "it was over"


def test_a_cancelled_request_ends_when_it_was_cancelled(state: RunState, kept: Rehearsals) -> None:
    kept.announce(HERE)
    waiting = kept.begin(of())
    found = kept.cancel(waiting.id, OperatorDecision(who="eve", at=5.0, reason="too long"))
    assert found is not None and found.cancel is not None
    assert (found.state, found.ended_at, found.cancel.who, found.cancel.reason) == (
        RehearsalState.CANCELLED, 5.0, "eve", "too long")
    event = state.events.last(1)[0]
    assert (event.who, event.details) == ("eve", {"rehearsal": waiting.id, "reason": "too long"})


@pytest.mark.parametrize("seen_at", [0, 1])
def test_lease_that_begins_or_ends_during_a_read_counts(state: RunState, kept: Rehearsals, seen_at: int,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases are read before and after the rows; here only one of the two reads sees them."""
    waiting, going = of(), of("deeper", state=RehearsalState.LEARNING)
    rows = {r.id: r.model_dump(mode="json") for r in (waiting, going)}
    state.table("rehearsals").update(lambda _: rows)
    read, reads = state.redis.mget, list[int]()

    def read_leases(*keys: Any) -> Any:
        reads.append(0)
        return [going.id.encode(), b"{}"] if len(reads) % 2 != seen_at else read(*keys)

    monkeypatch.setattr(state.redis, "mget", read_leases)
    assert {r.state for r in kept.all()} == {RehearsalState.WAITING, RehearsalState.LEARNING}
    assert kept.get(waiting.id) == waiting and kept.get(going.id) == going
    with pytest.raises(RehearsalInProgress):
        kept.begin(of("other"))
    kept.settle()
    assert kept.get(going.id) == going, "a new worker abandoned a rehearsal in progress"
    cancelled = kept.cancel(going.id, OperatorDecision(who="ada", at=5.0, reason=""))
    assert cancelled is not None and cancelled.state is RehearsalState.LEARNING and cancelled.cancel is not None


@pytest.mark.parametrize(("name", "least", "most"), [("versions", 1, 100_000), ("games", 2, 10_000)])
def test_scope_has_whole_numbers_within_limits(name: str, least: int, most: int) -> None:
    for allowed in (least, most):
        assert getattr(RehearsalScope.model_validate({name: allowed}), name) == allowed
    for refused in (least - 1, most + 1, "5", 5.0, True):
        with pytest.raises(ValidationError):
            RehearsalScope.model_validate({name: refused})


def test_scope_lasts_at_most_a_week() -> None:
    assert RehearsalScope(minutes=10_080.0).minutes == 10_080 and RehearsalScope(minutes=0.5).minutes == 0.5
    for refused in (0, -1, 10_080.5):
        with pytest.raises(ValidationError):
            RehearsalScope(minutes=refused)
    assert RehearsalScope().model_dump() == {"versions": 10, "games": 100, "minutes": 60.0}


def test_second_decision_changes_nothing(state: RunState, kept: Rehearsals) -> None:
    going = kept.begin(of(state=RehearsalState.LEARNING))
    kept.hold(going.id)
    first = OperatorDecision(who="ada", at=time.time(), reason="")
    assert kept.cancel(going.id, first) == kept.cancel(going.id, OperatorDecision(who="eve", at=time.time(), reason=""))
    assert kept.cancel("none", first) is None
    assert told(state).count(("ada", "rehearsal.cancelled")) == 1 and ("eve", "rehearsal.cancelled") not in told(state)


@pytest.mark.parametrize("method", ["hold", "release"])
def test_lease_that_moves_during_a_call_stays(state: RunState, kept: Rehearsals, method: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease of the first rehearsal expires after it is read, and a second one acquires it."""
    assert kept.hold("one")
    get = redis.client.Pipeline.get

    def read_and_move(pipeline: Any, key: str) -> Any:
        holder = get(pipeline, key)
        if holder == b"one":
            state.redis.set(key, "two", px=LEASE_MS)
        return holder

    monkeypatch.setattr(redis.client.Pipeline, "get", read_and_move)
    assert not getattr(kept, method)("one")
    assert state.redis.get(state.keys.rehearsing) == b"two"
