"""The stored anneal: what may begin, replace and end it, and an operator's request to revert it."""

from typing import Any, Literal

import pytest

from dota.config import GameConfig
from five.agent.anneal.document import Anneal, AnnealPolicy, AnnealRamp, AnnealState
from five.agent.anneal.transitions import FollowUp, InvalidTransition
from five.services.controller.anneal import reconciler as module
from five.services.controller.anneal.reconciler import (
    AnnealError,
    begin_anneal,
    end_anneal,
    fail_on_request,
    game_with_overrides,
    read_anneal,
    replace_anneal,
)
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, new_operation
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from tests.services.controller.anneal.stored_anneals import (
    ANNEAL,
    GAME,
    GAME_THEN,
    OVERRIDES,
    RECORD,
    UNFINISHED,
    events,
    stored,
)


def asked(**changes: Any) -> Operation:
    """Return an operation that begins an anneal."""
    anneal = {"id": "patch-2", "overrides": OVERRIDES, "length": 50, "guard": {}, "policy": {}, **changes}
    request = OperationRequest(name="patch-2", parent="s", epoch=1, anneal=anneal)
    return new_operation("anneal-1", OperationKind.ANNEAL, "ada", request, 0.0, "running")


def revert(to: int | None, **changes: Any) -> Operation:
    request = OperationRequest(name="back", parent="s", epoch=1, to_version=to, **changes)
    return new_operation("revert-1", OperationKind.REVERT, "ada", request, 0.0, "running")


@pytest.mark.parametrize("overrides", [
    {"observation": {"pickups": 2}}, {"observation": {"pickups": 4}}, {"observation": {"minimap": 3}},
    {"heroes_per_team": 2, "hero_pool": ["lion", "sven"]}])
def test_change_of_the_layout_needs_a_surgery(overrides: dict[str, Any]) -> None:
    with pytest.raises(AnnealError, match="Use surgery"):
        game_with_overrides(RECORD, overrides)


def test_overrides_are_merged_into_the_game() -> None:
    assert game_with_overrides(RECORD, OVERRIDES).model_dump(mode="json") == GAME_THEN
    with pytest.raises(AnnealError, match="nothing to anneal"):
        game_with_overrides(RECORD, {"patch": GAME.patch})


def test_anneal_begins_at_its_checkpoint_once(state: RunState) -> None:
    for _ in range(2):  # repeated after a crash
        assert begin_anneal(state, asked(), {"head": 0}) == ""
    anneal = read_anneal(state)
    assert anneal == Anneal(id="patch-2", overrides=OVERRIDES, base=0, began=0, ramp=AnnealRamp(start=0, length=50))
    (event,) = [e for e in state.events.read() if e.what.startswith("anneal.")]
    assert (event.who, event.what, event.details) == ("ada", "anneal.began", {
        "anneal": "patch-2", "state": "ramping", "attempt": 1, "share": 0.0, "reason": "", "from": None})


@pytest.mark.parametrize("missing", ["request", "record", "head"])
def test_anneal_without_a_version_to_revert_to_does_not_begin(state: RunState, missing: str) -> None:
    operation, kept = asked(), {"head": 3}
    if missing == "request":
        operation = revert(3)
    elif missing == "record":
        state.redis.delete(state.keys.record)
    else:
        kept = {}
    assert begin_anneal(state, operation, kept) == "the run has no version to revert to yet"
    assert read_anneal(state) is None


@pytest.mark.parametrize("identity", ["patch-1", "patch-3"])
@pytest.mark.parametrize("before", AnnealState)
def test_only_one_anneal_is_unfinished(state: RunState, before: AnnealState, identity: str) -> None:
    first = stored(state, id=identity, state=before)
    why = begin_anneal(state, asked(), {"head": 20})
    found = read_anneal(state)
    if before in UNFINISHED:
        assert why == f"anneal {identity!r} is {before}: only one can be active" and found == first
    else:
        assert why == "" and found is not None and (found.id, found.base) == ("patch-2", 20)
        assert state.events.read()[-1].details["from"] == before


@pytest.mark.parametrize(("change", "words"), [
    ({"overrides": {"patch": "7.19"}}, "nothing to anneal"), ({"length": 0}, "greater than or equal to 1"),
    ({"guard": {"pairs": -1}}, "guard.pairs"), ({"policy": {"tries": 0}}, "policy.tries")])
