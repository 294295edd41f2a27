"""Borders of the scaling rules, computed by hand: bands, windows, pauses and sizes that were too small."""

import pytest

from five.services.controller.autoscaler.rules import (
    Autoscaler,
    Decision,
    PoolScaler,
    ScaleReason,
    ScaleRequest,
    ScalingRule,
    desired_inference,
    desired_rollouts,
)
from five.services.controller.autoscaler.signals import Signals

WIDE = ScalingRule(min=1, max=100, tolerance=0.25)
QUEUE = ScalingRule(min=1, max=100, target=0.5, tolerance=0.25)


def reused(reuse: float, rollouts: float = 10.0, queue: float | None = None) -> Signals:
    """Return signals without waiting: the unpaced reuse is the measured one."""
    return Signals(rollouts=rollouts, optimizers=1, reuse=reuse, rollouts_throttled=0.0, optimizers_starved=0.0,
                   inference=10.0, queue_seconds=queue)


@pytest.mark.parametrize(("busy", "replicas"), [(0.425, 5), (0.4251, 6), (0.17, 2), (0.1701, 3)])
def test_remaining_servers_are_busy_to_85_percent_at_most(busy: float, replicas: int) -> None:
    """Ten servers that are busy for half of 0.85 carry the load of five. The queue alone would allow one."""
    signals = Signals(inference=10.0, queue_seconds=1e-6, inference_busy=busy, inference_pace=1000.0)
    assert desired_inference(signals, QUEUE, 10, 1000.0) == ScaleRequest(replicas, ScaleReason.QUEUE_SHORT)


# The band.


@pytest.mark.parametrize(("reuse", "replicas", "reason"), [
    (1.25, 10, ScaleReason.IN_BAND), (0.75, 10, ScaleReason.IN_BAND), (1.26, 13, ScaleReason.STARVED),
    (0.74, 8, ScaleReason.THROTTLED), (1.5, 15, ScaleReason.STARVED), (0.5, 5, ScaleReason.THROTTLED)])
def test_band_of_reuse_includes_its_borders(reuse: float, replicas: int, reason: ScaleReason) -> None:
    assert desired_rollouts(reused(reuse), WIDE, 10) == ScaleRequest(replicas, reason)


@pytest.mark.parametrize(("queue", "replicas", "reason"), [
    (0.625, 10, ScaleReason.IN_BAND), (0.626, 13, ScaleReason.QUEUE_LONG), (0.375, 10, ScaleReason.IN_BAND),
    (0.374, 9, ScaleReason.QUEUE_SHORT), (0.125, 5, ScaleReason.QUEUE_SHORT), (0.0, 0, ScaleReason.QUEUE_SHORT)])
def test_band_of_queue_time_includes_its_borders(queue: float, replicas: int, reason: ScaleReason) -> None:
    """Queue time grows with the square of the load: a quarter of the target is half of the load."""
    assert desired_inference(reused(1.0, queue=queue), QUEUE, 10) == ScaleRequest(replicas, reason)


def test_queue_must_be_beyond_the_band_to_hold_rollouts_back() -> None:
    both = Autoscaler(WIDE, QUEUE)
    for queue, reason in ((0.625, ScaleReason.STABILISING), (0.626, ScaleReason.INFERENCE_FIRST)):
        rollout, _ = both.decide(0.0, reused(2.0, queue=queue), {"rollout": 10, "inference": 10})
        assert (rollout.reason, rollout.wanted) == (reason, 20 if reason is ScaleReason.STABILISING else 10)


def test_reuse_must_be_beyond_the_band_to_hold_inference_back() -> None:
    both = Autoscaler(WIDE, QUEUE)
    for reuse, reason in ((0.75, ScaleReason.STABILISING), (0.74, ScaleReason.ROLLOUTS_FIRST)):
        _, inference = both.decide(0.0, reused(reuse, queue=1.0), {"rollout": 10, "inference": 10})
        assert (inference.reason, inference.wanted) == (reason, 15 if reason is ScaleReason.STABILISING else 10)


@pytest.mark.parametrize("live", [0.0, -1.0])
def test_pool_without_live_pods_is_not_measured(live: float) -> None:
    signals = Signals(rollouts=live, optimizers=1, reuse=2.0, rollouts_throttled=0.0, optimizers_starved=0.0,
                      inference=live, queue_seconds=5.0)
    for found in (desired_rollouts(signals, WIDE, 10), desired_inference(signals, QUEUE, 10)):
        assert found == ScaleRequest(10, ScaleReason.MEASURING)


# Windows and pauses. Windows of 10 s, no pause, and no bound on a change.

FAST = ScalingRule(min=1, max=10, up_window_seconds=10, down_window_seconds=10, cooldown_seconds=0,
                   max_step_fraction=10, max_shrink_fraction=1.0)
STABLE, SMALL, STARVED = ScaleReason.STABILISING, ScaleReason.TOO_SMALL_BEFORE, ScaleReason.STARVED


