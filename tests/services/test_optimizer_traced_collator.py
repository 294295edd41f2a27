"""Traced segments are reported with the first batch that uses them."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from five.agent.learning.buffer import Allocate
from five.agent.learning.samples import Arrays
from five.services.optimizer import traced_collator
from five.services.optimizer.stored_arrays import StoredArrays
from five.services.optimizer.traced_collator import TracedCollator

Collated = list[tuple[list[StoredArrays], list[int]]]


def collator(collated: Collated) -> TracedCollator:
    """Return a collator that appends sources and indices of every batch to ``collated``."""
    def collate(batch: Arrays, sources: Sequence[StoredArrays], indices: Sequence[int], allocate: Allocate) -> None:
        collated.append((list(sources), list(indices)))

    return TracedCollator(collate)


def segments(count: int) -> list[Any]:
    return [object() for _ in range(count)]  # only their identity matters


def use(traced: TracedCollator, *sources: Any) -> tuple[str, ...]:
    traced({}, sources, [0] * len(sources), lambda *_: None)  # type: ignore[arg-type, return-value]
    return traced.take()


def test_segment_is_reported_with_its_first_batch_only() -> None:
    traced, (a, b, c) = collator([]), segments(3)
    traced.expect(a, "trace a")
    traced.expect(b, "trace b")
    assert traced.take() == ()
    assert use(traced, c, c) == (), "a batch without a traced segment"
    assert use(traced, c, b, b) == ("trace b",)
    assert use(traced, b, a) == ("trace a",)
    assert use(traced, a, b) == () == traced.take()


def test_uses_add_up_until_they_are_taken() -> None:
    traced, (a, b) = collator([]), segments(2)
    traced.expect(a, "trace a")
    traced.expect(b, "trace b")
    for source in (b, a):
        traced({}, [source], [0], lambda *_: None)  # type: ignore[arg-type, return-value]
    assert traced.take() == ("trace b", "trace a")


def test_every_batch_is_collated_unchanged() -> None:
    collated: Collated = []
    traced, (a, b) = collator(collated), segments(2)
    traced.expect(a, "trace a")
    use(traced, a, b)
    use(traced, b)
    assert collated == [([a, b], [0, 0]), ([b], [0])]


def test_segment_forgotten_during_its_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread expects further segments while the batch is collated."""
    monkeypatch.setattr(traced_collator, "EXPECTED_SEGMENTS", 1)
    collated: Collated = []
    traced, (a, b) = collator(collated), segments(2)

    class Sources(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            traced.expect(b, "trace b")
            return super().__iter__()

    traced.expect(a, "trace a")
    traced({}, Sources([a]), [0], lambda *_: None)  # type: ignore[arg-type, return-value]
    assert traced.take() == ("trace a",) and len(collated) == 1
    assert use(traced, b) == ("trace b",)


def test_segments_that_never_came_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer may drop a segment before its first use."""
    monkeypatch.setattr(traced_collator, "EXPECTED_SEGMENTS", 2)
    traced, sent = collator([]), segments(3)
    for number, segment in enumerate(sent):
        traced.expect(segment, f"trace {number}")
    assert use(traced, *sent) == ("trace 1", "trace 2")
