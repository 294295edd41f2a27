"""Tables and plots of a sweep."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from five.ablation.comparison import MeanEstimate, format_number
from five.ablation.experiment import flow_text
from five.ablation.page import render_html, render_text
from five.ablation.plots import Plot, PlotLine
from five.ablation.tables import ResultTable
from five.sweep.config import DEFAULT, SweepConfig
from five.sweep.objective import objective_name
from five.sweep.results import SearchedVariant, SweepResults
from five.sweep.study import distributions, importance, parameters

LISTED = 10  # variants of the first table
COLOURED = 7  # curves with a colour; the eighth of the cycle is grey, as the others
LEAST_FOR_IMPORTANCE = 8  # variants


def text(config: SweepConfig, results: SweepResults, confirmation: list[ResultTable], about: Mapping[str, Any]) -> str:
    """Return the tables as Markdown. ``confirmation``: tables of that ablation; ``about``: the sweep's description."""
    return render_text(config.name, config.question, _status(config, results, about),
                       [*tables(config, results), *confirmation])


def render(config: SweepConfig, results: SweepResults, confirmation: list[ResultTable], about: Mapping[str, Any]
           ) -> str:
    """Return the page as HTML; arguments as of `text`."""
    return render_html(config.name, config.question, _status(config, results, about),
                       [*tables(config, results), *confirmation], plots(config, results))


def tables(config: SweepConfig, results: SweepResults) -> list[ResultTable]:
    """Return all tables that have rows."""
    found = [best(config, results), key_importance(config, results), front(config, results),
             all_variants(config, results)]
    return [table for table in found if table.rows]


def best(config: SweepConfig, results: SweepResults) -> ResultTable:
    """Return the table of the best variants, and of the preset's own values once they are confirmed."""
    names = [*results.best[:LISTED], *([DEFAULT] if DEFAULT in results.confirmed else [])]
    rows = [[name, _state(config, results.searched[name]) if name in results.searched else "",
             _cell(results.searched[name].objective if name in results.searched else None),
             _cell(results.confirmed.get(name)), *_values(config, _shown(config, results, name))] for name in names]
    seeds = ", ".join(map(str, config.confirmation.seeds))
    return ResultTable("Best variants", ["variant", "state", f"searched {objective_name(config.objective)}",
                                         "confirmed", *config.search], rows, [
        "In order of the training that the pruner allowed, then of the searched objective. Intervals are 95 %: over "
        "seeds, with one seed over games.",
        "The search reports the best of many noisy results, so its figures are too high. Confirmed: trained again in "
        f"one piece with seeds {seeds}, which the search has not used. Compare these with {DEFAULT}, the preset's own "
        "values."])


def key_importance(config: SweepConfig, results: SweepResults) -> ResultTable:
    """Return the table of each key's importance at the points of the first run that enough variants reached."""
    space = distributions(config)
    columns: dict[str, dict[str, float]] = {}
    for point in range(config.evaluation.points):
        reached = [found for found in results.searched.values() if found.curves and len(found.curves[0]) > point]
        values = [found.curves[0][point].objective.value for found in reached]
        if len(reached) >= LEAST_FOR_IMPORTANCE and len(set(values)) > 1:
            minutes = config.minutes * (point + 1) / config.evaluation.points
            columns[f"{minutes:g} min ({len(reached)} variants)"] = importance(space, [
                (parameters(space, found.variant.overrides), value)
                for found, value in zip(reached, values, strict=True)])
    last = next(reversed(columns.values()), {})
    keys = sorted(config.search, key=lambda key: last.get(key, 0.0), reverse=True)
    rows = [[key, *(f"{100 * shares.get(key, 0.0):.0f} %" for shares in columns.values())] for key in keys]
    return ResultTable("Importance of keys", ["key", *columns], rows if columns else [], [
        "Share of each key in what distinguishes the best quarter of the variants from all (PED-ANOVA), in the first "
        "runs. Later columns have fewer variants, because others were pruned."])


