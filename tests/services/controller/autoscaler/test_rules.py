"""Scaling rules: demand by signal, bounds, and convergence from any start."""

import itertools
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

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

RULE = ScalingRule(min=1, max=100)
QUEUE = ScalingRule(min=1, max=100, target=0.02, tolerance=0.2)
LOOK = 15.0


def played(rollouts: float, throttled: float, starved: float, reuse: float = 1.0, **others: float) -> Signals:
    return Signals(rollouts=rollouts, optimizers=1, reuse=reuse, rollouts_throttled=throttled,
                   optimizers_starved=starved, **others)


def queued(inference: float, seconds: float | None) -> Signals:
    return Signals(inference=inference, queue_seconds=seconds)


# ------------------------------------------------------------------------------------------------------- the requests

@pytest.mark.parametrize(("throttled", "starved", "reuse"), [
    (0.0, 0.0, 1.0), (0.5, 0.0, 0.5), (0.0, 0.5, 2.0), (0.2, 0.2, 1.0), (0.0, 0.875, 8.0)])
def test_unpaced_reuse_excludes_waiting(throttled: float, starved: float, reuse: float) -> None:
    """Half, a quarter and an eighth of the rollouts give a reuse of 2, 4 and 8, as in the paper's experiment."""
    assert played(8, throttled, starved).unpaced_reuse == pytest.approx(reuse)


def test_unpaced_reuse_is_finite_and_unknown_without_samples() -> None:
    assert played(8, 0.0, 1.0).unpaced_reuse == pytest.approx(50)
    assert Signals(rollouts=8, rollouts_throttled=0.0, optimizers_starved=1.0).unpaced_reuse is None


@pytest.mark.parametrize(("signals", "current", "desired"), [
    (played(10, 0.0, 0.5), 10, ScaleRequest(20, ScaleReason.STARVED)),
    (played(10, 0.0, 0.05), 10, ScaleRequest(10, ScaleReason.IN_BAND)),
    (played(10, 0.3, 0.0), 10, ScaleRequest(7, ScaleReason.THROTTLED)),
    (played(10, 0.3, 0.3), 10, ScaleRequest(10, ScaleReason.IN_BAND)),
    (played(10, 0.35, 0.0), 10, ScaleRequest(7, ScaleReason.THROTTLED)),  # 6.5: rounded up
    (played(1, 0.9, 0.0), 1, ScaleRequest(1, ScaleReason.IN_BAND)),
    # Half of the requested pods run: the others will satisfy the signal.
    (played(10, 0.0, 0.5), 20, ScaleRequest(20, ScaleReason.PODS_MISSING)),
    (played(10, 0.0, 0.5), 40, ScaleRequest(40, ScaleReason.PODS_MISSING)),
    (played(10, 0.0, 0.75), 20, ScaleRequest(40, ScaleReason.STARVED)),
    (Signals(rollouts=10), 10, ScaleRequest(10, ScaleReason.MEASURING)),
    (played(0, 0.0, 1.0), 10, ScaleRequest(10, ScaleReason.MEASURING)),
])
def test_rollouts_follow_sample_reuse(signals: Signals, current: int, desired: ScaleRequest) -> None:
    assert desired_rollouts(signals, RULE, current) == desired


def test_another_reuse_may_be_the_target() -> None:
    assert desired_rollouts(played(10, 0.0, 0.5), ScalingRule(target=2.0), 10) == ScaleRequest(10, ScaleReason.IN_BAND)


@pytest.mark.parametrize(("signals", "current", "desired"), [
    (queued(4, 0.02), 4, ScaleRequest(4, ScaleReason.IN_BAND)),
    (queued(4, 0.024), 4, ScaleRequest(4, ScaleReason.IN_BAND)),
    (queued(4, 0.025), 4, ScaleRequest(5, ScaleReason.QUEUE_LONG)),
    (queued(4, 2.0), 4, ScaleRequest(6, ScaleReason.QUEUE_LONG)),  # a queue has no bound, so its length says little
    (queued(4, 2.0), 8, ScaleRequest(8, ScaleReason.PODS_MISSING)),
    (queued(2, 0.0051), 2, ScaleRequest(2, ScaleReason.IN_BAND)),  # on one server it might be four times as long
    (queued(2, 0.005), 2, ScaleRequest(1, ScaleReason.QUEUE_SHORT)),
    (queued(10, 0.01), 10, ScaleRequest(8, ScaleReason.QUEUE_SHORT)),
    (queued(4, None), 4, ScaleRequest(4, ScaleReason.MEASURING)),
])
def test_inference_follows_queue_time(signals: Signals, current: int, desired: ScaleRequest) -> None:
    assert desired_inference(signals, QUEUE, current) == desired


