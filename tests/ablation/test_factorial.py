"""Designs of ablations with factors, and the configurations they make."""

from itertools import combinations as pairs
from pathlib import Path

import numpy as np
import pytest

from five.ablation.config import AblationConfig, read
from five.ablation.factorial import combinations
from five.run.load import ConfigError

FACTORS = {"spirit": {"schedules.team_spirit.initial": 0.3}, "decay": {"rewards.time_decay": 0.6},
           "goals": {"rewards.weights.win": 5.0, "rewards.weights.tower1": 2.25}}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 11, 16])
def test_no_effect_contains_another_or_an_interaction_of_two(count: int) -> None:
    """Columns of main effects are orthogonal to each other, to the mean, and to the product of every two columns."""
    names = [f"factor-{i}" for i in range(count)]
    runs = combinations(names)
    assert runs[0] == () and len(runs) == len(set(runs)) < 4 * count + 1
    signs = np.array([[1 if name in run else -1 for name in names] for run in runs])
    assert not signs.sum(axis=0).any()
    assert (signs.T @ signs == len(runs) * np.eye(count)).all()
    for first, second in pairs(range(count), 2):
        assert not (signs[:, first] * signs[:, second] @ signs).any()


def test_variants_are_combinations_of_factors() -> None:
    config = AblationConfig(name="a", preset="laptop-1v1", factors=FACTORS)
    assert config.baseline == "laptop-1v1" and len(config.variants) == 8
    assert config.variants["laptop-1v1"] == {}
    assert config.variants["spirit-decay"] == {**FACTORS["spirit"], **FACTORS["decay"]}
    assert config.variants["spirit-goals"] == {**FACTORS["spirit"], **FACTORS["goals"]}
    assert AblationConfig.model_validate(config.model_dump(mode="json")) == config


def test_results_depend_on_the_variants_alone() -> None:
    config = AblationConfig(name="a", factors=FACTORS)
    spelled_out = AblationConfig(name="a", variants=config.variants)
    assert spelled_out.digest == config.digest and not config.mismatch(spelled_out, list(config.variants))


@pytest.mark.parametrize(("text", "message"), [
    ("name: a", "variants or factors must have an entry"),
    ("name: a\nvariants: {b: {}}\nfactors: {c: {rewards.time_decay: 0.6}}", "variants and factors exclude each other"),
    ("name: a\nfactors: {b: {rewards.time_decay: 0.6}, c: {rewards.time_decay: 0.7}}",
     "factors.b.rewards.time_decay and factors.c.rewards.time_decay set the same values"),
    ("name: a\nfactors: {b: {game.randomisation: {stats: 0}}, c: {game.randomisation.stats: 0.2}}",
     "factors.b.game.randomisation and factors.c.game.randomisation.stats set the same values"),
    ("name: a\nfactors: {b: {rewards.time_decay: 0.6}, c: {game.roshan: true}, b-c: {game.runes: true}}",
     "two combinations have the same name"),
    ("name: a\nfactors: {laptop-1v1: {rewards.time_decay: 0.6}}", "two combinations have the same name"),
    ("name: a\nfactors: {" + ", ".join(f"f{i}: {{k{i}.a: 0}}" for i in range(17)) + "}",
     "factors has 17 entries; at most 16")])
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        read(file)


def test_a_factor_with_the_preset_s_values_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("name: a\nfactors: {b: {rewards.time_decay: 0.85}}")
    with pytest.raises(ConfigError, match=r"variants\.b has the settings of variants\.laptop-1v1"):
        read(file)
