"""Rates from counters over one window, with instances that start, end, restart or go silent."""

import pytest

from five.services.controller.autoscaler.signals import HeartbeatSample, SignalWindow


def optimizer(at: float, received: float, consumed: float, starved: float, name: str = "0",
              since: float = 0.0) -> HeartbeatSample:
    return HeartbeatSample("optimizer", name, at, since, {
        "received": received, "consumed": consumed, "starved_seconds": starved, "version": 7})


def rollout(at: float, throttled: float, name: str = "a", since: float = 0.0) -> HeartbeatSample:
    return HeartbeatSample("rollout", name, at, since, {"throttled_seconds": throttled, "games": 3})


def inference(at: float, requests: float, queued: float, forward: float, name: str = "i") -> HeartbeatSample:
    return HeartbeatSample("inference", name, at, 0.0, {
        "requests": requests, "queued_seconds": queued, "forward_seconds": forward, "team_steps": 32 * requests})


def watched(*looks: list[HeartbeatSample], window: float = 60.0, every: float = 15.0) -> SignalWindow:
    found = SignalWindow(window)
    for i, beats in enumerate(looks):
        found.observe(i * every, beats)
    return found


def test_rates_are_differences_over_the_window() -> None:
    looks = [[optimizer(t, 100 + 10 * t, 50 + 9 * t, 3 + t / 4), rollout(t, t / 5), rollout(t, 0.0, "b"),
              inference(t, 20 * t, 0.1 * t, t / 2)] for t in (0.0, 15.0, 30.0, 45.0)]
    found = watched(*looks).signals()
    assert found is not None
    assert (found.rollouts, found.inference, found.optimizers) == (2.0, 1.0, 1.0)
    assert found.reuse == pytest.approx(0.9)
    assert found.optimizers_starved == pytest.approx(0.25)
    assert found.rollouts_throttled == pytest.approx(0.1)
    assert found.queue_seconds == pytest.approx(0.005) and found.inference_busy == pytest.approx(0.5)
    assert found.inference_pace == pytest.approx(32 * 20 / 0.5)
    assert found.unpaced_reuse == pytest.approx(0.9 * 0.9 / 0.75)
    assert found.as_dict()["unpaced_reuse"] == pytest.approx(1.08)


def test_samples_before_the_window_are_dropped() -> None:
    looks = [[rollout(15.0 * i, min(15.0 * i, 60.0))] for i in range(12)]  # throttled for the first minute only
    found = watched(*looks).signals()
    assert found is not None and found.rollouts_throttled == pytest.approx(0.0)


def test_short_window_gives_no_signal() -> None:
    assert watched().signals() is None
    assert watched([rollout(0.0, 0.0)], [rollout(15.0, 0.0)]).signals() is None
    started = watched(*[[rollout(15.0 * i, 0.0)] for i in range(6)])
    assert started.signals() is not None
    started.reset()
    assert started.signals() is None


def test_partial_lifetime_counts_partially() -> None:
    looks = [[rollout(15.0 * i, 0.0), *([rollout(15.0 * i, 0.0, "late")] if i >= 2 else [])] for i in range(5)]
    found = watched(*looks).signals()
    assert found is not None and found.rollouts == pytest.approx(1.5)


def test_dead_instances_fade_out() -> None:
    window = SignalWindow(60.0)
    alive = []
    for i in range(12):
        window.observe(15.0 * i, [rollout(15.0 * i, 0.0), *([rollout(15.0 * i, 0.0, "gone")] if i < 6 else [])])
        found = window.signals()
        alive.append(found.rollouts if found else 0.0)
    assert alive[5] == pytest.approx(2.0) and alive[7] == pytest.approx(1.5) and alive[-1] == pytest.approx(1.0)


def test_a_process_that_was_started_again_begins_at_zero() -> None:
    looks = [[optimizer(15.0 * i, 1000.0 + i, 1000.0 + i, 10.0 * i)] for i in range(4)]
    looks += [[optimizer(15.0 * i, float(i), float(i), 0.0, since=50.0), rollout(15.0 * i, 0.0)] for i in range(4, 10)]
    found = watched(*looks).signals()
    assert found is not None
    assert found.reuse == pytest.approx(1.0) and found.optimizers_starved == pytest.approx(0.0)


def test_missed_heartbeat_and_clock_skew_change_nothing() -> None:
    """Rates use each instance's own clock."""
    ahead = 86400.0
    looks = [[rollout(ahead + 15.0 * i, 3.0 * i)] if i != 2 else [] for i in range(5)]
    looks[4] *= 2
    found = watched(*looks).signals()
    assert found is not None and found.rollouts_throttled == pytest.approx(0.2) and found.rollouts == 1.0


def test_instances_without_counters_are_skipped() -> None:
    odd = [HeartbeatSample("rollout", "new", 0.0, 0.0, {}), HeartbeatSample("rollout", "odd", 0.0, 0.0,
                                                                            {
        "throttled_seconds": None}), HeartbeatSample("evaluator", "e", 0.0, 0.0, {"throttled_seconds": 1.0})]
    found = watched(*[[rollout(15.0 * i, 0.0), *odd] for i in range(5)]).signals()
    assert found is not None and found.rollouts == 1.0


def test_without_requests_and_samples_their_signals_are_unknown() -> None:
    found = watched(*[[inference(15.0 * i, 5, 0.1, 0.0), optimizer(15.0 * i, 5, 5, 15.0 * i)] for i in range(5)]
                    ).signals()
    assert found is not None
    assert found.queue_seconds is None and found.reuse is None and found.unpaced_reuse is None
    assert "queue_seconds" not in found.as_dict() and found.as_dict()["optimizers_starved"] == 1.0
