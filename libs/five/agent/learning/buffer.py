"""An optimizer's experience: a ring of samples, bounded in number and bytes, drawn from by chance.

Samples rest as they came in (packed bytes or arrays) and are put into a batch's arrays only when they are drawn.
Every sample's uses are counted, and every sample that leaves does so under a reason.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.config import BufferConfig
from five.agent.learning.samples import STATE_PREFIX, Array, Arrays

Allocate = Callable[[tuple[int, ...], npt.DTypeLike], Array]
# Puts payloads side by side in a batch's arrays, [T, B, ...], states [B, ...]: in those that it has where they fit.
Stack = Callable[[Arrays, Sequence[Any], Allocate], None]


class DropReason(StrEnum):
    """Why a sample left the buffer, or never came in."""

    USED = "used"  # the ring turned over it; it had been drawn
    UNUSED = "unused"  # the ring turned over it; it had not
    TOO_OLD = "too_old"  # its newest step is more than max_age_versions old
    TOO_LARGE = "too_large"  # larger than the whole buffer
    EPOCH = "epoch"  # the run's next epoch began: what was learned from belongs to the one that is over


@dataclass
class _Held:
    payload: Any
    nbytes: int
    versions: npt.NDArray[np.int32]
    newest: int  # of the versions
    uses: int = 0


@dataclass(frozen=True)
class Drawn:
    """A batch and what is known of its samples.

    ``arrays``: time first, [T, B, ...], states [B, ...]; they are filled again by the next draw but one.
    ``staleness`` int32 [T, B]: versions from the one that acted to the present one, by step; -1 where the step's
    ``mask`` is 0. ``uses`` int32 [B]: how often each sample has been drawn, this time included.
    """

    arrays: Arrays
    staleness: npt.NDArray[np.int32]
    uses: npt.NDArray[np.int32]


@dataclass
class BufferStatistics:
    """Counts since the buffer was made, and what it holds now."""

    received: int = 0
    consumed: int = 0
    dropped: dict[DropReason, int] = field(default_factory=lambda: dict.fromkeys(DropReason, 0))
    uses_of_left: int = 0  # draws of all the samples that have left
    samples: int = 0
    nbytes: int = 0

    @property
    def reuse(self) -> float | None:
        """Mean uses of the samples that have left; None while none has."""
        left = sum(self.dropped.values()) - self.dropped[DropReason.TOO_LARGE]
        return self.uses_of_left / left if left else None


class SampleBuffer:
    """Samples in, batches out; safe to use from several threads.

    Args:
        config: bounds and ages.
        stack: makes a batch of stored payloads; None: payloads are the samples' arrays (`stack_arrays`).
        seed: of the draws.
        allocate: makes a batch's arrays (`Learner.allocate` makes pinned ones); None: ``numpy.zeros``.
    """

    def __init__(self, config: BufferConfig, stack: Stack | None = None, *, seed: int = 0,
                 allocate: Allocate | None = None) -> None:
        self.config = config
        self._stack: Stack = stack or stack_arrays
        self._allocate: Allocate = allocate or np.zeros
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._ring: list[_Held | None] = [None] * config.capacity_samples
        self._first = 0
        self._count = 0
        self._statistics = BufferStatistics()
        self._batches: list[Arrays] = [{}, {}]
        self._draws = 0
        self._crowded = 0  # most samples held when bytes, not numbers, made one leave

    def __len__(self) -> int:
        return self._count

    def add(self, payload: Any, versions: npt.ArrayLike, current_version: int, nbytes: int | None = None) -> bool:
        """Takes a sample in; the oldest ones leave when it does not fit. False: refused, as too old or too large.

        ``versions`` int [T]: the version that acted at each step. ``nbytes``: what the payload holds; by default
        the length of bytes or the size of arrays. The payload must not be changed afterwards.
        """
        return self.add_all([payload], np.array(versions, np.int32)[None], current_version, nbytes) == 1

    def add_all(self, payloads: Sequence[Any], versions: npt.NDArray[np.int32], current_version: int,
                nbytes: int | None = None) -> int:
        """As `add`, of several samples: ``versions`` int32 [n, T], which must not be changed afterwards, ``nbytes`` of
        each. Returns how many were taken in."""
        newest = versions.max(axis=1).tolist()
        added = [_Held(payload, _size(payload) if nbytes is None else nbytes, acted, latest)
                 for payload, acted, latest in zip(payloads, versions, newest, strict=True)]
        with self._lock:
            return sum(self._add(held, current_version) for held in added)

    def draw(self, batch_samples: int, current_version: int) -> Drawn | None:
        """A batch of different samples, by ``buffer.draw``: each with equal chance, or those of the fewest uses first
        and equal ones by chance; None while there are not enough.

        Samples past max_age_versions leave first. Raises ValueError when capacity_bytes is too small for a batch.
        """
        with self._lock:
            self._expire(current_version)
            needed = max(batch_samples, self.config.minimum_samples)
            if self._count < needed:
                if 0 < self._crowded < needed:
                    raise ValueError(f"capacity_bytes {self.config.capacity_bytes} holds {self._crowded} samples of "
                                     f"this size, but a batch needs {needed}: raise buffer.capacity_bytes")
                return None
            chosen = [self._at(int(i)) for i in self._choose(batch_samples)]
            for held in chosen:
                held.uses += 1
            uses = np.array([held.uses for held in chosen], np.int32)
            self._statistics.consumed += batch_samples
            batch = self._batches[self._draws % len(self._batches)]
            self._draws += 1
        # Outside the lock: a sample that leaves meanwhile stays alive through `chosen`.
        self._stack(batch, [held.payload for held in chosen], self._allocate)
        staleness = current_version - np.stack([held.versions for held in chosen], axis=1)
        if "mask" in batch:
            staleness = np.where(batch["mask"].any(axis=-1), staleness, -1)
        return Drawn(dict(batch), staleness.astype(np.int32), uses)

    def peek(self, samples: int, seed: int = 0) -> Arrays | None:
        """Copies of at most ``samples`` different samples as a batch's arrays, for a look from outside: no draw is
        counted, and the draws to come stay what they were. None while there is no sample."""
        with self._lock:
            count = min(samples, self._count)
            rng = np.random.default_rng(seed)
            chosen = [self._at(int(i)) for i in rng.choice(self._count, count, replace=False)] if count else []
        if not chosen:
            return None
        batch: Arrays = {}
        self._stack(batch, [held.payload for held in chosen], np.empty)
        return batch

    def expire(self, current_version: int) -> int:
        """Drops the samples past max_age_versions; returns how many."""
        with self._lock:
            return self._expire(current_version)

    def clear(self, reason: DropReason) -> int:
        """Drops all samples; returns how many."""
        with self._lock:
            dropped = self._count
            for i in range(dropped):
                self._leave(self._at(i), reason)
            self._ring = [None] * len(self._ring)
            self._first = self._count = 0
            return dropped

    def ages(self, current_version: int) -> npt.NDArray[np.int32]:
        """int32 [n], in the order they came: versions from the newest step of each sample held to the present one."""
        with self._lock:
            newest = [self._at(i).newest for i in range(self._count)]
        return current_version - np.array(newest, np.int32)

    def statistics(self) -> BufferStatistics:
        """A copy of the counts."""
        with self._lock:
            s = self._statistics
            return BufferStatistics(s.received, s.consumed, dict(s.dropped), s.uses_of_left, self._count, s.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """What resumes the sequence of draws, as JSON values. The samples themselves are not kept."""
        with self._lock:
            return {"rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state_dict`."""
        with self._lock:
            self._rng.bit_generator.state = state["rng"]

    def _choose(self, samples: int) -> npt.NDArray[np.int64]:
        """int64 [samples]: places of different samples, as drawn."""
        if self.config.draw == "uniform":
            return self._rng.choice(self._count, samples, replace=False)
        uses = np.fromiter((self._at(i).uses for i in range(self._count)), np.int64, self._count)
        ties = np.arange(self._count) if self.config.draw == "oldest" else self._rng.random(self._count)
        return np.lexsort((ties, uses))[:samples]

    def _add(self, held: _Held, current_version: int) -> bool:
        self._statistics.received += 1
        if self._too_old(held, current_version):
            self._statistics.dropped[DropReason.TOO_OLD] += 1
            return False
        if held.nbytes > self.config.capacity_bytes:
            self._statistics.dropped[DropReason.TOO_LARGE] += 1
            return False
        while self._count and (self._count == self.config.capacity_samples
                               or self._statistics.nbytes + held.nbytes > self.config.capacity_bytes):
            if self._count < self.config.capacity_samples:
                self._crowded = max(self._crowded, self._count)
            oldest = self._at(0)
            self._leave(oldest, DropReason.USED if oldest.uses else DropReason.UNUSED)
            self._ring[self._first] = None
            self._first = (self._first + 1) % len(self._ring)
            self._count -= 1
        self._ring[(self._first + self._count) % len(self._ring)] = held
        self._count += 1
        self._statistics.nbytes += held.nbytes
        return True

    def _at(self, index: int) -> _Held:
        held = self._ring[(self._first + index) % len(self._ring)]
        assert held is not None
        return held

    def _too_old(self, held: _Held, current_version: int) -> bool:
        return current_version - held.newest > self.config.max_age_versions

    def _leave(self, held: _Held, reason: DropReason) -> None:
        self._statistics.dropped[reason] += 1
        self._statistics.uses_of_left += held.uses
        self._statistics.nbytes -= held.nbytes

    def _expire(self, current_version: int) -> int:
        kept = []
        for i in range(self._count):
            held = self._at(i)
            if self._too_old(held, current_version):
                self._leave(held, DropReason.TOO_OLD)
            else:
                kept.append(held)
        expired = self._count - len(kept)
        if expired:
            self._ring = [*kept, *[None] * (len(self._ring) - len(kept))]
            self._first, self._count = 0, len(kept)
        return expired


