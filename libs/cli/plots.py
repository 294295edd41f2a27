"""The plots of a run's report: from records of its time series to SVG."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt

from rapid.store.series import Record

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A curve: x (of a run: minutes since it began), y, and optionally a band around it."""

    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class Plot:
    """One picture of the report. ``target``: a value to be drawn in as a dashed line, with its name."""

    title: str
    unit: str
    lines: list[Line]
    target: tuple[float, str] | None = None
    log: bool = False
    note: str = ""
    x_unit: str = "minutes"


@dataclass(frozen=True)
class Mark:
    """A moment on the time line (minutes since the run began) with its name."""

    x: float
    name: str


def line(records: Sequence[Record], began: float, label: str, value: Callable[[dict[str, Any]], float | None],
         smooth: int = 1) -> Line:
    """The curve of ``value`` over the records, those without one left out; ``smooth`` averages that many in a row."""
    points = [(r.at, v) for r in records if (v := value(r.values)) is not None and np.isfinite(v)]
    if not points:
        return Line(label, np.empty(0), np.empty(0))
    x = (np.array([p[0] for p in points]) - began) / 60.0
    y = np.array([p[1] for p in points], np.float64)
    width = min(smooth, len(y))
    if width > 1:
        sums = np.cumsum(np.concatenate([[0.0], y]))
        first = np.maximum(np.arange(len(y)) - width + 1, 0)
        y = (sums[1:] - sums[first]) / (np.arange(len(y)) - first + 1)
    return Line(label, x, y)


def gaps(records: Sequence[Record], began: float, factor: float = 6.0) -> list[tuple[float, float]]:
    """Stretches (minutes) in which nothing came although something was due: ``factor`` times the usual interval."""
    at = np.array([r.at for r in records])
    if len(at) < 4:
        return []
    between = np.diff(at)
    limit = max(factor * float(np.median(between)), 15.0)
    return [((at[i] - began) / 60.0, (at[i + 1] - began) / 60.0) for i in np.flatnonzero(between > limit)]


def draw(plot: Plot, shaded: Sequence[tuple[float, float]] = (), marks: Sequence[Mark] = ()) -> str:
    """The plot as an SVG element; ``shaded`` marks stretches of the x axis (gaps of the run), ``marks`` moments."""
    figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    for start, end in shaded:
        axes.axvspan(start, end, color="#f4d7c8", lw=0)
    for mark in marks:
        axes.axvline(mark.x, color="#7a3e9d", lw=1.1)
        axes.annotate(mark.name, (mark.x, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -2),
                      textcoords="offset points", rotation=90, va="top", fontsize=6, color="#7a3e9d")
    for curve in plot.lines:
        (drawn,) = axes.plot(curve.x, curve.y, lw=1.6, label=curve.label, marker="o" if len(curve.x) < 30 else None,
                             ms=3)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=drawn.get_color(), alpha=0.18, lw=0)
    if plot.target is not None:
        axes.axhline(plot.target[0], color="#666666", ls="--", lw=1, label=plot.target[1])
    if plot.log:
        axes.set_yscale("log")
    axes.set_xlabel(plot.x_unit)
    axes.set_ylabel(plot.unit)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if any(len(c.x) for c in plot.lines):
        figure.legend(loc="outside upper left", fontsize=7, ncols=4, frameon=False)
    else:
        axes.text(0.5, 0.5, "no data yet", ha="center", va="center", transform=axes.transAxes, color="#888888")
    out = io.StringIO()
    figure.savefig(out, format="svg")
    plt.close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]
