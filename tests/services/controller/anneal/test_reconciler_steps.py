"""Single passes of the anneal's reconciler: gates, promotions, and reverts of failed attempts."""

from typing import Any, Literal

import pytest

from dota.config import GameConfig
from five.agent.anneal.document import Anneal, AnnealPolicy, AnnealState
from five.agent.anneal.transitions import FollowUp, Transition
from five.services.controller.anneal import reconciler as module
from five.services.controller.anneal.reconciler import (
    AnnealReconciler,
    fail_on_request,
    game_with_overrides,
    read_anneal,
)
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, OperationState
from five.services.controller.operations.store import OperationStore
from rapid.store.errors import FencedOut
from rapid.store.record import RunRecord
from rapid.store.state import ACTIVE, RunState, Status
from tests.services.controller.anneal.stored_anneals import (
    GAME_THEN,
    OVERRIDES,
    RECORD,
    UNFINISHED,
    events,
    stored,
)


@pytest.fixture
def operations(state: RunState) -> OperationStore:
    return OperationStore(state)


def reconciler(state: RunState, head: int | None = 20) -> AnnealReconciler:
    return AnnealReconciler(state, OperationStore(state), lambda: head)


@pytest.mark.parametrize("status", [None, Status.RUNNING, Status.PAUSING, Status.STOPPING, Status.FAILED])
def test_gate_is_reached_only_while_the_run_plays(state: RunState, status: Status | None) -> None:
    first = stored(state)
    if status is None:
        state.redis.delete(state.keys.status)
    elif status is not Status.RUNNING:
        state.transition(status, "test")
    found = reconciler(state, 90).reconcile()
    assert found is not None and found == read_anneal(state)
    held = found.state is AnnealState.HOLDING and found.held_by == "gate"
    assert held == (status in ACTIVE) and (held or found == first)


def test_nothing_is_due_without_an_anneal_or_a_version(state: RunState) -> None:
    assert reconciler(state).reconcile() is None
    for unfinished in UNFINISHED:
        first = stored(state, state=unfinished)
        assert reconciler(state, None).reconcile() == first == read_anneal(state)
    assert OperationStore(state).all() == []


@pytest.mark.parametrize("over", [s for s in AnnealState if s not in UNFINISHED])
def test_finished_anneal_stays(state: RunState, over: AnnealState) -> None:
    first = stored(state, state=over)
    assert reconciler(state, 500).reconcile() == first == read_anneal(state)
    assert OperationStore(state).all() == [] and events(state) == []


def promotion(anneal: Anneal) -> Transition:
    return Transition(anneal.model_copy(update={"state": AnnealState.PROMOTED, "revision": anneal.revision + 1}),
                      FollowUp.APPLY_OVERRIDES)


def test_promotion_changes_the_game_before_the_anneal(state: RunState) -> None:
    """A controller that dies in between finds the game changed, and promotes without another change."""
    first = stored(state)
    for passes in range(2):
        if passes == 1:
            stored(state, first)  # as before the crash
        found = reconciler(state).apply_step(first, promotion(first), "ada")
        assert found == read_anneal(state) and found.state is AnnealState.PROMOTED
        record = state.record()
        assert record is not None and (record.game, record.run_revision) == (GAME_THEN, (1, 2))
    assert events(state) == ["anneal.made_the_game", "anneal.promoted", "anneal.promoted"]
    made = next(e for e in state.events.read() if e.what == "anneal.made_the_game")
    assert (made.who, made.details) == ("ada", {"anneal": "patch-1", "overrides": OVERRIDES, "revision": 2})


def test_promotion_without_a_record_only_ends_the_anneal(state: RunState) -> None:
    first = stored(state)
    state.redis.delete(state.keys.record)
    assert reconciler(state).apply_step(first, promotion(first), "ada").state is AnnealState.PROMOTED
    assert state.record() is None and events(state) == ["anneal.promoted"]


