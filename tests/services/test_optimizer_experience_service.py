"""Verdicts of the experience service: pacing, epochs, repeated segments, and how a stream goes on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from five.clients import wire
from five.protos.v1 import experience_pb2
from five.services.optimizer import experience_service
from five.services.optimizer.experience_service import ExperienceService
from five.services.optimizer.metrics import HERO_STEPS, SEGMENTS, VARIANT_HERO_STEPS
from five.services.rollout.sender import delta_encoded_arrays
from rapid.rpc.fencing_epoch import EpochAhead
from tests.clients.tensor_sets import encode_set
from tests.services.optimizer_cases import LAYOUT, SAMPLE_SPECS, STEP_SPECS, UNROLL, intake, segment
from tests.services.test_optimizer_intake import request

ACCEPTED = experience_pb2.PUSH_VERDICT_ACCEPTED


class Paced:
    """A service whose pacing admits segments while ``open``, of a run that is ``active``."""

    def __init__(self, epoch: int = 2) -> None:
        self.intake = intake()
        self.open = True
        self.active = True
        self.intake.may_admit = lambda: self.open  # type: ignore[method-assign]
        self.service = ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, self.intake,
                                         epoch=epoch, active=lambda: self.active)

    async def push(self, *requests: bytes) -> list[experience_pb2.PushResponse]:
        async def sent() -> AsyncIterator[bytes]:
            for data in requests:
                yield data

        return [answer async for answer in self.service.Push(sent(), None)]


def counts() -> list[float]:
    return [SEGMENTS.labels(verdict)._value.get() for verdict in ("accepted", "duplicate", "too_old", "stale_epoch")]


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Paced:
    monkeypatch.setattr(experience_service, "ADMISSION_POLL_SECONDS", 0.005)
    return Paced()


async def test_stream_gets_a_verdict_for_every_segment(paced: Paced) -> None:
    before, steps = counts(), HERO_STEPS._value.get()
    paced.intake.version = 9
    answers = await paced.push(
        request(segment_id="a", epoch=2, oldest_version=9, newest_version=9),
        request(segment_id="a", epoch=2), request(segment_id="b", epoch=1))
    assert [(a.segment_id, a.verdict, a.epoch) for a in answers] == [
        ("a", experience_pb2.PUSH_VERDICT_TOO_OLD, 2), ("a", experience_pb2.PUSH_VERDICT_TOO_OLD, 2),
        ("b", experience_pb2.PUSH_VERDICT_STALE_EPOCH, 2)]
    assert "versions old" in answers[0].reason and "this server is at epoch 2, the request at 1" in answers[2].reason
    assert HERO_STEPS._value.get() == steps
    paced.intake.version = 0
    answers = await paced.push(*(request(segment_id="a", epoch=2) for _ in range(2)))
    assert [a.verdict for a in answers] == [ACCEPTED, experience_pb2.PUSH_VERDICT_DUPLICATE]
    assert answers[0].reason == "" and HERO_STEPS._value.get() == steps + 2 * UNROLL
    assert [after - b for after, b in zip(counts(), before, strict=True)] == [1, 1, 2, 1]


async def test_segment_of_a_newer_epoch_ends_the_stream(paced: Paced) -> None:
    with pytest.raises(EpochAhead):
        await paced.push(request(epoch=3))
    with pytest.raises(ValueError, match="epoch is missing"):
        await paced.push(request(epoch=0))
    assert len(paced.intake.buffer) == 0


async def test_acknowledgement_waits_for_pacing(paced: Paced) -> None:
    paced.open = False
    pushing = asyncio.create_task(paced.push(request(epoch=2)))
    await asyncio.sleep(0.05)
    assert not pushing.done() and len(paced.intake.buffer) == 0
    paced.open = True
    (answer,) = await asyncio.wait_for(pushing, 30)
    assert answer.verdict == ACCEPTED and len(paced.intake.buffer) == 2


async def test_paused_run_acknowledges_without_pacing(paced: Paced) -> None:
    """Rollouts end their segments for the pause and wait for them."""
    paced.open = paced.active = False
    (answer,) = await asyncio.wait_for(paced.push(request(epoch=2)), 30)
    assert answer.verdict == ACCEPTED


def to_decode(kind: str) -> tuple[bytes, int]:
    """Return a message and the bytes of its tensors that are not stored as they arrived."""
    if kind == "plain float16":
        arrays = segment()
        data = request(arrays=arrays, epoch=2, tensors=encode_set(arrays, LAYOUT.hash, ()))
        return data, arrays["shared"].nbytes + arrays["private"].nbytes
    message = experience_pb2.PushRequest(segment_id="a", run="trial", samples=2, epoch=2)
    data = wire.serialize_with_set(message, "tensors", segment(), LAYOUT.hash, changes=delta_encoded_arrays(LAYOUT),
                                   period=UNROLL, zstd=kind == "compressed")
    sizes = [len(t.data) for t in experience_pb2.PushRequest.FromString(data).tensors.tensors]
    return data, sum(sizes) if kind == "compressed" else 0


@pytest.mark.parametrize("kind", ["delta-encoded", "compressed", "plain float16"])
@pytest.mark.parametrize("slow", [False, True], ids=["on the loop", "on a thread"])
async def test_long_decoding_is_done_on_another_thread(paced: Paced, slow: bool, kind: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes to decode decide: tensors that are stored as they arrived take no time."""
    data, size = to_decode(kind)
    monkeypatch.setattr(experience_service, "SLOW_DECODE_BYTES", size - int(slow))
    threads: list[Any] = []
    to_thread = asyncio.to_thread

    async def counted(function: Any, *arguments: Any) -> Any:
        threads.append(function.__name__)
        return await to_thread(function, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    (answer,) = await paced.push(data)
    assert answer.verdict == ACCEPTED and threads == (["_check_and_admit"] if slow else [])


async def test_only_accepted_segments_of_a_variant_are_counted(paced: Paced) -> None:
    before = VARIANT_HERO_STEPS.labels("new")._value.get()
    await paced.push(*(request(epoch=2, variant="new") for _ in range(2)))  # the second is a duplicate
    assert VARIANT_HERO_STEPS.labels("new")._value.get() - before == 2 * UNROLL


@pytest.mark.parametrize("samples", [0, -1 & 0xFFFFFFFF >> 4, 4097])
def test_number_of_samples_is_bounded(paced: Paced, samples: int) -> None:
    with pytest.raises(ValueError, match=f"samples {samples}: a segment has 1 to 4096"):
        paced.service.check(request(samples=samples))
    for allowed in (1, 4096):  # the arrays have another number
        with pytest.raises(ValueError, match="tensor"):
            paced.service.check(request(samples=allowed))


def test_segment_has_the_values_of_its_message(paced: Paced) -> None:
    found = paced.service.check(request(
        segment_id="s", reward_sum=1.5, reward_square_sum=2.5, reward_count=8, oldest_version=3, newest_version=4,
        variant="old", created_at=77.0, traceparent="00-t"))
    assert (found.segment_id, found.reward_sum, found.reward_square_sum, found.reward_count, found.oldest_version,
            found.newest_version, found.variant, found.created_at, found.traceparent, found.samples) == (
        "s", 1.5, 2.5, 8, 3, 4, "old", 77.0, "00-t", 2)
    with pytest.raises(ValueError, match="reward sums"):
        paced.service.check(request(reward_square_sum=float("inf")))


