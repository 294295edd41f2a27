"""Scheduled hyperparameters: what holds, changes as ramps from a version on, their history, and the way back."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import SCHEDULED, change_from, dump_schedules, load_schedules, return_to, value_at
from five.services.controller.http.dependencies import Context, DryRun, Here, Operator, Viewer
from five.services.controller.http.etags import require_match, tag_of, unchanged
from five.services.controller.http.paging import NUMBER, BeforeId, Limit, Page, page
from five.services.controller.http.problems import Problem, responses
from five.services.controller.routes.config import TAGGED, NoneMatch
from rapid.store.schedules import Change, ScheduleStore

router = APIRouter(tags=["schedules"])
Name = Literal["learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds"]
assert set(SCHEDULED) == set(Name.__args__)  # type: ignore[attr-defined]
Match = Annotated[str | None, Header(alias="If-Match", max_length=1000, description="ETag of the schedule that you "
                                     "have read; * overwrites whatever there is.")]
Epoch = Annotated[int | None, Field(ge=0, le=NUMBER, strict=True, description="The run's epoch in which this was "
                                    "decided; in another one it is refused. null: whichever it is.")]
MOVED = "The run is in another epoch."
STALE = "The schedule has changed since it was read."
_RAMP: dict[str, Any] = {"start": 1300, "length": 200, "from": 5e-5, "to": 1e-5}
_SCHEDULE: dict[str, Any] = {"initial": 5e-5, "ramps": [_RAMP]}
_STATE: dict[str, Any] = {"name": "learning_rate", "schedule": _SCHEDULE, "version": 1204, "value": 5e-5, "change":
          "1789000000000-0"}


class Ramp(BaseModel):
    """A change of a scheduled value."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"start": 1300, "length": 200, "to": 1e-5, "reason": "the loss is noisy"}]})

    start: int = Field(ge=0, le=NUMBER, strict=True, description="Version at which it begins: the newest or a later "
                       "one. What was planned from there on is dropped.")
    length: int = Field(ge=0, le=NUMBER, strict=True, description="Versions that it takes; 0: at once.")
    to: float = Field(allow_inf_nan=False, description="Value after it.")
    reason: str = Field("", max_length=500, description="Why; kept with the change.")
    epoch: Epoch = None


class Revert(BaseModel):
    """Takes a change back."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"start": 1320, "reason": "it did not help"}]})

    start: int = Field(ge=0, le=NUMBER, strict=True, description="Version from which on the schedule is what it was "
                       "before the change: the newest or a later one.")
    reason: str = Field("", max_length=500, description="Why; kept with the change.")
    epoch: Epoch = None


class ScheduleState(BaseModel):
    """One schedule and what it gives now."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STATE]})

    name: str = Field(description="Which value it is.")
    schedule: ScheduleConfig = Field(description="`initial` until the first ramp, then linear from ramp to ramp.")
    version: int = Field(description="The newest version; 0 before the first.")
    value: float = Field(description="The value at it.")
    change: str | None = Field(None, description="After a change: its id in the history; null when nothing was to be "
                               "changed.")


