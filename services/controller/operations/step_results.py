"""Results of running a step."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Wait:
    """Result of a step that waits for others."""

    waiting_for: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """Result of a step that succeeded."""

    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """Result of an attempt that failed; another attempt may succeed."""

    error: str


@dataclass(frozen=True)
class Refused:
    """Result of a step that failed permanently."""

    error: str


StepResult = Wait | Done | Failed | Refused
