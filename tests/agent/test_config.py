import pytest
from pydantic import ValidationError

from five.agent.config import BufferConfig, LeagueConfig, LearnerConfig, SchedulesConfig


def test_defaults_match_the_paper():
    """Berner et al. 2019, table 2 (Rerun)."""
    c = LearnerConfig()
    assert (c.lstm_unroll_length, c.samples_per_segment) == (16, 16)
    assert (c.batch_samples, c.gradient_steps_per_iteration) == (120, 32)
    assert (c.gae_lambda, c.ppo_clip, c.value_loss_weight, c.gradient_clip) == (0.95, 0.2, 1.0, 5.0)
    assert (c.adam_beta1, c.adam_beta2) == (0.9, 0.999)
    assert (BufferConfig().capacity_samples, BufferConfig().sample_reuse) == (4096, 1.0)
    assert (LeagueConfig().past_opponent_share, LeagueConfig().quality_learning_rate) == (0.2, 0.01)
    s = SchedulesConfig()
    assert [s.learning_rate.initial, s.entropy_coefficient.initial, s.team_spirit.initial,
            s.gae_horizon_seconds.initial] == [5e-5, 0.01, 0.3, 180]


@pytest.mark.parametrize(("section", "values", "reason"), [
    (LearnerConfig, {"ppo_clp": 0.1}, "ppo_clp"),
    (LearnerConfig, {"ppo_clip": "much"}, "ppo_clip"),
    (LearnerConfig, {"gae_lambda": 1.5}, "gae_lambda"),
    (BufferConfig, {"minimum_samples": 10, "capacity_samples": 5}, "minimum_samples 10"),
    (BufferConfig, {"admission_batches": 9, "reuse_window_batches": 8}, "admission_batches 9"),
    (BufferConfig, {"admission_batches": 2, "reuse_window_batches": 2}, "admission_batches 2"),
    (LeagueConfig, {"past_opponent_share": 1.2}, "past_opponent_share")])
def test_invalid_values_are_rejected_by_name(section, values, reason):
    with pytest.raises(ValidationError, match=reason):
        section.model_validate(values)


@pytest.mark.parametrize("section", [LearnerConfig, BufferConfig, LeagueConfig, SchedulesConfig])
def test_every_field_is_described(section):
    assert all(field.description for field in section.model_fields.values())


def test_game_time_may_be_longer_than_timeouts():
    assert LearnerConfig(building_horizon_seconds=1e9).building_horizon_seconds == 1e9
    with pytest.raises(ValidationError, match="building_horizon_seconds"):
        LearnerConfig(building_horizon_seconds=1e13)
