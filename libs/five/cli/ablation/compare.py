"""What an ablation's results say: means over seeds with intervals, and the paper's speedup."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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
        return f"{self.value:.3g} ± {self.half:.2g}" if math.isfinite(self.half) else f"{self.value:.3g} (one seed)"


def mean(values: Sequence[float]) -> Mean:
    """The mean of one figure a seed."""
    array = np.array([v for v in values if math.isfinite(v)])
    if not len(array):
        return Mean(math.nan, math.nan, 0)
    if len(array) == 1:
        return Mean(float(array[0]), math.inf, 1)
    freedom = len(array) - 1
    t = _T95[freedom - 1] if freedom <= len(_T95) else 1.960
    return Mean(float(array.mean()), float(t * array.std(ddof=1) / math.sqrt(len(array))), len(array))


@dataclass(frozen=True)
class Curve:
    """An arm's rating over an axis: ``x`` [P], mean over seeds ``y`` [P] with its interval ``low``, ``high`` [P]."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats


def curve(results: Sequence[Mapping[str, Any]], axis: str, points: int = 20) -> Curve:
    """Ratings of one arm's results over ``axis`` (``minutes``, ``hero_steps`` or ``version``), between the judged
    versions on straight lines, as far as every seed goes."""
    tracks = [([j[axis] for j in r["judged"]], [j["mu"] for j in r["judged"]]) for r in results]
    start, end = max(t[0][0] for t in tracks), min(t[0][-1] for t in tracks)
    x = np.linspace(start, end, points)
    means = [mean([float(np.interp(at, *track)) for track in tracks]) for at in x]
    y, half = np.array([m.value for m in means]), np.array([m.half if math.isfinite(m.half) else 0.0 for m in means])
    return Curve(x, y, y - half, y + half)


def first_reached(x: Sequence[float], mu: Sequence[float], level: float) -> float:
    """Where a rating first reaches ``level``, between the judged versions on straight lines; infinite if never."""
    if not x:
        return math.inf
    if mu[0] >= level:
        return float(x[0])
    for i in range(1, len(x)):
        if mu[i] >= level:
            return float(x[i - 1] + (level - mu[i - 1]) / (mu[i] - mu[i - 1]) * (x[i] - x[i - 1]))
    return math.inf


def speedup(baseline: Sequence[Mapping[str, Any]], arm: Sequence[Mapping[str, Any]], level: float, axis: str) -> float:
    """What the baseline needs to reach a rating, over what the arm needs (Berner et al. 2019, equation 2): means over
    seeds; 0 when some run of the arm, infinite when some run of the baseline alone, never reaches it."""
    needs = [float(np.mean([first_reached([j[axis] for j in r["judged"]], [j["mu"] for j in r["judged"]], level)
                            for r in side])) for side in (baseline, arm)]
    if math.isinf(needs[1]):
        return math.nan if math.isinf(needs[0]) else 0.0
    return needs[0] / needs[1]


def last(result: Mapping[str, Any], opponent: str, key: str = "score") -> float:
    """A figure of the last judged version's match against an opponent."""
    return float(result["judged"][-1]["matches"][opponent][key])