def test_size_that_was_too_small_is_avoided_for_doubled_times() -> None:
    """A size is avoided for 40 s (four down windows) when pods are added within 40 s of its choice, then for 80 s."""
    scaler = PoolScaler("rollout", FAST)
    for now, before, wanted, after, reason in (
            (0, 5, 2, 5, STABLE), (10, 5, 2, 2, STARVED),
            (20, 2, 4, 2, STABLE), (30, 2, 4, 4, STARVED),  # too small: at least 3 until 70
            (40, 4, 1, 4, STABLE), (50, 4, 1, 3, STARVED), (60, 3, 1, 3, SMALL), (69, 3, 1, 3, SMALL),
            (70, 3, 1, 1, STARVED),
            (80, 1, 2, 1, STABLE), (90, 1, 2, 2, STARVED),  # too small: at least 2 until 90 + 80
            (100, 2, 1, 2, STABLE), (110, 2, 1, 2, SMALL), (169, 2, 1, 2, SMALL), (170, 2, 1, 1, STARVED),
            (199, 1, 1, 1, STARVED), (205, 1, 2, 1, STABLE), (210, 1, 2, 2, STARVED),  # 40 s later: not too small
            (220, 2, 1, 2, STABLE), (221, 2, 1, 1, STARVED)):
        decision = scaler.decide(float(now), before, ScaleRequest(wanted, STARVED))
        assert (decision.before, decision.after, decision.reason) == (before, after, reason), now


def test_second_growth_does_not_raise_the_avoided_size() -> None:
    """Only the growth that follows a reduction shows that the smaller size was too small."""
    scaler = PoolScaler("rollout", FAST)
    for now, before, wanted, after in ((0, 5, 2, 5), (10, 5, 2, 2), (20, 2, 4, 2), (30, 2, 4, 4), (40, 4, 6, 4),
                                       (50, 4, 6, 6), (60, 6, 1, 6), (70, 6, 1, 1)):
        assert scaler.decide(float(now), before, ScaleRequest(wanted, STARVED)).after == after, now


def test_avoided_time_is_doubled_eight_times_at_most() -> None:
    """40 s x 2**8. A pool that shrinks and grows again each time is held longer each time."""
    scaler, now, held = PoolScaler("rollout", FAST), 0.0, []
    scaler.decide(now, 2, ScaleRequest(2, STARVED))
    for _ in range(11):
        began = now
        while scaler.decide(now, 2, ScaleRequest(1, STARVED)).after == 2:
            now += 10.0
        held.append(now - began)
        while scaler.decide(now, 1, ScaleRequest(2, STARVED)).after == 1:
            now += 10.0
    assert held[1:] == [40.0 * 2**n for n in range(9)] + [40.0 * 2**8]


@pytest.mark.parametrize(("calm", "expected"), [(0.0, 320.0), (40.0, 160.0), (80.0, 80.0), (120.0, 40.0),
                                                (100_000.0, 40.0)])
def test_avoided_time_is_halved_for_each_calm_one(calm: float, expected: float) -> None:
    """The fourth size that is too small is avoided for 40 s x 2**3, or for less if the demand falls later."""
    scaler, now = PoolScaler("rollout", FAST), 0.0

    def seconds_until_change(before: int, wanted: int) -> float:
        nonlocal now
        began = now
        while scaler.decide(now, before, ScaleRequest(wanted, STARVED)).after == before:
            now += 5.0
        return now - began

    scaler.decide(now, 2, ScaleRequest(2, STARVED))
    for _ in range(3):
        seconds_until_change(2, 1)
        seconds_until_change(1, 2)
    now += 160.0 + calm
    scaler.decide(now, 2, ScaleRequest(2, STARVED))
    seconds_until_change(2, 1)
    seconds_until_change(1, 2)
    assert seconds_until_change(2, 1) == expected


def test_pods_are_removed_at_the_end_of_their_window() -> None:
    rule = ScalingRule(min=1, max=100)
    scaler = PoolScaler("rollout", rule)
    found = [scaler.decide(now, 20, ScaleRequest(10, STARVED)).after for now in (0.0, 300.0, 599.0, 600.0)]
    assert found == [20, 20, 20, 18]
    # The pause of 120 s, with its end.
    assert [scaler.decide(now, 18, ScaleRequest(10, STARVED)).after for now in (719.0, 720.0)] == [18, 17]


def test_other_rules_keep_the_history() -> None:
    both = Autoscaler(WIDE, None)
    for now in (0.0, 30.0):
        assert not both.decide(now, reused(2.0), {"rollout": 10})[0].changes
    both.update(ScalingRule(min=1, max=12), QUEUE)
    assert both.kinds == ("rollout", "inference")
    (decision,) = both.decide(60.0, reused(2.0), {"rollout": 10})
    assert (decision.after, decision.wanted) == (12, 20)
    both.update(None, QUEUE)
    assert both.kinds == ("inference",) and both.decide(90.0, reused(2.0), {"rollout": 12}) == []
    both.update(WIDE, None)
    assert both.kinds == ("rollout",)
    assert both.decide(120.0, reused(2.0), {"rollout": 12})[0].reason is STABLE  # from the beginning


def test_pool_without_a_rule_or_pods_gets_no_size() -> None:
    found = Autoscaler(WIDE, None).decide(0.0, reused(2.0, queue=1.0), {"rollout": 0, "inference": 10})
    assert found == [Decision("rollout", 0, 0, ScaleReason.SWITCHED_OFF, 0)]


def test_bounds_are_decided_with_their_own_number() -> None:
    scaler = PoolScaler("rollout", ScalingRule(min=4, max=8))
    for current, after, reason in ((3, 4, ScaleReason.BELOW_MIN), (9, 8, ScaleReason.ABOVE_MAX)):
        decision = scaler.decide(0.0, current, ScaleRequest(6, STARVED))
        assert (decision.after, decision.wanted, decision.reason) == (after, after, reason)
    for current in (4, 8):
        assert scaler.decide(0.0, current, ScaleRequest(current, ScaleReason.IN_BAND)).reason is ScaleReason.IN_BAND
