"""Routes below /v1/schedules: scheduled hyperparameters, changes by ramps, their history, and reverting a change."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from five.agent import schedules as agent_schedules
from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import (
    ScheduleName,
    dump_schedules,
    load_schedules,
    position_of,
    restore_schedule,
    value_at,
)
from five.services.controller.http.dependencies import Context, ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.etags import etag, matches_etag, require_match
from five.services.controller.http.paging import MAX_SAFE_INTEGER, BeforeId, Limit, Page, make_page
from five.services.controller.http.problems import Problem, responses
from five.services.controller.routes.config import ETAG_RESPONSES, IfNoneMatch
from rapid.store.schedules import ScheduleEdit, ScheduleStore

router = APIRouter(tags=["schedules"])
IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=1000, description="ETag of the schedule that you "
                                       "have read; * overwrites any.")]
Epoch = Annotated[int | None, Field(ge=0, le=MAX_SAFE_INTEGER, strict=True, description="The run's epoch in which this "
                                    "was decided; the request fails in another one. null: any.")]
EPOCH_CHANGED = "The run is in another epoch."
SCHEDULE_CHANGED = "The schedule has changed since it was read."
_RAMP: dict[str, Any] = {"start": 1300, "length": 200, "from": 5e-5, "to": 1e-5}
_SCHEDULE: dict[str, Any] = {"initial": 5e-5, "ramps": [_RAMP], "unit": "versions"}
_STATE: dict[str, Any] = {"name": "learning_rate", "schedule": _SCHEDULE, "version": 1204, "hero_steps": 73_000_000,
                          "value": 5e-5, "next_start": 1206, "change": "1789000000000-0"}
AHEAD = 2  # versions from the newest one to the default start of a change


class RampRequest(BaseModel):
    """A change of a scheduled value."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"start": 1300, "length": 200, "to": 1e-5, "reason": "the loss is noisy"}]})

    start: int = Field(ge=0, le=MAX_SAFE_INTEGER, strict=True,
                       description="Position at which it begins, in the schedule's unit: the present one or a "
                       "later one. Ramps planned from there on are dropped.")
    length: int = Field(ge=0, le=MAX_SAFE_INTEGER, strict=True, description="Length, in the schedule's unit; 0: a "
                        "step.")
    to: float = Field(allow_inf_nan=False, description="Value after it.")
    reason: str = Field("", max_length=500, description="Reason; stored with the change.")
    epoch: Epoch = None


class RevertChangeRequest(BaseModel):
    """Request to revert a change."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"start": 1320, "reason": "it did not help"}]})

    start: int | None = Field(None, ge=0, le=MAX_SAFE_INTEGER, strict=True,
                              description="Position from which on the previous schedule applies again, in its unit: "
                              "the present one or a later one. null: the schedule's `next_start`.")
    reason: str = Field("", max_length=500, description="Reason; stored with the change.")
    epoch: Epoch = None


class ScheduleState(BaseModel):
    """A schedule and its current value."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STATE]})

    name: str = Field(description="Name of the schedule.")
    schedule: ScheduleConfig = Field(description="`initial` until the first ramp, then linear from ramp to ramp.")
    version: int = Field(description="The newest version; 0 before the first.")
    hero_steps: int = Field(description="Hero-steps that the run had received at it.")
    value: float = Field(description="The value at it.")
    next_start: int = Field(description="Position some two versions ahead, in the schedule's unit.")
    change: str | None = Field(None, description="After a change: its id in the history; null if nothing was "
                               "changed.")


