"""What the loop that learns asks of what lies around it."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from five.agent.config import SchedulesConfig
from five.services.optimizer.version_records import VersionRecord


class Publisher(Protocol):
    """Where versions go (rapid.store.parameters.ParameterStore)."""

    def head(self) -> int | None: ...

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None: ...


class Older(Protocol):
    """Brings checkpoints of earlier schemas to the present one (services.optimizer.older.CheckpointMigrations)."""

    def bring(self, tensors: dict[str, Tensor], extra: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]: ...


class StateClient(Protocol):
    """What the loop asks of the run's state, and tells it."""

    def active(self) -> bool: ...

    def schedules(self) -> SchedulesConfig: ...

    def record(self, record: VersionRecord) -> None: ...

    def event(self, what: str, details: dict[str, Any]) -> None: ...
