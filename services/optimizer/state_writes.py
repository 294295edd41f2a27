"""Writes of the training state, from copies: learning goes on while they wait for a store."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from five.agent.learning.learner import Learner
from five.agent.learning.snapshots import SnapshotCopier
from five.agent.schedules import dump_schedules, hyperparameters_at
from five.services.optimizer import metrics as page
from five.services.optimizer.background_writer import Write
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.drain_time import DrainTime
from five.services.optimizer.intake import Intake
from five.services.optimizer.interfaces import Publisher, StateClient


@dataclass
class StateWrites:
    """Factory of the writes that publish a version or store a checkpoint of the present state.

    Args:
        meta: metadata of every version (schema, layout).
        drain_time: measures checkpoint writes.
    """

    learner: Learner
    intake: Intake
    publisher: Publisher
    checkpoints: Checkpoints
    client: StateClient
    meta: Mapping[str, Any]
    drain_time: DrainTime | None
    _version_copier: SnapshotCopier = field(init=False)
    _checkpoint_copier: SnapshotCopier = field(init=False)

    def __post_init__(self) -> None:
        self._version_copier = SnapshotCopier(self.learner.device)
        self._checkpoint_copier = SnapshotCopier(self.learner.device)

    def version(self, version: int, warm_up_until: int, hero_steps: int) -> Write:
        """Copy the present parameters and return the write that publishes them as ``version``."""
        hyper = hyperparameters_at(self.client.schedules(), version, hero_steps)
        snapshot = self._version_copier.copy(self.learner.policy.state_dict())
        meta = {**self.meta, "reward_std": self.learner.policy.rewards.std(), "hyperparameters": hyper.as_dict(),
                "gradient_steps": self.learner.gradient_steps,
                **({"warming": True} if version <= warm_up_until else {})}
        return lambda: self.publisher.publish(version, snapshot.arrays(), meta)

    def checkpoint(self, version: int, warm_up_until: int, hero_steps: int, flop: float) -> Write:
        """Copy the present state and return the write that stores it as the checkpoint of ``version``."""
        snapshot = self._checkpoint_copier.from_copies(self.learner.state_dict())
        extra = {
            "learner": self.learner.extra(), "pacer": self.intake.pacer.state_dict(),
            "buffer": self.intake.buffer.state_dict(), "hero_steps": hero_steps,
            "flop": flop, "schedules": dump_schedules(self.client.schedules()),
            "schema": self.meta["schema"], "warm_up_until": warm_up_until,
        }

        def save() -> None:
            self.checkpoints.save(version, snapshot.arrays(), extra)

        def write() -> None:
            began = time.monotonic()
            if self.drain_time is None:
                save()
            else:
                self.drain_time.measure(save, snapshot.nbytes)
            page.show_checkpoint(time.monotonic() - began)

        return write
