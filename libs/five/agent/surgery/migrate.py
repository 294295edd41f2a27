"""Carries a plan out on tensors: a version's, or a learner's whole state."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from five.agent.surgery.plan import MAX_PARAMETERS, Plan, PlanStage
from five.agent.surgery.remap import ZERO, Array, EntryInitializers, list_remaps, remap_tensor
from five.agent.surgery.spec import AgentSpec

if TYPE_CHECKING:
    from torch import Tensor

_POLICY, _CLIP = "policy/", "clip/v/"
_ADAM = {"m": "adam/m/", "v": "adam/v/", "step": "adam/step/"}


def migrate_policy(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array],
                   max_parameters: int = MAX_PARAMETERS) -> dict[str, Array]:
    """A version of schema ``plan.parent`` as one of the plan's target.

    ``tensors``: the version's, by name, float32 and float64. Arrays that no step touches are returned as they are, the
    others are new. The same version gives the same bits on every machine: new weights are drawn from the plan's digest.
    Raises ValueError when the tensors are not those of ``old``, or as `Plan.stages` does.
    """
    return migrate_stepwise(plan, old, tensors, max_parameters)[-1]


def migrate_stepwise(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array],
                     max_parameters: int = MAX_PARAMETERS) -> list[dict[str, Array]]:
    """The version before the plan and after each of its steps."""
    stages = list(plan.stages(old, max_parameters))
    require_version_tensors(old, tensors)
    versions = [dict(tensors)]
    for stage in stages:
        versions.append(_step(plan, stage, versions[-1]))
    return versions


def migrate_learner(plan: Plan, old: AgentSpec, state: "Mapping[str, Tensor]", extra: Mapping[str, Any],
                    gradient_steps_per_version: int = 32, max_parameters: int = MAX_PARAMETERS
                    ) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """A checkpoint (`Learner.state_dict` and `Learner.extra`) of schema ``plan.parent`` as one of the plan's target.

    Adam's m and v and the clip's v move with their parameters: what survives is equal to the bit, a clone gets its
    parent's. New entries begin with zero moments: they have had no gradient, and any other number would claim so. But
    both divide by (1 - decay^steps) with the steps of the whole run, so that a v which has just begun is read as too
    small: Adam would step up to three times too far, and the clip would bind too early. That is what the hold is for:
    ``extra["hold_steps"]`` becomes ``warm_up_versions`` times ``gradient_steps_per_version`` (or what was still to be
    held, if more), steps at learning rate 0 in which moments, the clip's v and the normaliser's statistics of new
    inputs fill while no parameter moves. After n of them a new v is short by 0.999^n.

    A tensor that is new as a whole counts Adam's steps from 0. Nothing that is passed in changes; tensors that no step
    touches share its memory. Raises ValueError when the state is not one of ``old``.
    """
    import torch

    stages = list(plan.stages(old, max_parameters))
    groups = {prefix: _part(state, prefix) for prefix in (_POLICY, _CLIP, _ADAM["m"], _ADAM["v"])}
    require_version_tensors(old, groups[_POLICY])
    steps = {n.removeprefix(_ADAM["step"]): t for n, t in state.items() if n.startswith(_ADAM["step"])}
    for stage in stages:
        for prefix in groups:
            if prefix != _POLICY and groups[prefix]:
                groups[prefix] = _moments(stage, groups[prefix])
        groups[_POLICY] = _step(plan, stage, groups[_POLICY])
        if steps:
            fresh = torch.zeros((), dtype=torch.float32)
            steps = {name: steps.get(name, steps.get(labelled.clone_of, fresh)).clone()
                     for name, labelled in stage.after.labels.items() if labelled.trained}
    moved_state = {prefix + name: torch.from_numpy(np.ascontiguousarray(array))
                   for prefix, part in groups.items() for name, array in part.items()}
    moved_state |= {_ADAM["step"] + name: step for name, step in steps.items()}
    held = max(int(extra.get("hold_steps", 0)), plan.warm_up_versions * gradient_steps_per_version)
    return moved_state, {**extra, "hold_steps": held}


def require_version_tensors(spec: AgentSpec, tensors: Mapping[str, Array]) -> None:
    """Raises ValueError naming the tensors that are not those of a version of ``spec``."""
    shapes = spec.tensor_shapes()
    wrong = [f"{name} is missing" for name in shapes if name not in tensors]
    wrong += [f"{name} is not known" for name in tensors if name not in shapes]
    wrong += [f"{name} is {list(tensors[name].shape)} instead of {list(shape)}"
              for name, shape in shapes.items() if name in tensors and tuple(tensors[name].shape) != shape]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError(f"the tensors are not a version of schema {spec.schema}: {'; '.join(wrong[:5])}{more}")


def _step(plan: Plan, stage: PlanStage, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """A version after one step."""
    step = stage.step
    prepared = step.prepare(stage.before, dict(tensors))
    made = {}
    for name, move in list_remaps(stage.before.labels, stage.after.labels).items():
        array = remap_tensor(move, prepared.get(move.source), step.fill(name, move),
                      f"{plan.digest}/{stage.number}/{getattr(step, 'seed', 0)}/{name}")
        if not move.same:
            step.finish(name, move, array)
        made[name] = array
    return made


def _moments(stage: PlanStage, part: Mapping[str, Array]) -> dict[str, Array]:
    """Moments after one step: new entries zero."""
    kept = stage.step.forget(stage.before, dict(part))
    return {name: remap_tensor(move, kept.get(move.source), EntryInitializers(ZERO), "")
            for name, move in list_remaps(stage.before.labels, stage.after.labels).items() if move.labelled.trained}


def _part(state: "Mapping[str, Tensor]", prefix: str) -> dict[str, Array]:
    numbers: Callable[[Any], Array] = lambda tensor: tensor.detach().cpu().numpy()  # noqa: E731
    return {name.removeprefix(prefix): numbers(tensor) for name, tensor in state.items() if name.startswith(prefix)}
