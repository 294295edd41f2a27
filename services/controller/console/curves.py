"""Downsampled time series for the console's charts.

The numbers of a series are held as columns, and reading continues where it stopped. With more records than points,
each point covers an interval: its mean, minimum and maximum, so that spikes stay visible.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapid.store.series import Record, Series

Floats = npt.NDArray[np.float64]
KINDS = ("versions", "games", "ratings")
MAX_COLUMNS = 200  # of a kind; further fields are ignored
MAX_RECORDS = 250_000  # of a kind; a series is capped below this
MAX_RESULTS = 32  # of a kind, for equal requests
GAP_FACTOR = 6.0  # of the usual interval, above which an interval counts as a gap
GAP_SECONDS = 15.0
DIGITS = 6  # significant digits sent


def numeric_fields(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number of a record with its path, such as ``win_rates/scripted``. Ends of an interval are ``/0`` and
    ``/1``."""
    for key, value in values.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            yield prefix + key, float(value)
        elif isinstance(value, dict):
            yield from numeric_fields(value, f"{prefix}{key}/")
        elif isinstance(value, list) and len(value) == 2 and all(isinstance(v, int | float) for v in value):
            yield from ((f"{prefix}{key}/{i}", float(v)) for i, v in enumerate(value))


class Columns:
    """The numbers of one series, oldest first; NaN where a record has no value."""

    def __init__(self) -> None:
        self.length = 0
        self._at: Floats = np.empty(1024)
        self._of: dict[str, npt.NDArray[Any]] = {}

    @property
    def at(self) -> Floats:
        """Time of each record, seconds since the epoch."""
        return self._at[:self.length]

    def names(self) -> list[str]:
        """Return the names of the columns."""
        return sorted(self._of)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return one column; all NaN for an unknown name."""
        found = self._of.get(name)
        return np.full(self.length, np.nan, np.float32) if found is None else found[:self.length]

    def append(self, record: Record) -> None:
        """Append one record."""
        if self.length == len(self._at):
            self._grow()
        self._at[self.length] = record.at
        for name, value in numeric_fields(record.values):
            column = self._of.get(name)
            if column is None:
                if len(self._of) >= MAX_COLUMNS:
                    continue
                # Version numbers exceed the precision of float32.
                kind = np.float64 if name == "version" else np.float32
                column = self._of[name] = np.full(len(self._at), np.nan, kind)
            column[self.length] = value
        self.length += 1

    def _grow(self) -> None:
        keep = self.length if self.length < MAX_RECORDS else MAX_RECORDS * 4 // 5
        size = max(min(2 * keep, MAX_RECORDS + 1), 1024)

        def grown(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
            out = np.full(size, np.nan, column.dtype)
            out[:keep] = column[self.length - keep:self.length]
            return out

        self._at = grown(self._at)
        self._of = {name: grown(column) for name, column in self._of.items()}
        self.length = keep


class Curves:
    """The curves of a run. Blocking and thread-safe."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._locks = {kind: threading.Lock() for kind in KINDS}
        self._columns = {kind: Columns() for kind in KINDS}
        self._read = {kind: "-" for kind in KINDS}
        self._results: dict[str, OrderedDict[tuple[Any, ...], dict[str, Any]]] = {kind: OrderedDict() for kind in KINDS}

    def curves(self, kind: str, fields: Sequence[str], points: int, start: float | None = None,
               end: float | None = None) -> dict[str, Any]:
        """Return the curves of some fields over a time range (seconds since the epoch; None: unbounded).

        ``at`` holds the points' times. Each field has ``mean`` and, where a point covers several records, ``low`` and
        ``high``; None where there is no value. Raise redis.RedisError.
        """
        with self._locks[kind]:
            # Equal requests share the result until there is a new record.
            columns, results = self._columns[kind], self._results[kind]
            for record in self._series.read(kind, self._read[kind]):
                columns.append(record)
                self._read[kind] = record.id
                results.clear()
            key = (tuple(fields), points, start, end)
            if key not in results:
                results[key] = downsample(columns, fields, points, start, end)
                if len(results) > MAX_RESULTS:
                    results.popitem(last=False)
            results.move_to_end(key)
            return results[key]


def downsample(columns: Columns, fields: Sequence[str], points: int, start: float | None, end: float | None
          ) -> dict[str, Any]:
    """Return the curves of a time range in the format of `Curves.curves`."""
    at = columns.at
    first = 0 if start is None else int(np.searchsorted(at, start))
    last = len(at) if end is None else int(np.searchsorted(at, end, "right"))
    # One point beyond either end, so that lines reach the edges.
    first, last = max(first - 1, 0), min(last + 1, len(at))
    at = at[first:last]
    known = set(columns.names())
    out: dict[str, Any] = {"total": len(at), "first": float(columns.at[0]) if columns.length else None,
                           "last": float(columns.at[-1]) if columns.length else None,
                           "names": columns.names(), "gaps": gaps(at)}
    if len(at) <= points:
        out["at"] = [round(t, 3) for t in at.tolist()]
        out["fields"] = {name: {"mean": _round_values(columns.column(name)[first:last], name)}
                         for name in fields if name in known}
        return out
    edges = np.linspace(at[0], at[-1], points + 1)
    cuts = np.unique(np.searchsorted(at, edges[:-1]))
    counts = np.diff(np.append(cuts, len(at)))
    out["at"] = [round(t, 3) for t in (np.add.reduceat(at - at[0], cuts) / counts + at[0]).tolist()]
    out["fields"] = {name: _bin_statistics(columns.column(name)[first:last].astype(np.float64), cuts, name)
                     for name in fields if name in known}
    return out


def _bin_statistics(values: Floats, cuts: npt.NDArray[np.int64], name: str) -> dict[str, Any]:
    there = np.isfinite(values)
    count = np.add.reduceat(there.astype(np.float64), cuts)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(there, values, 0.0), cuts) / count
    none = count == 0
    low = np.where(none, np.nan, np.minimum.reduceat(np.where(there, values, np.inf), cuts))
    high = np.where(none, np.nan, np.maximum.reduceat(np.where(there, values, -np.inf), cuts))
    return {"mean": _round_values(mean, name), "low": _round_values(low, name), "high": _round_values(high, name)}


def _round_values(values: npt.NDArray[Any], name: str) -> list[float | None]:
    digits = 16 if name == "version" else DIGITS
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values.tolist()]


def gaps(at: Floats) -> list[tuple[float, float]]:
    """Return the intervals without records that are much longer than usual."""
    if len(at) < 4:
        return []
    between = np.diff(at)
    limit = max(GAP_FACTOR * float(np.median(between)), GAP_SECONDS)
    return [(float(at[i]), float(at[i + 1])) for i in np.flatnonzero(between > limit)][-200:]
