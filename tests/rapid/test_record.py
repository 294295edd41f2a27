"""The run record and its compare-and-set changes."""

import pytest
import redis

from rapid.store.errors import FencedOut
from rapid.store.record import RunRecord
from rapid.store.state import RunState

RECORD = RunRecord(2, 1, {"mode": "5v5", "x": [1, 2.5]}, {"lstm": 8}, "l", "s", ("a", "b"), {"share": 0.25})


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    return RunState(database, "r")


def test_record_json_round_trip() -> None:
    assert RunRecord.from_json(RECORD.to_json()) == RECORD
    assert RunRecord.from_json(RECORD.to_json()).to_json() == RECORD.to_json()


@pytest.mark.parametrize(("text", "says"), [
    ("{", "cannot be read"), ("[]", "cannot be read"), ('{"revision": 0, "epoch": 1, "chain": []}', "count from 1"),
    ('{"revision": 1, "epoch": 1, "chain": [], "later": 1}', "unknown fields later"),
])
def test_invalid_record_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RunRecord.from_json(text)


def test_equal_records_have_equal_texts() -> None:
    """Whatever the order in which their settings were written."""
    one = RunRecord(game={"a": 1, "b": {"x": 1, "y": 2}}, model={"lstm": 8, "units": 4})
    other = RunRecord(game={"b": {"y": 2, "x": 1}, "a": 1}, model={"units": 4, "lstm": 8})
    assert one == other and one.to_json() == other.to_json()
    assert one.to_json() != one.changed(new_epoch=False).to_json()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_record_that_is_not_json_is_refused(value: float) -> None:
    with pytest.raises(ValueError):
        RunRecord(game={"gold": value}).to_json()


@pytest.mark.parametrize(("revision", "epoch"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_revision_and_epoch_count_from_1(revision: int, epoch: int) -> None:
    with pytest.raises(ValueError, match="count from 1"):
        RunRecord(revision, epoch)
    assert RunRecord().run_revision == (1, 1) and RunRecord(2, 3).run_revision == (3, 2)


def test_change_increments_the_revision() -> None:
    assert RECORD.changed(new_epoch=False, schema="t").run_revision == (1, 3)
    after = RECORD.changed(new_epoch=True, chain=("a", "b", "c"))
    assert after.run_revision == (2, 3) and after.game == RECORD.game and after.chain == ("a", "b", "c")


def test_record_is_created_with_the_run(state: RunState) -> None:
    assert state.snapshot() == (None, None)
    state.create({"game": {"a": 1}, "model": {"lstm": 4}}, "test")
    now, record = state.snapshot()
    assert now is not None and record == RunRecord(game={"a": 1}, model={"lstm": 4}) == state.record()
    assert not state.create({}, "test", RECORD) and state.record() == record


def test_record_is_replaced_only_by_its_successor(state: RunState) -> None:
    state.create({}, "test", RECORD)
    after = RECORD.changed(new_epoch=False, schema="t")
    state.set_record(RECORD, after, "ada", "anneal.began", {"id": "x"})
    assert state.record() == after
    (event,) = state.events.last(1)
    assert (event.who, event.what, event.details) == ("ada", "anneal.began", {"id": "x", "revision": 3})
    with pytest.raises(FencedOut, match="record at revision 2 of epoch 1") as caught:
        state.set_record(RECORD, RECORD.changed(new_epoch=False, schema="u"), "bob", "anneal.began", {})
    assert caught.value.reason == "moved" and state.record() == after
    for wrong in (after, after.changed(new_epoch=True), RECORD):
        with pytest.raises(ValueError, match="does not follow"):
            state.set_record(after, wrong, "ada", "x", {})


@pytest.mark.parametrize(("head", "first"), [(None, 0), ("0:aa", 1), ("12:bb", 13)])
def test_changed_record_holds_from_the_next_version(state: RunState, head: str | None, first: int) -> None:
    state.create({}, "test", RECORD)
    if head is not None:
        state.redis.set(state.keys.head, head)
    after = RECORD.changed(new_epoch=False, schema="t")
    state.set_record(RECORD, after, "ada", "anneal.began", {})
    segment = state.lineage().segments[-1]
    assert (segment.first, segment.parent, segment.record, segment.what, segment.who) == (
        first, first - 1, after, "anneal.began", "ada")
    assert len(state.lineage().segments) == (1 if first == 0 else 2)


def test_missing_record_cannot_be_replaced(state: RunState) -> None:
    state.create({}, "test", RECORD)
    state.redis.delete(state.keys.record)
    with pytest.raises(FencedOut) as refused:
        state.set_record(RECORD, RECORD.changed(new_epoch=False), "ada", "x", {})
    assert refused.value.reason == "moved" and state.record() is None


def test_record_text_of_an_earlier_release_is_replaceable(state: RunState) -> None:
    state.create({}, "test", RECORD)
    state.redis.set(state.keys.record, RECORD.to_json().replace('"anneal": {"share": 0.25}, ', "").replace(" ", ""))
    before = state.record()
    assert before is not None and before.anneal is None
    state.set_record(before, before.changed(new_epoch=False), "ada", "x", {})
    assert state.record() == before.changed(new_epoch=False)


def test_only_a_run_without_record_adopts_one(state: RunState) -> None:
    state.create({}, "test")
    assert not state.adopt_record(RECORD, "controller")
    state.redis.delete(state.keys.record)
    assert state.adopt_record(RECORD, "controller") and state.record() == RECORD
    event, segment = state.events.last(1)[0], state.lineage().segments[-1]
    assert (event.who, event.what, event.details) == ("controller", "record.adopted", {"epoch": 1, "layout": "l"})
    assert (segment.first, segment.parent, segment.record, segment.who) == (0, -1, RECORD, "controller")