def stack_arrays(batch: Arrays, samples: Sequence[Mapping[str, Array]], allocate: Allocate) -> None:
    """Puts samples side by side, in the arrays that ``batch`` has where they are right (`Stack`). Raises ValueError
    naming an array in which the samples differ."""
    names = samples[0].keys()
    for sample in samples:
        if sample.keys() != names:
            raise ValueError(f"samples of one batch differ: one lacks {sorted(names ^ sample.keys())}")
    for name in batch.keys() - names:
        del batch[name]
    for name, first in samples[0].items():
        rows = [sample[name] for sample in samples]
        if any(row.shape != first.shape or row.dtype != first.dtype for row in rows):
            raise ValueError(f"samples of one batch differ: {name!r} is {first.dtype} {first.shape} in one and "
                             "something else in another")
        target = batch_array(batch, name, first.shape, first.dtype, len(rows), allocate)
        np.stack(rows, 0 if name.startswith(STATE_PREFIX) else 1, out=target)


def batch_array(batch: Arrays, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], samples: int,
                allocate: Allocate) -> Array:
    """The batch's array of that name for samples of ``shape`` [T, ...], states without T: the one that it has, or a
    new one where that is of another shape or dtype."""
    axis = 0 if name.startswith(STATE_PREFIX) else 1
    whole = (*shape[:axis], samples, *shape[axis:])
    target = batch.get(name)
    if target is None or target.shape != whole or target.dtype != dtype:
        target = batch[name] = allocate(whole, dtype)
    return target


def _size(payload: Any) -> int:
    if isinstance(payload, Mapping):
        return int(sum(array.nbytes for array in payload.values()))
    return len(payload)