@pytest.mark.parametrize(("busy", "pace", "best", "desired"), [
    (0.2, 1000.0, 1000.0, 1),
    (0.5, 1000.0, 1000.0, 3),  # of four, two would be full
    (1.0, 1000.0, 1000.0, 4),
    (1.0, 250.0, 1000.0, 2),  # busy with batches so small that a quarter of the servers could do it
    (1.0, 1000.0, 0.0, 4),
])
def test_servers_shrink_only_if_the_rest_can_carry_the_load(busy: float, pace: float, best: float,
                                                            desired: int) -> None:
    signals = Signals(inference=4, queue_seconds=0.0005, inference_busy=busy, inference_pace=pace)
    assert desired_inference(signals, QUEUE, 4, best).replicas == desired


def test_best_rate_is_kept_until_the_run_stops() -> None:
    both = Autoscaler(None, QUEUE)

    def wanted(pace: float) -> int:
        signals = Signals(inference=4, queue_seconds=0.0005, inference_busy=1.0, inference_pace=pace)
        return both.decide(0.0, signals, {"inference": 4})[0].wanted

    assert (wanted(1000.0), wanted(250.0)) == (4, 2)
    both.reset()
    assert wanted(250.0) == 4


# -------------------------------------------------------------------------------------------------------- the pace

def feed(scaler: PoolScaler, requests: list[int], current: int, start: float = 0.0) -> list[Decision]:
    """Apply decisions for one demand after another."""
    made = []
    for i, wanted in enumerate(requests):
        decision = scaler.decide(start + LOOK * i, current, ScaleRequest(wanted, ScaleReason.STARVED))
        current = decision.after
        made.append(decision)
    return made


def test_growth_waits_for_its_window_and_is_bounded() -> None:
    made = feed(PoolScaler("rollout", RULE), [50] * 30, 10)
    changes = [(i * LOOK, d.before, d.after) for i, d in enumerate(made) if d.changes]
    assert changes[0] == (60.0, 10, 15)
    assert changes[1] == (180.0, 15, 22)  # after the pause, half as many again
    assert {d.reason for d in made[:4]} == {ScaleReason.STABILISING} and made[5].reason is ScaleReason.COOLING


def test_single_high_measurement_changes_nothing() -> None:
    assert not any(d.changes for d in feed(PoolScaler("rollout", RULE), [10, 50] * 40, 10))


def test_shrinking_waits_ten_times_as_long_and_is_slower() -> None:
    made = feed(PoolScaler("rollout", RULE), [10] * 60, 100)
    changes = [(i * LOOK, d.before, d.after) for i, d in enumerate(made) if d.changes]
    assert changes[0] == (600.0, 100, 90) and changes[1] == (720.0, 90, 81)


def test_shrinking_stops_at_the_windows_maximum() -> None:
    requests = [95 if i == 30 else 10 for i in range(41)]
    assert feed(PoolScaler("rollout", RULE), requests, 100)[-1].after == 95


def test_changes_are_at_least_one_pod() -> None:
    assert feed(PoolScaler("rollout", RULE), [9] * 5, 1)[-1].after == 2
    assert feed(PoolScaler("rollout", RULE), [1] * 41, 2)[-1].after == 1


def test_bounds_hold_at_once_and_whatever_the_signal() -> None:
    rule = ScalingRule(min=4, max=8)
    below = PoolScaler("rollout", rule).decide(0.0, 1, ScaleRequest(1, ScaleReason.MEASURING))
    above = PoolScaler("rollout", rule).decide(0.0, 50, ScaleRequest(80, ScaleReason.STARVED))
    assert (below.after, below.reason, above.after, above.reason) == (4, ScaleReason.BELOW_MIN, 8,
                                                                      ScaleReason.ABOVE_MAX)


def test_demand_beyond_a_bound_is_reported() -> None:
    rule = ScalingRule(min=2, max=8)
    assert feed(PoolScaler("rollout", rule), [20] * 9, 8)[-1] == Decision("rollout", 8, 8, ScaleReason.AT_MAX, 20)
    assert feed(PoolScaler("rollout", rule), [1] * 60, 2)[-1] == Decision("rollout", 2, 2, ScaleReason.AT_MIN, 1)


