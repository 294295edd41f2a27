"""Table of a plan's changes, before it is applied."""

from collections.abc import Sequence
from typing import NamedTuple

from five.agent.surgery.plan import MAX_PARAMETERS, Plan
from five.agent.surgery.spec import AgentSpec


class TensorChange(NamedTuple):
    """A tensor's shape before and after; None where the tensor does not exist."""

    name: str
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None


class StepChange(NamedTuple):
    """Row of the change table for a step of a plan. ``promise``: "exact" or "approximate", with its condition."""

    number: int
    kind: str
    what: str
    promise: str
    lossy: str
    parameters_before: int
    parameters_after: int
    tensors: tuple[TensorChange, ...]


def list_changes(plan: Plan, old: AgentSpec, max_parameters: int = MAX_PARAMETERS) -> list[StepChange]:
    """Return a row for each step. Raise as `Plan.stages` does."""
    rows = []
    for stage in plan.stages(old, max_parameters):
        promise = stage.step.promise(stage.before)
        held = "exact" if promise.exact else "approximate"
        before, after = stage.before.tensor_shapes(), stage.after.tensor_shapes()
        tensors = tuple(TensorChange(name, before.get(name), after.get(name))
                        for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name))
        rows.append(StepChange(
            stage.number, str(getattr(stage.step, "kind", "")), stage.step.describe(stage.before),
            f"{held}, while {promise.while_}" if promise.while_ else held, stage.step.lossy(stage.before),
            stage.before.parameters, stage.after.parameters, tensors))
    return rows


def changes_to_markdown(rows: Sequence[StepChange]) -> str:
    """Return the table as Markdown, with the parameters before and after each step."""
    lines = ["| | step | holds | parameters before | after | change |", "|---|---|---|---:|---:|---:|"]
    lines += [f"| {r.number} | {r.what} | {r.promise} | {r.parameters_before:,} | {r.parameters_after:,} | "
              f"{r.parameters_after - r.parameters_before:+,} |" for r in rows]
    return "\n".join(lines)
