"""Results of a sweep: each variant's objective and processor time on the way, and the confirmed ones.

Nothing here is stored. All is computed from the study and the runs' results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from five.ablation.comparison import MeanEstimate
from five.ablation.conditions import Conditions
from five.ablation.config import Trial
from five.ablation.runner import Ablation
from five.sweep.config import DEFAULT
from five.sweep.objective import Objective, mean_over_seeds, version_objective
from five.sweep.search import SweepFolder, ranked
from five.sweep.study import SweepStudy, Variant


class CurvePoint(NamedTuple):
    """An evaluated version of one run: minutes and core-hours of training until it, and its objective."""

    minutes: float
    core_hours: float
    objective: MeanEstimate


@dataclass(frozen=True)
class SearchedVariant:
    """A variant with the ``curves`` of its runs in order of the seeds, and the ``core_hours`` of all. ``reserved``:
    core-hours reserved until it ended."""

    variant: Variant
    curves: Sequence[Sequence[CurvePoint]]
    core_hours: float
    reserved: float

    @property
    def objective(self) -> MeanEstimate | None:
        """Objective of the versions that the search has compared, over seeds; None before the first."""
        ends = [curve[-1].objective for curve in self.curves if curve]
        return mean_over_seeds(ends) if ends else None


@dataclass(frozen=True)
class SweepResults:
    """Results so far. ``searched`` by name in order of the numbers; ``best``: evaluated variants, best first;
    ``confirmed``: the objective with new seeds, of those to confirm that have results."""

    searched: Mapping[str, SearchedVariant]
    best: Sequence[str]
    confirmed: Mapping[str, MeanEstimate]
    missing: int  # runs of the confirmation without a result

    @property
    def core_hours(self) -> float:
        """Processor time of all trainings of the search, hours of one processor."""
        return sum(variant.core_hours for variant in self.searched.values())

    @property
    def winner(self) -> str | None:
        """The variant of the best confirmed objective, before the confirmation has ended of the best searched one."""
        if self.confirmed and not self.missing:
            return max(self.confirmed, key=lambda name: self.confirmed[name].value)
        return self.best[0] if self.best else None

    def front(self) -> list[tuple[str, CurvePoint]]:
        """Return the points of first runs that no point of fewer or equal core-hours equals or exceeds (the Pareto
        front), with their variants, cheapest first."""
        points = [(name, point) for name, found in self.searched.items() for point in (found.curves or [[]])[0]]
        front: list[tuple[str, CurvePoint]] = []
        for name, point in sorted(points, key=lambda row: (row[1].core_hours, -row[1].objective.value)):
            if not front or point.objective.value > front[-1][1].objective.value:
                front.append((name, point))
        return front


def collect(sweep: SweepFolder, study: SweepStudy | None) -> SweepResults:
    """Return the results of the finished stages."""
    variants = study.variants() if study else []
    searched = {variant.name: _searched(sweep, study, variant) for variant in variants} if study else {}
    ablation = sweep.confirmation(variants)
    confirmed: dict[str, MeanEstimate] = {}
    if ablation is not None:
        for name in ablation.config.variants:
            curves = _curves(ablation, name, sweep.config.confirmation.seeds, sweep.config.objective)
            if curves:
                confirmed[name] = mean_over_seeds([curve[-1].objective for curve in curves])
    return SweepResults(searched, [variant.name for variant in ranked(variants)], confirmed,
                        len(ablation.missing()) if ablation else 0)


def _searched(sweep: SweepFolder, study: SweepStudy, variant: Variant) -> SearchedVariant:
    curves = _curves(sweep.runs, variant.name, sweep.config.seeds, sweep.config.objective)
    return SearchedVariant(variant, curves, sweep.core_hours(variant), max(variant.values, default=0) / 3600.0)


def _curves(runs: Ablation, name: str, seeds: Sequence[int], objective: Objective) -> list[list[CurvePoint]]:
    """Return the curve of each run with a result."""
    found = [runs.result(Trial(name, seed)) for seed in seeds]
    return [_curve(result, objective) for result in found if result]


def _curve(result: Mapping[str, Any], objective: Objective) -> list[CurvePoint]:
    conditions, evaluated = result.get("conditions"), result["evaluated"]
    total = Conditions(**conditions).core_hours if conditions else float("nan")
    minutes = evaluated[-1]["minutes"]
    # Runs in one piece have no processor time of each version.
    return [CurvePoint(version["minutes"], version.get("core_hours", total * version["minutes"] / minutes),
                       version_objective(objective, version)) for version in evaluated]


def overrides_of(results: SweepResults, name: str) -> dict[str, Any]:
    """Return a variant's overrides; none for the preset's own values."""
    return {} if name == DEFAULT else results.searched[name].variant.overrides
