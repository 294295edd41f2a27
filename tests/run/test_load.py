from pathlib import Path

import pytest

from run.config import RunConfig
from run.load import ConfigError, apply_overrides, load, presets, save


def test_every_preset_is_valid_and_named_like_its_file() -> None:
    assert {"laptop-1v1", "laptop-5v5", "gpu-node", "rerun"} <= set(presets())
    for name in presets():
        assert load(name).name == name


def test_overrides_reach_nested_keys_with_yaml_types() -> None:
    config = load("laptop-1v1", ["game.max_game_seconds=90", "services.controller.auth=false",
                                 "game.hero_pool=[sniper]"])
    assert config.game.max_game_seconds == 90.0
    assert config.services.controller.auth is False
    assert config.game.hero_pool == ["sniper"]


def test_overrides_leave_the_tree_they_are_given_alone() -> None:
    tree = {"game": {"mode": "5v5"}}
    assert apply_overrides(tree, ["game.mode=1v1_mid"]) == {"game": {"mode": "1v1_mid"}}
    assert tree == {"game": {"mode": "5v5"}}


@pytest.mark.parametrize(("override", "words"), [
    ("learning.gamma=1", ["learning.gamma", "unknown key"]),
    ("learning.ppo_clp=0.1", ["learning.ppo_clp", "did you mean 'ppo_clip'"]),
    ("learning.ppo_clip=wide", ["learning.ppo_clip", "'wide'"]),
    ("services.optimizer.optimizers=-1", ["services.optimizer.optimizers", "-1"]),
    ("services.optimizer.addresses=[a:1, b:2]", ["services.optimizer", "2 for 1 optimizers"]),
    ("buffer.capacity_samples=4", ["buffer"]),
    ("game.heroes_per_team=3", ["hero_pool has 1 heroes, a team needs 3"]),
    ("store.archive_every=3", ["league.add_every_versions 10", "store.archive_every 3"]),
    ("name=Not A Name", ["name"]),
])
def test_a_bad_value_is_refused_with_its_path(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load("laptop-1v1", [override])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("override", ["game.mode", "=3", "game..mode=5v5", "name.first=x", "game.mode=[1"])
def test_a_malformed_override_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load("laptop-1v1", [override])


def test_an_unknown_preset_suggests_a_known_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'laptop-1v1'"):
        load("laptop-1v")


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- 1\n")
    with pytest.raises(ConfigError, match="mapping"):
        load(tmp_path / "a.yaml")


def test_a_saved_run_loads_the_same(tmp_path: Path) -> None:
    config = load("rerun", ["seed=3"])
    save(config, tmp_path / "run.yaml")
    assert load(tmp_path / "run.yaml") == config


def test_every_key_is_described() -> None:
    def walk(model: type[RunConfig], path: str) -> None:
        for name, field in model.model_fields.items():
            assert field.description, f"{path}{name} has no description"
            if isinstance(field.annotation, type) and hasattr(field.annotation, "model_fields"):
                walk(field.annotation, f"{path}{name}.")

    walk(RunConfig, "")
