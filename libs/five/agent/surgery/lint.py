"""Warnings and notes on a plan before it is tried."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np

from five.agent.surgery.plan import MAX_PARAMETERS, Plan, PlanStage
from five.agent.surgery.remap import Array
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.actions import AddActions
from five.agent.surgery.steps.game import ChangeGame
from five.agent.surgery.steps.grow_lstm import GrowLstm
from five.agent.surgery.steps.observations import AddObservations
from five.agent.surgery.steps.slots import ResizeSlots
from five.agent.surgery.tensor_labels import field_of

Level = Literal["warning", "note"]
MAX_SCALE_SHARE = 0.2  # of the present weights' deviation; larger new weights disturb the policy
MIN_WARM_UP_VERSIONS = 4  # of 32 steps each, until new moments are within a factor of three of their final values


class LintFinding(NamedTuple):
    """A finding about step number ``step``, or about the whole plan if it is 0. ``code`` names the rule."""

    level: Level
    code: str
    step: int
    message: str


def lint_plan(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array] | None = None,
              max_parameters: int = MAX_PARAMETERS) -> list[LintFinding]:
    """Return the findings in the order of the steps.

    ``tensors`` are a version's, to compare the scale of new LSTM weights with the present ones. Without them the scale
    of a new model is used. Raise as `Plan.stages` does.
    """
    findings: list[LintFinding] = []
    stages = list(plan.stages(old, max_parameters))
    for stage in stages:
        for level, code, message in _lint_step(stage, plan, tensors):
            findings.append(LintFinding(level, code, stage.number, message))
    findings += [LintFinding(level, code, 0, message) for level, code, message in _lint_plan(stages, plan)]
    return findings


def _lint_step(stage: PlanStage, plan: Plan, tensors: Mapping[str, Array] | None) -> Iterator[tuple[Level, str, str]]:
    step, before, after = stage.step, stage.before, stage.after
    if lost := step.lossy(before):
        yield "warning", "lossy", f"permanent loss: {lost}; only a revert to an earlier version restores it"
    if isinstance(step, AddActions) and not step.anneal_versions:
        yield ("warning", "no-anneal", f"{', '.join(step.actions)} will be offered in all games at once, and an "
               "untrained policy misuses them; set anneal_versions to introduce them gradually")
    if isinstance(step, ChangeGame) and not step.anneal_versions:
        if before.layout.hash == after.layout.hash and before.game.frameskip == after.game.frameskip:
            yield ("warning", "no-anneal", f"{', '.join(step.values)} change in all games at once; set "
                   "anneal_versions to let the guard stop the change")
        elif "observation.mirror_dire" in step.values:
            yield ("warning", "meaning", "observation.mirror_dire changes the meaning of the observation and cannot be "
                   "annealed")
    if isinstance(step, AddObservations | ResizeSlots) and (bare := _without_prior(stage)):
        names = ", ".join(bare[:6]) + (f" and {len(bare) - 6} more" if len(bare) > 6 else "")
        if plan.warm_up_versions:
            yield ("note", "no-prior", f"no prior for the statistics of {names}: the {plan.warm_up_versions} "
                   "warm-up versions set them, while all weights on these inputs are zero")
        else:
            yield ("warning", "no-prior", f"no prior for the statistics of {names}, and no warm-up to set them: the "
                   "first steps learn from unscaled inputs")
    if isinstance(step, GrowLstm) and not step.exact:
        present = before.model.lstm**-0.5 * 3**-0.5
        if tensors is not None:
            present = float(np.std(tensors["core.lstm.weight_hh_l0"]))
        if step.scale * 3**-0.5 > MAX_SCALE_SHARE * present:
            yield ("warning", "lstm-scale", f"new LSTM weights have a deviation of {step.scale * 3**-0.5:.2g}, present "
                   f"ones {present:.2g}: more than a fifth of it disturbs the policy; check the plan for the amount")


def _lint_plan(stages: list[PlanStage], plan: Plan) -> Iterator[tuple[Level, str, str]]:
    old, new = stages[0].before, stages[-1].after
    grown = any(stage.after.parameters > stage.before.parameters for stage in stages)
    if grown and plan.warm_up_versions < MIN_WARM_UP_VERSIONS:
        yield ("warning", "warm-up", f"warm_up_versions {plan.warm_up_versions}: moments of new parameters start at "
               f"zero and need at least {MIN_WARM_UP_VERSIONS} versions at learning rate 0")
    yield ("note", "memory", "memory of both schemas: a version takes "
           f"{_megabytes(old.version_bytes)} before and {_megabytes(new.version_bytes)} after, the learner's state "
           f"{_megabytes(old.learner_bytes)} and {_megabytes(new.learner_bytes)}; the optimizer holds "
           f"{_megabytes(old.learner_bytes + new.learner_bytes)} during the migration")


def _without_prior(stage: PlanStage) -> list[str]:
    """Return new fields of the normaliser for which the step gives no prior."""
    before = set(stage.before.labels["normaliser.mean"].axes[0].labels)
    prior = getattr(stage.step, "prior", {})
    fields = [field_of(label) for label in stage.after.labels["normaliser.mean"].axes[0].labels if label not in before]
    return [field for field in dict.fromkeys(fields) if field not in prior]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB ({count:,} bytes)"
