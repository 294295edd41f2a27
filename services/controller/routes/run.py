"""Routes for the run as a whole: status, pause, resume, stop."""

import time
from typing import Any, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.agent.schedules import hyperparameters_at
from five.services.controller.http.auth import Caller
from five.services.controller.http.dependencies import Context, ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.problems import Problem, responses
from five.services.controller.run.environment_servers import KIND as ENVIRONMENTS
from five.services.controller.run.environment_servers import environment_servers
from rapid.store.errors import IllegalTransition
from rapid.store.faults import read_faults
from rapid.store.fencing import publisher_name
from rapid.store.series import Record
from rapid.store.state import ACTIVE, ENDED, PAUSE_HOLDS, RunStatus, Status

router = APIRouter(tags=["run"])
STALL_SECONDS, STALL_VERSIONS = 60.0, 10.0  # without a version a run counts as stalled: both times have passed
IMPOSSIBLE = "The current status does not allow this; the detail lists what it allows."


class Reason(BaseModel):
    """Body of a control request."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"reason": "a look at the replays"}]})

    reason: str = Field("", max_length=500, description="Reason; stored with the event.")


class StatusChange(BaseModel):
    """A run's status."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "status": "pausing", "since": 1789000000.0, "who": "ada", "reason": "a look at the replays"}]})

    status: Status = Field(description="The run's status.")
    since: float = Field(description="Time of the last status change, seconds since the epoch.")
    who: str = Field(description="Author of the change: a token's name, or a service.")
    reason: str = Field(description="Its reason.")


class ConfigDrift(BaseModel):
    """A key whose value in the controller's configuration file differs from the run's record. The record takes
    precedence."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"key": "model.lstm", "file": 192, "record": 384}]})

    key: str = Field(description="Path of the key.")
    file: Any = Field(description="Its value in the file; null: none.")
    record: Any = Field(description="Its value in the run's record.")


class Overview(BaseModel):
    """The run's status."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "run": "laptop-1v1", "status": "running", "since": 1789000000.0, "by": "controller",
        "reason": "version 0 is published and inference, optimizer, rollout are live", "version": 1204,
        "services": {"controller": 1, "inference": 1, "optimizer": 1, "rollout": 2},
        "hyperparameters": {"learning_rate": 5e-5, "entropy_coefficient": 0.01, "team_spirit": 0.3,
                            "gae_horizon_seconds": 180.0},
        "newest": {"versions": {"version": 1204, "entropy": 2.1}, "ratings": None}, "autoscaler": {},
        "epoch": 2, "record_revision": 3, "publisher": "optimizer-0 on gpu-1, process 4211",
        "drift": [{"key": "model.lstm", "file": 192, "record": 384}], "stalled_seconds": 0.0, "waiting_for": [],
        "faults": {"evaluator-0": "keeps failing, exited with code 1"}}]})

    run: str = Field(description="The run's name.")
    status: Status = Field(description="The run's status.")
    since: float = Field(description="Time of the last status change, seconds since the epoch.")
    by: str = Field(description="Author of the last status change.")
    reason: str = Field(description="Its reason.")
    version: int | None = Field(description="Newest version; null before the first.")
    services: dict[str, int] = Field(description="Live instances by kind; for dota_env, servers that "
                                     "rollouts report.")
    hyperparameters: dict[str, float] = Field(description="Current values of the schedules, by name.")
    newest: dict[str, dict[str, Any] | None] = Field(description="Newest record of the series versions and ratings.")
    autoscaler: dict[str, Any] = Field(description="Last decision for each pool; empty without an autoscaler.")
    epoch: int = Field(description="The run's epoch; surgeries and reverts begin a new one.")
    record_revision: int = Field(description="Revision of the run's record.")
    publisher: str | None = Field(description="Holder of the publisher's lease; null: none.")
    drift: list[ConfigDrift] = Field(
        description="Keys whose file value differs from the run's record, which takes precedence.")
    stalled_seconds: float = Field(description="While the run is running: seconds since the newest version, or since "
                                   "the run began to run; 0 while versions arrive in time.")
    waiting_for: list[str] = Field(description="Services that are not idle yet in the current pause.")
    faults: dict[str, str] = Field(description="Why services keep failing without which the run goes on, by process; "
                                   "`five train` reports them.")


