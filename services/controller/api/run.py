"""The run as a whole: what it is doing, pause, resume, stop."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.schedules import hyperparameters_at
from rapid.store.errors import IllegalTransition
from rapid.store.state import ENDED, Status
from services.controller.api.dependencies import Context, Here, Operator, Viewer
from services.controller.auth import Caller
from services.controller.environments import KIND as ENVIRONMENTS
from services.controller.environments import environments
from services.controller.problems import Problem, responses

router = APIRouter(tags=["run"])
IMPOSSIBLE = "The run cannot go there from its present status; the detail says where it can."


class Reason(BaseModel):
    """Body of a control request."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=500, description="Why; kept with the event.")


@router.get("/status", responses=responses(_404="There is no such run yet."))
def status(caller: Viewer, here: Here) -> dict[str, Any]:
    """Status, newest version, live services (of dota_env, servers on which rollouts say that they play),
    hyperparameters in force."""
    status = here.state.status()
    if status is None:
        raise Problem(404, f"there is no run {here.run!r} in this store yet")
    head = here.store.head()
    last = {kind: here.series.last(kind) for kind in ("versions", "ratings")}
    kinds: dict[str, int] = {}
    live = here.leases.live()
    for instance in live:
        kinds[instance.kind] = kinds.get(instance.kind, 0) + 1
    if servers := environments(live):
        kinds[ENVIRONMENTS] = len(servers)
    return {
        "run": here.run, "status": status.status, "since": status.since, "by": status.who,
        "reason": status.reason, "version": head, "services": kinds,
        "hyperparameters": hyperparameters_at(here.schedules(), head or 0).as_dict(),
        "newest": {kind: record.values if record else None for kind, record in last.items()},
        # The last look at each pool; none where nothing scales.
        "autoscaler": here.state.table("autoscaler").all(),
    }


def transition(here: Context, to: Status, caller: Caller, reason: str) -> dict[str, Any]:
    """Asks for a status. Raises Problem 409 naming what is possible."""
    try:
        return here.state.transition(to, caller.name, reason)._asdict()
    except IllegalTransition as error:
        raise Problem(409, str(error), "illegal-transition") from None


@router.post("/pause", responses=responses(_409=IMPOSSIBLE))
def pause(caller: Operator, here: Here, body: Reason | None = None) -> dict[str, Any]:
    """Games and learning come to rest; the run is paused once they have."""
    return transition(here, Status.PAUSING, caller, body.reason if body else "")


@router.post("/resume", responses=responses(_409=IMPOSSIBLE))
def resume(caller: Operator, here: Here, body: Reason | None = None) -> dict[str, Any]:
    """Goes on from a pause; starts a run again that was stopped or has failed."""
    now = here.state.status()
    over = now is not None and now.status in ENDED
    return transition(here, Status.STARTING if over else Status.RUNNING, caller, body.reason if body else "")


@router.post("/stop", responses=responses(_409=IMPOSSIBLE))
def stop(caller: Operator, here: Here, body: Reason | None = None) -> dict[str, Any]:
    """Ends the run: services drain, the optimizer writes a checkpoint. It can be started again."""
    return transition(here, Status.STOPPING, caller, body.reason if body else "")
