"""Admission of segments into the sample buffer."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy.typing as npt

from five.agent.learning.buffer import DropReason, HostBatch, SampleBuffer
from five.agent.learning.pacing import Pacer
from five.agent.learning.segments import Segment
from five.services.optimizer.metrics import HERO_STEPS, VARIANT_HERO_STEPS
from five.services.optimizer.stored_arrays import StoredArrays
from five.services.optimizer.traced_collator import TracedCollator

Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
REMEMBERED_SEGMENTS = 65536


@dataclass
class RewardSums:
    """Raw rewards received since `Intake.take_rewards`: their number, sum and sum of squares."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0


class Intake:
    """Admits each segment once, from any number of streams.

    Acknowledgements wait while `may_admit` returns False. The training loop calls `take_rewards` before each version
    and sets `version` after it. ``traced`` is the buffer's collator while tracing is on.

    Attributes:
        hero_steps: hero-steps of the samples that entered the buffer, each counted once, whether a batch uses them or
            not.
    """

    def __init__(self, buffer: SampleBuffer, pacer: Pacer, traced: TracedCollator | None = None) -> None:
        self._traced = traced
        self.buffer = buffer
        self.pacer = pacer
        self.version = 0
        self.hero_steps = 0
        self._lock = threading.Lock()
        self._admitted = threading.Condition(self._lock)
        self._in_progress: set[str] = set()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._rewards = RewardSums()

    def may_admit(self) -> bool:
        """Return whether pacing admits the next segment now."""
        return self.pacer.may_admit(len(self.buffer))

    def admit(self, segment: Segment[StoredArrays]) -> tuple[str, str]:
        """Add a segment to the buffer and return its verdict ("accepted", "duplicate" or "too_old") and the reason.

        A segment whose samples are larger than the whole buffer is "too_old" as well; the reason says which.
        A segment counts as seen once its samples are in the buffer, so a failed one may be sent again. A second copy
        waits for the outcome of the first. Only an accepted segment changes anything.
        """
        with self._admitted:
            self._admitted.wait_for(lambda: segment.segment_id not in self._in_progress)
            if segment.segment_id in self._seen:
                return "duplicate", "this segment was accepted before"
            self._in_progress.add(segment.segment_id)
        try:
            return self._admit(segment)
        finally:
            with self._admitted:
                self._in_progress.discard(segment.segment_id)
                self._admitted.notify_all()

    def _admit(self, segment: Segment[StoredArrays]) -> tuple[str, str]:
        arrays = segment.arrays
        if self._traced is not None and segment.traceparent:
            self._traced.expect(arrays, segment.traceparent)
        added = self.buffer.add(arrays, arrays.versions, self.version, arrays.nbytes,
                                age_from_arrival=not arrays.hero_steps.any())  # only outcome samples have none
        if not added:
            return "too_old", self._why_not_added(segment)
        with self._lock:
            self._seen[segment.segment_id] = None
            if len(self._seen) > REMEMBERED_SEGMENTS:
                self._seen.popitem(last=False)
            self.pacer.on_received(len(added))
            hero_steps = int(arrays.hero_steps[added].sum())  # older samples of the segment may have been too old
            self.hero_steps += hero_steps
            self._rewards.count += segment.reward_count
            self._rewards.total += segment.reward_sum
            self._rewards.squares += segment.reward_square_sum
        HERO_STEPS.inc(hero_steps)
        if segment.variant:
            VARIANT_HERO_STEPS.labels(segment.variant).inc(hero_steps)
        return "accepted", ""

    def _why_not_added(self, segment: Segment[StoredArrays]) -> str:
        config, size = self.buffer.config, segment.arrays.nbytes
        if size > config.capacity_bytes:
            return f"its samples have {size} bytes each; buffer.capacity_bytes is {config.capacity_bytes}"
        return (f"{self.version - segment.newest_version} versions old; buffer.max_age_versions is "
                f"{config.max_age_versions}")

    def end_epoch(self) -> int:
        """Drop all samples and pending reward sums of the ended fencing epoch; return the number of samples."""
        self.take_rewards()
        return self.buffer.clear(DropReason.EPOCH)

    def may_sample(self, batch_samples: int) -> bool:
        """Return whether `sample` returns a batch until the next version is made or a batch is sampled."""
        buffered = self.buffer.drop_expired(self.version)
        return buffered >= batch_samples and self.pacer.may_step(buffered)

    def sample(self, batch_samples: int) -> HostBatch | None:
        """Return a batch, or None while pacing allows none or the buffer has too few samples.

        Raises ValueError when buffer.capacity_bytes is too small for a batch.
        """
        if self.pacer.credit < 0:
            return None
        # The buffer itself checks its number of samples, because it knows whether more would fit.
        batch = self.buffer.sample(batch_samples, self.version)
        if batch is not None:
            with self._lock:
                self.pacer.on_consumed(batch_samples)
            if self._traced is not None:
                batch = replace(batch, traceparents=self._traced.take())
        return batch

    def take_rewards(self) -> RewardSums:
        """Return and reset the reward sums."""
        with self._lock:
            sums, self._rewards = self._rewards, RewardSums()
            return sums
