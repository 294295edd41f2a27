"""Which versions came of which: the stretches of a run's history, and what each was made under.

Versions are numbered on without end, so a run that goes back to an older version leaves a branch behind. Each change of
the run's record begins a stretch of versions: what they are made under, and which version the first of them continues.
The newest version's *lineage* is itself and all that it came of; the others were reverted, and stay for whoever asks.
"""

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rapid.store.record import RunRecord


@dataclass(frozen=True)
class LineageSegment:
    """Versions from ``first`` on, up to the next stretch's, made under ``record``.

    ``parent`` is the version that the first of them continues, -1 for the run's beginning; ``what`` (with ``who`` and
    ``at``, seconds since 1970) began it, ``operation`` where one did.
    """

    first: int
    parent: int
    record: RunRecord
    what: str = ""
    who: str = ""
    at: float = 0.0
    operation: str = ""

    def to_json(self) -> str:
        """Text that ``of`` reads beside the first version."""
        return json.dumps({"parent": self.parent, "record": self.record.to_json(), "what": self.what, "who": self.who,
                           "at": self.at, "operation": self.operation})

    @classmethod
    def of(cls, first: int, text: str | bytes) -> "LineageSegment":
        """Reads ``to_json``."""
        row = json.loads(text)
        return cls(first, int(row["parent"]), RunRecord.from_json(row["record"]), row["what"], row["who"],
                   float(row["at"]), row["operation"])


def new_segment(first: int, record: RunRecord, what: str, who: str, parent: int | None = None,
          operation: str = "") -> LineageSegment:
    """A stretch that begins now; without a ``parent`` it continues the version before."""
    return LineageSegment(first, first - 1 if parent is None else parent, record, what, who, time.time(), operation)


class Lineage:
    """A run's stretches, in order. A run of an earlier release, that has none, is one line without any record."""

    def __init__(self, stretches: Iterable[LineageSegment]) -> None:
        self.stretches = tuple(sorted(stretches, key=lambda s: s.first))
        self._firsts = [s.first for s in self.stretches]

    @classmethod
    def read(cls, rows: Mapping[bytes, bytes]) -> "Lineage":
        """The lineage of a Redis hash: stretches by their first version."""
        return cls(LineageSegment.of(int(first), text) for first, text in rows.items())

    def stretch(self, version: int) -> LineageSegment | None:
        """The stretch that a version belongs to; None for one from before the first that is known."""
        at = bisect_right(self._firsts, version) - 1
        return self.stretches[at] if at >= 0 else None

    def line(self, version: int) -> list[range]:
        """All versions that a version came of and itself, as runs of numbers, the newest first."""
        found = []
        while version >= 0:
            stretch = self.stretch(version)
            if stretch is None:
                found.append(range(version + 1))
                break
            found.append(range(stretch.first, version + 1))
            if stretch.parent >= stretch.first:
                raise ValueError(f"version {stretch.first} cannot continue the later version {stretch.parent}")
            version = stretch.parent
        return found

    def is_ancestor(self, version: int, head: int) -> bool:
        """Whether ``head`` is that version or came of it: whether it was not reverted."""
        return any(version in run for run in self.line(head))

    def undone(self, target: int, head: int) -> list[range]:
        """What going back from ``head`` to ``target`` leaves behind of the present line, the oldest first. Raises
        ValueError for a target that is newer than the head."""
        if target > head:
            raise ValueError(f"version {target} is newer than the head, {head}")
        kept = self.line(target)
        left = []
        for run in self.line(head):
            mine = [v for v in run if not any(v in other for other in kept)]
            if mine:
                left.append(range(mine[0], mine[-1] + 1))
        return left[::-1]

    def reverted(self) -> list[tuple["LineageSegment", range]]:
        """What reverts have left: the stretch that each began, and the versions left by it, in the order of reverts."""
        return [(stretch, gone) for stretch in self.stretches if stretch.parent not in (stretch.first - 1, -1)
                for gone in self.undone(stretch.parent, stretch.first - 1)]

    def branches(self, head: int) -> list[range]:
        """Versions that the head did not come of, as runs of numbers in order."""
        line = sorted(self.line(head), key=lambda run: run.start)
        gaps = [range(a.stop, b.start) for a, b in pairwise(line)]
        return [gap for gap in gaps if len(gap)]


def current_line_filter(lineage: Lineage, head: int | None) -> Callable[[int], bool]:
    """Whether a version is one that the newest came of, or newer still: what was reverted is not. Holds for as long as
    the run's epoch, which a revert moves on."""
    line = [] if head is None else lineage.line(head)
    return lambda version: head is None or version > head or any(version in run for run in line)


def read_lineage(redis: Any, key: str) -> Lineage:
    """The lineage kept under a key."""
    return Lineage.read(redis.hgetall(key))
