"""The presets for five against five share what is known to learn; what else differs is size and hardware."""

from typing import Any

import pytest

from five.run.load import load, presets

FIVE_A_SIDE = sorted(name for name in presets() if load(name).game.heroes_per_team == 5)


def shared(name: str) -> dict[str, Any]:
    config = load(name)
    learning = config.learning.model_dump(include={
        "reward_scale", "entropy_weights", "gae_lambda", "ppo_clip", "value_loss_weight", "normalise_advantages",
        "advantage_scope", "gradient_clip", "adam_beta1", "adam_beta2"})
    return {**learning, "rewards": config.rewards, "commit_windups": config.game.commit_windups,
            "fixed_delay": config.model.fixed_delay}


def test_there_are_three() -> None:
    assert FIVE_A_SIDE == ["gpu-node", "laptop-5v5", "rerun"]


@pytest.mark.parametrize("name", FIVE_A_SIDE)
def test_learning_settings_are_shared(name: str) -> None:
    assert shared(name) == shared("laptop-5v5")


@pytest.mark.parametrize("name", FIVE_A_SIDE)
def test_no_preset_uses_what_does_not_learn(name: str) -> None:
    config = load(name)
    assert config.learning.reward_scale == "return" and config.game.commit_windups
    assert config.rewards.weights["last_hit"] > 0
    assert config.learning.entropy_weights.delay == 0 or not config.model.fixed_delay


def test_schedules_of_the_laptop_count_hero_steps() -> None:
    """A change of the batch then moves none of them."""
    schedules = load("laptop-5v5").schedules
    changing = [schedule for _, schedule in schedules if schedule.ramps]
    assert len(changing) >= 6 and all(schedule.unit == "hero_steps" for schedule in changing)
