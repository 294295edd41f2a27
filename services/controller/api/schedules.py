"""Scheduled hyperparameters."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.schedules import SCHEDULED, change_from, dump_schedules
from services.controller.api.dependencies import Here, Operator, Viewer
from services.controller.problems import Problem, responses

router = APIRouter(tags=["schedules"])


class ScheduleChange(BaseModel):
    """Body of a change of a scheduled value."""

    model_config = ConfigDict(extra="forbid")

    to: float = Field(description="Value after the change.")
    length: int = Field(0, ge=0, description="Versions that the change takes; 0: at once.")


@router.get("/schedules")
def schedules(caller: Viewer, here: Here) -> dict[str, Any]:
    """The schedules in force."""
    return dump_schedules(here.schedules())


@router.put("/schedules/{name}", responses=responses(_404="There is no such schedule."))
def change_schedule(caller: Operator, here: Here, name: str, change: ScheduleChange) -> dict[str, Any]:
    """Changes a scheduled value from the present version on."""
    if name not in SCHEDULED:
        raise Problem(404, f"{name!r} is not scheduled; these are: {', '.join(SCHEDULED)}")
    try:
        changed = change_from(here.schedules(), name, here.store.head() or 0, change.to, change.length)
    except ValueError as error:
        raise Problem(422, str(error)) from None
    here.state.set_schedules(dump_schedules(changed), caller.name)
    return dump_schedules(changed)
