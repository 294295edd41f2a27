"""The REST face of a run, under /v1. What can be done here can be done with the `five` command and with curl."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from five.config import SchedulesConfig
from five.schedules import SCHEDULED, change_from, dump_schedules, hyperparameters_at, load_schedules
from rapid.store.errors import IllegalTransition, VersionMissing
from rapid.store.leases import Leases
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import ENDED, RunState, Status
from services.controller.auth import Caller, Gate


class Reason(BaseModel):
    """Body of a control request."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=500, description="Why; kept with the event.")


class ScheduleChange(BaseModel):
    """Body of a change of a scheduled value."""

    model_config = ConfigDict(extra="forbid")

    to: float = Field(description="Value after the change.")
    length: int = Field(0, ge=0, description="Versions that the change takes; 0: at once.")


class Controller:
    """What the REST handlers work on."""

    def __init__(self, run: str, state: RunState, store: ParameterStore, configured: SchedulesConfig) -> None:
        self.run = run
        self.state = state
        self.store = store
        self.leases = Leases(state.redis, run)
        self.series = Series(state.redis, run)
        self._configured = configured

    def schedules(self) -> SchedulesConfig:
        """The schedules in force: those that were set while running, else the configuration's."""
        changed = self.state.schedules()
        return load_schedules(changed) if changed is not None else self._configured

    def status(self) -> dict[str, Any]:
        """Everything a front page shows."""
        status = self.state.status()
        if status is None:
            raise HTTPException(404, f"there is no run {self.run!r} in this store yet")
        head = self.store.head()
        last = {kind: self.series.last(kind) for kind in ("versions", "ratings")}
        kinds: dict[str, int] = {}
        for instance in self.leases.live():
            kinds[instance.kind] = kinds.get(instance.kind, 0) + 1
        return {
            "run": self.run, "status": status.status, "since": status.since, "by": status.who,
            "reason": status.reason, "version": head, "services": kinds,
            "hyperparameters": hyperparameters_at(self.schedules(), head or 0).as_dict(),
            "newest": {kind: record.values if record else None for kind, record in last.items()},
            # The last look at each pool; none where nothing scales.
            "autoscaler": self.state.table("autoscaler").all(),
        }

    def transition(self, to: Status, caller: Caller, reason: str) -> dict[str, Any]:
        """Asks for a status. Raises HTTPException 409 naming what is possible."""
        try:
            return self.state.transition(to, caller.name, reason)._asdict()
        except IllegalTransition as error:
            raise HTTPException(409, str(error)) from None

    def resume(self, caller: Caller, reason: str) -> dict[str, Any]:
        """A run that is over begins anew, any other one goes on. Raises HTTPException 409 as ``transition``."""
        now = self.state.status()
        over = now is not None and now.status in ENDED
        return self.transition(Status.STARTING if over else Status.RUNNING, caller, reason)


def create_app(controller: Controller, gate: Gate, not_ready: Callable[[], str] = lambda: "") -> FastAPI:
    """The application. OpenAPI under /openapi.json, pages under /docs. ``not_ready`` says why it cannot be used now,
    '' when it can."""
    app = FastAPI(title="Five", version="1", description="Control of a training run.")
    viewer = Annotated[Caller, Depends(gate.viewer)]
    operator = Annotated[Caller, Depends(gate.operator)]

    @app.exception_handler(ConnectionError)
    def store_away(request: Request, error: ConnectionError) -> JSONResponse:
        return JSONResponse({"detail": f"the run's store does not answer: {error}"}, 503)

    @app.get("/healthz", include_in_schema=False)
    def alive() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", include_in_schema=False)
    def answers() -> JSONResponse:
        reason = not_ready()
        return JSONResponse({"status": reason or "ready"}, 503 if reason else 200)

    @app.get("/v1/status")
    def status(caller: viewer) -> dict[str, Any]:
        """Status, newest version, live services, hyperparameters in force."""
        return controller.status()

    @app.get("/v1/config")
    def config(caller: viewer) -> dict[str, Any]:
        """The run's configuration as it was started."""
        found = controller.state.config()
        if found is None:
            raise HTTPException(404, "the run has no configuration yet")
        return dict(found)

    @app.get("/v1/versions")
    def versions(caller: viewer, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
        """Published versions, newest first."""
        return [asdict(r) for r in reversed(controller.store.records()[-limit:])]

    @app.get("/v1/versions/{version}")
    def version(caller: viewer, version: int) -> dict[str, Any]:
        """A version's record and metadata."""
        record = controller.store.record(version) if version >= 0 else None
        if record is None:
            raise HTTPException(404, f"version {version} was never published")
        try:
            meta: dict[str, Any] | None = controller.store.fetch_meta(version)
        except VersionMissing:
            meta = None
        return {**asdict(record), "meta": meta}

    @app.get("/v1/services")
    def services(caller: viewer) -> list[dict[str, Any]]:
        """Live service instances with their statistics."""
        return [i._asdict() for i in controller.leases.live()]

    @app.get("/v1/events")
    def events(caller: viewer, after: Annotated[str, Query(pattern=r"^(\d+-\d+)?$")] = "",
               limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
        """Events after an id, oldest first; without one the newest, newest first."""
        found = controller.state.events.read(after, limit) if after else controller.state.events.last(limit)
        return [e._asdict() for e in found]

    @app.get("/v1/series/{kind}")
    def series(caller: viewer, kind: Literal["versions", "games", "ratings", "matches"],
               after: Annotated[str, Query(pattern=r"^(\d+-\d+)?$")] = "",
               limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> list[dict[str, Any]]:
        """Records of a time series after an id, oldest first."""
        out = []
        for record in controller.series.read(kind, after or "-"):
            out.append({"id": record.id, "at": record.at, **record.values})
            if len(out) == limit:
                break
        return out

    @app.get("/v1/opponents")
    def opponents(caller: viewer) -> dict[str, Any]:
        """The opponent pool as stored."""
        return dict(controller.state.table("league").all())

    @app.get("/v1/ratings")
    def ratings(caller: viewer) -> dict[str, Any]:
        """Ratings as stored."""
        return dict(controller.state.table("ratings").all())

    @app.get("/v1/schedules")
    def schedules(caller: viewer) -> dict[str, Any]:
        """The schedules in force."""
        return dump_schedules(controller.schedules())

    @app.put("/v1/schedules/{name}")
    def change_schedule(caller: operator, name: str, change: ScheduleChange) -> dict[str, Any]:
        """Changes a scheduled value from the present version on."""
        if name not in SCHEDULED:
            raise HTTPException(404, f"{name!r} is not scheduled; these are: {', '.join(SCHEDULED)}")
        try:
            changed = change_from(controller.schedules(), name, controller.store.head() or 0, change.to, change.length)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        controller.state.set_schedules(dump_schedules(changed), caller.name)
        return dump_schedules(changed)

    @app.post("/v1/pause")
    def pause(caller: operator, body: Reason | None = None) -> dict[str, Any]:
        """Games and learning come to rest; the run is paused once they have."""
        return controller.transition(Status.PAUSING, caller, body.reason if body else "")

    @app.post("/v1/resume")
    def resume(caller: operator, body: Reason | None = None) -> dict[str, Any]:
        """Goes on from a pause; starts a run again that was stopped or has failed."""
        return controller.resume(caller, body.reason if body else "")

    @app.post("/v1/stop")
    def stop(caller: operator, body: Reason | None = None) -> dict[str, Any]:
        """Ends the run: services drain, the optimizer writes a checkpoint. It can be started again."""
        return controller.transition(Status.STOPPING, caller, body.reason if body else "")

    return app
