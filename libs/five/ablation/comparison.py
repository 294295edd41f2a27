"""What arms are compared by: means over seeds with 95 % intervals, at a place of an axis, on the way, as curves."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from five.ablation.results import Run, Version

Floats = npt.NDArray[np.float64]
Axis = Callable[[Version], float]

AXES: dict[str, Axis] = {"versions": lambda v: float(v.number), "samples": lambda v: v.samples,
                         "wall clock": lambda v: v.minutes}

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; beyond the last the normal's.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and half the width of its 95 % interval (infinite for one seed)."""

    value: float
    half: float
    seeds: int

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return "-"
        if not math.isfinite(self.half):
            return figure(self.value)
        # Below a thousandth of the mean, which the mean's own digits do not show, only that it is less is told.
        least = abs(self.value) / 1000
        half = figure(self.half, 2) if self.half == 0 or self.half >= least else f"<{figure(least, 1)}"
        return f"{figure(self.value)} ± {half}"


def figure(value: float, digits: int = 3) -> str:
    """A number with so many digits that count, more only before the point: 0.0123, 12.3, 1,234; no zeros at the end."""
    before = math.floor(math.log10(abs(value))) + 1 if value else 1
    text = f"{value:,.{max(digits - before, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def mean(values: Sequence[float]) -> Mean:
    """The mean of one figure a seed; what is not a number is left out."""
    array = np.array([v for v in values if math.isfinite(v)])
    if not len(array):
        return Mean(math.nan, math.nan, 0)
    if len(array) == 1:
        return Mean(float(array[0]), math.inf, 1)
    spread = float(array.std(ddof=1)) if array.min() < array.max() else 0.0  # of equal numbers it is that of rounding
    return Mean(float(array.mean()), t95(len(array) - 1) * spread / math.sqrt(len(array)), len(array))


@dataclass(frozen=True)
class Curve:
    """An arm's figure over an axis: ``x`` [P], mean over ``seeds`` runs ``y`` [P] with its interval ``low``, ``high``
    [P]."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    seeds: int


def curve(tracks: Sequence[tuple[Sequence[float], Sequence[float]]], points: int = 50) -> Curve:
    """The mean of several runs' (x, y), on straight lines between what is known, as far as every run goes. Points that
    are not numbers are left out, and runs without any."""
    known = []
    for track in tracks:
        there = [(a, b) for a, b in zip(*track, strict=True) if math.isfinite(a) and math.isfinite(b)]
        if there:
            known.append(([a for a, _ in there], [b for _, b in there]))
    start = max((places[0] for places, _ in known), default=1.0)
    end = min((places[-1] for places, _ in known), default=0.0)
    if start > end:  # there is no place that all of them have been at
        nowhere = np.zeros(0)
        return Curve(nowhere, nowhere, nowhere, nowhere, len(known))
    x = np.linspace(start, end, points)
    means = [mean([float(np.interp(place, *track)) for track in known]) for place in x]
    y, half = np.array([m.value for m in means]), np.array([m.half if math.isfinite(m.half) else 0.0 for m in means])
    return Curve(x, y, y - half, y + half, len(known))


def of_versions(runs: Sequence[Run], axis: Axis, figure: Callable[[Version], float]) -> Curve:
    """A figure of an arm's judged versions over an axis."""
    return curve([([axis(v) for v in run.versions], [figure(v) for v in run.versions]) for run in runs])


def at(run: Run, axis: Axis, place: float, figure: Callable[[Version], float]) -> float:
    """A figure of a run at a place of an axis, on straight lines between its judged versions; not a number outside of
    what was judged."""
    x = [axis(v) for v in run.versions]
    return float(np.interp(place, x, [figure(v) for v in run.versions], math.nan, math.nan))


def on_the_way(run: Run, axis: Axis, way: tuple[float, float], figure: Callable[[Version], float]) -> float:
    """The mean of a figure of a run from a place of an axis to another, as `at` has it; not a number where any of that
    lies outside of what was judged. One version's games, and its whims, count less in it."""
    places = np.linspace(*way, 201)
    values = np.array([at(run, axis, float(place), figure) for place in places])
    return float((values[:-1] + values[1:]).mean() / 2)


def common(runs: Iterable[Run], axis: Axis) -> tuple[float, float]:
    """From where to where on an axis all of these runs were judged, the former beyond the latter where that is nowhere;
    not numbers without any runs, or where some run's place is not known."""
    ends = [(axis(run.versions[0]), axis(run.last)) for run in runs]
    if not ends or not np.isfinite(ends).all():
        return math.nan, math.nan
    return max(start for start, _ in ends), min(end for _, end in ends)


def t95(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    return _T95[max(freedom, 1) - 1] if freedom <= len(_T95) else 1.960
