"""Named games equal the project's presets."""

import json

import pytest
import yaml

from dota import presets
from dota.config import ObservationConfig
from five.run.config import RunConfig
from tests.repository import ROOT


def test_the_file_is_current():
    """`python -m dota.presets configs` regenerates it."""
    spirit = RunConfig(name="x").schedules.team_spirit.initial
    made = {path.stem: presets.preset_entry(yaml.safe_load(path.read_text()), spirit)
            for path in sorted((ROOT / "configs").glob("*.yaml"))}
    assert json.loads(presets.FILE.read_text()) == made


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_is_that_of_the_run(name):
    run = RunConfig.model_validate(yaml.safe_load((ROOT / f"configs/{name}.yaml").read_text()))
    found = presets.load(name)
    assert (found.game, found.rewards) == (run.game, run.rewards)
    assert found.team_spirit == run.schedules.team_spirit.initial


def test_values_may_differ_and_mistakes_are_named():
    assert presets.load("laptop-1v1", max_game_seconds=30).game.max_game_seconds == 30
    whole = presets.load("laptop-1v1").game.observation
    assert whole.allied_creeps != ObservationConfig().allied_creeps
    changed = presets.load("laptop-1v1", observation={"wards": 7}).game.observation
    assert changed == whole.model_copy(update={"wards": 7}) != whole
    assert presets.load("laptop-1v1", observation=ObservationConfig()).game.observation == ObservationConfig()
    with pytest.raises(ValueError, match="unknown preset 'laptop1v1'.*did you mean 'laptop-1v1'"):
        presets.load("laptop1v1")
    with pytest.raises(ValueError, match="max_seconds"):
        presets.load("laptop-1v1", max_seconds=30)