def test_promotion_beside_another_change_is_made_again(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stored(state)
    other = RECORD.changed(new_epoch=False, model={"lstm": 64})

    def slow(record: RunRecord, overrides: dict[str, Any]) -> GameConfig:
        state.set_record(RECORD, other, "test", "record.set", {})
        return game_with_overrides(record, overrides)

    with monkeypatch.context() as during:
        during.setattr(module, "game_with_overrides", slow)
        with pytest.raises(FencedOut):
            reconciler(state).apply_step(first, promotion(first), "ada")
    assert read_anneal(state) == first and state.record() == other
    reconciler(state).apply_step(first, promotion(first), "ada")
    record = state.record()
    assert record is not None and (record.game, record.model) == (GAME_THEN, other.model)


def test_step_of_an_outdated_anneal_is_dropped(state: RunState) -> None:
    first = stored(state)
    held = stored(state, state=AnnealState.HOLDING, held_by="ada")
    step = Transition(first.model_copy(update={"state": AnnealState.ABORTED}))
    assert reconciler(state).apply_step(first, step, "bob") == held == read_anneal(state)
    unchanged = Transition(first.model_copy(update={"state": AnnealState.ABORTED}), changed=False)
    assert reconciler(state).apply_step(held, unchanged, "bob") == unchanged.anneal and read_anneal(state) == held


# The revert of a failed attempt.


@pytest.mark.parametrize(("status", "begins"), [
    (Status.RUNNING, True), (Status.PAUSED, True), (Status.PAUSING, False), (Status.STOPPING, False), (None, False)])
def test_failed_attempt_is_reverted_while_the_run_can_be_paused(state: RunState, operations: OperationStore,
                                                                status: Status | None, begins: bool) -> None:
    failed = stored(state, state=AnnealState.FAILED, reason="worse")
    if status is None:
        state.redis.delete(state.keys.status)
    for to in {Status.PAUSING: [Status.PAUSING], Status.PAUSED: [Status.PAUSING, Status.PAUSED],
               Status.STOPPING: [Status.STOPPING]}.get(status or Status.RUNNING, []):
        state.transition(to, "test")
    for _ in range(2):
        assert reconciler(state).reconcile() == failed
    assert len(operations.all()) == begins
    for operation in operations.all():
        assert (operation.kind, operation.who, operation.was, operation.reason) == (
            OperationKind.REVERT, "controller", status, "worse")
        assert operation.request == OperationRequest(
            name="anneal patch-1/1 to version 10", parent="s", epoch=1, to_version=10,
            anneal={"trial": "patch-1/1", "revision": failed.revision})


def test_failed_attempt_of_a_run_without_a_record_waits(state: RunState, operations: OperationStore) -> None:
    failed = stored(state, state=AnnealState.FAILED)
    state.redis.delete(state.keys.record)
    assert reconciler(state).reconcile() == failed and operations.all() == []


def end(operations: OperationStore, operation: Operation, state: OperationState = OperationState.DONE) -> None:
    assert operations.save(operation, operation.model_copy(update={"state": state, "ended_at": 1.0}))


def test_revert_waits_for_other_operations(state: RunState, operations: OperationStore) -> None:
    failed = stored(state, state=AnnealState.FAILED)
    for kind, request in (
            (OperationKind.REVERT, OperationRequest(to_version=10)),
            (OperationKind.REVERT, OperationRequest(to_version=10, anneal={"trial": "patch-1/2"})),
            (OperationKind.ANNEAL, OperationRequest(anneal={"trial": "patch-1/1"}))):
        other = operations.begin(kind, "ada", request, "running")
        assert reconciler(state).reconcile() == failed and operations.active() == other
        end(operations, other)
    assert reconciler(state).reconcile() == failed
    mine = operations.active()
    assert mine is not None and (mine.request.anneal or {})["trial"] == "patch-1/1"


@pytest.mark.parametrize("result", [OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED, None])
def test_next_attempt_begins_after_the_revert(state: RunState, operations: OperationStore,
                                              result: OperationState | None) -> None:
    failed = stored(state, state=AnnealState.FAILED, reason="worse")
    reconciler(state).reconcile()
    mine = operations.active()
    assert mine is not None
    if result is not None:
        end(operations, mine, result)
    found = reconciler(state, 21).reconcile()
    assert found is not None and len(operations.all()) == 1
    if result is not OperationState.DONE:
        assert found == failed
    else:
        assert (found.state, found.attempt, found.began) == (AnnealState.RAMPING, 2, 21)


@pytest.mark.parametrize("result", [OperationState.FAILED, OperationState.CANCELLED])
@pytest.mark.parametrize("policy", ["retry", "stop"])
def test_failed_revert_is_repeated_on_request(state: RunState, operations: OperationStore, result: OperationState,
                                              policy: Literal["retry", "stop"]) -> None:
    stored(state, state=AnnealState.FAILED, policy=AnnealPolicy(on_fail=policy))
    for count in (1, 2, 3):
        for _ in range(2):
            reconciler(state).reconcile()
            assert len(operations.all()) == count
        mine = operations.active()
        assert mine is not None
        end(operations, mine, result)
        reconciler(state).reconcile()
        assert len(operations.all()) == count  # not without a request
        request_revert(state)
    reconciler(state).reconcile()
    mine = operations.active()
    assert mine is not None
    end(operations, mine)
    found = reconciler(state).reconcile()
    assert found is not None and found.state is AnnealState.REVERTED and len(operations.all()) == 4


def request_revert(state: RunState) -> None:
    anneal = read_anneal(state)
    assert anneal is not None
    reconciler(state).apply_step(anneal, fail_on_request(anneal, "ada", ""), "ada")


@pytest.mark.parametrize("result", [OperationState.FAILED, OperationState.DONE])
def test_requests_during_a_revert_begin_one_at_most(state: RunState, operations: OperationStore,
                                                    result: OperationState) -> None:
    stored(state, state=AnnealState.FAILED)
    reconciler(state).reconcile()
    for _ in range(2):
        request_revert(state)
        reconciler(state).reconcile()
    (mine,) = operations.all()
    end(operations, mine, result)
    for _ in range(2):
        reconciler(state).reconcile()
        assert len(operations.all()) == 1 + (result is OperationState.FAILED)


def test_failed_revert_of_an_earlier_release_waits_for_a_request(state: RunState, operations: OperationStore) -> None:
    stored(state, state=AnnealState.FAILED)
    end(operations, operations.begin(OperationKind.REVERT, "controller", OperationRequest(
        to_version=10, anneal={"trial": "patch-1/1"}), "running"), OperationState.FAILED)
    for _ in range(2):
        reconciler(state).reconcile()
        assert len(operations.all()) == 1
    request_revert(state)
    reconciler(state).reconcile()
    assert len(operations.all()) == 2


@pytest.mark.parametrize("overrides", [{"heroes_per_team": 99}, {"observation": {"minimap": 3}}])
def test_change_that_no_longer_fits_is_not_promoted(state: RunState, overrides: dict[str, Any],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """A surgery has changed the game meanwhile, so that it is invalid or has another layout with the change."""
    first = stored(state, overrides=overrides)
    monkeypatch.setattr(module, "advance", lambda anneal, version, decision: promotion(anneal))
    assert reconciler(state).reconcile() == first == read_anneal(state)
    record = state.record()
    assert record is not None and record.game == RECORD.game and events(state) == []
