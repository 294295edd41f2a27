"""The RPC face of an optimizer: segments come in."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

from protos.five.v1 import experience_pb2, experience_pb2_grpc
from rapid import wire
from services.optimizer.intake import Intake, Offer, Specs
from services.optimizer.metrics import HERO_STEPS, SEGMENTS

VERDICTS = {
    "accepted": experience_pb2.PUSH_VERDICT_ACCEPTED,
    "duplicate": experience_pb2.PUSH_VERDICT_DUPLICATE,
    "too_old": experience_pb2.PUSH_VERDICT_TOO_OLD,
}
GATE_SECONDS = 0.01
MAX_SAMPLES = 4096


class ExperienceService(experience_pb2_grpc.ExperienceServiceServicer):
    """Checks each segment against the run and its layout, and acknowledges it when pacing lets it in.

    ``step_specs``: arrays with one row a timestep; ``sample_specs``: arrays with one row a sample.
    """

    def __init__(self, run: str, layout_hash: str, unroll: int, step_specs: Specs, sample_specs: Specs,
                 intake: Intake) -> None:
        self._run = run
        self._layout = layout_hash
        self._unroll = unroll
        self._steps = step_specs
        self._samples = sample_specs
        self._intake = intake

    async def Push(self, request_iterator: AsyncIterator[experience_pb2.PushRequest], context: Any
                   ) -> AsyncIterator[experience_pb2.PushResponse]:
        """A rollout's stream. A malformed segment ends it with INVALID_ARGUMENT and changes nothing."""
        async for request in request_iterator:
            offer = await asyncio.to_thread(self.check, request)
            while not self._intake.admits():
                await asyncio.sleep(GATE_SECONDS)
            verdict, reason = await asyncio.to_thread(self._intake.take, offer)
            SEGMENTS.labels(verdict).inc()
            if verdict == "accepted":
                HERO_STEPS.inc(float(offer.arrays["mask"].sum()))
            yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=VERDICTS[verdict], reason=reason)

    def check(self, request: experience_pb2.PushRequest) -> Offer:
        """The segment's arrays. Raises ValueError naming what is wrong, LayoutMismatch naming both layouts."""
        if request.run != self._run:
            raise ValueError(f"this optimizer learns run {self._run!r}, the segment is of run {request.run!r}")
        if not 1 <= request.samples <= MAX_SAMPLES:
            raise ValueError(f"samples is {request.samples}; a segment has 1 to {MAX_SAMPLES}")
        if not request.segment_id:
            raise ValueError("segment_id is empty: a segment that is sent again must be recognised")
        sums = (request.reward_sum, request.reward_square_sum)
        if not all(map(math.isfinite, sums)):
            raise ValueError(f"the reward sums are not finite: {sums}")
        arrays = wire.decode_set(request.tensors, self._layout)
        steps = {n: a for n, a in arrays.items() if n not in self._samples}
        wire.require(steps, self._steps, request.samples * self._unroll)
        wire.require({n: a for n, a in arrays.items() if n in self._samples}, self._samples, request.samples)
        return Offer(request.segment_id, request.samples, arrays, request.reward_sum, request.reward_square_sum,
                     request.reward_count, request.newest_version)
