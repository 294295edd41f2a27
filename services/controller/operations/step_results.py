"""Results of running a step."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Wait:
    """The step is waiting for others."""

    waiting_for: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """The step succeeded."""

    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """The attempt failed; another attempt may succeed."""

    error: str


@dataclass(frozen=True)
class Refused:
    """The step failed permanently."""

    error: str


StepResult = Wait | Done | Failed | Refused
