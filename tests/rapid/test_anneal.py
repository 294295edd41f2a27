"""The stored anneal: changes are one atomic step with their event, and the guard's pairs have their own table."""

from typing import Any

import pytest

from rapid.store.anneal import AnnealStore
from rapid.store.errors import Corrupt
from rapid.store.state import RunState


@pytest.fixture
def store(state: RunState) -> AnnealStore:
    return AnnealStore(state)


def begin(document: Any) -> tuple[Any, str, dict[str, Any]]:
    """Count the changes of the document."""
    count = (document or {"count": 0})["count"] + 1
    return {"count": count}, "anneal.began", {"count": count}


def test_change_writes_the_document_and_its_event(state: RunState, store: AnnealStore) -> None:
    assert store.read() is None
    assert store.change(begin, "ada") is True
    assert store.read() == {"count": 1}
    assert store.change(begin, "bob") is True
    assert AnnealStore(state).read() == {"count": 2}
    assert [(e.who, e.what, e.details) for e in state.events.last(2)] == [
        ("bob", "anneal.began", {"count": 2}), ("ada", "anneal.began", {"count": 1})]


def test_edit_of_nothing_writes_nothing(state: RunState, store: AnnealStore) -> None:
    before = state.events.last(1)
    assert store.change(lambda document: None, "ada") is False
    assert store.read() is None and state.events.last(1) == before
    store.change(begin, "ada")
    before = state.events.last(1)
    assert store.change(lambda document: None, "ada") is False
    assert store.read() == {"count": 1} and state.events.last(1) == before


@pytest.mark.parametrize("made", [({"share": float("nan")}, "anneal.began", {}),
                                  ({"share": 0.5}, "anneal.began", {"share": float("inf")}), ({"share": 0.5}, "", {})])
def test_invalid_change_writes_nothing(state: RunState, store: AnnealStore, made: Any) -> None:
    before = state.events.last(1)
    with pytest.raises(ValueError):
        store.change(lambda document: made, "ada")
    assert store.read() is None and state.events.last(1) == before


def test_error_of_an_edit_reaches_the_caller(state: RunState, store: AnnealStore) -> None:
    def fail(document: Any) -> None:
        raise LookupError("no such change")

    with pytest.raises(LookupError, match="no such change"):
        store.change(fail, "ada")
    assert store.read() is None


def test_concurrent_change_is_not_overwritten(state: RunState, store: AnnealStore) -> None:
    seen: list[Any] = []

    def edit(document: Any) -> tuple[Any, str, dict[str, Any]]:
        seen.append(document)
        if len(seen) == 1:
            AnnealStore(state).change(begin, "bob")
        return begin(document)

    assert store.change(edit, "ada")
    assert seen == [None, {"count": 1}] and store.read() == {"count": 2}
    assert [e.who for e in state.events.last(2)] == ["ada", "bob"]


def test_damaged_document_is_named(state: RunState, store: AnnealStore) -> None:
    state.redis.set(state.keys.anneal, "{")
    for use in (store.read, lambda: store.change(begin, "ada")):
        with pytest.raises(Corrupt, match="five:r:anneal is damaged"):
            use()


def test_pairs_of_the_guard_are_apart_from_the_document(state: RunState, store: AnnealStore) -> None:
    store.pairs().set("3-7", {"won": 1})
    assert AnnealStore(state).pairs().all() == {"3-7": {"won": 1}} and store.read() is None
    store.change(begin, "ada")
    assert store.pairs().all() == {"3-7": {"won": 1}}
