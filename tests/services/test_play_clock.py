"""Clock of played games: no drift, late frames counted, bounded bursts."""

import pytest

from five.services.play.clock import FRAME_SECONDS, MAX_CATCH_UP, FrameClock


def test_due_times_do_not_drift() -> None:
    clock = FrameClock(100.0)
    for n in range(108_000):  # an hour
        assert clock.begin(clock.due) == 0.0
        assert n > 10 or clock.due == pytest.approx(100.0 + (n + 1) / 30)
    assert clock.due == pytest.approx(100.0 + 3600.0, abs=1e-6)
    assert clock.late == 0 and clock.lag == 0.0


def test_small_delay_does_not_shift_later_frames() -> None:
    clock = FrameClock(0.0)
    assert clock.begin(0.01) == pytest.approx(0.01)
    assert clock.due == pytest.approx(FRAME_SECONDS) and clock.late == 0


def test_catch_up_is_limited() -> None:
    clock = FrameClock(0.0)
    now = 2.0  # a stall of two seconds
    at_once = 0
    while clock.due <= now:
        clock.begin(now)
        at_once += 1
    assert at_once == MAX_CATCH_UP + 1  # the late frames, and the one that is due
    assert clock.lag == pytest.approx(2.0 - MAX_CATCH_UP * FRAME_SECONDS)
    assert 1 <= clock.late <= MAX_CATCH_UP
    assert now < clock.due <= now + FRAME_SECONDS + 1e-9


def test_pause_causes_no_late_frames() -> None:
    clock = FrameClock(0.0)
    for _ in range(3):
        clock.begin(clock.due)
    clock.resume(50.0)
    assert clock.due == pytest.approx(50.0)
    assert clock.begin(50.0) == pytest.approx(0.0, abs=1e-9)
    assert clock.late == 0 and clock.lag == 0.0
