from pathlib import Path

import pytest

from five.run.config import RunConfig
from five.run.load import ConfigError, apply_overrides, load, load_stored, presets, save


def test_presets_are_valid_and_named_like_their_files() -> None:
    assert {"laptop-1v1", "laptop-5v5", "gpu-node", "rerun"} <= set(presets())
    for name in presets():
        assert load(name).name == name


@pytest.mark.parametrize("name", presets())
def test_preset_loads_with_remote_games(name: str) -> None:
    """A cluster's games are remote, whatever its preset."""
    config = load(name, ["services.rollout.environment=remote"])
    assert config.services.rollout.environment == "remote"


def test_overrides_reach_nested_keys_with_yaml_types() -> None:
    config = load("laptop-1v1", ["game.max_game_seconds=90", "services.controller.auth=false",
                                 "game.hero_pool=[sniper]"])
    assert config.game.max_game_seconds == 90.0
    assert config.services.controller.auth is False
    assert config.game.hero_pool == ["sniper"]


def test_number_is_text_for_a_text_key() -> None:
    assert load("laptop-1v1", ["game.patch=7.19"]).game.patch == "7.19"
    assert load("laptop-1v1", ["game.patch='7.19'", "name=2018"]).name == "2018"
    # In a tree of YAML or JSON what was typed is gone: the error says what to do.
    with pytest.raises(ConfigError, match=r"game\.patch.*7\.19.*quote it to make it text: \"7\.19\""):
        load("laptop-1v1", ["game={patch: 7.19}"])


def test_overrides_do_not_change_their_argument() -> None:
    tree = {"game": {"mode": "5v5"}}
    assert apply_overrides(tree, ["game.mode=1v1_mid"]) == {"game": {"mode": "1v1_mid"}}
    assert tree == {"game": {"mode": "5v5"}}


@pytest.mark.parametrize(("override", "words"), [
    ("learning.gamma=1", ["learning.gamma", "unknown key"]),
    ("learning.ppo_clp=0.1", ["learning.ppo_clp", "did you mean 'ppo_clip'"]),
    ("learning.ppo_clip=wide", ['learning.ppo_clip "wide": ']),
    ("services.optimizer.optimizers=-1", ["services.optimizer.optimizers", "-1"]),
    ("services.optimizer.addresses=[a:1, b:2]", ["services.optimizer", "2 for 1 optimizers"]),
    ("services.optimizer.optimizers=3", ["services.optimizer.optimizers 3: at most 2", "max_optimizers"]),
    ("buffer.capacity_samples=4", ["buffer"]),
    ("game.heroes_per_team=3", ["hero_pool has 1 heroes, a team needs 3"]),
    ("store.archive_every=3", ["league.add_every_versions 10", "store.archive_every 3"]),
    ("schedules.learning_rate=3", ["schedules.learning_rate 3: a section is expected, with keys such as initial, "]),
    ("game=null", ["game null: a section is expected, with keys such as patch, mode, "]),
    ("schedules.team_spirit.ramps=[{form: 0, to: 1, start: 0, length: 9}]", [
        "schedules.team_spirit.ramps.0.form: unknown key; did you mean 'from'"]),
    ("services.optimizer.device=gpu", ['services.optimizer.device "gpu": cpu, cuda, or cuda:N']),
    ("name=five.v2", ['name "five.v2": only lowercase letters, digits and "-" are allowed']),
])
def test_invalid_value_is_refused_with_its_path(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load("laptop-1v1", [override])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("override", ["game.mode", "=3", "game..mode=5v5", "name.first=x", "game.mode=[1"])
def test_malformed_override_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load("laptop-1v1", [override])


def test_unknown_preset_suggests_a_known_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'laptop-1v1'"):
        load("laptop-1v")


def test_unreadable_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="^a+: File name too long$"):
        load("a" * 300)


def test_file_without_a_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- 1\n")
    with pytest.raises(ConfigError, match="mapping"):
        load(tmp_path / "a.yaml")


def test_saved_configuration_loads_equal(tmp_path: Path) -> None:
    config = load("rerun", ["seed=3"])
    save(config, tmp_path / "run.yaml")
    assert load(tmp_path / "run.yaml") == config


def test_empty_stored_configuration_is_refused(tmp_path: Path) -> None:
    """Otherwise a resumed run would have the defaults: the paper's game, and another name."""
    (tmp_path / "config.yaml").write_text("")
    with pytest.raises(ConfigError, match="config.yaml is empty"):
        load_stored(tmp_path / "config.yaml")


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("frameskip", "seconds", "taken"),
                         [(4, 0.133333, True), (8, 0.2666667, True), (8, 0.133333, False)])
