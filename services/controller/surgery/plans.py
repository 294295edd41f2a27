"""Plans as the controller handles them: derived, read, told about. The library is imported at the first call."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from five.run.load import ConfigError, apply_overrides
from five.services.controller.operations.document import SurgeryRequest
from rapid.store.record import RunRecord

if TYPE_CHECKING:
    from five.agent.surgery import AgentSpec, Change, Plan

SECTIONS = ("game", "model")


class BadPlan(ValueError):
    """A plan, or a wish for one, that cannot be; the message says why."""


class PlanStep(BaseModel):
    """A row of the table of changes: one step."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(description="Its place in the plan, from 1.")
    kind: str = Field(description="The kind of step.")
    what: str = Field(description="What it changes, in words.")
    promise: str = Field(description="Exact or approximate, and on which condition.")
    lossy: str = Field(description="What is lost for good; empty when nothing is.")
    parameters_before: int = Field(description="Parameters before the step.")
    parameters_after: int = Field(description="Parameters after it.")
    tensors: int = Field(description="Tensors that change their shape, come or go.")


class PlanNote(BaseModel):
    """Something to think about before a plan is applied."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: str = Field(description="warning or note.")
    code: str = Field(description="The rule.")
    step: int = Field(description="The step that it is about; 0 for the whole plan.")
    message: str = Field(description="What it is.")


class Annealed(BaseModel):
    """A change of the game that a plan does not make: it is to be annealed in once the surgery is done."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    values: dict[str, Any] = Field(description="Keys of the game, dotted, with their new values.")
    versions: int = Field(description="Versions from no game to all.")


class Planned(BaseModel):
    """A plan and what it would do."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [{
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
    parent: str = Field(description="The model schema that it starts from.")
    epoch: int = Field(description="The run's epoch.")
    schema_: str = Field(alias="schema", description="The model schema that it leads to.")
    layout: str = Field(description="The layout of observations and actions that it leads to.")
    parameters_before: int = Field(description="Parameters of the model now.")
    parameters_after: int = Field(description="Parameters of the model after it.")
    changes: list[PlanStep] = Field(description="The table of changes, a row a step.")
    anneals: list[Annealed] = Field(description="Changes of the game that the plan leaves to an anneal behind it.")
    lint: list[PlanNote] = Field(description="What to think about before it is applied.")


def spec_of(record: RunRecord) -> "AgentSpec":
    """What a record says the agent is. Raises BadPlan when this release cannot read it."""
    from five.agent.surgery import AgentSpec

    try:
        return AgentSpec.of(record.game, record.model)
    except ValueError as error:
        raise BadPlan(f"the run's record cannot be read: {error}") from None


def schema_of(record: RunRecord) -> str:
    """The model schema of a record, worked out where it does not say it."""
    if record.schema:
        return record.schema
    return _schema_of(record.to_json())


@lru_cache(maxsize=8)
def _schema_of(text: str) -> str:
    return str(spec_of(RunRecord.from_json(text)).schema)


def read_plan(text: str) -> "Plan":
    """A plan from its text. Raises BadPlan."""
    from five.agent.surgery import Plan

    try:
        return Plan.from_yaml(text)
    except ValueError as error:
        raise BadPlan(str(error)) from None


def derive_plan(record: RunRecord, overrides: Sequence[str], name: str, options: Mapping[str, Any]) -> "Plan":
    """The plan from the run's present agent to the one with ``overrides`` ("model.lstm=256"). Raises BadPlan."""
    from five.agent.surgery import AgentSpec, Plan, derive

    for override in overrides:
        if override.partition(".")[0] not in SECTIONS:
            raise BadPlan(f"{override!r}: surgery changes keys of {' and '.join(SECTIONS)}")
    try:
        target = apply_overrides({"game": dict(record.game), "model": dict(record.model)}, list(overrides))
        plan = derive(spec_of(record), AgentSpec.of(target["game"], target["model"]), name)
        return Plan.from_values({**plan.model_dump(mode="json"), **options})
    except (ConfigError, ValueError, OverflowError) as error:
        raise BadPlan(str(error)) from None


def told(plan: "Plan", record: RunRecord) -> Planned:
    """What a plan would do to the run. Raises BadPlan when it does not fit."""
    from five.agent.surgery import lint, table_of_changes

    now = spec_of(record)
    try:
        target = plan.target(now)
        rows = table_of_changes(plan, now)
        findings = lint(plan, now)
        anneals = [Annealed(values=a.values, versions=a.versions) for a in plan.anneals(now)]
    except ValueError as error:
        raise BadPlan(str(error)) from None
    return Planned(
        name=plan.name, digest=plan.digest, plan=plan.to_yaml(), parent=plan.parent, epoch=record.epoch,
        schema=target.schema, layout=target.layout.hash, parameters_before=now.parameters,
        parameters_after=target.parameters, changes=[_row(r) for r in rows], anneals=anneals,
        lint=[PlanNote.model_validate(f._asdict()) for f in findings])


def request_of(plan: "Plan", text: str, record: RunRecord, bounds: Mapping[str, Any] | None = None,
               hold: bool | None = None) -> SurgeryRequest:
    """What an operation with a plan is asked for, bound to the run as it is."""
    return SurgeryRequest(plan=text, digest=plan.digest, name=plan.name, parent=plan.parent, epoch=record.epoch,
                   hold=plan.hold if hold is None else hold, warm_up_versions=plan.warm_up_versions,
                   bounds=dict(bounds or {}))


def _row(change: "Change") -> PlanStep:
    return PlanStep.model_validate({**change._asdict(), "tensors": len(change.tensors)})
