"""What handlers work on, and who calls them: dependencies that routers declare."""

from typing import Annotated

from fastapi import Depends, Request

from five.config import SchedulesConfig
from five.schedules import load_schedules
from rapid.store.leases import Leases
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import RunState
from services.controller.auth import Caller, Gate


class Context:
    """The run that an application serves. One object for all routers; ``app.state.context`` holds it."""

    def __init__(self, run: str, state: RunState, store: ParameterStore, configured: SchedulesConfig,
                 gate: Gate) -> None:
        self.run = run
        self.state = state
        self.store = store
        self.gate = gate
        self.leases = Leases(state.redis, run)
        self.series = Series(state.redis, run)
        self._configured = configured

    def schedules(self) -> SchedulesConfig:
        """The schedules in force: those that were set while running, else the configuration's."""
        changed = self.state.schedules()
        return load_schedules(changed) if changed is not None else self._configured


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def _viewer(request: Request) -> Caller:
    return _context(request).gate.viewer(request)


def _operator(request: Request) -> Caller:
    return _context(request).gate.operator(request)


Here = Annotated[Context, Depends(_context)]
# Whoever may read, and whoever may change something.
Viewer = Annotated[Caller, Depends(_viewer)]
Operator = Annotated[Caller, Depends(_operator)]
