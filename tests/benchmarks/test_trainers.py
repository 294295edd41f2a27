"""Measurement of other projects' trainers (benchmarks/trainers)."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.trainers import measurement
from benchmarks.trainers.self_play import LastHits, self_play


@pytest.fixture
def clock(monkeypatch):
    """Clock of the measured process: seconds of wall clock, and twice as many of processor time."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(measurement.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(measurement, "_processor_seconds", lambda: 2 * clock.now)
    return clock


def test_speed_leaves_the_warm_up_out(clock, tmp_path):
    speed = measurement.Speed(seconds=10)
    # 1,000 hero-steps a second in the warm-up, then 100.
    assert not speed.observe(0)
    clock.now += measurement.WARM_UP_SECONDS
    assert not speed.observe(12_000)
    clock.now += 9
    assert not speed.observe(12_900)
    clock.now += 1
    assert speed.observe(13_000)
    speed.write(tmp_path / "speed.json", parameters=5)
    assert json.loads((tmp_path / "speed.json").read_text()) == {
        "hero_steps_per_second": 100.0, "cores": 2.0, "hero_steps_per_cpu_second": 50.0, "parameters": 5}


def test_trainer_that_ends_in_its_warm_up_is_refused(clock, tmp_path):
    speed = measurement.Speed(seconds=10)
    speed.observe(0)
    with pytest.raises(RuntimeError, match="warm-up"):
        speed.write(tmp_path / "speed.json")
    assert not list(tmp_path.iterdir())


def test_last_hits_count_ended_games_by_the_minute():
    """Gymnasium 1.0 changed the form of the final infos."""
    last_hits = LastHits(games=1)
    assert last_hits.mean() == 0.0
    final = {"last_hits": np.array([9.0, 30.0, 20.0]), "game_time": np.array([60.0, 600.0, 600.0])}
    last_hits.record({"final_info": final, "_final_info": np.array([False, True, True])})
    assert last_hits.mean() == 2.5
    old = LastHits(games=1)
    old.record({"final_info": np.array([None, *({"last_hits": hits, "game_time": 600.0} for hits in (30.0, 20.0))]),
                "_final_info": np.array([False, True, True])})
    assert old.mean() == 2.5
    last_hits.record({})
    last_hits.record({"final_info": final, "_final_info": np.array([True, False, False])})
    assert last_hits.mean() == 5.5  # of two heroes, 2 and 9


def test_trainers_play_the_preset_against_themselves():
    games = self_play(4)
    observations, infos = games.reset(seed=1)
    assert observations.shape == (4, *games.single_observation_space.shape) and games.team.config.frameskip == 8
    assert infos["action_mask"].shape == (4, games.single_action_space.n)
