"""Report of a run: one self-contained HTML file made from the time series in its state.

The page loads nothing from elsewhere (`five.reports.html_page`). It shows the run's figures, curves, timeline marks,
events and newest recording with the console's components.
"""

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from five.reports.html_page import Film, page
from five.services.controller.console.curves import KINDS, Columns, downsample
from five.services.controller.console.timeline import Timeline
from five.services.controller.games.recordings import RecordingReader
from rapid.atomic_file import replace_text, replacing
from rapid.blobs import BlobMissing
from rapid.store.errors import Corrupt
from rapid.store.series import Record, Series
from rapid.store.state import RunState

EVENTS = 500  # events of a report
POINTS = 400  # points of a curve
MAX_FILM = 24 << 20  # bytes of the largest recording in a report
NEWEST_RECORDS = 20_000  # of a kind that are held whole; at least evidence.EVIDENCE_GAMES
OLDER_RECORDS = 1000  # older ones at most whose progress is held
RECENT_RECORDS = 50  # of which the figures show the median
STOP_SECONDS = 60.0  # of a time without an optimizer; shorter gaps are a version's publication


class Held(NamedTuple):
    """A record as JSON text, several times smaller than its dict. ``stopped``: earlier seconds without an optimizer."""

    id: str
    at: float
    text: str
    stopped: float


class RecordHistory:
    """Records of one kind: the numbers of all of them, and the newest ones whole.

    A months-long run has too many for memory. Of older ones the progress of training stays, at points whose distance
    doubles as the run grows.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.columns = Columns()
        self.count = 0
        self._newest: deque[Held] = deque(maxlen=NEWEST_RECORDS)
        self._older: list[Held] = []
        self._distance = 1  # of the older ones
        for record in records:
            self.append(record)

    def append(self, record: Record) -> None:
        """Append one record."""
        if len(self._newest) == self._newest.maxlen and (self.count - len(self._newest)) % self._distance == 0:
            self._older.append(self._newest[0])
            if len(self._older) > OLDER_RECORDS:
                self._older, self._distance = self._older[::2], 2 * self._distance
        self.columns.append(record)
        last = self._newest[-1] if self._newest else None
        gap = 0.0 if last is None else record.at - last.at - record.values.get("seconds", math.inf)
        stopped = (0.0 if last is None else last.stopped) + (gap if gap > STOP_SECONDS else 0.0)
        self._newest.append(Held(record.id, record.at, json.dumps(record.values), stopped))
        self.count += 1

    def newest_first(self) -> Iterator[Record]:
        """Yield the newest records, at most `NEWEST_RECORDS`."""
        return (Record(held.id, held.at, json.loads(held.text)) for held in reversed(self._newest))

    def rows(self, began: float) -> Iterator[str]:
        """Yield the newest records as JSON objects, oldest first, each with the minutes since the run began."""
        for held in self._newest:
            minutes = f'"minutes": {json.dumps((held.at - began) / 60.0)}'
            yield f"{{{minutes}}}" if held.text == "{}" else f"{{{minutes}, {held.text[1:]}"

    def older_rows(self, began: float) -> list[dict[str, Any]]:
        """Return the progress of training at some older records: version, minutes since the run began, of them stopped
        seconds, and hero-steps."""
        found = [(held, json.loads(held.text)) for held in self._older]
        return [{"version": values["version"], "minutes": (held.at - began) / 60.0, "stopped_seconds": held.stopped,
                 "hero_steps": values["hero_steps"]}
                for held, values in found if {"version", "hero_steps"} <= set(values)]

    def stopped_seconds(self) -> float:
        """Return the time without an optimizer before the oldest of the newest records."""
        return self._newest[0].stopped if self._newest else 0.0


@dataclass(frozen=True)
class RunRecords:
    """Data of a report."""

    name: str
    began: float  # seconds since the epoch
    versions: RecordHistory
    games: RecordHistory
    ratings: RecordHistory
    events: list[dict[str, Any]]
    marks: Sequence[dict[str, Any]] = ()
    branches: Sequence[dict[str, Any]] = ()  # branches left by reverts, as in GET /v1/branches


class RunReader:
    """Reader of a report's data from a run's store. Each call continues where the last one stopped."""

    def __init__(self, state: RunState, series: Series) -> None:
        self._state = state
        self._series = series
        self._timeline = Timeline(state.events, series)
        self._records = {kind: RecordHistory() for kind in KINDS}
        self._read = dict.fromkeys(KINDS, "-")

    def read(self) -> RunRecords:
        """Return the data, which the next call extends. Raises redis.RedisError."""
        state = self._state
        first = state.events.read(limit=1)
        events = [{"id": e.id, "at": e.at, "who": e.who, "what": e.what, "details": e.details}
                  for e in reversed(state.events.last(EVENTS))]
        marks = [mark.model_dump(mode="json") for mark in self._timeline.all()]
        branches = [{"first": versions.start, "last": versions.stop - 1, "left_by": segment.operation,
                     "who": segment.who, "at": segment.at, "went_back_to": segment.parent,
                     "continued_as": segment.first}
                    for segment, versions in reversed(state.lineage().reverted())]
        for kind, records in self._records.items():
            for record in self._series.read(kind, self._read[kind]):
                records.append(record)
                self._read[kind] = record.id
        return RunRecords(state.run, first[0].at if first else time.time(), self._records["versions"],
                          self._records["games"], self._records["ratings"], events, marks, branches)


def collect(state: RunState, series: Series) -> RunRecords:
    """Read a report's data from a run's store."""
    return RunReader(state, series).read()


def newest_film(recordings: RecordingReader) -> Film | None:
    """Return the newest recording that fits into a report; None without one, or while the blob store is unavailable."""
    try:
        found = next((entry for entry in recordings.all() if entry["bytes"] <= MAX_FILM), None)
        return None if found is None else Film(str(found["name"]), recordings.read(found["name"]))
    except (BlobMissing, Corrupt, OSError):
        return None


def curves(columns: Columns) -> dict[str, Any]:
    """Return all numbers of a series in the format of the console's charts."""
    return downsample(columns, columns.names(), POINTS, None, None)