def test_zero_replicas_are_left_alone() -> None:
    made = feed(PoolScaler("rollout", RULE), [50] * 20, 0)
    assert {(d.after, d.reason) for d in made} == {(0, ScaleReason.SWITCHED_OFF)}


def test_external_change_starts_the_cooldown() -> None:
    scaler = PoolScaler("rollout", RULE)
    feed(scaler, [10] * 5, 10)
    made = feed(scaler, [50] * 12, 20, start=75.0)
    assert [d.after for d in made[:8]] == [20] * 8 and made[8].after == 30


def test_demand_before_a_stop_is_forgotten() -> None:
    scaler = PoolScaler("rollout", RULE)
    feed(scaler, [10] * 41, 100)
    scaler.reset()
    assert not scaler.decide(2000.0, 90, ScaleRequest(10, ScaleReason.THROTTLED)).changes


def test_too_small_size_is_not_retried_soon() -> None:
    scaler, current, now = PoolScaler("inference", RULE), 2, 0.0
    changes: list[float] = []
    while now < 6 * 3600:  # one is too few, two are too many
        decision = scaler.decide(now, current, ScaleRequest(1 if current == 2 else 2, ScaleReason.QUEUE_SHORT))
        if decision.changes:
            changes.append(now)
        current, now = decision.after, now + LOOK
    regrets = [b - a for a, b in zip(changes[1::2], changes[2::2], strict=False)]
    assert len(changes) <= 8 and regrets == sorted(regrets) and regrets[-1] >= 2 * regrets[0]


def test_rules_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ValidationError, match="min 9 is above max 3"):
        ScalingRule(min=9, max=3)
    with pytest.raises(ValidationError, match="faster than they are added"):
        ScalingRule(up_window_seconds=600, down_window_seconds=60)


# ------------------------------------------------------------------------------------------------ both kinds together

def test_rollouts_do_not_grow_while_they_wait_for_inference() -> None:
    both = Autoscaler(RULE, QUEUE)
    slow = played(10, 0.0, 0.5, inference=2.0, queue_seconds=0.2)
    rollout, inference = both.decide(0.0, slow, {"rollout": 10, "inference": 2})
    assert rollout.reason is ScaleReason.INFERENCE_FIRST and inference.wanted == 3
    fast = played(10, 0.0, 0.5, inference=2.0, queue_seconds=0.01)
    assert both.decide(15.0, fast, {"rollout": 10, "inference": 2})[0].wanted == 20


def test_inference_does_not_grow_while_rollouts_are_throttled() -> None:
    both = Autoscaler(RULE, QUEUE)
    rollout, inference = both.decide(0.0, played(10, 0.4, 0.0, inference=2.0, queue_seconds=0.2),
                                     {"rollout": 10, "inference": 2})
    assert inference.reason is ScaleReason.ROLLOUTS_FIRST and rollout.wanted == 6


def test_a_kind_without_a_rule_or_a_size_is_left_alone() -> None:
    starving = played(10, 0.0, 0.5, inference=2.0, queue_seconds=0.2)
    assert [d.kind for d in Autoscaler(None, QUEUE).decide(0.0, starving, {"rollout": 1, "inference": 2})] == [
        "inference"]
    assert [d.kind for d in Autoscaler(RULE, QUEUE).decide(0.0, starving, {"rollout": 10})] == ["rollout"]
    # Without inference under control nothing will shorten its queue: rollouts need not wait for that.
    assert Autoscaler(RULE, None).decide(0.0, starving, {"rollout": 10})[0].wanted == 20


def test_nothing_is_changed_before_it_was_measured() -> None:
    both = Autoscaler(RULE, QUEUE)
    for i in range(100):
        for decision in both.decide(i * LOOK, None, {"rollout": 10, "inference": 2}):
            assert not decision.changes and decision.reason is ScaleReason.MEASURING


# ----------------------------------------------------------------------------------------------------- properties

def live(pods: int, needed: float, noise: float = 0.0) -> Signals:
    """Return signals of a run whose optimizers need the data of ``needed`` rollouts."""
    made = max(pods, 0.01) / needed * (1 + noise)
    return played(pods, max(1 - 1 / made, 0.0), max(1 - made, 0.0))


