"""Metrics of a rollout: each game and step is counted once, and rates are those since the last heartbeat."""

from types import SimpleNamespace
from typing import Any

import pytest

from dota.rewards import SIGNALS
from dota.vec_game import STATS
from five.services.rollout import metrics
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.metrics import RolloutMeter, sum_progress
from rapid.telemetry.metrics import REGISTRY
from tests.services.fresh_metrics import initial_samples

RECORD = {"opponent": -1, "outcome": "selfplay", "winner": "radiant", "game_seconds": 700.0, "wall_seconds": 42.0,
          "statistics": {"last_hits": 30.0, "denies": -1.0}, "rewards": {"gold": 2.5, "health": -0.5}}


class Counted:
    """Increases of metrics since the start of a test."""

    def __init__(self) -> None:
        self._before = self._read()

    @staticmethod
    def _read() -> dict[str, float]:
        return {f"{s.name.removeprefix('five_rollout_')}{sorted(s.labels.values()) or ''}": s.value
                for family in REGISTRY.collect() if family.name.startswith("five_rollout_") for s in family.samples
                if not s.name.endswith("_bucket")}

    def now(self) -> dict[str, float]:
        """Return what changed, by name and labels."""
        after = self._read()
        # What earlier tests added leaves a rounding error in the difference.
        changed = {name: round(value - self._before.get(name, 0.0), 9) for name, value in after.items()}
        return {name: value for name, value in changed.items() if value}


def sender(**values: Any) -> Any:
    counts = {"too_large": 0, "stale": 0, "unacknowledged": 0, "unsent": 0}
    return SimpleNamespace(**{**counts, "throttled": SimpleNamespace(seconds=0.0), **values})


@pytest.mark.parametrize(("opponent", "kind"), [(-1, "latest"), (0, "past"), (7, "past"), ("scripted", "scripted")])
def test_finished_game_is_counted_by_opponent_and_outcome(opponent: int | str, kind: str) -> None:
    counted = Counted()
    RolloutMeter().game({**RECORD, "opponent": opponent})
    assert counted.now() == {
        f"games_total{sorted((kind, 'selfplay'))}": 1.0, "decided_games_total['radiant']": 1.0,
        "game_seconds_count": 1.0, "game_seconds_sum": 700.0, "game_wall_seconds_count": 1.0,
        "game_wall_seconds_sum": 42.0, "hero_statistics_total['last_hits']": 30.0,
        "reward_gained_total['gold']": 2.5, "reward_lost_total['health']": 0.5}


def test_cut_game_has_no_winner() -> None:
    counted = Counted()
    RolloutMeter().game({**RECORD, "outcome": "cut", "winner": ""})
    found = counted.now()
    assert found["games_total['cut', 'latest']"] == 1.0 and found["hero_statistics_total['last_hits']"] == 30.0
    assert not any(name.startswith("decided_games_total") for name in found)


def test_game_from_the_middle_is_counted_apart() -> None:
    counted = Counted()
    RolloutMeter().game({**RECORD, "opponent": 7, "outcome": "won", "start_seconds": 600.0, "statistics": {}})
    assert counted.now() == {"middle_games_total['past', 'won']": 1.0}


def test_game_of_an_anneal_is_also_counted_by_variant() -> None:
    counted = Counted()
    RolloutMeter().game({**RECORD, "variant": "new"})
    found = {name: value for name, value in counted.now().items() if name.startswith("variant")}
    assert found == {
        "variant_games_total['new', 'selfplay']": 1.0, "variant_game_seconds_total['new']": 700.0,
        "variant_hero_statistics_total['last_hits', 'new']": 30.0}


