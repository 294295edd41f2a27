"""From segments that come in to samples in the buffer."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy.typing as npt

from five.agent.learning.buffer import Drawn, DropReason, SampleBuffer
from five.agent.learning.pacing import Pacer
from five.services.optimizer.stored_arrays import RestingSegment

Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
REMEMBERED_SEGMENTS = 65536


@dataclass(frozen=True)
class Offer:
    """A segment as it came: its arrays, checked against the layout, its reward sums, its age."""

    segment_id: str
    segment: RestingSegment
    reward_sum: float
    reward_square_sum: float
    reward_count: int
    newest_version: int


@dataclass
class RewardSums:
    """Raw rewards received since they were last taken: their number, sum and sum of squares."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0


class Intake:
    """Takes segments in once each, from any number of streams.

    `admits` is the gate of pacing: while it is False acknowledgements wait. The optimizer calls `take_rewards` before
    each version and sets `version` after it.
    """

    def __init__(self, buffer: SampleBuffer, pacer: Pacer) -> None:
        self.buffer = buffer
        self.pacer = pacer
        self.version = 0
        self.hero_steps = 0
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._under_way: set[str] = set()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._rewards = RewardSums()

    def admits(self) -> bool:
        """Whether the next segment may be taken in now."""
        return self.pacer.may_admit(len(self.buffer))

    def take(self, offer: Offer) -> tuple[str, str]:
        """("accepted" | "duplicate" | "too_old", reason). Changes nothing unless accepted.

        A segment counts as seen once its samples are in the buffer: one whose taking in failed may be sent again. One
        that comes a second time meanwhile waits for what becomes of the first.
        """
        with self._settled:
            self._settled.wait_for(lambda: offer.segment_id not in self._under_way)
            if offer.segment_id in self._seen:
                return "duplicate", "this segment was taken in before"
            self._under_way.add(offer.segment_id)
        try:
            return self._take(offer)
        finally:
            with self._settled:
                self._under_way.discard(offer.segment_id)
                self._settled.notify_all()

    def _take(self, offer: Offer) -> tuple[str, str]:
        segment = offer.segment
        kept = self.buffer.add_all(segment.cut(), segment.versions, self.version, segment.nbytes)
        if kept == 0:
            age = self.version - offer.newest_version
            return "too_old", f"{age} versions old, at most {self.buffer.config.max_age_versions} are learned from"
        with self._lock:
            self._seen[offer.segment_id] = None
            if len(self._seen) > REMEMBERED_SEGMENTS:
                self._seen.popitem(last=False)
            self.pacer.on_received(kept)
            self.hero_steps += segment.hero_steps
            self._rewards.count += offer.reward_count
            self._rewards.total += offer.reward_sum
            self._rewards.squares += offer.reward_square_sum
        return "accepted", ""

    def end_epoch(self) -> int:
        """The run's next epoch has begun: drops all samples, counted under that reason, and the reward sums that were
        not taken yet. Returns how many samples."""
        self.take_rewards()
        return self.buffer.clear(DropReason.EPOCH)

    def draw(self, batch_samples: int) -> Drawn | None:
        """A batch when pacing allows one, else None."""
        if not self.pacer.may_step(len(self.buffer)):
            return None
        drawn = self.buffer.draw(batch_samples, self.version)
        if drawn is not None:
            with self._lock:
                self.pacer.on_consumed(batch_samples)
        return drawn

    def take_rewards(self) -> RewardSums:
        """The reward sums since the last call."""
        with self._lock:
            sums, self._rewards = self._rewards, RewardSums()
            return sums
