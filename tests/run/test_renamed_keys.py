"""Renamed keys: refused in new configurations, migrated in stored ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from five.run import renamed_keys
from five.run.config import RunConfig
from five.run.effective import overlay, record_trees
from five.run.load import ConfigError, load, load_stored, save
from five.run.migration import chain_of
from five.run.reference import reference
from five.run.renamed_keys import REMOVED, RENAMED, migrate, refusal
from rapid.store.record import RunRecord
from tests.repository import ROOT

TABLE = {"buffer.old_capacity": "buffer.capacity_samples", "league.reuse": "buffer.sample_reuse",
         "network": "model", "game.opening": "game.start_seconds",
         "schedules.learning_rate.ramps[].begin": "schedules.learning_rate.ramps[].start"}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renamed_keys, "RENAMED", TABLE)


def test_every_new_key_exists_and_no_old_one_does() -> None:
    paths = {key.path for section in reference() for key in section.keys} | {section.path for section in reference()}
    assert set(RENAMED.values()) <= paths and not set(RENAMED) & paths and not set(REMOVED) & paths


@pytest.mark.parametrize(("path", "message"), [
    ("buffer.old_capacity", 'key "buffer.old_capacity" was renamed to "buffer.capacity_samples" in 0.2.0'),
    ("network", 'key "network" was renamed to "model" in 0.2.0'),
    ("network.lstm", 'key "network.lstm" was renamed to "model.lstm" in 0.2.0'),
    ("schedules.learning_rate.ramps[].begin", '"schedules.learning_rate.ramps[].start" in 0.2.0'),
    ("buffer.oldest", None),
])
def test_refusal_names_the_new_key(path: str, message: str | None) -> None:
    found = refusal(path, TABLE)
    assert found is None if message is None else message in str(found)


def test_refusal_of_a_removed_section_lists_its_keys() -> None:
    assert refusal("judge", {"judge.points": "evaluation.points"}) == (
        'keys of section "judge" were renamed in 0.2.0: "judge.points" to "evaluation.points"')


@pytest.mark.parametrize("text", ["buffer: {old_capacity: 512}", "network: {lstm: 64}",
                                  "schedules: {learning_rate: {initial: 1, ramps: [{begin: 1, length: 1, from: 1, "
                                  "to: 0}]}}"])
def test_old_key_in_a_file_is_refused(table: None, tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(f"preset: laptop-1v1\n{text}\n")
    with pytest.raises(ConfigError, match=r'key ".*" was renamed to ".*" in 0\.2\.0'):
        load(tmp_path / "run.yaml")


def test_old_key_in_an_override_is_refused(table: None) -> None:
    with pytest.raises(ConfigError, match=r'key "league.reuse" was renamed to "buffer.sample_reuse" in 0\.2\.0'):
        load("laptop-1v1", ["league.reuse=2"])


def with_old_keys(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as a release before the renames stored it."""
    tree: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    tree["network"] = tree.pop("model")
    tree["buffer"]["old_capacity"] = tree["buffer"].pop("capacity_samples")
    tree["league"]["reuse"] = tree["buffer"].pop("sample_reuse")
    tree["game"]["opening"] = tree["game"].pop("start_seconds")
    for ramp in tree["schedules"]["learning_rate"]["ramps"]:
        ramp["begin"] = ramp.pop("start")
    return tree


def test_stored_configuration_is_migrated(table: None, tmp_path: Path) -> None:
    config, path = load("laptop-1v1", ["seed=7", "model.lstm=64"]), tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(with_old_keys(config)))
    assert load_stored(path) == config
    assert load_stored(path, ["buffer.sample_reuse=2"]).buffer.sample_reuse == 2
    with pytest.raises(ConfigError, match="was renamed to"):
        load_stored(path, ["league.reuse=2"])
    save(config, path)
    assert load_stored(path) == config


def test_stored_record_is_migrated(table: None) -> None:
    config = load("laptop-1v1")
    game, model = record_trees(config)
    old = dict(game)
    old["opening"] = old.pop("start_seconds")
    assert overlay(config, RunRecord(game=old, model=model)) == config


def test_stored_plan_starts_from_migrated_trees(table: None) -> None:
    game, model = record_trees(load("laptop-1v1"))
    old = dict(game)
    old["opening"] = old.pop("start_seconds")
    plan = "name: none\nsteps: []\n"
    with pytest.raises(ValueError, match="applied plan x") as error:  # the plan itself is refused, not its trees
        chain_of(RunRecord(game=game, model=model, chain=("x",)), {"x": {"plan": plan, "game": old, "model": model}})
    assert "opening" not in str(error.value)


