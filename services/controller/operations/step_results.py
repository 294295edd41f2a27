"""What a step says when it is asked."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Wait:
    """It goes on; for whom or what."""

    waiting_for: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """It has ended well, with this."""

    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """It did not work out; another attempt may."""

    error: str


@dataclass(frozen=True)
class Refused:
    """It cannot work out."""

    error: str


Outcome = Wait | Done | Failed | Refused