def test_progress_is_counted_once() -> None:
    counted, meter = Counted(), RolloutMeter()
    one = GroupProgress(team_steps=10, hero_steps=50, segments=3, recoveries=1, abandoned_games=2, wait_seconds=0.5,
                        act_seconds=1.0, step_seconds=2.0, cut_seconds=0.25, newest_version=4)
    other = GroupProgress(team_steps=1, newest_version=6)
    for _ in range(2):
        meter.show([one, other], sender(too_large=1, stale=2, unacknowledged=3, unsent=5), 7)
    expected = {
        "team_steps_total": 11.0, "hero_steps_total": 50.0, "segments_total": 3.0, "recoveries_total": 1.0,
        "abandoned_games_total": 2.0, "stage_seconds_total['wait']": 0.5, "stage_seconds_total['inference']": 1.0,
        "stage_seconds_total['games']": 2.0, "stage_seconds_total['segments']": 0.25, "unassigned_games_total": 7.0,
        "dropped_segments_total['too_large']": 1.0, "dropped_segments_total['epoch']": 2.0,
        "dropped_segments_total['unacknowledged']": 3.0}
    gauges = {"unsent_segments", "newest_versions"}
    assert {name: value for name, value in counted.now().items() if name not in gauges} == expected
    one.team_steps += 5
    meter.show([one, other], sender(too_large=2, stale=2, unacknowledged=3), 8)
    found = counted.now()
    assert (found["team_steps_total"], found["unassigned_games_total"]) == (16.0, 8.0)
    assert found["dropped_segments_total['too_large']"] == 2.0 and found["segments_total"] == 3.0


def test_heartbeat_has_rates_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    meter = RolloutMeter()
    progress = [GroupProgress(team_steps=40, hero_steps=200, games=3, recoveries=1, act_seconds=1.0, step_seconds=0.5,
                              wait_seconds=0.25, cut_seconds=0.125, newest_version=4), GroupProgress(games=1)]
    now[0] += 2.0
    assert meter.recent(progress, sender(unsent=6, throttled=SimpleNamespace(seconds=3.0))) == {
        "steps/s": 20.0, "hero_steps/s": 100.0, "games": 4, "unsent": 6, "version": 4, "inference_wait_share": 0.25,
        "game": 0.125, "waiting": 0.062, "segments": 0.031, "recoveries": 1, "throttled_seconds": 1.5}
    progress[0].team_steps += 10
    now[0] += 5.0
    found = meter.recent(progress, sender())
    assert (found["steps/s"], found["hero_steps/s"], found["games"], found["inference_wait_share"]) == (2.0, 0.0, 4, 0)
    progress[0].team_steps += 10
    now[0] += 0.5
    assert meter.recent(progress, sender())["steps/s"] == 20.0
    progress[0].team_steps += 1
    assert meter.recent(progress, sender())["steps/s"] == 1000.0  # at the same moment: divided by a millisecond
    assert meter.recent([], sender())["version"] == -1  # before the first group, and at the same moment


def test_labelled_counters_exist_before_the_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that appears with its first event hides that event from Prometheus' rates."""
    found = initial_samples("five.services.rollout.metrics", monkeypatch)
    for name, labels in (("reward_gained", SIGNALS), ("reward_lost", SIGNALS), ("hero_statistics", STATS),
                         ("decided_games", ("radiant", "dire", "draw")),
                         ("dropped_segments", ("too_large", "epoch", "unacknowledged")),
                         ("games", ("latest selfplay", "past won", "past lost", "past drawn"))):
        assert found[f"five_rollout_{name}_total"] == dict.fromkeys(labels, 0.0)


def test_lengths_of_games_are_counted_by_half_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = initial_samples("five.services.rollout.metrics", monkeypatch)
    for name in ("game", "game_wall"):
        bounds = [float(bound) for bound in found[f"five_rollout_{name}_seconds_bucket"]]
        assert bounds == sorted(bounds) and all(bound % 30 == 0 for bound in bounds[:-1])
        assert (bounds[0], bounds[-2], len(bounds)) == (30, 7200, 16)


def test_totals_have_the_newest_version_of_any_group() -> None:
    parts = [GroupProgress(team_steps=1, queue_us=5, newest_version=9, is_idle=False),
             GroupProgress(team_steps=2, queue_us=6, newest_version=3)]
    assert sum_progress(parts) == GroupProgress(team_steps=3, queue_us=11, newest_version=9)
    assert sum_progress([]) == GroupProgress()
