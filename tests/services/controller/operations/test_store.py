"""Operation documents in real Redis: one active at a time, compare-and-set, a bounded history."""

import json
from typing import Any

import pytest
import redis

from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationState,
    OperatorDecision,
    StepState,
    new_operation,
)
from five.services.controller.operations.engine import advance
from five.services.controller.operations.store import OperationInProgress, OperationStore
from rapid.store.state import RunState
from tests.services.controller.operations.memory_backend import REQUEST, MemoryBackend


@pytest.fixture
def run_state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, "trial")


@pytest.fixture
def store(run_state: RunState) -> OperationStore:
    return OperationStore(run_state, max_ended=3)


def end(store: OperationStore, operation: Operation) -> Operation:
    return store.change(operation.id, lambda o: o.model_copy(update={"state": OperationState.DONE, "outcome": "done"}))


def test_a_second_operation_is_refused_with_the_first(store: OperationStore, run_state: RunState) -> None:
    first = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    with pytest.raises(OperationInProgress,
                       match=f"{first.id}.*'wider', begun by ada, at step pause.*only one can be") as refused:
        store.begin(OperationKind.CHECK, "bob", REQUEST, "running")
    assert refused.value.operation == first
    assert store.active() == first
    end(store, first)
    assert store.active() is None
    second = store.begin(OperationKind.CHECK, "bob", REQUEST, "running")
    assert [o.id for o in store.all()] == [second.id, first.id]
    told = [(e.who, e.what) for e in reversed(run_state.events.last(10))]
    assert told == [("ada", "operation.began"), ("controller", "operation.done"), ("bob", "operation.began")]


def test_lost_reply_does_not_refuse_the_operation(store: OperationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats a write whose reply was lost."""
    update = store._table.update

    def repeated(change: Any, **options: Any) -> bool:
        assert update(change, **options)
        return update(change, **options)

    monkeypatch.setattr(store._table, "update", repeated)
    begun = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    assert store.active() == begun


def test_outdated_writer_changes_nothing(store: OperationStore) -> None:
    run = MemoryBackend()
    read = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    assert store.save(read, advance(read, run))
    assert not store.save(read, read.model_copy(update={"outcome": "late"}))
    cancelled = store.change(read.id, lambda o: o.model_copy(update={"cancel": OperatorDecision(who="bob", at=1.0)}))
    assert cancelled.changes == 2
    found = store.get(read.id)
    assert found == cancelled
    assert found.steps[0].attempt == 1
    with pytest.raises(LookupError, match="no operation 'nothing'"):
        store.change("nothing", lambda o: o)


def test_the_oldest_that_have_ended_are_dropped(store: OperationStore) -> None:
    made = [end(store, store.begin(OperationKind.CHECK, "ada", REQUEST, "running")).id for _ in range(5)]
    assert {o.id for o in store.all()} == set(made[-3:])


def test_hundred_operations_that_have_ended_are_kept(run_state: RunState) -> None:
    ended = [new_operation(f"check-{n:03}", OperationKind.CHECK, "ada", REQUEST, float(n), "running").model_copy(
        update={"state": OperationState.DONE}) for n in range(103)]
    rows = {operation.id: json.loads(operation.model_dump_json()) for operation in ended}
    run_state.table("operations").update(lambda _: dict(rows))
    store = OperationStore(run_state)
    last = end(store, store.begin(OperationKind.CHECK, "ada", REQUEST, "running"))
    assert [o.id for o in store.all()] == [last.id, *(o.id for o in ended[:-100:-1])]


def test_unchanged_document_is_not_written(store: OperationStore, run_state: RunState) -> None:
    read = store.begin(OperationKind.CHECK, "ada", REQUEST, "running")
    events = len(run_state.events.last(10))
    assert store.save(read, read)
    assert store.get(read.id) == read and len(run_state.events.last(10)) == events


def test_change_that_is_lost_to_another_writer_is_made_again(store: OperationStore, run_state: RunState) -> None:
    read = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    other, calls = OperationStore(run_state), []

    def cancel(operation: Operation) -> Operation:
        calls.append(operation)
        if len(calls) == 1:
            other.change(read.id, lambda o: o.model_copy(update={"reason": "a reason"}))
        return operation.model_copy(update={"cancel": OperatorDecision(who="bob", at=1.0)})

    changed = store.change(read.id, cancel)
    assert len(calls) == 2 and changed.reason == "a reason" and changed.cancel is not None
    assert store.get(read.id) == changed


def test_operation_of_an_earlier_release_can_be_changed(store: OperationStore, run_state: RunState) -> None:
    """Its row lacks a field that this release has added."""
    begun = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    row = run_state.table("operations").get(begun.id)
    del row["reason"], row["steps"][0]["waiting_for"]
    run_state.table("operations").set(begun.id, row)
    read = store.get(begun.id)
    assert read == begun
    assert store.save(read, advance(read, MemoryBackend()))


def test_operation_about_to_end_has_no_step_in_the_refusal(store: OperationStore) -> None:
    read = store.begin(OperationKind.CHECK, "ada", REQUEST, "running")
    store.change(read.id, lambda o: o.with_step("check", state=StepState.DONE))
    with pytest.raises(OperationInProgress, match="begun by ada\\) is active"):
        store.begin(OperationKind.CHECK, "bob", REQUEST, "running")


def test_operations_are_listed_newest_first(store: OperationStore) -> None:
    made = [end(store, store.begin(kind, "ada", REQUEST, "running", "why")) for kind in OperationKind]
    assert [o.id for o in store.all()] == [o.id for o in reversed(made)][:3]
    assert all(o.reason == "why" and o.id.startswith(f"{o.kind}-") for o in store.all())
    assert store.get("nothing") is None


def test_only_changed_documents_are_parsed(store: OperationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller reads the active operation every second, beside up to a hundred ended ones."""
    for _ in range(2):
        end(store, store.begin(OperationKind.CHECK, "ada", REQUEST, "running"))
    active = store.begin(OperationKind.SURGERY, "ada", REQUEST, "running")
    assert store.active() == active
    parsed: list[str] = []
    parse = store._table.parse

    def counted(field: str, text: bytes) -> Any:
        parsed.append(field)
        return parse(field, text)

    monkeypatch.setattr(store._table, "parse", counted)
    for _ in range(3):
        assert store.active() == active and len(store.all()) == 3
    assert parsed == []
    assert store.save(active, active.model_copy(update={"reason": "why"}))
    parsed.clear()
    for _ in range(2):
        found = store.active()
        assert found is not None and found.reason == "why"
    assert parsed == [active.id]
    store._table.set(active.id, None)
    assert store.active() is None and len(store.all()) == 2
