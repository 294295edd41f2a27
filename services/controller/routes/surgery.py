"""Routes below /v1/surgery: derive, read, check, apply and list plans."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Context, ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, make_slice
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, new_operation
from five.services.controller.operations.run_backend import stale
from five.services.controller.operations.store import OperationInProgress, OperationStore
from five.services.controller.surgery.applied_plans import AppliedPlan, applied_plans
from five.services.controller.surgery.plans import (
    InvalidPlan,
    PlanPreview,
    derive_plan,
    model_schema,
    preview_plan,
    read_plan,
    surgery_request,
)
from rapid.store.record import RunRecord
from rapid.store.state import Status
from rapid.store.surgery_plans import PlanChecks, PlanStore

router = APIRouter(prefix="/surgery", tags=["surgery"])

PLAN_CHARACTERS = 64 * 1024
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="A plan's digest.")]
READY = (Status.RUNNING, Status.PAUSING, Status.PAUSED)
NO_RUN = "There is no such run yet."
NOT_NOW = "Another operation is active, the plan is stale, or the run's status does not allow it."
SCHEMA = "9f2d51c07ab3e684"
DIGEST = "4c0e2f1a" * 8
PLAN = f"name: wider\nparent: {SCHEMA}\nwarm_up_versions: 5\nsteps:\n- kind: grow_lstm\n  to: 256\n"
_DIFFERENCE: dict[str, Any] = {"max_logit_change": 0.0012, "max_value_change": 0.0004, "max_auxiliary_change": 0.0002,
                               "mean_kl": 6e-8, "mean_value_change": 0.0002, "largest": 3.1}
_REPORT: dict[str, Any] = {
    "plan": "wider", "digest": DIGEST, "parent": SCHEMA, "target": "4e71b0d29fa8c653", "hero_steps": 512,
    "steps": [{"number": 1, "kind": "grow_lstm", "what": "grow lstm 192 to 256", "exact": False, "tolerance": 0.0,
               "while_": "", "difference": _DIFFERENCE, "parameters_before": 412_083, "parameters_after": 541_235,
               "holds": True}],
    "difference": _DIFFERENCE, "parameters_before": 412_083, "parameters_after": 541_235,
    "bounds": {"mean_kl": 0.01, "mean_value_change": 0.05, "max_logit_change": 0.1, "max_value_change": 0.1},
    "ok": True, "problems": []}


def operation_responses(**problems: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a request that begins an operation."""
    where = {"Location": {"description": "The operation.", "schema": {"type": "string"}}}
    return {200: {"description": "With dry_run: the operation that would begin.", "model": Operation},
            202: {"headers": where}, **responses(**problems)}


class DerivePlanRequest(BaseModel):
    """The intended changes of the agent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"name": "wider", "overrides": ["model.lstm=256", "game.observation.pickups=2"], "warm_up_versions": 5}]})

    name: str = Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9-]*$",
                      description="The plan's name: letters a-z, digits and dashes.")
    overrides: list[Annotated[str, Field(max_length=1000)]] = Field(
        min_length=1, max_length=200, description="Keys of game and model with their new values, KEY=VALUE; other "
        "keys keep the values of the run's record.")
    hold: bool = Field(False, description="Whether to wait for an operator before publishing.")
    warm_up_versions: int | None = Field(None, ge=0, le=100_000, description="Versions with learning rate 0 after it.")


class PlanText(BaseModel):
    """A plan as text."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"plan": PLAN}]})

    plan: str = Field(min_length=1, max_length=PLAN_CHARACTERS, description="The plan (YAML).")


class CheckRequest(BaseModel):
    """A plan to measure."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"plan": PLAN}]})

    plan: str = Field(min_length=1, max_length=PLAN_CHARACTERS, description="The plan (YAML).")
    reason: str = Field("", max_length=500, description="Reason; stored with the operation.")


class ApplyRequest(BaseModel):
    """A checked plan to apply."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"digest": DIGEST, "hold": True}]})

    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="The checked plan's digest.")
    hold: bool | None = Field(None,
                              description="Whether to wait for an operator before publishing; default: the "
                              "plan's setting.")
    reason: str = Field("", max_length=500, description="Reason; stored with the operation.")


class CheckResult(BaseModel):
    """The result of a check."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{
        "digest": DIGEST, "name": "wider", "plan": PLAN, "parent": SCHEMA, "epoch": 1, "at": 1760000000.0, "who": "ada",
        "operation": "check-20260101-120000-a1b2c3", "bounds": {},
        "result": {"ok": True, "why": "", "version": 812, "samples": 32, "report": _REPORT}}]})

    digest: str = Field(description="The plan's digest.")
    name: str = Field(description="The plan's name.")
    plan: str = Field(description="The plan (YAML).")
    parent: str = Field(description="The model schema that it starts from.")
    epoch: int = Field(description="The run's epoch when it was checked.")
    at: float = Field(description="Time, seconds since the epoch.")
    who: str = Field(description="Name of the requesting token.")
    operation: str = Field(description="The operation that measured it.")
    bounds: dict[str, Any] = Field(description="Approved bounds that differ from the plan's.")
    result: dict[str, Any] = Field(description="ok, why (if not ok), version, samples and report.")


def require_record(context: Context) -> RunRecord:
    """Return the run's record. Raise Problem 404."""
    record = context.state.record()
    if record is None:
        raise Problem(404, f"there is no run {context.run!r} in this store yet")
    return record


