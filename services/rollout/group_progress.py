"""Progress of a game group: totals from which metrics are derived."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from rapid.telemetry import tracing

Stage = Literal["act", "step", "wait", "cut"]


@dataclass
class GroupProgress:
    """Totals of a group since its start, from which metrics are derived, and its state."""

    team_steps: int = 0
    hero_steps: int = 0
    games: int = 0
    segments: int = 0
    recoveries: int = 0
    abandoned_games: int = 0
    act_seconds: float = 0.0
    step_seconds: float = 0.0
    wait_seconds: float = 0.0
    cut_seconds: float = 0.0
    queue_us: int = 0
    forward_us: int = 0
    newest_version: int = -1
    is_idle: bool = True  # paused with its segments cut, or not yet playing
    failure: str = ""  # why games could not be started at the last attempt

    @contextmanager
    def timed(self, stage: Stage) -> Iterator[None]:
        """Add the time of the block to a stage's seconds, and trace it in a sampled step."""
        began = time.perf_counter()
        try:
            with tracing.span(stage):
                yield
        finally:
            name = f"{stage}_seconds"
            setattr(self, name, getattr(self, name) + time.perf_counter() - began)