class ScheduleChange(BaseModel):
    """A change that was made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "name": "learning_rate", "who": "ada",
        "reason": "the loss is noisy", "before": {"initial": 5e-5, "ramps": []}, "after": _SCHEDULE,
        "reverts": "1788000000000-0",
        "epoch": 2}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="When, seconds since the epoch.")
    name: str = Field(description="Which schedule.")
    who: str = Field(description="Whose token asked for it.")
    reason: str = Field(description="Why, as given.")
    before: ScheduleConfig = Field(description="The schedule before it.")
    after: ScheduleConfig = Field(description="The schedule after it.")
    reverts: str | None = Field(description="Id of the change that it took back; null: none.")
    epoch: int = Field(description="The run's epoch in which it was made.")


def dump(schedule: ScheduleConfig) -> dict[str, Any]:
    """One schedule as JSON values."""
    return schedule.model_dump(mode="json", by_alias=True)


def _state(here: Context, name: str, schedule: ScheduleConfig, change: str | None = None) -> ScheduleState:
    head = here.store.head() or 0
    return ScheduleState(name=name, schedule=schedule, version=head, value=value_at(schedule, head), change=change)


@router.get("/schedules", response_model=SchedulesConfig, responses={**TAGGED, 200: {
    **TAGGED[200], "content": {"application/json": {"example": {
        "learning_rate": _SCHEDULE, "entropy_coefficient": {"initial": 0.01, "ramps": []},
        "team_spirit": {"initial": 0.3, "ramps": []}, "gae_horizon_seconds": {"initial": 180.0, "ramps": []}}}}}})
def schedules(caller: Viewer, here: Here, response: Response, have: NoneMatch = None) -> Any:
    """All schedules in force."""
    found = here.schedules()
    tag = tag_of(dump_schedules(found))
    if unchanged(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return found


@router.get("/schedules/history")
def schedule_history(caller: Viewer, here: Here, limit: Limit = 100, before: BeforeId = None) -> Page[ScheduleChange]:
    """Changes of all schedules, newest first."""
    found = ScheduleStore(here.state).history(limit, before or "")
    return page([ScheduleChange.model_validate({"id": r.id, "at": r.at, **r.values}) for r in found],
                [r.id for r in found], limit, None, before)


@router.get("/schedules/{name}", response_model=ScheduleState, responses=TAGGED)
def schedule(caller: Viewer, here: Here, response: Response, name: Name, have: NoneMatch = None) -> Any:
    """One schedule, and its value at the newest version."""
    found: ScheduleConfig = getattr(here.schedules(), name)
    tag = tag_of(dump(found))
    if unchanged(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return _state(here, name, found)


@router.put("/schedules/{name}", response_model=ScheduleState, responses={
    200: TAGGED[200], **responses(_409=MOVED, _412=STALE, _428="If-Match is missing.")})
def change_schedule(caller: Operator, here: Here, response: Response, name: Name, ramp: Ramp,
                    match: Match = None, dry_run: DryRun = False) -> ScheduleState:
    """Changes a scheduled value from a version on. The same change asked for again, while it is the last one, is
    answered as made: whatever version it has become, and without the tag."""
    def change(now: SchedulesConfig) -> SchedulesConfig:
        changed = change_from(now, name, ramp.start, ramp.to, ramp.length)
        # One that is there already needs no tag, and may lie in the past by now.
        if changed != now:
            require_match(match, tag_of(dump(getattr(now, name))), f"schedule {name}")
            _require_ahead(here, ramp.start)
        return changed

    return _write(here, caller.name, response, name, change, ramp, dry_run=dry_run)


@router.post("/schedules/history/{change}/revert", response_model=ScheduleState, responses={
    200: TAGGED[200], **responses(_404="There is no such change.", _409="The schedule was changed again since then: "
                                  "take the newer change back first.")})
def revert_schedule(caller: Operator, here: Here, response: Response, body: Revert,
                    change: Annotated[str, Path(pattern=r"^\d{1,19}-\d{1,19}$", description="Its id.")],
                    dry_run: DryRun = False) -> ScheduleState:
    """Takes the newest change of a schedule back, from a version on: what lies before it stays as it was."""
    found = ScheduleStore(here.state).find(change)
    if found is None:
        raise Problem(404, f"there is no change {change!r} of a schedule; GET /v1/schedules/history lists them")
    values = found.values
    name, before, after = values["name"], *(ScheduleConfig.model_validate(values[k]) for k in ("before", "after"))

    def back(now: SchedulesConfig) -> SchedulesConfig:
        if getattr(now, name) != after:
            raise Problem(409, f"schedule {name} was changed again after {change}: take the newer change back first")
        _require_ahead(here, body.start)
        return return_to(now, name, body.start, before)

    return _write(here, caller.name, response, name, back, body, change, dry_run)


def _require_ahead(here: Context, start: int) -> None:
    head = here.store.head() or 0
    if start < head:
        raise Problem(422, f"start: version {start} is past, the newest is {head}; a change begins there or later",
                      errors=[{"where": "body.start", "what": f"is past, the newest version is {head}"}])


def _write(here: Context, who: str, response: Response, name: str,
           change: Callable[[SchedulesConfig], SchedulesConfig], body: Ramp | Revert, reverts: str = "",
           dry_run: bool = False) -> ScheduleState:
    result: SchedulesConfig | None = None

    def edit(stored: Any) -> Change | None:
        nonlocal result
        now = here.configured if stored is None else load_schedules(stored)
        try:
            result = change(now)
        except (ValidationError, ValueError) as error:
            detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise Problem(422, f"{name}: {detail.removeprefix('Value error, ')}",
                          errors=[{"where": "body.to", "what": detail}]) from None
        if result == now:
            return None
        return Change(name, dump_schedules(result), dump(getattr(now, name)), dump(getattr(result, name)))

    made = ScheduleStore(here.state).change(edit, who, body.reason, reverts, body.epoch, dry_run)
    assert result is not None
    schedule: ScheduleConfig = getattr(result, name)
    response.headers["ETag"] = tag_of(dump(schedule))
    return _state(here, name, schedule, made or None)
