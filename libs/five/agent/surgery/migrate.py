"""Application of a plan to tensors: those of a version, or a learner's checkpoint."""

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
    """Return a version of schema ``plan.parent`` migrated to the plan's target.

    ``tensors`` are the version's by name, float32 and float64. Arrays that no step changes are returned as they are.
    The result is bit-identical on every machine, because new weights are seeded by the plan's digest. Raise ValueError
    if the tensors are not those of ``old``, or as `Plan.stages` does.
    """
    return migrate_stepwise(plan, old, tensors, max_parameters)[-1]


def migrate_stepwise(plan: Plan, old: AgentSpec, tensors: Mapping[str, Array],
                     max_parameters: int = MAX_PARAMETERS) -> list[dict[str, Array]]:
    """Return the version before the plan and after each of its steps."""
    stages = list(plan.stages(old, max_parameters))
    require_version_tensors(old, tensors)
    versions = [dict(tensors)]
    for stage in stages:
        versions.append(_apply_step(plan, stage, versions[-1]))
    return versions


def migrate_learner(plan: Plan, old: AgentSpec, state: "Mapping[str, Tensor]", extra: Mapping[str, Any],
                    gradient_steps_per_version: int = 32, max_parameters: int = MAX_PARAMETERS
                    ) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """Return a checkpoint (`Learner.state_dict`, `Learner.extra`) of schema ``plan.parent`` migrated to the plan's
    target.

    Adam's m and v and the clip's v move with their parameters bit-identically, and a clone gets its parent's. New
    entries have zero moments. Both optimizer and clip correct their bias by the steps of the whole run, so a new v is
    too small at first: Adam's steps would be up to three times too large and the clip too narrow. Therefore the
    learning rate is held at 0 for ``warm_up_versions`` times ``gradient_steps_per_version`` steps
    (``extra["hold_steps"]``, or the present value if larger), while the moments and the statistics of new inputs fill.
    After n steps a new v lacks a share of 0.999^n.

    Adam's step counter of a new tensor starts at 0. Arguments are not modified, and unchanged tensors share their
    memory. Raise ValueError if the state is not one of ``old``.
    """
    import torch

    stages = list(plan.stages(old, max_parameters))
    policy = _arrays_below(state, _POLICY)
    require_version_tensors(old, policy)
    moments = {prefix: _arrays_below(state, prefix) for prefix in (_CLIP, _ADAM["m"], _ADAM["v"])}
    steps = {n.removeprefix(_ADAM["step"]): t for n, t in state.items() if n.startswith(_ADAM["step"])}
    for stage in stages:
        moments = {prefix: _apply_step_to_moments(stage, part) for prefix, part in moments.items() if part}
        policy = _apply_step(plan, stage, policy)
        if steps:
            fresh = torch.zeros((), dtype=torch.float32)
            steps = {name: steps.get(name, steps.get(labelled.clone_of, fresh)).clone()
                     for name, labelled in stage.after.labels.items() if labelled.trained}
    moved_state = {prefix + name: torch.from_numpy(np.ascontiguousarray(array))
                   for prefix, part in {_POLICY: policy, **moments}.items() for name, array in part.items()}
    moved_state |= {_ADAM["step"] + name: step for name, step in steps.items()}
    held = max(int(extra["hold_steps"]), plan.warm_up_versions * gradient_steps_per_version)
    return moved_state, {**extra, "hold_steps": held}


def require_version_tensors(spec: AgentSpec, tensors: Mapping[str, Array]) -> None:
    """Raise ValueError naming the tensors that are not those of a version of ``spec``."""
    shapes = spec.tensor_shapes()
    wrong = [f"{name} is missing" for name in shapes if name not in tensors]
    wrong += [f"{name} is unknown" for name in tensors if name not in shapes]
    wrong += [f"{name} has shape {list(tensors[name].shape)}, expected {list(shape)}"
              for name, shape in shapes.items() if name in tensors and tuple(tensors[name].shape) != shape]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError(f"tensors do not match schema {spec.schema}: {'; '.join(wrong[:5])}{more}")


def _apply_step(plan: Plan, stage: PlanStage, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return a version after one step."""
    step = stage.step
    prepared = step.prepare_tensors(stage.before, dict(tensors))
    made = {}
    for name, remap in list_remaps(stage.before.labels, stage.after.labels).items():
        array = remap_tensor(remap, prepared.get(remap.source), step.initializers(name, remap),
                             f"{plan.digest}/{stage.number}/{getattr(step, 'seed', 0)}/{name}")
        if not remap.same:
            step.finish_tensor(name, remap, array)
        made[name] = array
    return made


def _apply_step_to_moments(stage: PlanStage, part: Mapping[str, Array]) -> dict[str, Array]:
    """Return moments after one step, with new entries zero."""
    kept = stage.step.prepare_moments(stage.before, dict(part))
    return {name: remap_tensor(remap, kept.get(remap.source), EntryInitializers(ZERO), "")
            for name, remap in list_remaps(stage.before.labels, stage.after.labels).items() if remap.labelled.trained}


def _arrays_below(state: "Mapping[str, Tensor]", prefix: str) -> dict[str, Array]:
    numbers: Callable[[Any], Array] = lambda tensor: tensor.detach().cpu().numpy()  # noqa: E731
    return {name.removeprefix(prefix): numbers(tensor) for name, tensor in state.items() if name.startswith(prefix)}
