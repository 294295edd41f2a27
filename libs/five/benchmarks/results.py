"""Rows of a benchmark: a measured value, its reference on the same machine, and the conditions."""

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from five.local.run_origin import usable_cores

Conditions = dict[str, str | int | float]


class BenchmarkRow(NamedTuple):
    """One measurement. ``ratio`` is ``value / reference``; both are None without a reference."""

    name: str
    value: float
    unit: str
    reference: float | None
    ratio: float | None
    conditions: Conditions


def row(name: str, value: float, unit: str, reference: float | None, conditions: Conditions) -> BenchmarkRow:
    """Return a row with its ratio. Raises ValueError for a value that is not finite."""
    for figure in (value, reference):
        if figure is not None and not math.isfinite(figure):
            raise ValueError(f"{name}: {figure} is not a finite measurement")
    ratio = value / reference if reference else None
    return BenchmarkRow(name, value, unit, reference, ratio, conditions)


def processor() -> str:
    """Return the processor's model."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine(**more: str | int | float) -> Conditions:
    """Return the conditions of this machine, and ``more``. ``load`` is the load average before: above 0.5 the machine
    was busy."""
    return {"cpu": processor(), "cores": usable_cores(), "load": round(os.getloadavg()[0], 2), **more}


def median_rate(work: Callable[[], float], seconds: float, repeats: int) -> float:
    """Return the median units a second over ``repeats`` intervals of ``seconds``. ``work`` returns the units of a call;
    the first call is not counted."""
    work()
    return statistics.median(_rate(work, seconds) for _ in range(repeats))


def _rate(work: Callable[[], float], seconds: float) -> float:
    began = time.perf_counter()
    done = 0.0
    while True:
        done += work()
        spent = time.perf_counter() - began
        if spent >= seconds:
            return done / spent


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return median, 95th and 99th percentile by name."""
    return {f"p{q}": float(np.percentile(milliseconds, q)) for q in (50, 95, 99)}


def as_json(rows: Sequence[BenchmarkRow]) -> str:
    """Return the rows as a JSON list of objects."""
    return json.dumps([r._asdict() for r in rows], indent=2, allow_nan=False)


def as_text(rows: Sequence[BenchmarkRow]) -> str:
    """Return the rows as a table, with their common conditions below."""
    shared = [k for k in rows[0].conditions if all(r.conditions.get(k) == rows[0].conditions[k] for r in rows)]
    lines = [("", "value", "", "reference", "ratio", "")]
    lines += [(r.name, _format_number(r.value), r.unit, _format_number(r.reference), _format_number(r.ratio),
               _format_conditions({k: v for k, v in r.conditions.items() if k not in shared})) for r in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join(cell.ljust(w) if i in (0, 2, 5) else cell.rjust(w)
                      for i, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines]
    return "\n".join([*text, "", _format_conditions({k: rows[0].conditions[k] for k in shared})])


def _format_conditions(conditions: Conditions) -> str:
    return ", ".join(f"{name} {value}" for name, value in conditions.items())


def _format_number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
