"""Statistics that compare variants: means over seeds with 95 % intervals, at a point of an axis or as curves."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from five.ablation.results import EvaluatedVersion, TrialRun

Floats = npt.NDArray[np.float64]
Axis = Callable[[EvaluatedVersion], float]

AXES: dict[str, Axis] = {"versions": lambda v: float(v.number), "samples": lambda v: v.samples,
                         "wall clock": lambda v: v.minutes}

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom, and the normal distribution's.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL95 = 1.959964


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over seeds and half the width of its 95 % interval (infinite for one seed)."""

    value: float
    half: float
    seeds: int

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return "-"
        if not math.isfinite(self.half):
            return format_number(self.value)
        # The digits of the mean do not show less than a thousandth of it: print only an upper bound.
        least = abs(self.value) / 1000
        half = format_number(self.half, 2) if self.half == 0 or self.half >= least else f"<{format_number(least, 1)}"
        return f"{format_number(self.value)} ± {half}"


def format_number(value: float, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits, without trailing zeros: 0.0123, 12.3, 1,234."""
    before = math.floor(math.log10(abs(value))) + 1 if value else 1
    text = f"{value:,.{max(digits - before, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def mean(values: Sequence[float]) -> MeanEstimate:
    """Return the mean of one value per seed. NaN values are ignored."""
    array = np.array([v for v in values if math.isfinite(v)])
    if not len(array):
        return MeanEstimate(math.nan, math.nan, 0)
    if len(array) == 1:
        return MeanEstimate(float(array[0]), math.inf, 1)
    # The deviation of equal numbers would be a rounding error.
    spread = float(array.std(ddof=1)) if array.min() < array.max() else 0.0
    return MeanEstimate(float(array.mean()), t95(len(array) - 1) * spread / math.sqrt(len(array)), len(array))


@dataclass(frozen=True)
class Curve:
    """A variant's metric over an axis: ``x`` [P], the mean over ``seeds`` runs ``y`` [P], and its interval ``low``,
    ``high`` [P]."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    seeds: int


def curve(tracks: Sequence[tuple[Sequence[float], Sequence[float]]], points: int = 50) -> Curve:
    """Return the mean curve of several runs' (x, y), linearly interpolated, over the range that all runs cover.

    NaN points and runs without points are ignored.
    """
    known = []
    for track in tracks:
        finite = [(a, b) for a, b in zip(*track, strict=True) if math.isfinite(a) and math.isfinite(b)]
        if finite:
            known.append(([a for a, _ in finite], [b for _, b in finite]))
    start = max((xs[0] for xs, _ in known), default=1.0)
    end = min((xs[-1] for xs, _ in known), default=0.0)
    if start > end:  # no point is common to all runs
        empty = np.zeros(0)
        return Curve(empty, empty, empty, empty, len(known))
    x = np.linspace(start, end, points)
    means = [mean([float(np.interp(point, *track)) for track in known]) for point in x]
    y, half = np.array([m.value for m in means]), np.array([m.half if math.isfinite(m.half) else 0.0 for m in means])
    return Curve(x, y, y - half, y + half, len(known))


def version_curve(runs: Sequence[TrialRun], axis: Axis, metric: Callable[[EvaluatedVersion], float]) -> Curve:
    """Return the mean curve of a metric over an axis, from the evaluated versions of a variant's runs."""
    return curve([([axis(v) for v in run.versions], [metric(v) for v in run.versions]) for run in runs])


def metric_at(run: TrialRun, axis: Axis, point: float, metric: Callable[[EvaluatedVersion], float]) -> float:
    """Return a run's metric at a point of an axis, linearly interpolated between its evaluated versions; NaN
    outside."""
    x = [axis(v) for v in run.versions]
    return float(np.interp(point, x, [metric(v) for v in run.versions], math.nan, math.nan))


def mean_between(run: TrialRun, axis: Axis, span: tuple[float, float], metric: Callable[[EvaluatedVersion], float]
                 ) -> float:
    """Return the mean of a run's metric between two points of an axis; NaN if part of the span was not evaluated.

    It depends less on single versions than the value at a point.
    """
    values = np.array([metric_at(run, axis, float(point), metric) for point in np.linspace(*span, 201)])
    return float((values[:-1] + values[1:]).mean() / 2)


def common_range(runs: Iterable[TrialRun], axis: Axis) -> tuple[float, float]:
    """Return the range of an axis over which all runs were evaluated. If it is empty the start is above the end.

    NaN without runs, or if a run's position is unknown.
    """
    ends = [(axis(run.versions[0]), axis(run.last)) for run in runs]
    if not ends or not np.isfinite(ends).all():
        return math.nan, math.nan
    return max(start for start, _ in ends), min(end for _, end in ends)


def t95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, exact to three decimals."""
    if freedom <= len(_T95):
        return _T95[max(freedom, 1) - 1]
    z = _NORMAL95  # Abramowitz and Stegun, formula 26.7.5
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))
