"""Interfaces through which the training loop uses the rest of the service."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from five.agent.config import SchedulesConfig
from five.services.optimizer.version_records import VersionRecord


class Publisher(Protocol):
    """Publishes versions (rapid.store.parameters.ParameterStore)."""

    def head(self) -> int | None: ...

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None: ...


class CheckpointMigrator(Protocol):
    """Migrates checkpoints of earlier schemas (services.optimizer.migrations.CheckpointMigrations)."""

    def migrate(self, tensors: dict[str, Tensor], extra: dict[str, Any]
                ) -> tuple[dict[str, Tensor], dict[str, Any]]: ...


class StateClient(Protocol):
    """Reads and writes the run's state (services.optimizer.run_state_client.RunStateClient)."""

    def active(self) -> bool: ...

    def schedules(self) -> SchedulesConfig: ...

    def record(self, record: VersionRecord) -> None: ...

    def event(self, what: str, details: dict[str, Any]) -> None: ...
