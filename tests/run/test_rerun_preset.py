"""Every value of the paper's table 2 (Rerun column) and figure 7 against the preset."""

import pytest

from five.config import ScheduleConfig
from run.load import load

RERUN = load("rerun")


@pytest.mark.parametrize(("value", "expected"), [
    (RERUN.learning.lstm_unroll_length, 16),
    (RERUN.learning.samples_per_segment, 16),
    (RERUN.learning.batch_samples, 120),
    (RERUN.learning.gradient_steps_per_iteration, 32),
    (RERUN.model.lstm, 4096),
    (RERUN.buffer.sample_reuse, 1.0),
    (RERUN.buffer.capacity_samples, 4096),
    (RERUN.learning.gae_lambda, 0.95),
    (RERUN.learning.ppo_clip, 0.2),
    (RERUN.learning.value_loss_weight, 1.0),
    (RERUN.learning.adam_beta1, 0.9),
    (RERUN.learning.adam_beta2, 0.999),
    (RERUN.learning.gradient_clip, 5.0),
    (RERUN.league.past_opponent_share, 0.2),
    (RERUN.league.quality_learning_rate, 0.01),
    (RERUN.league.add_every_versions, 10),
    (RERUN.rating.sigma, 25 / 3),
    (RERUN.rating.beta, 25 / 6),
    (RERUN.rating.tau, 0.0),
    (RERUN.rating.draw_probability, 0.02),
    (RERUN.rating.games_per_rating, 750),
    (RERUN.rewards.preset, "paper"),
    (RERUN.game.heroes_per_team, 5),
    (RERUN.services.optimizer.optimizers, 512),
])
def test_a_constant(value: object, expected: object) -> None:
    assert value == expected


@pytest.mark.parametrize(("schedule", "initial", "start", "final"), [
    (RERUN.schedules.team_spirit, 0.3, 15_000, 0.8),
    (RERUN.schedules.gae_horizon_seconds, 180.0, 23_000, 360.0),
    (RERUN.schedules.entropy_coefficient, 0.01, 43_000, 0.001),
    (RERUN.schedules.learning_rate, 5e-5, 54_000, 5e-6),
])
def test_a_schedule(schedule: ScheduleConfig, initial: float, start: int, final: float) -> None:
    (ramp,) = schedule.ramps
    assert (schedule.initial, ramp.from_, ramp.start, ramp.to) == (initial, initial, start, final)
    # "Linear over one to two days": 42 days were 54,000 versions.
    assert 1_200 <= ramp.length <= 2_700
