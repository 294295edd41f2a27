"""Measurement of other projects' trainers (benchmarks/trainers)."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.trainers import measurement
from benchmarks.trainers.bot_games import play_bot
from benchmarks.trainers.self_play import self_play


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


def test_trainers_play_the_preset_against_themselves():
    games = self_play(4)
    observations, infos = games.reset(seed=1)
    assert observations.shape == (4, *games.single_observation_space.shape) and games.team.config.frameskip == 8
    assert infos["action_mask"].shape == (4, games.single_action_space.n)


def test_games_against_a_bot_are_summed_over_both_sides():
    rng, begun = np.random.default_rng(1), []

    def begin(env):
        begun.append((env.num_envs, int(env.team.team_of[0]), env.team.config.randomisation.gold))
        return lambda observations, masks: (rng.random(masks.shape) * masks).argmax(-1)

    found = play_bot(begin, games=4)
    assert begun == [(2, 0, 0.0), (2, 1, 0.0)]
    # Random play neither beats the bot nor lasts to the time limit of 15 minutes.
    assert (found["won"], found["drawn"], found["lost"]) == (0, 0, 4) and 4 < found["game_minutes"] < 60
    assert found["last_hits"] >= 0
