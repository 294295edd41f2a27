"""Sampling, decoding and device transfer of the next batch while a gradient step runs."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import numpy as np

from five.agent.learning.batch_transfer import DeviceBatch
from five.agent.learning.buffer import HostBatch
from five.agent.learning.samples import Arrays
from five.services.optimizer.intake import Intake

HostAndDeviceBatch = tuple[HostBatch, DeviceBatch]


class DeviceTransfer(Protocol):
    """Copies batches to the device (five.agent.learning.learner.Learner)."""

    def transfer(self, batch: Arrays) -> DeviceBatch: ...

    def wait_for_transfers(self) -> None: ...


class BatchPrefetcher:
    """Prefetches one batch. Together with the batch in use it occupies the buffer's two sets of arrays."""

    def __init__(self, intake: Intake, batch_samples: int, transfer: DeviceTransfer) -> None:
        self._intake = intake
        self._samples = batch_samples
        self._transfer = transfer
        self._pool = ThreadPoolExecutor(1, "batch-prefetch")
        self._prefetched: Future[tuple[int, HostAndDeviceBatch | None]] | None = None

    def prefetch(self) -> None:
        """Start to sample the next batch on another thread if none is prefetched."""
        if self._prefetched is None:
            self._prefetched = self._pool.submit(self._load)

    def next(self) -> HostAndDeviceBatch | None:
        """Return the prefetched batch, or sample one now; its staleness refers to the present version.

        None when pacing allows no batch or the buffer has too few samples. Raises the error of sampling.
        """
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None:
            version, batches = prefetched.result()
            if batches is not None:
                host, device = batches
                elapsed = np.where(host.staleness >= 0, self._intake.version - version, 0)
                return replace(host, staleness=(host.staleness + elapsed).astype(np.int32)), device
        return self._pool.submit(self._load).result()[1]  # one thread transfers all batches, in order

    def discard(self) -> None:
        """Discard the prefetched batch."""
        if self._prefetched is not None:
            self._prefetched.result()
            self._prefetched = None

    def _load(self) -> tuple[int, HostAndDeviceBatch | None]:
        version = self._intake.version
        # The arrays to be filled hold the batch before the last one.
        self._transfer.wait_for_transfers()
        host = self._intake.sample(self._samples)
        return version, None if host is None else (host, self._transfer.transfer(host.arrays))
