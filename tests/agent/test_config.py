import re

import pytest
from pydantic import ValidationError

from five.agent.config import (
    BufferConfig,
    LeagueConfig,
    LearnerConfig,
    ModelConfig,
    RatingConfig,
    ScheduleConfig,
    SchedulesConfig,
)


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
    (LeagueConfig, {"past_opponent_share": 1.2}, "past_opponent_share"),
    (ModelConfig, {"key": 129, "unit": 128}, "key 129"),
    (ModelConfig, {"split_heads": ["offset.move", "unit.ally", "offset.move"]}, "each head may occur once"),
    (RatingConfig, {"anchors": ["scripted"]}, "random is required"),
    (RatingConfig, {"anchors": ["random", "scripted", "random"]}, "each bot may occur once"),
    (RatingConfig, {"anchors": ["random"], "required_references": ["scripted"]}, "required_references scripted: only")])
def test_invalid_values_are_rejected_by_name(section, values, reason):
    with pytest.raises(ValidationError, match=reason):
        section.model_validate(values)


@pytest.mark.parametrize(("section", "values"), [
    (BufferConfig, {"minimum_samples": 5, "capacity_samples": 5}),
    (BufferConfig, {"admission_batches": 7.9, "reuse_window_batches": 8}),
    (ModelConfig, {"key": 128, "unit": 128}), (ModelConfig, {"split_heads": ["offset.move", "unit.ally"]}),
    (RatingConfig, {"anchors": ["random"]}),
    (RatingConfig, {"anchors": ["scripted", "random"], "required_references": ["scripted"]})])
def test_values_at_a_limit_are_allowed(section, values):
    found = section.model_validate(values).model_dump(mode="json")
    assert {name: found[name] for name in values} == values


@pytest.mark.parametrize(("name", "low", "high"), [
    ("learning_rate", 0.0, 1.0), ("entropy_coefficient", 0.0, 1.0), ("team_spirit", 0.0, 1.0),
    ("gae_horizon_seconds", 1.0, 1e9), ("scripted_fraction", 0.0, 1.0), ("scripted_bot", -1.0, 1000.0),
    ("game_seconds", 1.0, 8000.0), ("middle_fraction", 0.0, 1.0), ("building_health", 0.01, 1.0)])
def test_scheduled_values_are_limited(name, low, high):
    ramp = {"start": 5, "length": 2, "from": low, "to": high}
    assert getattr(SchedulesConfig.model_validate({name: {"initial": high, "ramps": [ramp]}}), name).initial == high
    for wrong in (low - 0.01, high * 1.01):
        for schedule in ({"initial": wrong}, {"initial": low, "ramps": [{**ramp, "from": wrong}]},
                         {"initial": low, "ramps": [{**ramp, "to": wrong}]}):
            with pytest.raises(ValidationError, match=re.escape(f": {low:g} to {high:g} is allowed")):
                SchedulesConfig.model_validate({name: schedule})


def test_ramps_may_touch_and_not_overlap():
    def schedule(second_start):
        return ScheduleConfig.model_validate({"initial": 0, "ramps": [
            {"start": 10, "length": 5, "from": 0, "to": 1}, {"start": second_start, "length": 0, "from": 1, "to": 0}]})

    assert len(schedule(15).ramps) == 2
    with pytest.raises(ValidationError, match="ramp at 14 versions starts before the ramp at 10 ends at 15"):
        schedule(14)


@pytest.mark.parametrize(("width", "share", "pooled"), [(4096, 0.25, 1024), (10, 0.25, 2), (8, 0, 0), (8, 1, 8)])
def test_leading_share_of_the_lstm_input_is_pooled(width, share, pooled):
    assert ModelConfig(lstm_input=width, cross_hero_share=share).pooled == pooled


@pytest.mark.parametrize("section", [LearnerConfig, BufferConfig, LeagueConfig, SchedulesConfig])
def test_every_field_is_described(section):
    assert all(field.description for field in section.model_fields.values())


def test_game_time_may_be_longer_than_timeouts():
    assert LearnerConfig(building_horizon_seconds=1e9).building_horizon_seconds == 1e9
    with pytest.raises(ValidationError, match="building_horizon_seconds"):
        LearnerConfig(building_horizon_seconds=1e13)
