"""Measurement, on recorded samples, of what a plan changes in a policy, step by step, before it is applied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from five.agent.learning.samples import split_batch
from five.agent.model.policy import Policy
from five.agent.surgery.migrate import migrate_stepwise
from five.agent.surgery.observation_labels import slot_labels
from five.agent.surgery.observations import NewInputs, convert, convert_state
from five.agent.surgery.plan import MAX_PARAMETERS, Bounds, Plan, PlanStage
from five.agent.surgery.removed_inputs import replace_removed_inputs
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise
from five.agent.surgery.steps.remove import RemoveInputs
from five.agent.surgery.steps.slots import ResizeSlots

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RecordedSamples:
    """Samples from games, time first.

    ``observation`` arrays [T, B, ...], ``actions`` int16 [T, B, H, 6], ``state`` [B, ...] before the first step,
    ``resets`` bool [T, B].
    """

    observation: dict[str, Array]
    actions: Array
    state: dict[str, Array]
    resets: Array

    @classmethod
    def from_batch(cls, batch: Mapping[str, Array]) -> "RecordedSamples":
        """Read a batch of `SampleBuffer.sample`."""
        observation, state, learning = split_batch(batch)
        return cls(observation, learning["actions"], state, learning["resets"])


class PolicyDifference(BaseModel):
    """Difference of two policies on the same recorded steps.

    Logits are those of available actions, valid targets, and used delays and offsets. KL is of the primary action,
    first to second policy, in nats.
    """

    model_config = ConfigDict(frozen=True)

    max_logit_change: float
    max_value_change: float
    max_auxiliary_change: float
    mean_kl: float
    mean_value_change: float  # in standard deviations of the first policy's values
    largest: float  # logit or value of both policies, the reference of tolerances


class StepReport(BaseModel):
    """A step's promise, and the difference measured under its condition ``while_``."""

    model_config = ConfigDict(frozen=True)

    number: int
    kind: str
    what: str
    exact: bool
    tolerance: float
    while_: str
    difference: PolicyDifference
    parameters_before: int
    parameters_after: int
    holds: bool


class CheckReport(BaseModel):
    """Effect of a plan on a version, per step and in total.

    ``difference`` compares the policy before the plan on the recorded samples with the policy after it on the converted
    samples. ``ok`` is True if every promise holds and the total stays within the plan's bounds; ``problems`` lists
    violations.
    """

    model_config = ConfigDict(frozen=True)

    plan: str
    digest: str
    parent: str
    target: str
    hero_steps: int
    steps: tuple[StepReport, ...]
    difference: PolicyDifference
    parameters_before: int
    parameters_after: int
    bounds: Bounds
    ok: bool
    problems: tuple[str, ...]


def check_plan(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array], recorded: RecordedSamples,
               max_parameters: int = MAX_PARAMETERS, device: str = "cpu") -> CheckReport:
    """Apply the plan to a copy of a version's tensors and return the measured differences.

    ``tensors`` are the version's, ``recorded`` comes from its games. If a step promises to hold for any value of its
    new inputs, they are random. The computation is in float32, and the process's random state does not change. Raise
    ValueError as `migrate_policy` and `convert_observations` do.
    """
    stages = list(plan.stages(old, max_parameters))
    versions = migrate_stepwise(plan, old, tensors, max_parameters)
    steps = []
    seen, first, last = recorded, None, None
    for stage, before, after in zip(stages, versions, versions[1:], strict=False):
        promise = stage.step.promise(stage.before)
        one, two = _load_policy(stage.before, before, device), _load_policy(stage.after, after, device)
        converted = _convert_samples(stage, seen, promise)
        scores = _score(one, seen) if last is None else last
        first = scores if first is None else first
        last = _score(two, converted)
        conditional = _samples_under_promise(stage, before, seen)
        pair = (scores, last) if conditional is None else (
            _score(one, conditional), _score(two, _convert_samples(stage, conditional, promise)))
        difference = compare_policies(*pair, stage.before, stage.after)
        steps.append(StepReport(
            number=stage.number, kind=str(getattr(stage.step, "kind", "")), what=stage.step.describe(stage.before),
            exact=promise.exact, tolerance=promise.tolerance if promise.exact else 0.0, while_=promise.while_,
            difference=difference, parameters_before=stage.before.parameters,
            parameters_after=stage.after.parameters, holds=_is_within_tolerance(promise, difference)))
        seen = converted
    assert first is not None and last is not None
    whole = compare_policies(first, last, old, stages[-1].after)
    problems = [f"step {s.number} ({s.what}) promises to be exact, but logits change by "
                f"{s.difference.max_logit_change:.2g} and values by {s.difference.max_value_change:.2g}"
                for s in steps if not s.holds]
    problems += _exceeded_bounds(plan.bounds, whole)
    acts = int((recorded.observation["available"][..., 0] != 0).sum())
    return CheckReport(
        plan=plan.name, digest=plan.digest, parent=old.schema, target=stages[-1].after.schema, hero_steps=acts,
        steps=tuple(steps), difference=whole, parameters_before=old.parameters,
        parameters_after=stages[-1].after.parameters, bounds=plan.bounds, ok=not problems, problems=tuple(problems))