def test_invalid_anneal_does_not_begin(state: RunState, change: dict[str, Any], words: str) -> None:
    """The run's game has changed since the request, or an earlier release has checked it."""
    assert words in begin_anneal(state, asked(**change), {"head": 3})
    assert read_anneal(state) is None


def test_anneal_of_another_controller_is_not_replaced(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(record: RunRecord, overrides: dict[str, Any]) -> GameConfig:
        stored(state)
        return game_with_overrides(record, overrides)

    monkeypatch.setattr(module, "game_with_overrides", slow)
    assert begin_anneal(state, asked(), {"head": 3}) == "another anneal was begun at the same time"
    assert read_anneal(state) == ANNEAL


def test_lost_reply_does_not_refuse_the_anneal(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats a write whose reply was lost."""
    def repeated(*arguments: Any) -> bool:
        assert replace_anneal(*arguments)
        return replace_anneal(*arguments)

    monkeypatch.setattr(module, "replace_anneal", repeated)
    assert begin_anneal(state, asked(), {"head": 3}) == ""
    found = read_anneal(state)
    assert found is not None and found.id == "patch-2"


def test_outdated_writer_replaces_nothing(state: RunState) -> None:
    first = stored(state)
    second = stored(state, attempt=2)
    for before in (first, None):
        assert not replace_anneal(state, before, first, "bob", "ramping")
    assert read_anneal(state) == second and events(state) == []


# The end by a revert.


@pytest.mark.parametrize("before", AnnealState)
@pytest.mark.parametrize(("to", "ends"), [(9, True), (10, True), (11, False), (None, False)])
def test_revert_behind_an_anneal_ends_it(state: RunState, before: AnnealState, to: int | None, ends: bool) -> None:
    first = stored(state, state=before, held_by="gate", revision=4)
    ended = ends and before in UNFINISHED
    assert end_anneal(state, revert(to)) == ("patch-1" if ended else "")
    found = read_anneal(state)
    assert found is not None
    if not ended:
        assert found == first and events(state) == []
        return
    assert (found.state, found.held_by, found.revision, events(state)) == (
        AnnealState.REVERTED, "", 5, ["anneal.reverted"])
    assert found.reason == f"ada reverted the run to version {to}, before the anneal"


def test_revert_of_the_guard_or_without_an_anneal_ends_nothing(state: RunState) -> None:
    assert end_anneal(state, revert(10)) == ""
    first = stored(state, state=AnnealState.FAILED)
    assert end_anneal(state, revert(10, anneal={"trial": first.trial})) == ""
    assert read_anneal(state) == first


def test_anneal_that_changes_during_the_revert_ends_too(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(state)
    changes = [{"state": AnnealState.HOLDING}]

    def slow(*arguments: Any) -> bool:
        for change in changes:
            changes.remove(change)
            stored(state, **change)
        return replace_anneal(*arguments)

    monkeypatch.setattr(module, "replace_anneal", slow)
    assert end_anneal(state, revert(3)) == "patch-1"
    found = read_anneal(state)
    assert found is not None and found.state is AnnealState.REVERTED and events(state) == ["anneal.reverted"]


# The request of an operator.


@pytest.mark.parametrize(("before", "on_fail"), [
    (AnnealState.RAMPING, "retry"), (AnnealState.HOLDING, "stop"), (AnnealState.FAILED, "retry"),
    (AnnealState.FAILED, "stop")])
def test_requested_revert_allows_no_further_attempt(before: AnnealState, on_fail: Literal["retry", "stop"]) -> None:
    """Also when the guard has failed the attempt already."""
    anneal = ANNEAL.model_copy(update={"state": before, "policy": AnnealPolicy(on_fail=on_fail), "revision": 6,
                                       "reason": "worse"})
    step = fail_on_request(anneal, "ada", "it looks odd")
    assert (step.changed, step.follows, step.anneal.state) == (True, FollowUp.REVERT, AnnealState.FAILED)
    assert (step.anneal.policy.on_fail, step.anneal.revision) == ("stop", 7)
    said = "worse" if before is AnnealState.FAILED else "ada requested the revert: it looks odd"
    assert step.anneal.reason == said


def test_requested_revert_needs_only_an_unfinished_anneal() -> None:
    assert fail_on_request(ANNEAL, "ada", "").anneal.reason == "ada requested the revert"
    with pytest.raises(InvalidTransition, match="promoted"):
        fail_on_request(ANNEAL.model_copy(update={"state": AnnealState.PROMOTED}), "ada", "")
