"""The RPC servicer of an optimizer: segments come in."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

from five.agent.anneal.arms import Arm
from five.protos.v1 import experience_pb2, experience_pb2_grpc
from five.services.optimizer.intake import Intake, Offer, Specs
from five.services.optimizer.metrics import ARM_HERO_STEPS, HERO_STEPS, SEGMENTS
from rapid import wire
from rapid.rpc.epochs import StaleEpoch, require_epoch

VERDICTS = {
    "accepted": experience_pb2.PUSH_VERDICT_ACCEPTED,
    "duplicate": experience_pb2.PUSH_VERDICT_DUPLICATE,
    "too_old": experience_pb2.PUSH_VERDICT_TOO_OLD,
    "stale_epoch": experience_pb2.PUSH_VERDICT_STALE_EPOCH,
}
ARMS = ("", *Arm)
GATE_SECONDS = 0.01
MAX_SAMPLES = 4096


class ExperienceService(experience_pb2_grpc.ExperienceServiceServicer):
    """Checks each segment against the run and its layout, and acknowledges it when pacing lets it in.

    ``step_specs``: arrays with one row a timestep; ``sample_specs``: arrays with one row a sample. ``epoch`` is the
    run's that is learned in. While the run is not ``active`` acknowledgements are not held back: rollouts end
    their segments and wait for them.
    """

    def __init__(self, run: str, layout_hash: str, unroll: int, step_specs: Specs, sample_specs: Specs,
                 intake: Intake, *, epoch: int, active: Callable[[], bool] = lambda: True) -> None:
        self._epoch = epoch
        self._active = active
        self._run = run
        self._layout = layout_hash
        self._unroll = unroll
        self._steps = step_specs
        self._samples = sample_specs
        self._intake = intake

    async def Push(self, request_iterator: AsyncIterator[experience_pb2.PushRequest], context: Any
                   ) -> AsyncIterator[experience_pb2.PushResponse]:
        """A rollout's stream. A malformed segment ends it with INVALID_ARGUMENT and changes nothing, one of a newer
        epoch with UNAVAILABLE; one of an older epoch is answered so, and the stream goes on."""
        async for request in request_iterator:
            verdict, reason = await self._verdict(request)
            SEGMENTS.labels(verdict).inc()
            yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=VERDICTS[verdict], reason=reason,
                                              epoch=self._epoch)

    async def _verdict(self, request: experience_pb2.PushRequest) -> tuple[str, str]:
        try:
            # Before anything else of it is read: it may have the layout of its own epoch.
            require_epoch(self._epoch, request.epoch)
        except StaleEpoch as error:
            return "stale_epoch", str(error)
        offer, taken = await asyncio.to_thread(self._check_and_take, request)
        while taken is None:
            if self._admits():
                taken = await asyncio.to_thread(self._intake.take, offer)
            else:
                await asyncio.sleep(GATE_SECONDS)
        verdict, reason = taken
        if verdict == "accepted":
            HERO_STEPS.inc(offer.hero_steps)
            if request.arm:
                ARM_HERO_STEPS.labels(request.arm).inc(offer.hero_steps)
        return verdict, reason

    def _admits(self) -> bool:
        return not self._active() or self._intake.admits()

    def _check_and_take(self, request: experience_pb2.PushRequest) -> tuple[Offer, tuple[str, str] | None]:
        """The segment, and its verdict unless pacing holds it back: each way to another thread costs as much as the
        check itself."""
        offer = self.check(request)
        return offer, self._intake.take(offer) if self._admits() else None

    def check(self, request: experience_pb2.PushRequest) -> Offer:
        """The segment's arrays. Raises ValueError naming what is wrong, LayoutMismatch naming both layouts."""
        if request.run != self._run:
            raise ValueError(f"this optimizer learns run {self._run!r}, the segment is of run {request.run!r}")
        if not 1 <= request.samples <= MAX_SAMPLES:
            raise ValueError(f"samples is {request.samples}; a segment has 1 to {MAX_SAMPLES}")
        if request.arm not in ARMS:
            raise ValueError(f"arm is {request.arm!r}; an anneal has {' and '.join(filter(None, ARMS))}")
        if not request.segment_id:
            raise ValueError("segment_id is empty: a segment that is sent again must be recognised")
        sums = (request.reward_sum, request.reward_square_sum)
        if not all(map(math.isfinite, sums)):
            raise ValueError(f"the reward sums are not finite: {sums}")
        arrays = wire.decode_packed_set(request.tensors, self._layout)
        steps = {n: a for n, a in arrays.items() if n not in self._samples}
        wire.require(steps, self._steps, request.samples * self._unroll)
        wire.require({n: a for n, a in arrays.items() if n in self._samples}, self._samples, request.samples)
        return Offer(request.segment_id, request.samples, arrays, request.reward_sum, request.reward_square_sum,
                     request.reward_count, request.newest_version)