def refuse_if_stale(record: RunRecord, request: OperationRequest) -> None:
    """Raise Problem 409 if the plan no longer fits the run or was applied already."""
    why = stale(record, request.parent, request.epoch, model_schema)
    if why:
        raise Problem(409, why, "stale-plan")
    if request.digest in record.chain:
        raise Problem(409, f"plan {request.name!r} ({request.digest}) was already applied", "stale-plan")


def begin_operation(context: Context, kind: OperationKind, who: str, request: OperationRequest, reason: str,
                    dry_run: bool, response: Response) -> Operation:
    """Begin an operation; with ``dry_run`` only return it. Raise Problem."""
    now = context.state.status()
    if now is None:
        raise Problem(404, f"there is no run {context.run!r} in this store yet")
    if kind in (OperationKind.SURGERY, OperationKind.REVERT) and now.status not in READY:
        raise Problem(409, f"the run is {now.status}: a {kind} requires a running or paused run",
                      "illegal-transition")
    was = Status.RUNNING if now.status is Status.RUNNING else Status.PAUSED
    store = OperationStore(context.state)
    if dry_run:
        active = store.active()
        if active is not None:
            raise Problem(409, str(OperationInProgress(active)), "operation-in-progress", operation=active.id)
        response.status_code = 200
        return new_operation("dry-run", kind, who, request, 0.0, was, reason)
    try:
        operation = store.begin(kind, who, request, was, reason)
    except OperationInProgress as busy:
        raise Problem(409, str(busy), "operation-in-progress", operation=busy.operation.id) from None
    response.headers["Location"] = f"/v1/operations/{operation.id}"
    return operation


@router.post("/plan", responses=responses(_404=NO_RUN))
def plan_surgery(caller: Operator, context: ContextDep, body: DerivePlanRequest) -> PlanPreview:
    """Derive a plan from the intended changes of the agent.

    Return it with its table of changes and hints. Nothing is changed or stored."""
    record = require_record(context)
    options = {"hold": body.hold, **({} if body.warm_up_versions is None else {
        "warm_up_versions": body.warm_up_versions})}
    try:
        return preview_plan(derive_plan(record, body.overrides, body.name, options), record)
    except InvalidPlan as error:
        raise Problem(422, str(error)) from None


@router.post("/read", responses=responses(_404=NO_RUN))
def read_surgery(caller: Operator, context: ContextDep, body: PlanText) -> PlanPreview:
    """Read a plan that was written or edited by hand.

    Return it unchanged with its table of changes and hints. Nothing is changed or stored."""
    record = require_record(context)
    try:
        return preview_plan(read_plan(body.plan), record).model_copy(update={"plan": body.plan})
    except InvalidPlan as error:
        raise Problem(422, str(error)) from None


def fit_plan(record: RunRecord, plan: str) -> OperationRequest:
    """Return the request of a plan that fits the run's current agent. Raise Problem 422 or 409."""
    try:
        read = read_plan(plan)
        request = surgery_request(read, plan, record)
        refuse_if_stale(record, request)
        preview_plan(read, record)
    except InvalidPlan as error:
        raise Problem(422, str(error)) from None
    return request


@router.post("/check", status_code=202, responses=operation_responses(_404=NO_RUN, _409=NOT_NOW))
def check_surgery(caller: Operator, context: ContextDep, body: CheckRequest, response: Response,
                  dry_run: DryRun = False) -> Operation:
    """Measure a plan on the newest version and on samples of the run's own games, without changing the run.

    The response is 202 and the operation. Its result stays under /v1/surgery/checks/{digest}."""
    record = require_record(context)
    request = fit_plan(record, body.plan)
    return begin_operation(context, OperationKind.CHECK, caller.name, request, body.reason, dry_run, response)


@router.post("/apply", status_code=202, responses=operation_responses(_404="There is no check of such a plan.",
                                                                      _409=NOT_NOW))
def apply_surgery(caller: Operator, context: ContextDep, body: ApplyRequest, response: Response,
                  dry_run: DryRun = False) -> Operation:
    """Apply a plan that was checked in this epoch.

    The response is 202 and the operation. With ``dry_run`` it is the steps of the operation, if it would be
    accepted."""
    record = require_record(context)
    row = PlanChecks(context.state).get(body.digest)
    if row is None:
        raise Problem(404, f"plan {body.digest} was not checked: use POST /v1/surgery/check first")
    if not row["result"].get("ok"):
        raise Problem(409, f"the check of plan {row['name']!r} is outside its bounds: "
                           f"{row['result'].get('why') or 'see its report'}", "not-approved")
    try:
        read = read_plan(row["plan"])
    except InvalidPlan as error:
        raise Problem(422, str(error)) from None
    request = surgery_request(read, row["plan"], record, row["bounds"], body.hold).model_copy(
        update={"epoch": row["epoch"]})
    refuse_if_stale(record, request)
    return begin_operation(context, OperationKind.SURGERY, caller.name, request, body.reason, dry_run, response)


@router.get("/log", responses=responses(_404=NO_RUN))
def surgery_log(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> Slice[AppliedPlan]:
    """Return the run's chain of plans, oldest first, each with its checksum and whether the checksum is still valid."""
    return make_slice(applied_plans(require_record(context), PlanStore(context.state).all()), offset, limit)


@router.get("/checks/{digest}", responses=responses(_404="There is no check of such a plan."))
def surgery_check(caller: Viewer, context: ContextDep, digest: Digest) -> CheckResult:
    """Return the newest result of a plan's check."""
    row = PlanChecks(context.state).get(digest)
    if row is None:
        raise Problem(404, f"plan {digest} was not checked")
    return CheckResult.model_validate(row)
