"""Collator that finds the batch in which a traced segment is first used."""

import contextlib
from collections import deque
from collections.abc import Sequence

from five.agent.learning.buffer import Allocate, Collate
from five.agent.learning.samples import Arrays
from five.services.optimizer.stored_arrays import StoredArrays

EXPECTED_SEGMENTS = 64  # at most; a segment that is dropped before its first use is forgotten


class TracedCollator:
    """Collates like ``collate``, and notes which of the expected segments are among the sources."""

    def __init__(self, collate: Collate) -> None:
        self._collate = collate
        self._expected: deque[tuple[StoredArrays, str]] = deque(maxlen=EXPECTED_SEGMENTS)
        self._used: list[str] = []

    def expect(self, segment: StoredArrays, traceparent: str) -> None:
        """Expect a traced segment in a batch, before the buffer has it."""
        self._expected.append((segment, traceparent))

    def take(self) -> tuple[str, ...]:
        """Return and forget the trace contexts of the expected segments that were used."""
        used, self._used = self._used, []
        return tuple(used)

    def __call__(self, batch: Arrays, sources: Sequence[StoredArrays], indices: Sequence[int], allocate: Allocate
                 ) -> None:
        for expected in tuple(self._expected):
            segment, traceparent = expected
            if any(source is segment for source in sources):
                with contextlib.suppress(ValueError):  # another thread's `expect` has just evicted it
                    self._expected.remove(expected)
                self._used.append(traceparent)
        self._collate(batch, sources, indices, allocate)