def stalled_seconds(status: RunStatus, newest: Record | None, now: float) -> float:
    """Return for how long a running run has made no version; 0 if that is less than several versions take."""
    if status.status not in ACTIVE:
        return 0.0
    usual = float(newest.values.get("seconds", 0.0)) if newest is not None else 0.0
    waited = now - max(status.since, newest.at if newest is not None else 0.0)
    return round(waited, 1) if waited > max(STALL_SECONDS, STALL_VERSIONS * usual) else 0.0


@router.get("/status", responses=responses(_404="There is no such run yet."))
def status(caller: Viewer, context: ContextDep) -> Overview:
    """Return the run's status, newest version, live services and hyperparameters in force. Responses are shared for a
    tenth of a second. For dota_env, servers that rollouts report are counted.
    """
    return cast(Overview, context.overview_cache.get(lambda: overview(context)))


def overview(context: Context) -> Overview:
    """Return the run's status. Raise Problem 404."""
    status, record = context.state.snapshot()
    if status is None:
        raise Problem(404, f"there is no run {context.run!r} in this store yet")
    head = context.store.head()
    last = {kind: context.series.last(kind) for kind in ("versions", "ratings")}
    kinds: dict[str, int] = {}
    live = context.leases.live()
    for instance in live:
        kinds[instance.kind] = kinds.get(instance.kind, 0) + 1
    if servers := environment_servers(live):
        kinds[ENVIRONMENTS] = len(servers)
    return Overview(
        run=context.run, status=status.status, since=status.since, by=status.who, reason=status.reason, version=head,
        services=kinds,
        hyperparameters=hyperparameters_at(context.schedules(), head or 0, context.hero_steps()).as_dict(),
        newest={kind: record.values if record else None for kind, record in last.items()},
        autoscaler=context.state.table("autoscaler").all(), epoch=record.epoch if record else 0,
        record_revision=record.revision if record else 0, publisher=publisher_name(context.state.redis, context.run),
        drift=[ConfigDrift(**difference._asdict()) for difference in context.drift(record)] if record else [],
        stalled_seconds=stalled_seconds(status, last["versions"], time.time()),
        waiting_for=context.state.idle_report().waiting_for if status.status in PAUSE_HOLDS else [],
        faults=read_faults(context.state))


def transition(context: Context, to: Status, caller: Caller, reason: str, dry_run: bool = False) -> StatusChange:
    """Request a status; with ``dry_run`` only return it. Raise Problem 409 with the possible transitions."""
    try:
        now = context.state.transition(to, caller.name, reason, dry_run=dry_run)
    except IllegalTransition as error:
        raise Problem(409, str(error), "illegal-transition") from None
    return _status_change(now)


def _status_change(now: RunStatus) -> StatusChange:
    return StatusChange(status=now.status, since=now.since, who=now.who, reason=now.reason)


@router.post("/pause", responses=responses(_409=IMPOSSIBLE))
def pause(caller: Operator, context: ContextDep, body: Reason | None = None, dry_run: DryRun = False) -> StatusChange:
    """Pause games and learning; the run is paused once all services are idle."""
    return transition(context, Status.PAUSING, caller, body.reason if body else "", dry_run)


@router.post("/resume", responses=responses(_409=IMPOSSIBLE))
def resume(caller: Operator, context: ContextDep, body: Reason | None = None, dry_run: DryRun = False) -> StatusChange:
    """Resume a paused run, or start a stopped or failed run again."""
    now = context.state.status()
    if now is not None and now.status in (Status.STARTING, Status.WARMING):
        return _status_change(now)  # it becomes running by itself, once its services are live or its warm-up is over
    over = now is not None and now.status in ENDED
    return transition(context, Status.STARTING if over else Status.RUNNING, caller, body.reason if body else "",
                      dry_run)


@router.post("/stop", responses=responses(_409=IMPOSSIBLE))
def stop(caller: Operator, context: ContextDep, body: Reason | None = None, dry_run: DryRun = False) -> StatusChange:
    """Stop the run: services drain, and the optimizer writes a checkpoint. The run can be started again."""
    return transition(context, Status.STOPPING, caller, body.reason if body else "", dry_run)
