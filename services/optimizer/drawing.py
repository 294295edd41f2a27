"""The next batch is drawn and decoded while a gradient step is under way."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from five.learning.buffer import Drawn
from services.optimizer.intake import Intake


class BatchesAhead:
    """At most one batch is drawn ahead: with the one that is being learned from, the buffer's two sets of arrays."""

    def __init__(self, intake: Intake, batch_samples: int) -> None:
        self._intake = intake
        self._samples = batch_samples
        self._pool = ThreadPoolExecutor(1, "batch-ahead")
        self._ahead: Future[tuple[int, Drawn | None]] | None = None

    def begin(self) -> None:
        """Draws the next batch, on another thread, when pacing allows one. The one taken last is still in use."""
        if self._ahead is None:
            self._ahead = self._pool.submit(self._draw)

    def take(self) -> Drawn | None:
        """The batch that was drawn ahead, its staleness as of now; else one drawn here. None when pacing allows none,
        or there are too few samples. Raises what drawing raised."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            version, drawn = ahead.result()
            if drawn is not None:
                older = np.where(drawn.staleness >= 0, self._intake.version - version, 0)
                return replace(drawn, staleness=(drawn.staleness + older).astype(np.int32))
        return self._draw()[1]

    def drop(self) -> None:
        """Forgets a batch that was drawn ahead."""
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None

    def _draw(self) -> tuple[int, Drawn | None]:
        return self._intake.version, self._intake.draw(self._samples)
