"""Admission of pushed segments: stored encoded, admitted once, refused by the name of the invalid tensor."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from five.agent.learning.buffer import DropReason
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.clients import wire
from five.protos.v1 import experience_pb2
from five.services.optimizer.experience_service import MAX_REWARD_SUM, ExperienceService
from five.services.optimizer.intake import Intake, RewardSums
from five.services.optimizer.metrics import HERO_STEPS, SENDING, VARIANT_HERO_STEPS
from five.services.optimizer.stored_arrays import SampleCollator, StoredArrays
from five.services.optimizer.traced_collator import TracedCollator
from five.services.rollout.sender import delta_encoded_arrays
from tests.agent.plain_samples import split_segment
from tests.clients.tensor_sets import encode_set
from tests.services.optimizer_cases import (
    BUFFER,
    LAYOUT,
    LEARNING,
    MODEL,
    SAMPLE_SPECS,
    STEP_SPECS,
    UNROLL,
    decoded_sample,
    intake,
    segment,
    stored_segment,
)


def test_segment_is_admitted_once() -> None:
    into = intake()
    assert into.admit(stored_segment("a"))[0] == "accepted"
    assert into.admit(stored_segment("a"))[0] == "duplicate"
    assert len(into.buffer) == 2 and into.pacer.received == 2
    assert into.hero_steps == 2 * UNROLL
    assert into.take_rewards() == RewardSums(8, 2.0, 3.0) and into.take_rewards() == RewardSums(0.0, 0.0, 0.0)


def fail(*_: Any, **__: Any) -> list[int]:
    raise OSError("no room")


def test_failed_admission_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    into = intake()
    whole = stored_segment("a")
    with monkeypatch.context() as patched:
        patched.setattr(into.buffer, "add", fail)
        with pytest.raises(OSError, match="no room"):
            into.admit(whole)
    assert len(into.buffer) == 0 and into.pacer.received == 0
    assert into.admit(whole)[0] == "accepted"
    assert into.admit(whole)[0] == "duplicate"
    # A segment refused as too old is refused again, since it was never admitted.
    into.version = 10
    assert [into.admit(stored_segment("b", version=6))[0] for _ in range(2)] == ["too_old"] * 2


def test_concurrent_duplicates_are_admitted_once() -> None:
    into = intake()
    offers = [stored_segment(str(i % 8)) for i in range(64)]
    with ThreadPoolExecutor(16) as pool:
        verdicts = [verdict for verdict, _ in pool.map(into.admit, offers)]
    assert verdicts.count("accepted") == 8 and verdicts.count("duplicate") == 56
    assert into.pacer.received == len(into.buffer) == 16 and into.take_rewards().count == 8 * 8


@pytest.mark.parametrize("fails", [False, True])
def test_second_copy_waits_for_the_outcome_of_the_first(fails: bool) -> None:
    """It would be acknowledged as a duplicate of a segment that was not admitted."""
    into = intake()
    add, begun, go = into.buffer.add, threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> list[int]:
        if not begun.is_set():
            begun.set()
            assert go.wait(30)
            if fails:
                raise OSError("no room")
        return add(*arguments, **options)

    into.buffer.add = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(into.admit, stored_segment("a"))
        assert begun.wait(30)
        second = pool.submit(into.admit, stored_segment("a"))
        assert into.admit(stored_segment("b"))[0] == "accepted"  # others go on
        time.sleep(0.05)
        assert not second.done()
        go.set()
        assert second.result(30)[0] == ("accepted" if fails else "duplicate")
        assert isinstance(first.exception(30), OSError) == fails
    assert len(into.buffer) == 4


@pytest.mark.parametrize("traced", [True, False])
def test_batch_has_the_trace_contexts_of_its_new_segments(traced: bool) -> None:
    """While tracing is off, the context of a segment is ignored."""
    into = intake(traced=TracedCollator(SampleCollator()) if traced else None)
    into.admit(replace(stored_segment("a"), traceparent="trace a"))
    into.admit(stored_segment("b"))
    batches = [into.sample(4) for _ in range(2)]
    assert all(batch is not None for batch in batches)
    found = [context for batch in batches if batch is not None for context in batch.traceparents]
    assert found == (["trace a"] if traced else [])


def test_segments_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.optimizer.intake.REMEMBERED_SEGMENTS", 2)
    into = intake()
    assert [into.admit(stored_segment(name))[0] for name in "abcab"] == ["accepted"] * 5
    assert [into.admit(stored_segment(name))[0] for name in "ab"] == ["duplicate"] * 2


def test_end_epoch_drops_and_counts_samples() -> None:
    into = intake()
    into.admit(stored_segment("a"))
    into.admit(stored_segment("b", samples=1))
    assert into.end_epoch() == 3 and into.end_epoch() == 0
    statistics = into.buffer.statistics()
    assert statistics.dropped[DropReason.EPOCH] == 3 and statistics.samples == statistics.nbytes == 0
    assert into.take_rewards().count == 0
    assert into.admit(stored_segment("a"))[0] == "duplicate"  # it was admitted, used or not
    for identity in ("c", "d"):
        assert into.admit(stored_segment(identity))[0] == "accepted"
    assert into.sample(4) is not None


@pytest.mark.parametrize("samples", [1, 3])
def test_short_segment_is_admitted(samples: int) -> None:
    into = intake()
    checked = service(into).check(request(arrays=segment(samples), samples=samples))
    assert into.admit(checked)[0] == "accepted" and len(into.buffer) == samples


def test_too_old_segment_is_refused_with_its_age() -> None:
    into = intake()
    into.version = 10
    verdict, reason = into.admit(stored_segment("a", version=6))
    assert verdict == "too_old" and "4 versions old" in reason
    assert into.pacer.received == 0 and into.take_rewards().count == 0
    assert into.admit(stored_segment("b", version=7))[0] == "accepted"


@pytest.mark.parametrize("variant", ["", "new"])
def test_hero_steps_of_too_old_samples_are_not_counted(variant: str) -> None:
    """The first of two samples is too old, and the second is padded."""
    def counted() -> list[float]:
        return [HERO_STEPS._value.get(), VARIANT_HERO_STEPS.labels("new")._value.get()]

    into, before = intake(), counted()
    into.version = 10
    arrays = segment(2)
    arrays["versions"][:UNROLL], arrays["versions"][UNROLL:] = 6, 7
    arrays["mask"][-1] = 0
    whole = replace(stored_segment("a"), arrays=StoredArrays.from_arrays(arrays, 2), variant=variant)
    assert into.admit(whole)[0] == "accepted"
    assert (len(into.buffer), into.pacer.received, into.hero_steps) == (1, 1, UNROLL - 1)
    steps: list[float] = [UNROLL - 1, (UNROLL - 1) * (variant == "new")]
    assert [a - b for a, b in zip(counted(), before, strict=True)] == steps
    assert into.admit(whole)[0] == "duplicate" and into.hero_steps == UNROLL - 1


def test_batches_wait_for_sample_reuse() -> None:
    into = intake()
    assert into.sample(4) is None
    for i in range(2):
        into.admit(stored_segment(str(i)))
    drawn = into.sample(4)
    assert drawn is not None and drawn.arrays["actions"].shape == (UNROLL, 4, 1, 6)
    assert into.sample(4) is not None  # consumed may run ahead by one batch
    assert into.sample(4) is None


def test_buffer_too_small_for_a_batch_is_an_error() -> None:
    """The optimizer would wait for ever: three samples fit, a batch has four."""
    size = stored_segment("0").arrays.nbytes
    into = intake(BUFFER.model_copy(update={"capacity_bytes": 3 * size + size // 2}))
    assert into.admit(stored_segment("0"))[0] == "accepted" and into.sample(4) is None
    assert into.admit(stored_segment("1"))[0] == "accepted" and len(into.buffer) == 3
    with pytest.raises(ValueError, match=r"holds 3 samples of this size, .* needs 4: raise buffer\.capacity_bytes"):
        into.sample(4)


def test_refused_segment_of_too_large_samples_has_their_size() -> None:
    whole = stored_segment("a")
    size = whole.arrays.nbytes
    into = intake(BUFFER.model_copy(update={"capacity_bytes": size - 1}))
    assert into.admit(whole) == (
        "too_old", f"its samples have {size} bytes each; buffer.capacity_bytes is {size - 1}")
    assert into.buffer.statistics().dropped[DropReason.TOO_LARGE] == 2 and into.pacer.received == 0


def service(into: Intake) -> ExperienceService:
    return ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, into, epoch=1)


def request(**changes: Any) -> bytes:
    arrays = changes.pop("arrays", None) or segment()
    values: dict[str, Any] = {
        "segment_id": "a", "run": "trial", "samples": 2, "reward_count": 8, "epoch": 1,
        "tensors": encode_set(arrays, changes.pop("layout", LAYOUT.hash), ("shared", "private"))}
    return experience_pb2.PushRequest(**(values | changes)).SerializeToString()


async def stream(*requests: bytes) -> AsyncIterator[bytes]:
    for one in requests:
        yield one


async def test_hero_steps_are_counted_by_variant() -> None:
    def counted() -> list[float]:
        return [VARIANT_HERO_STEPS.labels(name)._value.get() for name in ("old", "new")]

    before, into = counted(), intake()
    for i, variant in enumerate(("", "new", "new", "old", "new")):
        (answer,) = [a async for a in service(into).Push(stream(request(segment_id=str(i), variant=variant)), None)]
        assert answer.verdict == experience_pb2.PUSH_VERDICT_ACCEPTED and answer.segment_id == str(i)
    steps = into.hero_steps / 5
    assert [a - b for a, b in zip(counted(), before, strict=True)] == [steps, 3 * steps]
    with pytest.raises(ValueError, match="variant 'left': allowed are '' and old, new"):
        service(into).check(request(variant="left"))


def delta_encoded_request(arrays: Any, period: int = UNROLL, **fields: Any) -> bytes:
    """Return a request as a rollout writes it, with delta-encoded observations."""
    message = experience_pb2.PushRequest(segment_id="a", run="trial", samples=len(arrays["mask"]) // UNROLL, epoch=1)
    return wire.serialize_with_set(message, "tensors", arrays, LAYOUT.hash, changes=delta_encoded_arrays(LAYOUT),
                                   period=period, **fields)


@pytest.mark.parametrize("zstd", [False, True])
def test_segment_is_decoded_as_it_was_sent(zstd: bool) -> None:
    taker = service(intake())
    for seed in range(3):  # later messages have the first one's format
        arrays = segment(seed=seed)
        for data in (request(arrays=arrays), delta_encoded_request(arrays, zstd=zstd), request(arrays=arrays)):
            stored = taker.check(data).arrays
            for i, sent in enumerate(split_segment(arrays, 2)):
                back = decoded_sample(stored, i)
                assert back.keys() == sent.keys()
                for name, array in sent.items():
                    assert back[name].dtype == array.dtype and back[name].tobytes() == array.tobytes()


def test_known_message_format_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taker = service(intake())
    taker.check(delta_encoded_request(segment(seed=0)))
    monkeypatch.setattr(wire, "decode_stored_set", fail)
    assert taker.check(delta_encoded_request(segment(seed=1))).arrays.hero_steps.tolist() == [UNROLL] * 2
    with pytest.raises(OSError):  # another format is parsed
        taker.check(delta_encoded_request(segment(1)))


def test_delta_encoding_of_another_period_is_refused() -> None:
    with pytest.raises(ValueError, match="within 8 rows, but a sample has 4: .*lstm_unroll_length"):
        service(intake()).check(delta_encoded_request(segment(), period=8))


def damaged(name: str, data: Callable[[bytes], bytes], arrays: Any = None) -> bytes:
    message = experience_pb2.PushRequest.FromString(delta_encoded_request(arrays or segment(seed=1)))
    (tensor,) = [tensor for tensor in message.tensors.tensors if tensor.name == name]
    tensor.data = data(tensor.data)
    return message.SerializeToString()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("name", "damage", "words"), [
    ("shared", lambda data: data[:-1], "'shared': .* bytes where the presence bits announce"),
    ("shared", lambda data: data + b"\0\0", "'shared': .* bytes where the presence bits announce"),
    ("private_ids", lambda data: b"", "'private_ids': 0 bytes are too few"),
    ("mask", lambda data: data[:-4], "'mask': 28 bytes where"),
    ("resets", lambda data: b"\2" + data[1:], "'resets': a bool must be 0 or 1"),
])
def test_damaged_tensor_is_refused_by_name(
        before: bool, name: str, damage: Callable[[bytes], bytes], words: str) -> None:
    taker = service(intake())
    if before:
        taker.check(delta_encoded_request(segment()))
    with pytest.raises(ValueError, match=words):
        taker.check(damaged(name, damage))
    assert taker.check(delta_encoded_request(segment())).samples == 2


@pytest.mark.parametrize(("changes", "words"), [
    ({"run": "other"}, "run .trial."),
    ({"samples": 0}, "samples 0"),
    ({"samples": 3}, "expected"),
    ({"segment_id": ""}, "segment_id"),
    ({"reward_sum": float("nan")}, "must be finite"),
    ({"reward_square_sum": float("nan")}, "must be finite"),
    ({"reward_square_sum": -1e-300}, r"sum of squares from 0 to 1e\+30"),
    ({"reward_square_sum": 1.1e30}, r"sum of squares from 0 to 1e\+30"),
    ({"reward_sum": 1.1e30}, r"sum from -1e\+30 to 1e\+30"),
    ({"reward_sum": -1e308}, r"sum from -1e\+30 to 1e\+30"),
    ({"layout": "0123456789abcdef"}, LAYOUT.hash),
    ({"arrays": {n: a for n, a in segment().items() if n != "actions"}}, "'actions' is missing"),
    ({"arrays": segment() | {"extra": np.zeros(2, np.float32)}}, "'extra'"),
    ({"arrays": segment() | {"mask": np.zeros((8, 1), np.float16)}}, "'mask'"),
])
def test_invalid_segment_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    taker = service(intake())
    for _ in range(2):  # also after a valid segment of the same format
        with pytest.raises(ValueError, match=words):
            taker.check(request(**changes))
        taker.check(request())


async def test_open_streams_are_counted() -> None:
    before = SENDING._value.get()
    pushing = service(intake()).Push(stream(request()), None)
    await anext(pushing)
    assert SENDING._value.get() == before + 1
    async for _ in pushing:
        pass
    assert SENDING._value.get() == before


def test_promised_batch_is_there() -> None:
    into = intake()
    assert not into.may_sample(4)
    for i in range(2):
        into.admit(stored_segment(str(i)))
    assert into.may_sample(4) and into.sample(4) is not None
    while into.may_sample(4):
        assert into.sample(4) is not None
    assert into.sample(4) is None
    for i in range(4):
        into.admit(stored_segment(f"fresh {i}"))
    assert into.may_sample(4)
    into.version = 10  # all have expired
    assert not into.may_sample(4) and into.sample(4) is None


def test_outcome_samples_of_old_versions_are_admitted() -> None:
    """They are as old as their game. Their hero-steps were received before, so they are not counted again."""
    into = intake()
    into.version = 1000
    assert into.admit(stored_segment("a", version=0))[0] == "too_old"
    arrays = segment(samples=2, version=0)
    arrays["mask"][:], arrays["outcome_mask"][:] = 0, 1
    outcomes = replace(stored_segment("b"), arrays=StoredArrays.from_arrays(arrays, 2))
    assert into.admit(outcomes)[0] == "accepted"
    assert (len(into.buffer), into.hero_steps) == (2, 0)


async def test_totals_of_accepted_rewards_stay_finite() -> None:
    """The learner refuses others, in the training thread."""
    into = intake()
    largest: dict[str, Any] = {
        "reward_sum": -MAX_REWARD_SUM, "reward_square_sum": MAX_REWARD_SUM, "reward_count": 2**64 - 1}
    pushed = stream(*(request(segment_id=str(number), **largest) for number in range(2)))
    assert [answer.verdict async for answer in service(into).Push(pushed, None)] == [
        experience_pb2.PUSH_VERDICT_ACCEPTED] * 2
    rewards = into.take_rewards()
    Learner(Policy(LAYOUT, MODEL), LEARNING).add_rewards(rewards.count, rewards.total, rewards.squares)
    assert (rewards.total, rewards.squares) == (-2e30, 2e30)