def front(config: SweepConfig, results: SweepResults) -> ResultTable:
    """Return the table of the best objective for each processor time."""
    rows = [[format_number(point.core_hours), f"{point.minutes:g}", _cell(point.objective), name]
            for name, point in results.front()]
    return ResultTable("Objective against core-hours", [
        "core-hours", "minutes", objective_name(config.objective), "variant"], rows, [
        "Pareto front of the evaluated versions of first runs: no cheaper version has a better objective. Core-hours "
        "are the processor time of the training, without the evaluation."])


def all_variants(config: SweepConfig, results: SweepResults) -> ResultTable:
    """Return the table of all variants in order of their numbers."""
    rows = [[name, _state(config, found), _cell(found.objective), str(len(found.curves)),
             ", ".join(format_number(point.objective.value) for point in found.curves[0]) if found.curves else "-",
             format_number(found.core_hours), *_values(config, found.variant.overrides)]
            for name, found in results.searched.items()]
    return ResultTable("All variants", ["variant", "state", "searched", "seeds", "first run on the way", "core-hours",
                                        *config.search], rows,
                       [f"{name} failed: {found.variant.failure}" for name, found in results.searched.items()
                        if found.variant.failure])


def plots(config: SweepConfig, results: SweepResults) -> list[Plot]:
    """Return the plot of the first runs' objective over core-hours, the best ones coloured."""
    coloured = results.best[:COLOURED]
    lines = []
    for name in [*(name for name in results.searched if name not in coloured), *coloured]:
        curve = next(iter(results.searched[name].curves), [])
        lines.append(PlotLine(name, np.array([point.core_hours for point in curve]),
                              np.array([point.objective.value for point in curve]), muted=name not in coloured))
    title = objective_name(config.objective)
    return [Plot(f"{title[0].upper()}{title[1:]} over core-hours", title, lines, x_unit="core-hours of the first run",
                 note=f"One curve a variant. Coloured: the best {COLOURED}. Pruned variants end early.")]


def _status(config: SweepConfig, results: SweepResults, about: Mapping[str, Any]) -> str:
    states = [found.variant.state for found in results.searched.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("complete", "pruned", "failed", "running"))
    budget = [f"{config.max_variants} variants" if config.max_variants else "",
              f"{config.core_hours:g} core-hours" if config.core_hours else ""]
    machine = about.get("machine", {})
    return (f"{len(states)} variants ({counts}), {format_number(results.core_hours)} core-hours of training; budget: "
            f"{' or '.join(filter(None, budget))}; runs of {config.minutes:g} minutes, {config.parallel_runs} in "
            f"parallel; {config.sampler.kind} sampler, {config.pruner.kind} pruner; commit {about.get('commit', '?')}; "
            f"{machine.get('cores', '?')} processors of {machine.get('cpu', 'an unknown kind')}; made "
            f"{time.strftime('%Y-%m-%d %H:%M')}")


def _state(config: SweepConfig, found: SearchedVariant) -> str:
    """Return a variant's state; of a pruned one when it was pruned."""
    if found.variant.state != "pruned" or not found.curves:
        return found.variant.state
    seed, minutes = config.seeds[len(found.curves) - 1], found.curves[-1][-1].minutes
    return f"pruned after {minutes:g} min of seed {seed}, {format_number(found.reserved)} core-hours"


def _shown(config: SweepConfig, results: SweepResults, name: str) -> Mapping[str, Any]:
    """Return a variant's values of the searched keys; the preset's own ones of `DEFAULT`, if all have one."""
    return config.default_values() or {} if name == DEFAULT else results.searched[name].variant.overrides


def _values(config: SweepConfig, overrides: Mapping[str, Any]) -> list[str]:
    values = [overrides.get(key, "") for key in config.search]
    return [format_number(value) if isinstance(value, float) else "" if value == "" else flow_text(value)
            for value in values]


def _cell(estimate: MeanEstimate | None) -> str:
    return "-" if estimate is None else str(estimate)
