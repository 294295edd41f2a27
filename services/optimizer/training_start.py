"""Start of training on all ranks: from the newest checkpoint, or as a new run at version 0."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from five.agent.learning.learner import Learner
from five.services.optimizer.background_writer import BackgroundWriter, Write
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.intake import Intake
from five.services.optimizer.interfaces import CheckpointMigrator, Publisher, StateClient
from five.services.optimizer.process_group import OptimizerGroup
from five.services.optimizer.state_writes import StateWrites
from rapid import tensorfile
from rapid.blobs import BlobMissing
from rapid.store.errors import is_away


@dataclass(frozen=True)
class StartState:
    """State at the start of training that neither the learner nor the intake holds.

    Attributes:
        version: newest version; learning makes the next one.
        checkpoint: version of the checkpoint that rank 0 read or wrote.
        warm_up_until: versions up to this one are copies of the first after a surgery.
        flop: floating point operations of the run until the checkpoint; 0 on all ranks but rank 0, whose counter
            continues the run's.
    """

    version: int = 0
    checkpoint: int = 0
    warm_up_until: int = 0
    flop: float = 0.0


@dataclass
class TrainingStart:
    """Start of one rank: loads the state into its learner and its intake.

    Rank 0 reads the newest checkpoint, or writes that of version 0, and publishes the version if it is not published.
    The other ranks receive the state from rank 0.

    Args:
        writes: factory of the first version and of the first checkpoint.
        migrations: migrate a checkpoint of an earlier schema.
    """

    learner: Learner
    intake: Intake
    publisher: Publisher
    checkpoints: Checkpoints
    client: StateClient
    writes: StateWrites
    group: OptimizerGroup
    migrations: CheckpointMigrator | None
    _writer: BackgroundWriter = field(default_factory=lambda: BackgroundWriter(is_away, "start-writer"))

    def run(self) -> StartState:
        """Start this rank. Every rank of the group calls it.

        Rank 0 waits while a store is unavailable. Raises RuntimeError when the run has a version but no checkpoint, and
        on the other ranks when rank 0 does not start or its checkpoint is not in this rank's blob store.
        """
        if self.group.rank != 0:
            return self._receive()
        state = self._resume_or_initialize()
        self._send(state)
        return state

    def _resume_or_initialize(self) -> StartState:
        head = self.publisher.head()
        found = self.checkpoints.newest()
        if found is not None:
            return self._resume(*found, head)
        if head is not None:
            raise RuntimeError(
                f"the run has version {head} but no checkpoint: blobs.url is not the blob store that the run was "
                "started with. Set it to that store, or start a run with another name")
        self._write(self.writes.checkpoint(0, warm_up_until=0, hero_steps=0, flop=0.0))
        self._write(self.writes.version(0, warm_up_until=0, hero_steps=0))
        return StartState()

    def _resume(self, checkpoint: int, tensors: dict[str, Tensor], extra: dict[str, Any], head: int | None
                ) -> StartState:
        """Load a checkpoint; publish it if its version is newer than ``head``, the newest published one."""
        if self.migrations is not None:
            tensors, extra = self.migrations.migrate(tensors, extra)
        self._load(tensors, extra)
        self.intake.buffer.load_state_dict(extra["buffer"])
        self.intake.hero_steps = int(extra["hero_steps"])
        # Published versions never change, so numbering continues after the newest of them.
        version = checkpoint if head is None else max(checkpoint, head)
        state = StartState(version, checkpoint, int(extra.get("warm_up_until", 0)), float(extra.get("flop", 0.0)))
        self.client.event("optimizer.resumed", {
            "checkpoint": checkpoint, "version": version, "optimizers": self.group.size,
            "restarts": self.group.restarts})
        if head is None or head < checkpoint:
            self._write(self.writes.version(version, state.warm_up_until, self.intake.hero_steps))
        return state

    def _send(self, state: StartState) -> None:
        """Send the other ranks the state: parameters, Adam's moments, counters and random state."""
        if self.group.size == 1:
            return
        self.group.wait_for_first()
        arrays = {name: tensor.cpu().numpy() for name, tensor in self.learner.state_dict().items()}
        self.group.broadcast_bytes(tensorfile.file_pieces(arrays, {
            "learner": self.learner.extra(), "pacer": self.intake.pacer.state_dict(), "version": state.version,
            "warm_up_until": state.warm_up_until, "checkpoint": state.checkpoint}))

    def _receive(self) -> StartState:
        """Load the state of rank 0. This rank only checks that it can read the checkpoint, because it may be rank 0
        after a restart."""
        self.group.wait_for_first()
        arrays, index = tensorfile.parse(self.group.broadcast_bytes(()))
        self._load({name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta)
        state = StartState(int(index.meta["version"]), int(index.meta["checkpoint"]), int(index.meta["warm_up_until"]))
        try:
            self.checkpoints.require(state.checkpoint)
        except BlobMissing as error:
            raise RuntimeError(f"optimizer {self.group.rank} does not see the checkpoint of optimizer 0 "
                               f"({error}): blobs.url must be storage that all optimizers share") from None
        return state

    def _load(self, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
        self.learner.load_state_dict(tensors, extra["learner"])
        self.intake.pacer.load_state_dict(extra["pacer"])

    def _write(self, write: Write) -> None:
        """Run a write without which training cannot start, however long a store is unavailable."""
        self._writer.submit(write)
        self._writer.wait()