def headline(run: RunRecords) -> list[tuple[str, str]]:
    """Return the figures at the top of the page: (name, value)."""
    out = [("running for", f"{(_last_at(run) - run.began) / 60:.0f} min")]
    recent = [r.values for r in islice(run.versions.newest_first(), RECENT_RECORDS)]
    if recent:
        last = recent[0]
        out.append(("version", str(last.get("version", "?"))))
        if "hero_steps" in last:
            out.append(("hero-steps received", f"{last['hero_steps']:,.0f}"))
        for key, name in (("staleness_median", "median staleness"), ("reuse", "sample reuse")):
            values = [r[key] for r in recent if r.get(key) is not None]
            if values:
                out.append((name, f"{np.median(values):.2f}"))
    if run.games.count:
        out.append(("games played", f"{run.games.count:,}"))
    newest = next((r.values for r in run.ratings.newest_first() if r.values.get("mu") is not None), None)
    if newest is not None:
        out.append(("TrueSkill", f"{newest['mu']:.1f} ± {newest.get('sigma', 0):.1f}"))
        out += [(f"version {newest.get('version', '?')}'s score against {n}", said) for n, said in win_rates(newest)]
    return out


def win_rates(rating: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a rated version's win rate by bot, as text with the 95 % interval where the record has one."""
    rates = []
    for name, share in sorted(rating.get("win_rates", {}).items()):
        bounds = rating.get("win_intervals", {}).get(name)
        interval = f" ({100 * bounds[0]:.0f} to {100 * bounds[1]:.0f})" if bounds else ""
        rates.append((name, f"{100 * share:.0f} %{interval}"))
    return rates


def _last_at(run: RunRecords) -> float:
    ends = [float(r.columns.at[-1]) for r in (run.versions, run.games, run.ratings) if r.count]
    return max([*ends, run.began])


def render(run: RunRecords, film: Film | None = None, now: float | None = None) -> str:
    """Return the page as HTML, with the recording ``film``."""
    data = {
        "name": run.name, "made": time.time() if now is None else now, "facts": headline(run),
        "curves": {kind: curves(getattr(run, kind).columns) for kind in KINDS},
        "marks": list(run.marks), "branches": list(run.branches), "events": run.events}
    return page(data, film)


def save_records(run: RunRecords, path: Path) -> None:
    """Write the newest records of versions and ratings as JSON, atomically.

    Each has the minutes since the run began. ``stopped_seconds``: the time without an optimizer before the first one.
    ``older``: the progress of training at some versions before it.
    """
    head: dict[str, Any] = {"name": run.name, "began": run.began}
    if stopped := run.versions.stopped_seconds():
        head["stopped_seconds"] = stopped
    if older := run.versions.older_rows(run.began):
        head["older"] = older
    with replacing(path) as file:
        file.write(json.dumps(head)[:-1].encode())
        for kind, records in (("versions", run.versions), ("ratings", run.ratings)):
            file.write(f', "{kind}": ['.encode())
            for number, row in enumerate(records.rows(run.began)):
                file.write(f"{', ' if number else ''}{row}".encode())
            file.write(b"]")
        file.write(b"}")


def write(run: RunRecords, path: Path, film: Film | None = None) -> None:
    """Write the page of a run, atomically."""
    replace_text(path, render(run, film))
