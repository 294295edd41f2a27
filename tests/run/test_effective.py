"""The effective configuration of a service, and the drift of its file."""

from pathlib import Path

import pytest

from dota.spaces import Layout
from five.run.effective import ConfigDifference, drift, overlay, record_trees
from five.run.load import ConfigError, load
from rapid.store.record import RunRecord

ROOT = Path(__file__).parents[2]
CONFIG = load("laptop-1v1", ["model.precision=bfloat16", "seed=7"])


def record(*overrides: str) -> RunRecord:
    game, model = record_trees(load("laptop-1v1", overrides))
    return RunRecord(game=game, model=model)


def test_record_replaces_only_game_and_model() -> None:
    config = overlay(CONFIG, record("model.lstm=24", "game.observation.allied_creeps=9", "seed=9"))
    assert config.model.lstm == 24 and config.game.observation.allied_creeps == 9
    assert config.seed == 7 and config.model.precision == "bfloat16"
    assert Layout(config.game).hash != Layout(CONFIG.game).hash


def test_equal_record_has_no_drift() -> None:
    assert overlay(CONFIG, record()) == CONFIG and drift(CONFIG, record()) == []


def test_drift_names_each_key_with_both_values() -> None:
    found = drift(CONFIG, record("model.lstm=24", "game.observation.allied_creeps=9"))
    assert found == [ConfigDifference("game.observation.allied_creeps", CONFIG.game.observation.allied_creeps, 9),
                     ConfigDifference("model.lstm", CONFIG.model.lstm, 24)]


def test_key_missing_in_the_record_has_its_default() -> None:
    sparse = record()
    tree = {key: value for key, value in sparse.model.items() if key != "lstm"}
    default = type(CONFIG.model)().lstm
    assert overlay(CONFIG, RunRecord(game=sparse.game, model=tree)).model.lstm == default
    assert drift(CONFIG, RunRecord(game=sparse.game, model=tree)) == [
        ConfigDifference("model.lstm", CONFIG.model.lstm, default)]


def test_unreadable_record_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r"(?s)record of run .* \(revision 1\).*model.lstmm.*did you mean 'lstm'"):
        overlay(CONFIG, RunRecord(game=record().game, model={"lstmm": 3}))


def test_every_service_with_a_store_uses_the_record() -> None:
    mains = [path for path in (ROOT / "services").glob("*/__main__.py") if "rapid.service import" in path.read_text()]
    assert len(mains) >= 6
    for path in mains:
        assert "overlay=overlay" in path.read_text(), f"{path} would play by its file alone"
