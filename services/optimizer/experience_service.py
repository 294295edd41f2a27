"""gRPC service through which rollouts push segments to an optimizer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from five.agent.anneal.variants import Variant
from five.agent.learning.segments import Segment
from five.clients import wire
from five.clients.experience import METHOD
from five.clients.raw_tensor_set import RawTensorSet, SplitMessage, TensorHeader, TensorSetReader
from five.protos.v1 import experience_pb2
from five.services.optimizer.intake import Intake, Specs
from five.services.optimizer.metrics import SEGMENTS, SENDING
from five.services.optimizer.stored_arrays import (
    STORED_ENCODINGS,
    MessageFormat,
    StoredArrays,
    is_encoded_on_arrival,
    message_format,
)
from rapid.rpc.fencing_epoch import StaleEpoch, require_epoch
from rapid.telemetry import tracing

VERDICTS = {
    "accepted": experience_pb2.PUSH_VERDICT_ACCEPTED,
    "duplicate": experience_pb2.PUSH_VERDICT_DUPLICATE,
    "too_old": experience_pb2.PUSH_VERDICT_TOO_OLD,
    "stale_epoch": experience_pb2.PUSH_VERDICT_STALE_EPOCH,
}
VARIANTS = ("", *Variant)
ADMISSION_POLL_SECONDS = 0.01
NAME = "five.v1.ExperienceService"
SLOW_DECODE_BYTES = 1 << 16  # more bytes are decoded on another thread
MAX_SAMPLES = 4096
MAX_REWARD_SUM = 1e30  # totals of any number of segments stay finite, or the learner would refuse them


def add_to_server(service: "ExperienceService", server: Any) -> None:
    """Register the service like the generated function does, but pass requests as bytes."""
    push = grpc.stream_stream_rpc_method_handler(
        service.Push, response_serializer=experience_pb2.PushResponse.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, {"Push": push}),))
    server.add_registered_method_handlers(NAME, {"Push": push})


class ExperienceService:
    """Checks each segment against the run and its layout and acknowledges it when pacing admits it.

    ``step_specs`` are arrays with one row per timestep, ``sample_specs`` those with one row per sample. ``epoch`` is
    the run's fencing epoch. While the run is not ``active``, acknowledgements are not delayed: rollouts end their
    segments and wait for them.
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
        self._format: tuple[tuple[TensorHeader, ...], MessageFormat | None] = ((), None)  # of the last message

    async def Push(self, request_iterator: AsyncIterator[bytes], context: Any
                   ) -> AsyncIterator[experience_pb2.PushResponse]:
        """Acknowledge a rollout's stream of PushRequests; the segments' arrays stay views of the requests' bytes.

        A malformed segment ends the stream with INVALID_ARGUMENT and changes nothing. A segment of a newer epoch ends
        it with UNAVAILABLE. A segment of an older epoch is acknowledged as stale, and the stream continues.
        """
        with SENDING.track_inprogress():
            async for data in request_iterator:
                request, split = self._reader.split(data)
                with tracing.remote_span(METHOD, request.traceparent) as span:
                    if span is not None:
                        request.traceparent = span.traceparent  # the gradient step links to this span
                    verdict, reason = await self._verdict(request, split)
                SEGMENTS.labels(verdict).inc()
                yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=VERDICTS[verdict],
                                                  reason=reason, epoch=self._epoch)

    async def _verdict(self, request: experience_pb2.PushRequest, split: SplitMessage) -> tuple[str, str]:
        try:
            # Checked first, because a segment of another epoch may have another layout.
            require_epoch(self._epoch, request.epoch)
        except StaleEpoch as error:
            return "stale_epoch", str(error)
        tensors = self._reader.tensors(split)
        segment, answer = (await asyncio.to_thread(self._check_and_admit, request, tensors)
                           if _is_slow_to_decode(tensors) else self._check_and_admit(request, tensors))
        while answer is None:
            if self._may_admit():
                answer = await asyncio.to_thread(self._intake.admit, segment)
            else:
                await asyncio.sleep(ADMISSION_POLL_SECONDS)
        return answer

    def _may_admit(self) -> bool:
        return not self._active() or self._intake.may_admit()

    def _check_and_admit(self, request: experience_pb2.PushRequest, tensors: RawTensorSet
                        ) -> tuple[Segment[StoredArrays], tuple[str, str] | None]:
        """Return the segment and its verdict, or None while pacing delays it. One call, because a thread switch is as
        slow."""
        segment = self._check(request, tensors)
        return segment, self._intake.admit(segment) if self._may_admit() else None

    def check(self, data: bytes) -> Segment[StoredArrays]:
        """Return the segment of a PushRequest. Raises ValueError naming the invalid part, LayoutMismatch naming both
        layouts."""
        request, split = self._reader.split(data)
        return self._check(request, self._reader.tensors(split))

    def _check(self, request: experience_pb2.PushRequest, tensors: RawTensorSet) -> Segment[StoredArrays]:
        """Return the segment. Raises ValueError naming the invalid part, LayoutMismatch naming both layouts."""
        if request.run != self._run:
            raise ValueError(f"run {request.run!r}: this optimizer learns run {self._run!r}")
        if not 1 <= request.samples <= MAX_SAMPLES:
            raise ValueError(f"samples {request.samples}: a segment has 1 to {MAX_SAMPLES}")
        if request.variant not in VARIANTS:
            raise ValueError(f"variant {request.variant!r}: allowed are '' and {', '.join(filter(None, VARIANTS))}")
        if not request.segment_id:
            raise ValueError("segment_id is empty: it identifies a segment that is sent again")
        sums = (request.reward_sum, request.reward_square_sum)
        if not (abs(sums[0]) <= MAX_REWARD_SUM and 0 <= sums[1] <= MAX_REWARD_SUM):  # NaN fails too
            raise ValueError(f"reward sums {sums} must be finite: the sum from {-MAX_REWARD_SUM:g} to "
                             f"{MAX_REWARD_SUM:g}, the sum of squares from 0 to {MAX_REWARD_SUM:g}")
        arrays = self._parse_known(request.samples, tensors) or self._parse(request.samples, tensors)
        return Segment(arrays, request.samples, request.reward_sum, request.reward_square_sum, request.reward_count,
                       request.oldest_version, request.newest_version, request.variant, request.created_at,
                       request.segment_id, request.traceparent)

    def _parse_known(self, samples: int, tensors: RawTensorSet) -> StoredArrays | None:
        """Return the arrays of a message in the last message's format, in which only the data can be invalid; otherwise
        None."""
        heads, known = self._format
        if known is None or known.samples != samples or tensors.layout_hash != self._layout or tensors.heads != heads:
            return None
        try:
            return StoredArrays.from_message(known, tensors.message, tensors.places)
        except ValueError:
            return None  # _parse names the invalid tensor

    def _parse(self, samples: int, tensors: RawTensorSet) -> StoredArrays:
        limit = wire.layout_bytes(self._steps, samples * self._unroll) + wire.layout_bytes(self._samples, samples)
        arrays = wire.decode_stored_set(tensors, self._layout, limit)
        steps = {n: a for n, a in arrays.items() if n not in self._samples}
        wire.require_layout(steps, self._steps, samples * self._unroll)
        wire.require_layout({n: a for n, a in arrays.items() if n in self._samples}, self._samples, samples)
        stored = StoredArrays.from_arrays(arrays, samples)
        self._format = tensors.heads, message_format(tensors.heads, stored)
        return stored


def _is_slow_to_decode(tensors: RawTensorSet) -> bool:
    """Return whether decoding takes longer than a switch to another thread. Tensors stored as they arrived do not
    count."""
    to_decode = sum(size for head, (_, size) in zip(tensors.heads, tensors.places, strict=True)
                    if head.encoding not in STORED_ENCODINGS or is_encoded_on_arrival(head))
    return to_decode > SLOW_DECODE_BYTES
