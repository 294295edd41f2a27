"""Segments as they come in to an optimizer: packed, counted once, refused by name."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from five.agent.learning.buffer import DropReason
from five.protos.v1 import experience_pb2
from five.services.optimizer.intake import Intake, samples_of
from five.services.optimizer.metrics import ARM_HERO_STEPS
from five.services.optimizer.service import ExperienceService
from rapid import wire
from rapid.packed import PackedArray
from tests.rapid.tensor_sets import encode_set
from tests.services.optimizer_cases import LAYOUT, SAMPLE_SPECS, STEP_SPECS, UNROLL, intake, offer, segment


def test_a_sample_rests_packed_and_comes_back_the_same() -> None:
    arrays = segment(1)
    (sample,) = samples_of(arrays, 1)
    back = sample.arrays()
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array[0] if name.startswith("state/") else array)
    assert sample.nbytes < sum(a.nbytes for a in arrays.values())


def test_a_segment_is_cut_as_it_came_without_being_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = {"shared": (rng.normal(size=(32, 24)) * (rng.random((32, 24)) < 0.3)).astype(np.float16),
              "mask": np.ones((32, 2), np.float32), "state/h": rng.normal(size=(2, 3)).astype(np.float32)}
    came = wire.decode_packed_set(encode_set(arrays, "l", ("shared",)), "l")
    with monkeypatch.context() as patched:
        patched.setattr(wire, "_sparse", (None, None))  # neither packs nor unpacks
        parts = samples_of(came, 2)
    for i, part in enumerate(parts):
        for name, array in part.arrays().items():
            expected = arrays[name][i] if name.startswith("state/") else arrays[name][i * 16:(i + 1) * 16]
            np.testing.assert_array_equal(array, expected)


def test_a_segment_whose_samples_end_within_a_byte_is_taken_in_all_the_same() -> None:
    arrays = segment(2)
    assert arrays["shared"][0].size * UNROLL % 8
    checked = service(intake()).check(request(arrays=arrays))
    assert isinstance(checked.arrays["shared"], PackedArray) and checked.hero_steps == 2 * UNROLL
    second = samples_of(checked.arrays, 2)[1].arrays()
    np.testing.assert_array_equal(second["shared"], arrays["shared"][UNROLL:])
    np.testing.assert_array_equal(second["state/h"], arrays["state/h"][1])


def test_a_segment_counts_once() -> None:
    into = intake()
    assert into.take(offer("a"))[0] == "accepted"
    assert into.take(offer("a"))[0] == "duplicate"
    assert len(into.buffer) == 2 and into.pacer.received == 2
    assert into.hero_steps == 2 * UNROLL
    rewards = into.take_rewards()
    assert (rewards.count, rewards.total, rewards.squares) == (8, 2.0, 3.0)
    assert into.take_rewards().count == 0


def test_a_segment_counts_as_seen_only_once_it_is_in_the_buffer() -> None:
    into = intake()
    whole = offer("a")
    broken = replace(whole, arrays=whole.arrays | {"state/h": np.zeros((3, 1, 8), np.float32)})
    with pytest.raises(ValueError, match="cannot be split"):
        into.take(broken)
    assert len(into.buffer) == 0 and into.pacer.received == 0
    assert into.take(whole)[0] == "accepted"
    assert into.take(whole)[0] == "duplicate"
    # One that was refused as too old is so again: it was never in.
    into.version = 10
    assert [into.take(offer("b", version=6))[0] for _ in range(2)] == ["too_old"] * 2


def test_a_segment_that_comes_twice_at_once_counts_once() -> None:
    into = intake()
    offers = [offer(str(i % 8)) for i in range(64)]
    with ThreadPoolExecutor(16) as pool:
        verdicts = [verdict for verdict, _ in pool.map(into.take, offers)]
    assert verdicts.count("accepted") == 8 and verdicts.count("duplicate") == 56
    assert into.pacer.received == len(into.buffer) == 16 and into.take_rewards().count == 8 * 8


def test_what_is_left_of_an_epoch_is_dropped_and_counted() -> None:
    into = intake()
    into.take(offer("a"))
    into.take(offer("b", samples=1))
    assert into.end_epoch() == 3 and into.end_epoch() == 0
    statistics = into.buffer.statistics()
    assert statistics.dropped[DropReason.EPOCH] == 3 and statistics.samples == statistics.nbytes == 0
    assert into.take_rewards().count == 0
    assert into.take(offer("a"))[0] == "duplicate"  # learned from or not: it was taken in
    for identity in ("c", "d"):
        assert into.take(offer(identity))[0] == "accepted"
    assert into.draw(4) is not None


@pytest.mark.parametrize("samples", [1, 3])
def test_a_segment_that_a_pause_has_ended_early_is_taken_in(samples: int) -> None:
    into = intake()
    checked = service(into).check(request(arrays=segment(samples), samples=samples))
    assert into.take(checked)[0] == "accepted" and len(into.buffer) == samples


def test_an_old_segment_is_refused_with_its_age() -> None:
    into = intake()
    into.version = 10
    verdict, reason = into.take(offer("a", version=6))
    assert verdict == "too_old" and "4 versions old" in reason
    assert into.pacer.received == 0 and into.take_rewards().count == 0
    assert into.take(offer("b", version=7))[0] == "accepted"


def test_a_step_waits_until_reuse_allows_it() -> None:
    into = intake()
    assert into.draw(4) is None
    for i in range(2):
        into.take(offer(str(i)))
    drawn = into.draw(4)
    assert drawn is not None and drawn.arrays["actions"].shape == (UNROLL, 4, 1, 6)
    assert into.draw(4) is not None  # consumed may run ahead by one batch
    assert into.draw(4) is None


def service(into: Intake) -> ExperienceService:
    return ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, into, epoch=1)


def request(**changes: Any) -> experience_pb2.PushRequest:
    arrays = changes.pop("arrays", None) or segment()
    values: dict[str, Any] = {
        "segment_id": "a", "run": "trial", "samples": 2, "reward_count": 8, "epoch": 1,
        "tensors": encode_set(arrays, changes.pop("layout", LAYOUT.hash), ("shared", "private"))}
    return experience_pb2.PushRequest(**(values | changes))


async def test_hero_steps_are_counted_by_the_arm_of_their_game() -> None:
    def counted() -> list[float]:
        return [ARM_HERO_STEPS.labels(arm)._value.get() for arm in ("old", "new")]

    before, into = counted(), intake()
    for i, arm in enumerate(("", "new", "new", "old", "new")):
        verdict, _ = await service(into)._verdict(request(segment_id=str(i), arm=arm))
        assert verdict == "accepted"
    steps = into.hero_steps / 5
    assert [a - b for a, b in zip(counted(), before, strict=True)] == [steps, 3 * steps]
    with pytest.raises(ValueError, match="arm is 'left'; an anneal has old and new"):
        service(into).check(request(arm="left"))


def test_a_good_segment_is_taken_in() -> None:
    checked = service(intake()).check(request())
    shared = checked.arrays["shared"]
    assert isinstance(shared, PackedArray)
    np.testing.assert_array_equal(wire.unpack(shared), segment()["shared"])


@pytest.mark.parametrize(("changes", "words"), [
    ({"run": "other"}, "run 'trial'"),
    ({"samples": 0}, "samples is 0"),
    ({"samples": 3}, "expected"),
    ({"segment_id": ""}, "segment_id"),
    ({"reward_sum": float("nan")}, "not finite"),
    ({"layout": "0123456789abcdef"}, LAYOUT.hash),
    ({"arrays": {n: a for n, a in segment().items() if n != "actions"}}, "'actions' is missing"),
    ({"arrays": segment() | {"extra": np.zeros(2, np.float32)}}, "'extra'"),
    ({"arrays": segment() | {"mask": np.zeros((8, 1), np.float16)}}, "'mask'"),
])
def test_a_bad_segment_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    into = intake()
    with pytest.raises(ValueError, match=words):
        service(into).check(request(**changes))
    assert len(into.buffer) == 0
