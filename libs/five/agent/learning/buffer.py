"""The optimizer's replay buffer: a ring of samples, bounded in number and bytes.

Samples stay encoded as they arrived and are decoded only into a batch. The buffer counts the uses of every sample and
the reason for which each one leaves.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.config import BufferConfig
from five.agent.learning.samples import STATE_PREFIX, Array, Arrays

Allocate = Callable[[tuple[int, ...], npt.DTypeLike], Array]
# collate(batch, sources, indices, allocate) writes sample indices[b] of sources[b] into column b of the batch's arrays,
# [T, B, ...] and states [B, ...]. It reuses the arrays of ``batch`` whose shape and dtype fit.
Collate = Callable[[Arrays, Sequence[Any], Sequence[int], Allocate], None]


class DropReason(StrEnum):
    """Reason why a sample left the buffer or was not admitted."""

    USED = "used"  # overwritten after at least one use
    UNUSED = "unused"  # overwritten before any use
    TOO_OLD = "too_old"  # its newest step is more than max_age_versions old
    TOO_LARGE = "too_large"  # larger than the whole buffer
    EPOCH = "epoch"  # the run entered its next fencing epoch


@dataclass
class _Sample:
    """Sample ``index`` of the segment arrays in ``source``."""

    source: Any
    index: int
    nbytes: int
    versions: npt.NDArray[np.int32]
    newest: int  # of the versions
    uses: int = 0


@dataclass(frozen=True)
class HostBatch:
    """A batch in host memory.

    Attributes:
        arrays: time first, [T, B, ...], states [B, ...]; the next call but one of `SampleBuffer.sample` reuses them.
        staleness: int32 [T, B], the present version minus the one that acted; -1 where the step's ``mask`` is 0.
        uses: int32 [B], how often each sample has been used, this batch included.
        traceparents: W3C trace contexts of traced segments that are used for the first time.
    """

    arrays: Arrays
    staleness: npt.NDArray[np.int32]
    uses: npt.NDArray[np.int32]
    traceparents: tuple[str, ...] = ()


@dataclass
class BufferStatistics:
    """Counts since the buffer was made, and its present contents."""

    received: int = 0
    consumed: int = 0
    dropped: dict[DropReason, int] = field(default_factory=lambda: dict.fromkeys(DropReason, 0))
    samples: int = 0
    nbytes: int = 0


class SampleBuffer:
    """Ring of samples from which batches are sampled; safe to use from several threads.

    Args:
        config: bounds, ages and the sampling order.
        collate: decodes samples into a batch's arrays.
        seed: of the random sampling.
        allocate: makes a batch's arrays (`Learner.allocate` makes page-locked ones); None: ``numpy.zeros``.
    """

    def __init__(self, config: BufferConfig, collate: Collate, *, seed: int = 0, allocate: Allocate | None = None
                 ) -> None:
        self.config = config
        self._collate = collate
        self._allocate: Allocate = allocate or np.zeros
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._ring: list[_Sample | None] = [None] * config.capacity_samples
        self._first = 0
        self._count = 0
        self._statistics = BufferStatistics()
        self._batches: list[Arrays] = [{}, {}]
        self._batches_sampled = 0
        self._checked_version = -1  # version at which no sample is too old; -1: not known
        self._byte_limited_samples = 0  # most samples held when capacity_bytes, not capacity_samples, evicted one

    def __len__(self) -> int:
        return self._count

    def add(self, source: Any, versions: npt.NDArray[np.int32], current_version: int, nbytes: int, *,
            age_from_arrival: bool = False) -> list[int]:
        """Add the samples of a segment and evict the oldest ones that no longer fit.

        Args:
            source: the segment's arrays, which `Collate` reads. They must not change afterwards.
            versions: int32 [samples, T], the version that acted at each step. It must not change afterwards.
            current_version: the learner's present version.
            nbytes: size of one sample in ``source``.
            age_from_arrival: count the samples' age from now instead of from their newest step, as outcome samples
                need, which are as old as their game.

        Returns the indices of the added samples. The others are too old or too large.
        """
        newest = [current_version] * len(versions) if age_from_arrival else versions.max(axis=1).tolist()
        samples = [_Sample(source, index, nbytes, acted, latest)
                   for index, (acted, latest) in enumerate(zip(versions, newest, strict=True))]
        with self._lock:
            if current_version != self._checked_version:
                self._checked_version = -1  # the samples may be too old for a version that was checked meanwhile
            return [sample.index for sample in samples if self._add(sample, current_version)]

    def sample(self, batch_samples: int, current_version: int) -> HostBatch | None:
        """Return a batch of different samples in the order of ``buffer.sampling``; None while there are too few.

        "uniform" gives each sample the same chance. "least_used" and "oldest" take the fewest uses first and break ties
        randomly or by age. Samples older than max_age_versions are dropped first. Raises ValueError when capacity_bytes
        is too small for a batch.
        """
        with self._lock:
            self._drop_expired(current_version)
            needed = max(batch_samples, self.config.minimum_samples)
            if self._count < needed:
                if 0 < self._byte_limited_samples < needed:
                    raise ValueError(f"buffer.capacity_bytes {self.config.capacity_bytes} holds "
                                     f"{self._byte_limited_samples} samples of this size, but a batch needs {needed}: "
                                     "raise buffer.capacity_bytes")
                return None
            chosen = [self._sample_at(int(i)) for i in self._choose(batch_samples)]
            for sample in chosen:
                sample.uses += 1
            uses = np.array([sample.uses for sample in chosen], np.int32)
            self._statistics.consumed += batch_samples
            batch = self._batches[self._batches_sampled % len(self._batches)]
            self._batches_sampled += 1
        # Outside the lock: `chosen` keeps samples alive that are evicted meanwhile.
        self._collate_samples(batch, chosen, self._allocate)
        staleness = current_version - np.stack([sample.versions for sample in chosen], axis=1)
        if "mask" in batch:
            staleness = np.where(batch["mask"].any(axis=-1), staleness, -1)
        return HostBatch(dict(batch), staleness.astype(np.int32), uses)

    def peek(self, samples: int, seed: int = 0) -> Arrays | None:
        """Return copies of at most ``samples`` samples as a batch's arrays; None while the buffer is empty.

        No use is counted, and the sequence of later batches does not change.
        """
        with self._lock:
            count = min(samples, self._count)
            rng = np.random.default_rng(seed)
            chosen = [self._sample_at(int(i)) for i in rng.choice(self._count, count, replace=False)] if count else []
        if not chosen:
            return None
        batch: Arrays = {}
        self._collate_samples(batch, chosen, np.empty)
        return batch

    def clear(self, reason: DropReason) -> int:
        """Drop all samples and return how many there were."""
        with self._lock:
            dropped = self._count
            for i in range(dropped):
                self._count_drop(self._sample_at(i), reason)
            self._ring = [None] * len(self._ring)
            self._first = self._count = 0
            return dropped

    def ages(self, current_version: int) -> npt.NDArray[np.int32]:
        """Return the age of each sample's newest step in versions, int32 [n], in order of arrival."""
        with self._lock:
            newest = [self._sample_at(i).newest for i in range(self._count)]
        return current_version - np.array(newest, np.int32)

    def statistics(self) -> BufferStatistics:
        """Return a copy of the counts."""
        with self._lock:
            s = self._statistics
            return BufferStatistics(s.received, s.consumed, dict(s.dropped), self._count, s.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """Return the random state as JSON values. The samples are not part of it."""
        with self._lock:
            return {"rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the random state from `state_dict`."""
        with self._lock:
            self._rng.bit_generator.state = state["rng"]

    def _collate_samples(self, batch: Arrays, samples: Sequence[_Sample], allocate: Allocate) -> None:
        self._collate(batch, [s.source for s in samples], [s.index for s in samples], allocate)

    def _choose(self, samples: int) -> npt.NDArray[np.int64]:
        """Return int64 [samples]: indices of different samples, counted from the oldest."""
        if self.config.sampling == "uniform":
            return self._rng.choice(self._count, samples, replace=False)
        uses = np.fromiter((self._sample_at(i).uses for i in range(self._count)), np.int64, self._count)
        ties = np.arange(self._count) if self.config.sampling == "oldest" else self._rng.random(self._count)
        return np.lexsort((ties, uses))[:samples]

    def _add(self, sample: _Sample, current_version: int) -> bool:
        self._statistics.received += 1
        if self._is_too_old(sample, current_version):
            self._statistics.dropped[DropReason.TOO_OLD] += 1
            return False
        if sample.nbytes > self.config.capacity_bytes:
            self._statistics.dropped[DropReason.TOO_LARGE] += 1
            return False
        while self._count and (self._count == self.config.capacity_samples
                               or self._statistics.nbytes + sample.nbytes > self.config.capacity_bytes):
            if self._count < self.config.capacity_samples:
                self._byte_limited_samples = max(self._byte_limited_samples, self._count)
            oldest = self._sample_at(0)
            self._count_drop(oldest, DropReason.USED if oldest.uses else DropReason.UNUSED)
            self._ring[self._first] = None
            self._first = (self._first + 1) % len(self._ring)
            self._count -= 1
        self._ring[(self._first + self._count) % len(self._ring)] = sample
        self._count += 1
        self._statistics.nbytes += sample.nbytes
        return True

    def _sample_at(self, index: int) -> _Sample:
        sample = self._ring[(self._first + index) % len(self._ring)]
        assert sample is not None
        return sample

    def _is_too_old(self, sample: _Sample, current_version: int) -> bool:
        return current_version - sample.newest > self.config.max_age_versions

    def _count_drop(self, sample: _Sample, reason: DropReason) -> None:
        self._statistics.dropped[reason] += 1
        self._statistics.nbytes -= sample.nbytes

    def drop_expired(self, current_version: int) -> int:
        """Drop samples older than max_age_versions; return the number of the others."""
        with self._lock:
            self._drop_expired(current_version)
            return self._count

    def _drop_expired(self, current_version: int) -> None:
        if current_version == self._checked_version:
            return  # samples expire with a new version only, and intake admits none that is too old
        self._checked_version = current_version
        kept = []
        for i in range(self._count):
            sample = self._sample_at(i)
            if self._is_too_old(sample, current_version):
                self._count_drop(sample, DropReason.TOO_OLD)
            else:
                kept.append(sample)
        if len(kept) < self._count:
            self._ring = [*kept, *[None] * (len(self._ring) - len(kept))]
            self._first, self._count = 0, len(kept)


def batch_array(batch: Arrays, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], samples: int,
                allocate: Allocate) -> Array:
    """Return the batch's array of that name, and allocate it where shape or dtype do not fit.

    ``shape`` is that of one sample: [T, ...], for states without T.
    """
    axis = 0 if name.startswith(STATE_PREFIX) else 1
    full_shape = (*shape[:axis], samples, *shape[axis:])
    target = batch.get(name)
    if target is None or target.shape != full_shape or target.dtype != dtype:
        target = batch[name] = allocate(full_shape, dtype)
    return target
