"""Lineage of versions: segments of a run's history, and what each was made under.

Version numbers only grow, so a run that reverts to an older version leaves a branch behind. Each change of the run
record begins a segment of versions. The lineage of a version is itself and all its ancestors; versions outside the
head's lineage were reverted, and remain readable.
"""

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rapid.blobs import Ref
from rapid.store.record import RunRecord
from rapid.store.rows import decode_row


@dataclass(frozen=True)
class LineageSegment:
    """Versions from ``first`` up to the next segment's first, made under ``record``.

    ``parent`` is the version that the first of them continues, -1 at the run's beginning. ``what`` is the event that
    began the segment, by ``who`` and ``at`` (seconds since 1970), with the ``operation`` that caused it, if any.
    ``checkpoint`` is the blob of the staged checkpoint from which a reverted run continues.
    """

    first: int
    parent: int
    record: RunRecord
    what: str = ""
    who: str = ""
    at: float = 0.0
    operation: str = ""
    checkpoint: Ref | None = None

    def to_json(self) -> str:
        """Return text for ``of``, which is stored under the first version."""
        return json.dumps({"parent": self.parent, "record": self.record.to_json(), "what": self.what, "who": self.who,
                           "at": self.at, "operation": self.operation,
                           "checkpoint": None if self.checkpoint is None else self.checkpoint._asdict()})

    @classmethod
    def of(cls, first: int, text: str | bytes) -> "LineageSegment":
        """Parse ``to_json``'s text. Raise Corrupt for anything else."""
        return decode_row(text, f"the lineage from version {first}", lambda row: cls._of_row(first, row))

    @classmethod
    def _of_row(cls, first: int, row: Any) -> "LineageSegment":
        staged = row.get("checkpoint")
        return cls(first, int(row["parent"]), RunRecord.from_json(row["record"]), row["what"], row["who"],
                   float(row["at"]), row["operation"],
                   None if staged is None else Ref.parse(staged["digest"], staged["size"]))


def new_segment(first: int, record: RunRecord, what: str, who: str, parent: int | None = None,
                operation: str = "", checkpoint: Ref | None = None) -> LineageSegment:
    """Create a segment that begins now. Without a ``parent`` it continues the previous version."""
    return LineageSegment(first, first - 1 if parent is None else parent, record, what, who, time.time(), operation,
                          checkpoint)


class Lineage:
    """Segments of a run in order. A run of an earlier release has none: its versions form one line without a record."""

    def __init__(self, segments: Iterable[LineageSegment]) -> None:
        self.segments = tuple(sorted(segments, key=lambda s: s.first))
        self._firsts = [s.first for s in self.segments]

    @classmethod
    def read(cls, rows: Mapping[bytes, bytes]) -> "Lineage":
        """Parse a Redis hash of segments by their first version."""
        return cls(LineageSegment.of(int(first), text) for first, text in rows.items())

    def segment(self, version: int) -> LineageSegment | None:
        """Return the segment of a version; None for a version before the first known segment."""
        at = bisect_right(self._firsts, version) - 1
        return self.segments[at] if at >= 0 else None

    def ancestry(self, version: int) -> list[range]:
        """Return a version and all its ancestors as ranges, newest first."""
        found = []
        while version >= 0:
            segment = self.segment(version)
            if segment is None:
                found.append(range(version + 1))
                break
            found.append(range(segment.first, version + 1))
            if segment.parent >= segment.first:
                raise ValueError(f"version {segment.first} cannot continue the later version {segment.parent}")
            version = segment.parent
        return found

    def is_ancestor(self, version: int, head: int) -> bool:
        """Return whether ``head`` is that version or descends from it, so that the version was not reverted."""
        return any(version in run for run in self.ancestry(head))

    def left_behind(self, target: int, head: int) -> list[range]:
        """Return the versions that a revert from ``head`` to ``target`` leaves behind, oldest first.

        Raises ValueError for a target newer than the head.
        """
        if target > head:
            raise ValueError(f"version {target} is newer than the head, {head}")
        # Both ancestries have a segment from its first version on, so what they share of it is its beginning.
        kept = {run.start: run.stop for run in self.ancestry(target)}
        left = [range(max(kept.get(run.start, 0), run.start), run.stop) for run in self.ancestry(head)]
        return [run for run in left[::-1] if run]

    def reverted(self) -> list[tuple["LineageSegment", range]]:
        """Return, in the order of reverts, the segment that each revert began and the versions that it left behind."""
        return [(segment, gone) for segment in self.segments if segment.parent not in (segment.first - 1, -1)
                for gone in self.left_behind(segment.parent, segment.first - 1)]

    def branches(self, head: int) -> list[range]:
        """Return the versions outside the head's lineage as ranges in order."""
        line = sorted(self.ancestry(head), key=lambda run: run.start)
        gaps = [range(a.stop, b.start) for a, b in pairwise(line)]
        return [gap for gap in gaps if len(gap)]


def current_line_filter(lineage: Lineage, head: int | None) -> Callable[[int], bool]:
    """Return a predicate: whether a version is an ancestor of the head, the head, or newer.

    It is valid for the run's epoch, because a revert begins a new epoch.
    """
    line = [] if head is None else lineage.ancestry(head)
    return lambda version: head is None or version > head or any(version in run for run in line)


def read_lineage(redis: Any, key: str) -> Lineage:
    """Return the lineage stored under a key."""
    return Lineage.read(redis.hgetall(key))
