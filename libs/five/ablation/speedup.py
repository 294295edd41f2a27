"""Speedup of a variant: how much sooner it reaches a rating (Berner et al. 2019, equation 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from five.ablation.comparison import Axis, t95
from five.ablation.results import TrialRun

LEVELS = (0.5, 0.9)  # shares of the way from the baseline's first evaluated version to its last
AROUND = 2.0  # TrueSkill points by which equal runs differ (Berner et al. 2019, figure 20)


def levels(baseline: Sequence[TrialRun]) -> list[float]:
    """Return the ratings at which variants are compared: half and nine tenths of the way from the baseline's first
    evaluated version to its last. Empty if its rating did not rise."""
    if not baseline:
        return []
    first = float(np.mean([run.versions[0].mu for run in baseline]))
    last = float(np.mean([run.last.mu for run in baseline]))
    return [first + share * (last - first) for share in LEVELS] if last > first else []


def first_reached(x: Sequence[float], mu: Sequence[float], level: float) -> float:
    """Return where a rating first reaches ``level``, linearly interpolated between evaluated versions; infinite if
    never.

    NaN if the first evaluated version is above it: when it was reached is unknown. Version 0 is never
    evaluated, because it plays almost randomly.
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
    """Speedup ``value``: what the baseline needs to reach a rating over what the variant needs, geometric means over
    seeds.

    0 if a run of the variant never reaches it, infinite if a run of the baseline does not, NaN if undetermined, with
    the ``reason``. ``around``: from, to, by `AROUND` points more and less; ``seeds``: the 95 % interval over seeds,
    None with one seed on either side.
    """

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
        parts = [f"±{AROUND:g} points: {_format_range(self.around)}"] if self.around else []
        parts += [f"seeds: {_format_range(self.seeds)}"] if self.seeds else []
        return f"{self.value:.2f} ({'; '.join(parts)})"


def speedup(baseline: Sequence[TrialRun], variant: Sequence[TrialRun], level: float, axis: Axis) -> Speedup:
    """Return the speedup of Berner et al. 2019, equation 2.

    Its uncertainty follows the paper's appendix M: what either side needs for `AROUND` points less and more, in
    quadrature. A side that was above the level before its first evaluation may have needed nothing; one that never
    reaches it may need any number. The interval over seeds is Welch's, of logarithms.
    """
    sides = (baseline, variant)
    needed = [[_amount_to_reach(run, level, axis) for run in side] for side in sides]
    early = [run.name for side, needs in zip(sides, needed, strict=True)
             for run, need in zip(side, needs, strict=True) if math.isnan(need)]
    if early or not all(needed):
        where = "the first evaluated version is already above it, or its position on the axis is unknown, in"
        return Speedup(math.nan, reason=f"{where} {', '.join(early)}" if early else "there are no runs to compare")
    base, own = map(_geometric_mean, needed)
    if math.isinf(base) and math.isinf(own):
        return Speedup(math.nan, reason="neither reaches it in all runs")
    if math.isinf(base) or math.isinf(own):
        return Speedup(math.inf if math.isinf(base) else 0.0)
    value = base / own

    def means_at(rating: float) -> list[float]:
        """Return what each side needs for a rating, 0 for one that was above it from the start."""
        return [_geometric_mean([0.0 if math.isnan(need) else need for need in (
            _amount_to_reach(run, rating, axis) for run in side)]) for side in sides]

    sooner, later = means_at(level - AROUND), means_at(level + AROUND)
    down = math.hypot(value - sooner[0] / own, value - base / later[1])
    up = math.hypot(later[0] / own - value, (base / sooner[1] if sooner[1] else math.inf) - value)
    return Speedup(value, (max(value - down, 0.0), value + up), _seed_interval(*needed))


def _amount_to_reach(run: TrialRun, level: float, axis: Axis) -> float:
    x = [axis(v) for v in run.versions]
    return first_reached(x, [v.mu for v in run.versions], level) if all(map(math.isfinite, x)) else math.nan


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if all(values) else 0.0


def _seed_interval(baseline: Sequence[float], variant: Sequence[float]) -> tuple[float, float] | None:
    """Return Welch's 95 % interval of the speedup over seeds; None with one seed on either side."""
    if len(baseline) < 2 or len(variant) < 2:
        return None
    logs = [np.log(side) for side in (baseline, variant)]
    variances = [float(log.var(ddof=1)) / len(log) for log in logs]
    total = sum(variances)
    middle = float(logs[0].mean() - logs[1].mean())
    if not total:
        return math.exp(middle), math.exp(middle)
    freedom = total**2 / sum(v**2 / (len(log) - 1) for v, log in zip(variances, logs, strict=True))
    half = t95(int(freedom)) * math.sqrt(total)
    return math.exp(middle - half), math.exp(middle + half)


def _format_range(ends: tuple[float, float]) -> str:
    return " to ".join("open" if math.isinf(end) else f"{end:.2f}" for end in ends)