class ScheduleChange(BaseModel):
    """A past change of a schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "name": "learning_rate", "who": "ada",
        "reason": "the loss is noisy", "before": {"initial": 5e-5, "ramps": []}, "after": _SCHEDULE,
        "reverts": "1788000000000-0", "epoch": 2}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="Time, seconds since the epoch.")
    name: str = Field(description="Name of the schedule.")
    who: str = Field(description="Name of the requesting token.")
    reason: str = Field(description="Its reason.")
    before: ScheduleConfig = Field(description="The schedule before it.")
    after: ScheduleConfig = Field(description="The schedule after it.")
    reverts: str | None = Field(description="Id of the change that it reverted; null: none.")
    epoch: int = Field(description="The run's epoch at that time.")


def dump(schedule: ScheduleConfig) -> dict[str, Any]:
    """Return one schedule as JSON values."""
    return schedule.model_dump(mode="json", by_alias=True)


def _state(context: Context, name: str, schedule: ScheduleConfig, change: str | None = None) -> ScheduleState:
    head, hero_steps = context.store.head() or 0, context.hero_steps()
    return ScheduleState(
        name=name, schedule=schedule, version=head, hero_steps=hero_steps,
        value=value_at(schedule, position_of(schedule, head, hero_steps)), next_start=_next_start(context, schedule),
        change=change)


def _next_start(context: Context, schedule: ScheduleConfig) -> int:
    head, hero_steps = context.store.head() or 0, context.hero_steps()
    return position_of(schedule, head + AHEAD, hero_steps + AHEAD * hero_steps // max(head, 1))


@router.get("/schedules", response_model=SchedulesConfig, responses={**ETAG_RESPONSES, 200: {
    **ETAG_RESPONSES[200], "content": {"application/json": {"example": {
        "learning_rate": _SCHEDULE, "entropy_coefficient": {"initial": 0.01, "ramps": [], "unit": "versions"}}}}}})
def schedules(caller: Viewer, context: ContextDep, response: Response, have: IfNoneMatch = None) -> Any:
    """Return all schedules in force."""
    found = context.schedules()
    tag = etag(dump_schedules(found))
    if matches_etag(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return found


@router.get("/schedules/history")
def schedule_history(caller: Viewer, context: ContextDep, limit: Limit = 100,
                     before: BeforeId = None) -> Page[ScheduleChange]:
    """Return the changes of all schedules, newest first."""
    found = ScheduleStore(context.state).history(limit, before or "")
    return make_page([ScheduleChange.model_validate({"id": r.id, "at": r.at, **r.values}) for r in found],
                     [r.id for r in found], limit, None, before)


@router.get("/schedules/{name}", response_model=ScheduleState, responses=ETAG_RESPONSES)
def schedule(caller: Viewer, context: ContextDep, response: Response, name: ScheduleName,
             have: IfNoneMatch = None) -> Any:
    """Return one schedule and its value at the newest version."""
    found: ScheduleConfig = getattr(context.schedules(), name)
    tag = etag(dump(found))
    if matches_etag(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return _state(context, name, found)


@router.put("/schedules/{name}", response_model=ScheduleState, responses={
    200: ETAG_RESPONSES[200], **responses(_409=EPOCH_CHANGED, _412=SCHEDULE_CHANGED, _428="If-Match is missing.")})
def change_schedule(caller: Operator, context: ContextDep, response: Response, name: ScheduleName, ramp: RampRequest,
                    match: IfMatch = None, dry_run: DryRun = False) -> ScheduleState:
    """Change a scheduled value from a version, or a number of hero-steps, on.

    Repeating the last change succeeds without effect, at any later time and without the ETag.
    """
    def change(now: SchedulesConfig) -> SchedulesConfig:
        changed = agent_schedules.change_schedule(now, name, ramp.start, ramp.to, ramp.length)
        # A repeated change needs no tag, and its start may be past by now.
        if changed != now:
            require_match(match, etag(dump(getattr(now, name))), f"schedule {name}")
            _require_future(context, getattr(now, name), ramp.start)
        return changed

    return _write(context, caller.name, response, name, change, ramp, dry_run=dry_run)


@router.post("/schedules/history/{change}/revert", response_model=ScheduleState, responses={
    200: ETAG_RESPONSES[200], **responses(_404="There is no such change.", _409="The schedule was changed again: "
                                          "revert the newer change first.")})
def revert_schedule(caller: Operator, context: ContextDep, response: Response, body: RevertChangeRequest,
                    change: Annotated[str, Path(pattern=r"^\d{1,19}-\d{1,19}$", description="Its id.")],
                    dry_run: DryRun = False) -> ScheduleState:
    """Revert the newest change of a schedule from a position on. Values before that are not changed."""
    found = ScheduleStore(context.state).find(change)
    if found is None:
        raise Problem(404, f"schedule change {change!r} does not exist; GET /v1/schedules/history lists all")
    values = found.values
    name, before, after = values["name"], *(ScheduleConfig.model_validate(values[k]) for k in ("before", "after"))

    def back(now: SchedulesConfig) -> SchedulesConfig:
        if getattr(now, name) != after:
            raise Problem(409, f"schedule {name} was changed again after {change}: revert the newer change first")
        start = _next_start(context, after) if body.start is None else body.start
        _require_future(context, after, start)
        return restore_schedule(now, name, start, before)

    return _write(context, caller.name, response, name, back, body, change, dry_run)


def _require_future(context: Context, schedule: ScheduleConfig, start: int) -> None:
    position = position_of(schedule, context.store.head() or 0, context.hero_steps())
    if start < position:
        bound = "newest version" if schedule.unit == "versions" else "newest version's hero-steps"
        what = f"must be at least the {bound}, {position}"
        raise Problem(422, f"start {start}: {what}", errors=[{"where": "body.start", "what": what}])


def _write(context: Context, who: str, response: Response, name: str,
           change: Callable[[SchedulesConfig], SchedulesConfig], body: RampRequest | RevertChangeRequest,
           reverts: str = "", dry_run: bool = False) -> ScheduleState:
    result: SchedulesConfig | None = None

    def edit(stored: Any) -> ScheduleEdit | None:
        nonlocal result
        now = context.configured if stored is None else load_schedules(stored)
        try:
            result = change(now)
            context.require_usable(result)
        except (ValidationError, ValueError) as error:
            detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise Problem(422, f"{name}: {detail.removeprefix('Value error, ')}",
                          errors=[{"where": "body.to", "what": detail}]) from None
        if result == now:
            return None
        return ScheduleEdit(name, dump_schedules(result), dump(getattr(now, name)), dump(getattr(result, name)))

    made = ScheduleStore(context.state).change(edit, who, body.reason, reverts, body.epoch, dry_run)
    assert result is not None
    schedule: ScheduleConfig = getattr(result, name)
    response.headers["ETag"] = etag(dump(schedule))
    return _state(context, name, schedule, made or None)
