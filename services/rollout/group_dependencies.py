"""Dependencies of a game group on the rest of its rollout process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from five.agent.schedules import Hyperparameters
from five.services.rollout.anneal_assignment import NO_ANNEAL, GameVariant
from five.services.rollout.environment import Environment
from five.services.rollout.live_broadcast import LiveBroadcast
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.middle_games import SnapshotRing
from five.services.rollout.past_opponent import PastOpponent
from five.services.rollout.policy_inference import Inference
from five.services.rollout.segment_builder import ScheduleValues
from five.services.rollout.sender import Sender


class PlayGate(Protocol):
    """Says when games may continue, by the run's status and the process's shutdown."""

    @property
    def is_stopping(self) -> bool: ...

    @property
    def is_paused(self) -> bool:
        """Whether the run is paused; False while stopping."""
        ...

    async def wait_until_active(self) -> None:
        """Wait while the run is paused; return at once while stopping."""
        ...


@dataclass
class GroupDependencies:
    """Other parts of the process that a group uses."""

    environment: Environment
    inference: Inference
    matchmaker: Matchmaker
    sender: Sender
    gate: PlayGate
    schedule_values: Callable[[int, float], ScheduleValues]
    hyperparameters: Callable[[int], Hyperparameters]
    on_game: Callable[[dict[str, Any]], None] = lambda record: None
    assign_variant: Callable[[str, int], GameVariant] = lambda game, version: NO_ANNEAL
    snapshots: SnapshotRing | None = None  # of the process; None where games have no snapshots
    broadcast: LiveBroadcast | None = None
    past: PastOpponent | None = None