def compare_policies(one: Mapping[str, Tensor], two: Mapping[str, Tensor], before: AgentSpec, after: AgentSpec
                     ) -> PolicyDifference:
    """Compare `Policy.scores` of two policies on the same steps, matching target units by their slots."""
    slots = {label: i for i, label in enumerate(slot_labels(after.layout))}
    kept = [(i, slots[label]) for i, label in enumerate(slot_labels(before.layout)) if label in slots]
    slot_pairs = torch.tensor(kept, device=one["values"].device).T
    # Targets of a removed slot do not count; the logits of the others do.
    pairs = [(one["primary"], two["primary"]), (one["unit"][..., slot_pairs[0]], two["unit"][..., slot_pairs[1]]),
             (one["small"], two["small"])]
    logits = [_max_change(a, b) for a, b in pairs]
    auxiliary = [_max_change(one[name][..., :two[name].shape[-1]] if name.endswith("events") else one[name],
                             two[name][..., :one[name].shape[-1]] if name.endswith("events") else two[name])
                 for name in one if name.startswith("aux/")]
    acts = one["primary"].isfinite().any(-1)
    # A value that is not finite counts as an infinite change: a maximum would ignore NaN.
    values = (one["values"] - two["values"]).abs()[acts].nan_to_num(nan=float("inf"), posinf=float("inf"))
    deviation = one["values"][acts].std(unbiased=False).clamp_min(1e-3) if acts.any() else torch.ones(())
    finite = [x[x.isfinite()].abs() for x in (*(x for pair in pairs for x in pair), one["values"][acts])]
    return PolicyDifference(
        max_logit_change=max(logits), max_value_change=_max_or_zero(values), max_auxiliary_change=max(auxiliary),
        mean_kl=_mean_kl(one["primary"][acts], two["primary"][acts]),
        mean_value_change=float(values.mean() / deviation) if values.numel() else 0.0,
        largest=max(_max_or_zero(x) for x in finite))


def _max_change(one: Tensor, two: Tensor) -> float:
    """Return the largest change of finite entries; infinite if an entry is finite in only one of the tensors."""
    if (one.isfinite() != two.isfinite()).any():
        return float("inf")
    both = one.isfinite()
    return _max_or_zero((one[both] - two[both]).abs())


def _max_or_zero(x: Tensor) -> float:
    return float(x.max()) if x.numel() else 0.0


def _mean_kl(one: Tensor, two: Tensor) -> float:
    if not one.numel():
        return 0.0
    a, b = one.double().log_softmax(-1), two.double().log_softmax(-1)
    terms = torch.where(a.isfinite() & b.isfinite(), a.exp() * (a - b), 0.0)
    return max(float(terms.sum() / len(terms)), 0.0)


def _is_within_tolerance(promise: Promise, difference: PolicyDifference) -> bool:
    if not promise.exact:
        return True
    allowed = promise.tolerance * max(1.0, difference.largest)
    return max(difference.max_logit_change, difference.max_value_change, difference.max_auxiliary_change) <= allowed


def _exceeded_bounds(bounds: Bounds, whole: PolicyDifference) -> list[str]:
    return [f"{name} {getattr(whole, name):.3g} exceeds the plan's bound {bound:g}"
            for name, bound in bounds.model_dump().items() if bound is not None and not getattr(whole, name) <= bound]


def _samples_under_promise(stage: PlanStage, version: Mapping[str, Array], seen: RecordedSamples
                           ) -> RecordedSamples | None:
    """Return samples that meet the condition of a step that removes inputs, or None if the recorded ones do."""
    if isinstance(stage.step, RemoveInputs):
        shown = replace_removed_inputs(stage.step, stage.before, version, seen.observation)
        return RecordedSamples(shown, seen.actions, seen.state, seen.resets)
    if isinstance(stage.step, ResizeSlots) and stage.step.lossy(stage.before):
        # Converted there and back, so that units in removed slots are empty.
        arrays = convert(stage.before, stage.after, {**seen.observation, "actions": seen.actions})
        arrays = convert(stage.after, stage.before, arrays)
        actions = arrays.pop("actions")
        return RecordedSamples(arrays, actions, seen.state, seen.resets)
    return None


def _convert_samples(stage: PlanStage, seen: RecordedSamples, promise: Promise) -> RecordedSamples:
    fill: NewInputs = "random" if promise.new_inputs == "any" else "empty"
    arrays = convert(stage.before, stage.after, {**seen.observation, "actions": seen.actions}, fill, stage.number)
    actions = arrays.pop("actions")
    return RecordedSamples(arrays, actions, convert_state(stage.before, stage.after, seen.state), seen.resets)


def _load_policy(spec: AgentSpec, tensors: Mapping[str, Array], device: str) -> Policy:
    """Return a version as a float32 policy, without changing the process's random state."""
    with torch.random.fork_rng(devices=[]):
        policy = Policy(spec.layout, spec.model.model_copy(update={"precision": "float32"}))
    policy.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in tensors.items()})
    return policy.to(device).eval()


def _score(policy: Policy, recorded: RecordedSamples) -> dict[str, Tensor]:
    def on(array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(policy.device)

    return policy.scores({n: on(a) for n, a in recorded.observation.items()}, on(recorded.actions),
                         {n: on(a) for n, a in recorded.state.items()}, on(recorded.resets))
