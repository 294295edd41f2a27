"""Segments at the optimizer's door: packed, counted once, refused by name."""

from typing import Any

import numpy as np
import pytest

from protos.five.v1 import experience_pb2
from rapid import wire
from services.optimizer.intake import Intake, PackedSample
from services.optimizer.service import ExperienceService
from tests.services.optimizer_cases import LAYOUT, SAMPLE_SPECS, STEP_SPECS, UNROLL, intake, offer, segment


def test_a_sample_rests_packed_and_comes_back_the_same() -> None:
    arrays = segment(1)
    sample = PackedSample(arrays)
    back = sample.arrays()
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
    assert sample.nbytes < sum(a.nbytes for a in arrays.values())


def test_a_segment_counts_once() -> None:
    door = intake()
    assert door.take(offer("a"))[0] == "accepted"
    assert door.take(offer("a"))[0] == "duplicate"
    assert len(door.buffer) == 2 and door.pacer.received == 2
    assert door.hero_steps == 2 * UNROLL
    rewards = door.take_rewards()
    assert (rewards.count, rewards.total, rewards.squares) == (8, 2.0, 3.0)
    assert door.take_rewards().count == 0


def test_an_old_segment_is_refused_with_its_age() -> None:
    door = intake()
    door.version = 10
    verdict, reason = door.take(offer("a", version=6))
    assert verdict == "too_old" and "4 versions old" in reason
    assert door.pacer.received == 0 and door.take_rewards().count == 0
    assert door.take(offer("b", version=7))[0] == "accepted"


def test_a_step_waits_until_reuse_allows_it() -> None:
    door = intake()
    assert door.draw(4) is None
    for i in range(2):
        door.take(offer(str(i)))
    drawn = door.draw(4)
    assert drawn is not None and drawn.arrays["actions"].shape == (UNROLL, 4, 1, 6)
    assert door.draw(4) is not None  # consumed may run ahead by one batch
    assert door.draw(4) is None


def service(door: Intake) -> ExperienceService:
    return ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, door)


def request(**changes: Any) -> experience_pb2.PushRequest:
    arrays = changes.pop("arrays", None) or segment()
    values: dict[str, Any] = {
        "segment_id": "a", "run": "trial", "samples": 2, "reward_count": 8,
        "tensors": wire.encode_set(arrays, changes.pop("layout", LAYOUT.hash), ("shared", "private"))}
    return experience_pb2.PushRequest(**(values | changes))


def test_a_good_segment_passes_the_door() -> None:
    checked = service(intake()).check(request())
    np.testing.assert_array_equal(checked.arrays["shared"], segment()["shared"])


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
    door = intake()
    with pytest.raises(ValueError, match=words):
        service(door).check(request(**changes))
    assert len(door.buffer) == 0
