"""Rates from counters over one window, with instances that start, end, restart or go silent."""

import pytest

from five.services.controller.autoscaler.signals import HeartbeatSample, Signals, SignalWindow


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
    assert watched().signals() is None and watched(window=1.0).signals() is None
    assert watched([rollout(0.0, 0.0)], [rollout(15.0, 0.0)]).signals() is None
    started = watched(*[[rollout(15.0 * i, 0.0)] for i in range(6)])
    assert started.signals() is not None
    started.reset()
    assert started.signals() is None


@pytest.mark.parametrize(("every", "covered"), [(14.0, True), (13.9, False)])
def test_signals_need_seven_tenths_of_the_window(every: float, covered: bool) -> None:
    found = watched(*[[rollout(every * i, 0.0)] for i in range(4)], every=every).signals()
    assert (found is not None) == covered


def test_window_includes_both_of_its_ends() -> None:
    throttled = [0.0, 15.0, 15.0, 15.0, 15.0, 15.0]  # in the first 15 s only
    shares = []
    window = SignalWindow(60.0)
    for i, seconds in enumerate(throttled):
        window.observe(15.0 * i, [rollout(15.0 * i, seconds)])
        found = window.signals()
        shares.append(None if found is None else found.rollouts_throttled)
    assert shares[4:] == [15 / 60, 0.0], "15 of the 60 s up to 60 s, and nothing afterwards"


def test_window_begins_anew_after_a_long_silence() -> None:
    """The lease lives on, so the last heartbeat is read again and again."""
    looks = [[rollout(15.0 * min(i, 4), 0.0)] for i in range(9)]
    window = watched(*looks, [rollout(135.0, 0.0)])
    assert window.signals() is None, "a window of 60 s covers 75 s of silence"
    for i in range(10, 13):
        window.observe(15.0 * i, [rollout(15.0 * i, 0.0)])
    assert window.signals() is not None


def test_heartbeat_older_than_the_last_one_is_ignored() -> None:
    """The clock of its machine was set back."""
    looks = [[rollout(15.0 * i, 3.0 * i)] for i in range(5)]
    for late in (59.0, 60.0):
        found = watched(*looks, [rollout(late, 50.0)]).signals()
        assert found is not None and found.rollouts_throttled == pytest.approx(0.2), late


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


@pytest.mark.parametrize("since", [50.0, -50.0])
def test_a_process_that_was_started_again_begins_at_zero(since: float) -> None:
    """Whatever the clock of its machine shows."""
    looks = [[optimizer(15.0 * i, 1000.0 + i, 1000.0 + i, 10.0 * i)] for i in range(4)]
    looks += [[optimizer(15.0 * i, float(i), float(i), 0.0, since=since), rollout(15.0 * i, 0.0)] for i in range(4, 10)]
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


@pytest.mark.parametrize(("kind", "stats"), [
    ("rollout", {}), ("rollout", {"throttled_seconds": None}), ("rollout", {"throttled_seconds": "much"}),
    ("evaluator", {"throttled_seconds": 1.0})], ids=["no counter", "null", "a word", "another kind"])
def test_instance_without_counters_is_skipped(kind: str, stats: dict[str, object]) -> None:
    """Wherever it comes in the list of live instances."""
    odd = HeartbeatSample(kind, "odd", 0.0, 0.0, stats)
    found = watched(*[[odd, rollout(15.0 * i, 0.0), odd] for i in range(5)]).signals()
    assert found is not None and found.rollouts == 1.0


def test_without_requests_and_samples_their_signals_are_unknown() -> None:
    found = watched(*[[inference(15.0 * i, 5, 0.1, 0.0), optimizer(15.0 * i, 5, 5, 15.0 * i)] for i in range(5)]
                    ).signals()
    assert found is not None
    assert found.queue_seconds is None and found.reuse is None and found.unpaced_reuse is None
    assert "queue_seconds" not in found.as_dict() and found.as_dict()["optimizers_starved"] == 1.0


@pytest.mark.parametrize(("throttled", "starved", "unpaced"), [
    (0.0, 0.0, 0.9), (0.5, 0.0, 0.45), (0.0, 0.5, 1.8), (1.0, 0.0, 0.9 * 0.02), (0.0, 1.0, 0.9 / 0.02),
    (1.0, 1.0, 0.9), (0.99, 0.98, 0.9)])
def test_side_that_always_waits_counts_as_working_for_a_fiftieth(throttled: float, starved: float, unpaced: float
                                                                 ) -> None:
    found = Signals(reuse=0.9, rollouts_throttled=throttled, optimizers_starved=starved)
    assert found.unpaced_reuse == pytest.approx(unpaced)


@pytest.mark.parametrize("unknown", ["reuse", "rollouts_throttled", "optimizers_starved"])
def test_reuse_without_pacing_needs_all_its_signals(unknown: str) -> None:
    known = dict.fromkeys(("reuse", "rollouts_throttled", "optimizers_starved"), 0.5)
    assert Signals(**known).unpaced_reuse == 0.5
    found = Signals(**{**known, unknown: None})  # type: ignore[arg-type]
    assert found.unpaced_reuse is None and unknown not in found.as_dict()


def test_shown_signals_are_rounded_and_known() -> None:
    assert Signals().as_dict() == {"rollouts": 0.0, "inference": 0.0, "optimizers": 0.0}
    assert Signals(rollouts=1.23456, queue_seconds=0.00012).as_dict() == {
        "rollouts": 1.2346, "inference": 0.0, "optimizers": 0.0, "queue_seconds": 0.0001}


@pytest.mark.parametrize(("growth", "share"), [(-15.0, 0.0), (0.0, 0.0), (7.5, 0.5), (30.0, 1.0)])
def test_shares_are_fractions(growth: float, share: float) -> None:
    """Counters of a damaged heartbeat may shrink or grow faster than time."""
    found = watched(*[[rollout(15.0 * i, growth * i)] for i in range(5)]).signals()
    assert found is not None and found.rollouts_throttled == share
    assert found.optimizers_starved is None and found.inference_busy is None
