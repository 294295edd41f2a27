"""What arms are compared by: means over seeds with 95 % intervals, curves, and the paper's speedup."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from five.cli.ablation.outcome import Run, Version

Floats = npt.NDArray[np.float64]
Axis = Callable[[Version], float]

AXES: dict[str, Axis] = {"versions": lambda v: float(v.number), "samples": lambda v: v.samples,
                         "wall clock": lambda v: v.minutes}
LEVELS = (0.5, 0.9)  # shares of the baseline's way from its first judged version to its last
AROUND = 2.0  # points of TrueSkill by which like runs differ (Berner et al. 2019, figure 20)

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
        return f"{figure(self.value)} ± {figure(self.half, 2)}" if math.isfinite(self.half) else figure(self.value)


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
    return Mean(float(array.mean()), float(_t95(len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array))),
                len(array))


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
    for x, y in tracks:
        there = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
        if there:
            known.append(([a for a, _ in there], [b for _, b in there]))
    start = max((x[0] for x, _ in known), default=1.0)
    end = min((x[-1] for x, _ in known), default=0.0)
    if start > end:  # there is no place that all of them have been at
        return Curve(*[np.zeros(0)] * 4, len(known))
    places = np.linspace(start, end, points)
    means = [mean([float(np.interp(place, *track)) for track in known]) for place in places]
    y, half = np.array([m.value for m in means]), np.array([m.half if math.isfinite(m.half) else 0.0 for m in means])
    return Curve(places, y, y - half, y + half, len(known))


def of_versions(runs: Sequence[Run], axis: Axis, figure: Callable[[Version], float]) -> Curve:
    """A figure of an arm's judged versions over an axis."""
    return curve([([axis(v) for v in run.versions], [figure(v) for v in run.versions]) for run in runs])


def at(run: Run, axis: Axis, place: float, figure: Callable[[Version], float]) -> float:
    """A figure of a run at a place of an axis, on straight lines between its judged versions; not a number outside of
    what was judged."""
    x = [axis(v) for v in run.versions]
    return float(np.interp(place, x, [figure(v) for v in run.versions], math.nan, math.nan))


def common(runs: Iterable[Run], axis: Axis) -> float:
    """The furthest place of an axis that all of these runs were judged at or beyond; not a number without any, or where
    some run's is not known."""
    ends = [axis(run.last) for run in runs]
    return min(ends) if ends and all(map(math.isfinite, ends)) else math.nan


def levels(baseline: Sequence[Run]) -> list[float]:
    """Ratings that arms are compared at: half of the baseline's way from its first judged version to its last, and
    nearly all of it. None when it was not rated higher at the end."""
    if not baseline:
        return []
    first = float(np.mean([run.versions[0].mu for run in baseline]))
    last = float(np.mean([run.last.mu for run in baseline]))
    return [first + share * (last - first) for share in LEVELS] if last > first else []


def first_reached(x: Sequence[float], mu: Sequence[float], level: float) -> float:
    """Where a rating first reaches ``level``, on straight lines between the judged versions; infinite if never.

    Not a number when the first judged version lies above it: it was reached before anybody looked, and nothing tells
    where. (No version 0 is judged. It plays at random or nearly, but that it is worth 0 is no measurement.)
    """
    if not len(x) or mu[0] > level:
        return math.nan
    if mu[0] == level:
        return float(x[0])
    for i in range(1, len(x)):
        if mu[i] >= level:
            return float(x[i - 1] + (level - mu[i - 1]) / (mu[i] - mu[i - 1]) * (x[i] - x[i - 1]))
    return math.inf


@dataclass(frozen=True)
class Speedup:
    """``value``: what the baseline needs to reach a rating over what an arm needs, geometric means over seeds; 0 when
    a run of the arm never reaches it, infinite when one of the baseline doesn't, not a number when that is not
    determined or neither does, which ``reason`` tells. ``around``: from, to, by `AROUND` points more and less;
    ``seeds``: the 95 % interval over seeds, None with one seed on either side."""

    value: float
    around: tuple[float, float] | None = None
    seeds: tuple[float, float] | None = None
    reason: str = ""

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        if math.isinf(self.value):
            return "baseline never"
        if not self.value:
            return "never"
        parts = [f"±{AROUND:g} points: {_span(self.around)}"] if self.around else []
        parts += [f"seeds: {_span(self.seeds)}"] if self.seeds else []
        return f"{self.value:.2f} ({'; '.join(parts)})"


def speedup(baseline: Sequence[Run], arm: Sequence[Run], level: float, axis: Axis) -> Speedup:
    """The speedup of Berner et al. 2019, equation 2.

    Its uncertainty is reckoned as in the paper's appendix M: what either side needs for `AROUND` points less and more,
    both in quadrature. Where a side was there before it was judged it may have needed nothing, where it never comes
    there it may need any number. The interval over seeds is Welch's, of logarithms.
    """
    sides = (baseline, arm)
    needed = [[_needs(run, level, axis) for run in side] for side in sides]
    early = [run.name for side, needs in zip(sides, needed, strict=True)
             for run, need in zip(side, needs, strict=True) if math.isnan(need)]
    if early or not all(needed):
        where = "the first judged version is above it already, or its place on the axis isn't known, in"
        return Speedup(math.nan, reason=f"{where} {', '.join(early)}" if early else "there are no runs to compare")
    base, own = map(_geometric, needed)
    if math.isinf(base) and math.isinf(own):
        return Speedup(math.nan, reason="neither reaches it in all of its runs")
    if math.isinf(base) or math.isinf(own):
        return Speedup(math.inf if math.isinf(base) else 0.0)
    value = base / own
    sooner, later = ([_geometric([0.0 if math.isnan(need) else need
                                  for need in (_needs(run, level + step, axis) for run in side)]) for side in sides]
                     for step in (-AROUND, AROUND))
    down = math.hypot(value - sooner[0] / own, value - base / later[1])
    up = math.hypot(later[0] / own - value, (base / sooner[1] if sooner[1] else math.inf) - value)
    return Speedup(value, (max(value - down, 0.0), value + up), _over_seeds(*needed))


def _needs(run: Run, level: float, axis: Axis) -> float:
    x = [axis(v) for v in run.versions]
    return first_reached(x, [v.mu for v in run.versions], level) if all(map(math.isfinite, x)) else math.nan


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if all(values) else 0.0


def _over_seeds(baseline: Sequence[float], arm: Sequence[float]) -> tuple[float, float] | None:
    if len(baseline) < 2 or len(arm) < 2:
        return None
    logs = [np.log(side) for side in (baseline, arm)]
    variances = [float(log.var(ddof=1)) / len(log) for log in logs]
    total = sum(variances)
    middle = float(logs[0].mean() - logs[1].mean())
    if not total:
        return math.exp(middle), math.exp(middle)
    freedom = total**2 / sum(v**2 / (len(log) - 1) for v, log in zip(variances, logs, strict=True))
    half = _t95(int(freedom)) * math.sqrt(total)
    return math.exp(middle - half), math.exp(middle + half)


def _t95(freedom: int) -> float:
    return _T95[max(freedom, 1) - 1] if freedom <= len(_T95) else 1.960


def _span(ends: tuple[float, float]) -> str:
    return " to ".join("open" if math.isinf(end) else f"{end:.2f}" for end in ends)
