"""The next batch is drawn, decoded and brought to the device while a gradient step is under way."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from five.agent.learning.buffer import Drawn
from five.agent.learning.samples import Arrays
from five.agent.learning.to_device import Batch
from five.services.optimizer.intake import Intake


class Ways(Protocol):
    """Brings batches to where they are learned from (five.agent.learning.learner.Learner)."""

    def put(self, batch: Arrays) -> Batch: ...

    def settle(self) -> None: ...


@dataclass(frozen=True)
class Ready:
    """What was drawn, and the same as a batch on its device or on its way there."""

    drawn: Drawn
    batch: Batch


class BatchesAhead:
    """At most one batch is drawn ahead: with the one that is being learned from, the buffer's two sets of arrays."""

    def __init__(self, intake: Intake, batch_samples: int, ways: Ways) -> None:
        self._intake = intake
        self._samples = batch_samples
        self._ways = ways
        self._pool = ThreadPoolExecutor(1, "batch-ahead")
        self._ahead: Future[tuple[int, Ready | None]] | None = None

    def begin(self) -> None:
        """Draws the next batch, on another thread, when pacing allows one. The one taken last is still in use."""
        if self._ahead is None:
            self._ahead = self._pool.submit(self._draw)

    def take(self) -> Ready | None:
        """The batch that was drawn ahead, its staleness as of now; else one drawn here. None when pacing allows none,
        or there are too few samples. Raises what drawing raised."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            version, ready = ahead.result()
            if ready is not None:
                age = ready.drawn.staleness
                older = np.where(age >= 0, self._intake.version - version, 0)
                return replace(ready, drawn=replace(ready.drawn, staleness=(age + older).astype(np.int32)))
        return self._pool.submit(self._draw).result()[1]  # one thread brings batches to the device, in order

    def drop(self) -> None:
        """Forgets a batch that was drawn ahead."""
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None

    def _draw(self) -> tuple[int, Ready | None]:
        version = self._intake.version
        # The arrays that are filled now are those of the batch before the last.
        self._ways.settle()
        drawn = self._intake.draw(self._samples)
        return version, None if drawn is None else Ready(drawn, self._ways.put(drawn.arrays))
