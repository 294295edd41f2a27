"""What is wrong, or merely worth knowing, about a plan before it is tried."""

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

Level = Literal["warning", "note"]
LSTM_SHARE = 0.2  # of the deviation of the weights that are there: new ones above that are no small disturbance
SETTLED_VERSIONS = 4  # of 32 steps: what new moments need to be within a factor of three of what they come to


class LintFinding(NamedTuple):
    """``step`` is the number of the step it is about, 0 for the plan; ``code`` names the rule."""

    level: Level
    code: str
    step: int
    message: str


def lint_plan(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array] | None = None,
         max_parameters: int = MAX_PARAMETERS) -> list[LintFinding]:
    """Findings in the order of the steps. ``tensors``: a version's, to compare a new LSTM's scale with what is there;
    without, with what a new model has. Raises as `Plan.stages` does."""
    findings: list[LintFinding] = []
    stages = list(plan.stages(old, max_parameters))
    for stage in stages:
        for level, code, message in _step(stage, plan, tensors):
            findings.append(LintFinding(level, code, stage.number, message))
    findings += [LintFinding(level, code, 0, message) for level, code, message in _whole(stages, plan)]
    return findings


def _step(stage: PlanStage, plan: Plan, tensors: Mapping[str, Array] | None) -> Iterator[tuple[Level, str, str]]:
    step, before, after = stage.step, stage.before, stage.after
    if lost := step.lossy(before):
        yield "warning", "lossy", f"lost for good: {lost}; only a revert to a version before brings it back"
    if isinstance(step, AddActions) and not step.anneal_versions:
        yield ("warning", "no-anneal", f"{', '.join(step.actions)} will be offered in every game at once; agents adapt "
               "to a misused action before they learn it: set anneal_versions")
    if isinstance(step, ChangeGame) and not step.anneal_versions:
        if before.layout.hash == after.layout.hash:
            yield ("warning", "no-anneal", f"{', '.join(step.values)} change in every game at once: set "
                   "anneal_versions, so that the guard can stop it")
        elif "observation.mirror_dire" in step.values:
            yield ("warning", "meaning", "what the arrays say changes under the policy's eyes; it cannot be annealed")
    if isinstance(step, AddObservations | ResizeSlots) and (bare := _without_prior(stage)):
        names = ", ".join(bare[:6]) + (f" and {len(bare) - 6} more" if len(bare) > 6 else "")
        if plan.warm_up_versions:
            yield ("note", "no-prior", f"no prior for the statistics of {names}: they are set by what the "
                   f"{plan.warm_up_versions} versions of the warm-up see, while nothing reads these inputs")
        else:
            yield ("warning", "no-prior", f"no prior for the statistics of {names}, and no warm-up in which they could "
                   "settle: the first steps learn from inputs of any scale")
    if isinstance(step, GrowLstm) and not step.exact:
        there = before.model.lstm**-0.5 * 3**-0.5
        if tensors is not None:
            there = float(np.std(tensors["core.lstm.weight_hh_l0"]))
        if step.scale * 3**-0.5 > LSTM_SHARE * there:
            yield ("warning", "lstm-scale", f"new weights of the LSTM have a deviation of {step.scale * 3**-0.5:.2g}, "
                   f"those that are there {there:.2g}: more than a fifth of it disturbs the policy; the check says how "
                   "much")


def _whole(stages: list[PlanStage], plan: Plan) -> Iterator[tuple[Level, str, str]]:
    old, new = stages[0].before, stages[-1].after
    grown = any(stage.after.parameters > stage.before.parameters for stage in stages)
    if grown and plan.warm_up_versions < SETTLED_VERSIONS:
        yield ("warning", "warm-up", f"{plan.warm_up_versions} versions of warm-up: the moments of new parameters "
               f"begin at zero and want at least {SETTLED_VERSIONS} versions at learning rate 0")
    yield ("note", "memory", "both schemas at once: a version takes "
           f"{_megabytes(old.version_bytes)} before and {_megabytes(new.version_bytes)} after, the learner's state "
           f"{_megabytes(old.learner_bytes)} and {_megabytes(new.learner_bytes)}; the optimizer holds "
           f"{_megabytes(old.learner_bytes + new.learner_bytes)} while it transforms")


def _without_prior(stage: PlanStage) -> list[str]:
    """New fields of the normaliser for which the step gives no prior."""
    before = set(stage.before.labels["normaliser.mean"].axes[0].labels)
    prior = getattr(stage.step, "prior", {})
    fields = [label.rpartition(":")[2].partition("[")[0].partition("/")[0]
              for label in stage.after.labels["normaliser.mean"].axes[0].labels if label not in before]
    return [field for field in dict.fromkeys(fields) if field not in prior]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB ({count:,} bytes)"
