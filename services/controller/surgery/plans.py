"""Deriving, reading and previewing surgery plans. The surgery library is imported at the first call."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from dota.tables import hero_ids
from five.run.load import apply_overrides
from five.services.controller.operations.document import OperationRequest
from rapid.store.record import RunRecord

if TYPE_CHECKING:
    from five.agent.surgery import AgentSpec, Plan, StepChange

SECTIONS = ("game", "model")


class InvalidPlan(ValueError):
    """Error of an invalid plan or plan request; the message gives the reason."""


class PlanStep(BaseModel):
    """A row of the table of changes: one step."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(description="Its position in the plan, from 1.")
    kind: str = Field(description="The kind of step.")
    what: str = Field(description="Description of the change.")
    promise: str = Field(description="Exact or approximate, and under which condition.")
    lossy: str = Field(description="Permanent losses; empty: none.")
    parameters_before: int = Field(description="Parameters before the step.")
    parameters_after: int = Field(description="Parameters after it.")
    tensors: int = Field(description="Tensors that are resized, added or removed.")


class PlanNote(BaseModel):
    """A warning or note about a plan."""

    model_config = ConfigDict(extra="forbid")

    level: str = Field(description="warning or note.")
    code: str = Field(description="The rule.")
    step: int = Field(description="The step; 0: the whole plan.")
    message: str = Field(description="The message.")


class PlannedAnneal(BaseModel):
    """A game change that is not part of the surgery and has to be annealed after it."""

    model_config = ConfigDict(extra="forbid")

    values: dict[str, Any] = Field(description="Dotted keys of the game with their new values.")
    versions: int = Field(description="Versions from 0 to 100 % of games.")


class PlanPreview(BaseModel):
    """A plan and its effects."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "name": "wider", "digest": "4c0e2f1a" * 8, "parent": "9f2d51c07ab3e684", "epoch": 1,
        "plan": "name: wider\nparent: 9f2d51c07ab3e684\nsteps:\n- kind: grow_lstm\n  to: 256\n",
        "schema": "77ab3e684f2d51c0", "layout": "51c07ab3e6849f2d", "parameters_before": 412345,
        "parameters_after": 912345, "lint": [], "anneals": [],
        "changes": [{"number": 1, "kind": "grow_lstm", "what": "grow lstm 128 -> 256, new weights within ±0.002",
                     "promise": "approximate", "lossy": "", "parameters_before": 412345, "parameters_after": 912345,
                     "tensors": 9}]}]})

    name: str = Field(description="The plan's name.")
    digest: str = Field(description="Its digest: sha256 of its canonical JSON.")
    plan: str = Field(description="The plan itself (YAML).")
    parent: str = Field(description="The model schema before it.")
    epoch: int = Field(description="The run's epoch.")
    schema_: str = Field(alias="schema", description="The model schema after it.")
    layout: str = Field(description="The layout of observations and actions after it.")
    parameters_before: int = Field(description="Parameters of the model now.")
    parameters_after: int = Field(description="Parameters of the model after it.")
    changes: list[PlanStep] = Field(description="The table of changes, one row per step.")
    anneals: list[PlannedAnneal] = Field(description="Game changes that have to be annealed after it.")
    lint: list[PlanNote] = Field(description="Warnings and notes.")


def agent_spec(record: RunRecord) -> "AgentSpec":
    """Return the agent that a record describes. Raise InvalidPlan if this release cannot read it."""
    from five.agent.surgery import AgentSpec

    try:
        return AgentSpec.from_trees(record.game, record.model)
    except ValueError as error:
        raise InvalidPlan(f"the run's record is unreadable: {error}") from None


def model_schema(record: RunRecord) -> str:
    """Compute the model schema of the agent that a record describes. Raise InvalidPlan."""
    return str(agent_spec(record).schema)


def read_plan(text: str) -> "Plan":
    """Parse a plan. Raise InvalidPlan."""
    from five.agent.surgery import Plan

    try:
        return Plan.from_yaml(text)
    except ValueError as error:
        raise InvalidPlan(str(error)) from None


def derive_plan(record: RunRecord, overrides: Sequence[str], name: str, options: Mapping[str, Any]) -> "Plan":
    """Return the plan from the run's agent to the one with ``overrides`` ("model.lstm=256"). Raise InvalidPlan."""
    from five.agent.surgery import AgentSpec, Plan, derive_plan
    from five.agent.surgery.strict_yaml import parse_yaml

    for override in overrides:
        if override.partition(".")[0] not in SECTIONS:
            raise InvalidPlan(f"override {override!r}: only keys of {' and '.join(SECTIONS)} are allowed")
        try:
            parse_yaml(override.partition("=")[2])  # apply_overrides allows aliases, which may grow exponentially
        except ValueError as error:
            raise InvalidPlan(f"override {override!r}: {error}") from None
    try:
        target = apply_overrides({"game": dict(record.game), "model": dict(record.model)}, list(overrides))
        plan = derive_plan(agent_spec(record), AgentSpec.from_trees(target["game"], target["model"]), name)
        return Plan.from_values({**plan.model_dump(mode="json"), **options})
    except ValueError as error:
        raise InvalidPlan(str(error)) from None


def preview_plan(plan: "Plan", record: RunRecord) -> PlanPreview:
    """Return the effects of a plan on the run. Raise InvalidPlan if it does not fit, or names a hero that the game
    lacks."""
    from five.agent.surgery import lint_plan, list_changes

    now = agent_spec(record)
    try:
        target = plan.target(now)
        rows = list_changes(plan, now)
        findings = lint_plan(plan, now)
        anneals = [PlannedAnneal(values=a.values, versions=a.versions) for a in plan.deferred_anneals(now)]
    except ValueError as error:
        raise InvalidPlan(str(error)) from None
    try:
        hero_ids(target.game)
    except ValueError as error:
        raise InvalidPlan(f"game.{error}") from None
    return PlanPreview(
        name=plan.name, digest=plan.digest, plan=plan.to_yaml(), parent=plan.parent, epoch=record.epoch,
        schema=target.schema, layout=target.layout.hash, parameters_before=now.parameters,
        parameters_after=target.parameters, changes=[_row(r) for r in rows], anneals=anneals,
        lint=[PlanNote.model_validate(f._asdict()) for f in findings])


def surgery_request(plan: "Plan", text: str, record: RunRecord, bounds: Mapping[str, Any] | None = None,
                    hold: bool | None = None) -> OperationRequest:
    """Return the operation request of a plan, bound to the run's current record."""
    return OperationRequest(plan=text, digest=plan.digest, name=plan.name, parent=plan.parent, epoch=record.epoch,
                            hold=plan.hold if hold is None else hold, warm_up_versions=plan.warm_up_versions,
                            bounds=dict(bounds or {}))


def _row(change: "StepChange") -> PlanStep:
    return PlanStep.model_validate({**change._asdict(), "tensors": len(change.tensors)})
