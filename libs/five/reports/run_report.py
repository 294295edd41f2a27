"""Report of a run: one self-contained HTML file made from the time series in its state.

The page loads nothing from elsewhere (`five.reports.html_page`). It shows the run's figures, curves, timeline marks,
events and newest recording with the console's components.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from five.reports.html_page import Film, page
from five.services.controller.console.curves import Columns, downsample
from five.services.controller.console.timeline import Timeline
from five.services.controller.games.recordings import RecordingReader
from rapid.atomic_file import replace_text
from rapid.blobs import BlobMissing
from rapid.store.errors import Corrupt
from rapid.store.series import Record, Series
from rapid.store.state import RunState

EVENTS = 500  # events of a report
POINTS = 400  # points of a curve
MAX_FILM = 24 << 20  # bytes of the largest recording in a report


@dataclass(frozen=True)
class RunRecords:
    """Data of a report."""

    name: str
    began: float  # seconds since the epoch
    versions: list[Record]
    games: list[Record]
    ratings: list[Record]
    events: list[dict[str, Any]]
    marks: Sequence[dict[str, Any]] = ()
    branches: Sequence[dict[str, Any]] = ()  # branches left by reverts, as in GET /v1/branches


def collect(state: RunState, series: Series) -> RunRecords:
    """Read a report's data from a run's store."""
    first = state.events.read(limit=1)
    events = [{"id": e.id, "at": e.at, "who": e.who, "what": e.what, "details": e.details}
              for e in reversed(state.events.last(EVENTS))]
    marks = [mark.model_dump(mode="json") for mark in Timeline(state.events, series).all()]
    branches = [{"first": gone.start, "last": gone.stop - 1, "left_by": stretch.operation, "who": stretch.who,
                 "at": stretch.at, "went_back_to": stretch.parent, "continued_as": stretch.first}
                for stretch, gone in reversed(state.lineage().reverted())]
    return RunRecords(state.run, first[0].at if first else time.time(), list(series.read("versions")),
                      list(series.read("games")), list(series.read("ratings")), events, marks, branches)


def newest_film(recordings: RecordingReader) -> Film | None:
    """Return the newest recording that fits into a report; None without one, or while the blob store is unavailable."""
    try:
        found = next((entry for entry in recordings.all() if entry["bytes"] <= MAX_FILM), None)
        return None if found is None else Film(str(found["name"]), recordings.read(found["name"]))
    except (BlobMissing, Corrupt, OSError):
        return None


def curves(records: Sequence[Record]) -> dict[str, Any]:
    """Return all numbers of a series in the format of the console's charts."""
    columns = Columns()
    for record in records:
        columns.append(record)
    return downsample(columns, columns.names(), POINTS, None, None)


def headline(run: RunRecords) -> list[tuple[str, str]]:
    """Return the figures at the top of the page: (name, value)."""
    out = [("running for", f"{(_last_at(run) - run.began) / 60:.0f} min")]
    if run.versions:
        last = run.versions[-1].values
        out.append(("version", str(last.get("version", "?"))))
        if "hero_steps" in last:
            out.append(("hero-steps learned from", f"{last['hero_steps']:,.0f}"))
        recent = [r.values for r in run.versions[-50:]]
        for key, name in (("staleness_median", "median staleness"), ("reuse", "sample reuse")):
            values = [r[key] for r in recent if r.get(key) is not None]
            if values:
                out.append((name, f"{np.median(values):.2f}"))
    if run.games:
        out.append(("games played", f"{len(run.games):,}"))
    rated = [r for r in run.ratings if r.values.get("mu") is not None]
    if rated:
        newest = rated[-1].values
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
    return max([r[-1].at for r in (run.versions, run.games, run.ratings) if r] + [run.began])


def render(run: RunRecords, film: Film | None = None, now: float | None = None) -> str:
    """Return the page as HTML, with the recording ``film``."""
    data = {
        "name": run.name, "made": time.time() if now is None else now, "facts": headline(run),
        "curves": {"versions": curves(run.versions), "games": curves(run.games), "ratings": curves(run.ratings)},
        "marks": list(run.marks), "branches": list(run.branches), "events": run.events}
    return page(data, film)


def save_records(run: RunRecords, path: Path) -> None:
    """Write the records of versions and ratings as JSON, atomically. Each has the minutes since the run began."""
    tree = {kind: [{"minutes": (r.at - run.began) / 60.0, **r.values} for r in records]
            for kind, records in (("versions", run.versions), ("ratings", run.ratings))}
    replace_text(path, json.dumps({"name": run.name, "began": run.began, **tree}))


def write(run: RunRecords, path: Path, film: Film | None = None) -> None:
    """Write the page of a run, atomically."""
    replace_text(path, render(run, film))