def test_file_older_than_frameskip_is_read(tmp_path: Path, frameskip: int, seconds: float, taken: bool) -> None:
    """Such a file has the timestep's length, which must agree with the frameskip."""
    path = tmp_path / "run.yaml"
    path.write_text(f"preset: laptop-1v1\ngame: {{frameskip: {frameskip}}}\n"
                    f"learning: {{timestep_seconds: {seconds}}}\n")
    if taken:
        assert load(path).game.timestep_seconds == pytest.approx(seconds, abs=1e-5)
        return
    with pytest.raises(ValueError, match=r"learning\.timestep_seconds"):
        load(path)


def test_file_overrides_its_preset(tmp_path: Path) -> None:
    path = write(tmp_path, "preset: laptop-1v1\nname: mine\ngame: {max_game_seconds: 90}\n"
                           "services: {rollout: {games: 3}, optimizer: {max_optimizers: 8}}\n")
    found, preset = load(path), load("laptop-1v1")
    assert (found.name, found.game.max_game_seconds, found.services.rollout.games) == ("mine", 90.0, 3)
    assert found.game.hero_pool == preset.game.hero_pool and found.model == preset.model
    assert found.services.rollout.games_per_past_opponent == preset.services.rollout.games_per_past_opponent == 52
    assert load(path, ["services.rollout.games=5", "services.optimizer.optimizers=4"]).services.rollout.games == 5


def test_lists_and_values_replace_the_presets(tmp_path: Path) -> None:
    path = write(tmp_path, "preset: laptop-1v1\ngame: {hero_pool: [sniper]}\n"
                           "schedules: {entropy_coefficient: {ramps: []}}\n")
    found = load(path)
    assert found.game.hero_pool == ["sniper"]
    assert found.schedules.entropy_coefficient.initial == 0.02 and found.schedules.entropy_coefficient.ramps == ()


@pytest.mark.parametrize(("text", "words"), [
    ("preset: laptop-2v2\n", ["run.yaml: preset", "laptop-2v2", "did you mean 'laptop-"]),
    ("preset: [laptop-1v1]\n", ["run.yaml: preset", "['laptop-1v1']: unknown preset"]),
    ("preset: laptop-1v1\nlerning: {}\n", ["run.yaml", "lerning: unknown key; did you mean 'learning'"]),
    ("preset: laptop-1v1\nservices: {optimizer: {optimizers: 3}}\n", ["services.optimizer.optimizers 3: at most 2"]),
])
def test_invalid_file_on_a_preset_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, text))
    for word in words:
        assert word in str(error.value)


def test_preset_chains_are_allowed_and_cycles_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVE_CONFIGS", str(tmp_path))
    (tmp_path / "longer.yaml").write_text("preset: laptop-1v1\ngame: {max_game_seconds: 1200}\n")
    found = load(write(tmp_path, "preset: longer\nseed: 4\n"))
    assert (found.seed, found.game.max_game_seconds, found.game.mode) == (4, 1200.0, "1v1_mid")
    (tmp_path / "longer.yaml").write_text("preset: shorter\n")
    (tmp_path / "shorter.yaml").write_text("preset: longer\n")
    with pytest.raises(ConfigError, match="longer -> shorter -> longer is a cycle"):
        load("longer")


@pytest.mark.parametrize(("preset", "most"), [("laptop-1v1", 2), ("laptop-5v5", 2), ("gpu-node", 8), ("rerun", 512)])
def test_preset_bounds_its_optimizers(preset: str, most: int) -> None:
    assert load(preset).services.optimizer.max_optimizers == most


def test_optimizer_addresses_by_node_pattern() -> None:
    one = "services.optimizer."
    nodes = [one + "ranks_per_node=2", one + "addresses=['five-{node}.five:50051']"]
    config = load("gpu-node", [one + "optimizers=4", *nodes])
    optimizer = config.services.optimizer
    assert [optimizer.address(rank) for rank in range(4)] == [
        "five-0.five:50051", "five-0.five:50052", "five-1.five:50051", "five-1.five:50052"]
    # Which rank a process has does not matter: it listens at its machine's port for it.
    assert [optimizer.listening_port(rank, local) for rank, local in ((3, 0), (0, 1))] == [50051, 50052]
    with pytest.raises(ConfigError, match="3 optimizers cannot be spread over nodes of 2"):
        load("gpu-node", [one + "optimizers=3", *nodes])
    with pytest.raises(ConfigError, match="expected host:port"):
        load("gpu-node", [one + "addresses=['five-{node}.five']"])
    listed = load("gpu-node", [one + "optimizers=2", one + "addresses=[a:1, b:2]"]).services.optimizer
    assert [listed.listening_port(rank, rank) for rank in range(2)] == [1, 2]


def test_every_key_is_described() -> None:
    def walk(model: type[RunConfig], path: str) -> None:
        for name, field in model.model_fields.items():
            assert field.description, f"{path}{name} has no description"
            if isinstance(field.annotation, type) and hasattr(field.annotation, "model_fields"):
                walk(field.annotation, f"{path}{name}.")

    walk(RunConfig, "")
