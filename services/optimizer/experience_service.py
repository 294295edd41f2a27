"""The RPC servicer of an optimizer: segments come in."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from five.agent.anneal.variants import Variant
from five.agent.learning.segments import Segment
from five.clients import wire
from five.clients.raw_tensor_set import RawTensorSet, SplitMessage, TensorHeader, TensorSetReader
from five.protos.v1 import experience_pb2
from five.services.optimizer.intake import Intake, Specs
from five.services.optimizer.metrics import ARM_HERO_STEPS, HERO_STEPS, SEGMENTS
from five.services.optimizer.stored_arrays import (
    STORED_ENCODINGS,
    MessageFormat,
    StoredArrays,
    is_encoded_on_arrival,
    message_format,
)
from rapid.rpc.fencing_epoch import StaleEpoch, require_epoch

VERDICTS = {
    "accepted": experience_pb2.PUSH_VERDICT_ACCEPTED,
    "duplicate": experience_pb2.PUSH_VERDICT_DUPLICATE,
    "too_old": experience_pb2.PUSH_VERDICT_TOO_OLD,
    "stale_epoch": experience_pb2.PUSH_VERDICT_STALE_EPOCH,
}
ARMS = ("", *Variant)
GATE_SECONDS = 0.01
NAME = "five.v1.ExperienceService"
LONG_BYTES = 1 << 16  # more to decode is done on another thread
MAX_SAMPLES = 4096


def add_to_server(service: "ExperienceService", server: Any) -> None:
    """Registers the service, as the generated function does it, for requests that stay in bytes."""
    push = grpc.stream_stream_rpc_method_handler(
        service.Push, response_serializer=experience_pb2.PushResponse.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, {"Push": push}),))
    server.add_registered_method_handlers(NAME, {"Push": push})


class ExperienceService:
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
        self._reader = TensorSetReader(experience_pb2.PushRequest, "tensors")
        self._format: tuple[tuple[TensorHeader, ...], MessageFormat | None] = ((), None)  # of the form that came last

    async def Push(self, request_iterator: AsyncIterator[bytes], context: Any
                   ) -> AsyncIterator[experience_pb2.PushResponse]:
        """A rollout's stream of PushRequests in bytes, which the segments' arrays stay parts of. A malformed segment
        ends it with INVALID_ARGUMENT and changes nothing, one of a newer epoch with UNAVAILABLE; one of an older epoch
        is answered so, and the stream goes on."""
        async for data in request_iterator:
            request, split = self._reader.split(data)
            verdict, reason = await self._verdict(request, split)
            SEGMENTS.labels(verdict).inc()
            yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=VERDICTS[verdict], reason=reason,
                                              epoch=self._epoch)

    async def _verdict(self, request: experience_pb2.PushRequest, split: SplitMessage) -> tuple[str, str]:
        try:
            # Before anything else of it is read: it may have the layout of its own epoch.
            require_epoch(self._epoch, request.epoch)
        except StaleEpoch as error:
            return "stale_epoch", str(error)
        tensors = self._reader.tensors(split)
        segment, taken = (await asyncio.to_thread(self._check_and_take, request, tensors)
                        if _takes_long(tensors) else self._check_and_take(request, tensors))
        while taken is None:
            if self._admits():
                taken = await asyncio.to_thread(self._intake.admit, segment)
            else:
                await asyncio.sleep(GATE_SECONDS)
        verdict, reason = taken
        if verdict == "accepted":
            HERO_STEPS.inc(segment.arrays.hero_steps)
            if request.arm:
                ARM_HERO_STEPS.labels(request.arm).inc(segment.arrays.hero_steps)
        return verdict, reason

    def _admits(self) -> bool:
        return not self._active() or self._intake.may_admit()

    def _check_and_take(self, request: experience_pb2.PushRequest, tensors: RawTensorSet
                        ) -> tuple[Segment[StoredArrays], tuple[str, str] | None]:
        """The segment, and its verdict unless pacing holds it back: each way to another thread costs as much as the
        check itself."""
        segment = self._check(request, tensors)
        return segment, self._intake.admit(segment) if self._admits() else None

    def check(self, data: bytes) -> Segment[StoredArrays]:
        """The segment of a PushRequest. Raises ValueError naming what is wrong, LayoutMismatch naming both layouts."""
        request, split = self._reader.split(data)
        return self._check(request, self._reader.tensors(split))

    def _check(self, request: experience_pb2.PushRequest, tensors: RawTensorSet) -> Segment[StoredArrays]:
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
        arrays = self._parse_known(request.samples, tensors) or self._parse(request.samples, tensors)
        return Segment(arrays, request.samples, request.reward_sum, request.reward_square_sum, request.reward_count,
                       request.oldest_version, request.newest_version, request.arm, request.created_at,
                       request.segment_id)

    def _parse_known(self, samples: int, tensors: RawTensorSet) -> StoredArrays | None:
        """The segment when it has the form of the one before, whose names, dtypes and shapes were right: then only its
        data can be wrong."""
        heads, known = self._format
        if known is None or known.samples != samples or tensors.layout_hash != self._layout or tensors.heads != heads:
            return None
        try:
            return StoredArrays.from_message(known, tensors.message, tensors.places)
        except ValueError:
            return None  # and to be named

    def _parse(self, samples: int, tensors: RawTensorSet) -> StoredArrays:
        arrays = wire.decode_stored_set(tensors, self._layout)
        steps = {n: a for n, a in arrays.items() if n not in self._samples}
        wire.require_layout(steps, self._steps, samples * self._unroll)
        wire.require_layout({n: a for n, a in arrays.items() if n in self._samples}, self._samples, samples)
        stored = StoredArrays.from_arrays(arrays, samples)
        self._format = tensors.heads, message_format(tensors.heads, stored)
        return stored


def _takes_long(tensors: RawTensorSet) -> bool:
    """Whether to decode takes longer than the way to another thread and back. What rests as it came does not."""
    to_decode = sum(size for head, (_, size) in zip(tensors.heads, tensors.places, strict=True)
                    if head.encoding not in STORED_ENCODINGS or is_encoded_on_arrival(head))
    return to_decode > LONG_BYTES