def test_new_key_takes_precedence_over_the_old() -> None:
    tree = {"buffer": {"old_capacity": 1, "capacity_samples": 2}, "network": {"lstm": 1}, "model": {"unit": 3}}
    assert migrate(tree, TABLE) == {"buffer": {"capacity_samples": 2}, "model": {"lstm": 1, "unit": 3}}
    assert tree["buffer"] == {"old_capacity": 1, "capacity_samples": 2}  # the argument is unchanged


def test_removed_key_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("preset: laptop-1v1\nleague: {remembered_games: 9}\n")
    for source, overrides in ((tmp_path / "run.yaml", []), ("laptop-1v1", ["league.remembered_games=9"])):
        with pytest.raises(ConfigError, match=r'key "league.remembered_games" was removed in 0\.2\.0: it had no'):
            load(source, overrides)


def test_removed_keys_are_dropped_from_a_stored_configuration(tmp_path: Path) -> None:
    config, path = load("laptop-1v1"), tmp_path / "config.yaml"
    tree: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    for removed in REMOVED:
        *sections, key = removed.split(".")
        section = tree
        for name in sections:
            section = section[name]
        section[key] = 1
    path.write_text(yaml.safe_dump(tree))
    assert load_stored(path) == config


def test_first_release_configuration_resumes() -> None:
    stored = ROOT / "tests/run/release-0.1.yaml"
    assert load_stored(stored).name == "tiny"


# Numbers that 0.1.0 accepted and this release does not, with what becomes of them.
BEYOND = {
    "game.max_game_seconds": (9000.0, 8000.0), "game.kills_to_win": (100_000, 1000),
    "rewards.time_decay_seconds": (1e10, 1e9), "rating.tau": (0.08, 0.0), "rating.games_per_rating": (1, 2),
    "lifecycle.heartbeat_seconds": (0.001, 0.01), "lifecycle.grace_seconds": (1e9, 2e6),
    "services.rollout.processes": (100_000, 65536), "services.optimizer.threads": (5000, 1024),
    "services.evaluator.threads": (10_000, 1024), "services.controller.limits.requests_per_second": (1e-9, 0.001),
    "buffer.capacity_samples": (1 << 40, (1 << 31) - 1), "seed": (1 << 70, (1 << 63) - 1)}


def beyond_bounds(values: dict[str, Any]) -> dict[str, Any]:
    """Return the stored configuration of 0.1.0 with other values."""
    tree: dict[str, Any] = yaml.safe_load((ROOT / "tests/run/release-0.1.yaml").read_text())
    for path, value in values.items():
        *sections, key = path.split(".")
        section = tree
        for name in sections:
            section = section[name]
        assert key in section, path
        section[key] = value
    return tree


def test_stored_numbers_move_to_their_bounds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(beyond_bounds({key: old for key, (old, _) in BEYOND.items()})))
    found = load_stored(path).model_dump(mode="json", by_alias=True)
    for key, (_, new) in BEYOND.items():
        value: Any = found
        for name in key.split("."):
            value = value[name]
        assert value == new and type(value) is type(new), key
    lines = [record.getMessage() for record in caplog.records]
    assert f"{path}: game.max_game_seconds 9000.0: at most 8000.0 is allowed, which replaces it" in lines
    assert f"{path}: rating.games_per_rating 1: at least 2 is allowed, which replaces it" in lines
    assert len(lines) == len(BEYOND)
    with pytest.raises(ConfigError, match="max_game_seconds"):  # a new file with the old key is refused
        load("laptop-1v1", ["game.max_game_seconds=9000"])


@pytest.mark.parametrize(("key", "value"), [("model.lstm", 100_000), ("game.offset_cell", 0.5), ("seed", float("nan")),
                                            ("lifecycle.grace_seconds", "long"), ("buffer.capacity_samples", 4)])
def test_impossible_stored_value_is_refused_with_the_fix(tmp_path: Path, key: str, value: Any) -> None:
    path = tmp_path / "trial" / "config.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(beyond_bounds({key: value})))
    with pytest.raises(ConfigError) as error:
        load_stored(path)
    assert any(f"{key}.".startswith(f"{invalid}.") for invalid in error.value.paths)
    assert str(error.value).endswith(
        "\n  a stored value is corrected by five train --resume trial --accept-changes --set KEY=VALUE")


def test_record_beyond_bounds_is_read() -> None:
    config = load("laptop-1v1")
    game, model = record_trees(config)
    found = overlay(config, RunRecord(game={**game, "max_game_seconds": 9000.0}, model=model))
    assert found.game.max_game_seconds == 8000.0