@st.composite
def rules(draw: st.DrawFn) -> ScalingRule:
    low = draw(st.integers(1, 50))
    up = draw(st.sampled_from([30.0, 60.0, 120.0]))
    return ScalingRule(min=low, max=low + draw(st.integers(0, 3000)), tolerance=draw(st.floats(0.02, 0.5)),
                       up_window_seconds=up, down_window_seconds=up * draw(st.integers(1, 10)),
                       max_step_fraction=draw(st.floats(0.01, 2.0)), max_shrink_fraction=draw(st.floats(0.01, 1.0)),
                       cooldown_seconds=draw(st.sampled_from([0.0, 60.0, 300.0])))


@given(rules(), st.integers(1, 5000), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 10),
                                                         st.booleans()), min_size=1, max_size=60))
@settings(max_examples=150, deadline=None)
def test_no_signal_leads_outside_the_bounds(rule: ScalingRule, start: int,
                                            seen: list[tuple[float, float, float, bool]]) -> None:
    scaler = Autoscaler(rule, None)
    current = start
    for i, (throttled, starved, reuse, known) in enumerate(seen):
        signals = played(current, throttled, starved, reuse) if known else None
        (decision,) = scaler.decide(i * 30.0, signals, {"rollout": current})
        assert rule.min <= decision.after <= rule.max
        inside = rule.min <= current <= rule.max
        if inside and decision.after > current:
            assert decision.after - current <= max(current * rule.max_step_fraction, 1)
        if inside and decision.after < current:
            assert current - decision.after <= max(current * rule.max_shrink_fraction, 1)
        current = decision.after


@given(rules(), st.integers(1, 4000), st.floats(0.3, 4000))
@settings(max_examples=100, deadline=None)
def test_sizes_converge_from_any_start(rule: ScalingRule, start: int, needed: float) -> None:
    """Under constant load sizes end within the band or at a bound, without a change of direction."""
    scaler, current, now = Autoscaler(rule, None), start, 0.0
    path = [start]
    quiet = rule.down_window_seconds + rule.cooldown_seconds + 2 * LOOK
    changed_at = 0.0
    while now - changed_at <= 2 * quiet:
        (decision,) = scaler.decide(now, live(current, needed), {"rollout": current})
        if decision.changes:
            changed_at, current = now, decision.after
            path.append(current)
        now += LOOK
        assert len(path) < 2000
    steps = [b - a for a, b in itertools.pairwise(path[1:])]  # the first one may only enforce a bound
    assert all(s > 0 for s in steps) or all(s < 0 for s in steps)
    if rule.min < current < rule.max:
        reuse = live(current, needed).unpaced_reuse
        assert reuse is not None
        # One pod may be more than the band is wide.
        assert reuse <= 1 + rule.tolerance + 1e-6
        assert reuse >= 1 - rule.tolerance - 1e-6 or math.ceil(needed - 1e-6) == current


@given(st.floats(2, 3000), st.lists(st.floats(-0.08, 0.08), min_size=20, max_size=20), st.floats(-0.09, 0.09))
@settings(max_examples=60, deadline=None)
def test_noise_within_the_band_changes_nothing(needed: float, noise: list[float], offset: float) -> None:
    pods = max(round(needed * (1 + offset / 20)), 2)
    scaler = Autoscaler(ScalingRule(max=4000, tolerance=0.1), None)
    for i in range(200):
        signals = live(pods, pods, noise[i % 20])
        assert not scaler.decide(i * LOOK, signals, {"rollout": pods})[0].changes


@given(st.integers(1, 60), st.floats(0.05, 40.0), st.floats(0.05, 0.95))
@example(1, 4.25, 0.375)
@settings(max_examples=40, deadline=None)
def test_inference_settles_however_its_queue_grows(start: int, load: float, floor: float) -> None:
    """A server's queue time grows as 1 / (1 - load) above a constant, the share ``floor`` of the target."""
    rule = ScalingRule(min=1, max=100, target=0.02, tolerance=0.2)
    scaler, current, changes = Autoscaler(None, rule), start, []
    for i in range(12 * 60):
        share = load / current
        queue = floor * rule.target / 2 / (1 - share) if share < 0.99 else 50 * rule.target
        signals = Signals(inference=current, queue_seconds=queue, inference_busy=min(share, 1.0), inference_pace=1000)
        (decision,) = scaler.decide(i * 60.0, signals, {"inference": current})
        if decision.changes:
            changes.append(decision.after - current)
        current = decision.after
    assert load / current < 1
    assert sum((a > 0) != (b > 0) for a, b in itertools.pairwise(changes)) <= 1
