"""The README names the heroes and presets that exist."""

import json
import re

import pytest

from dota.config import GameConfig
from dota.tables import HERO_PREFIX
from dota.vec_game import VecGame
from five.run.load import load, presets
from tests.repository import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_readme_names_every_playable_hero(patch: str) -> None:
    heroes = json.loads((ROOT / f"libs/dota/data/dota-{patch}/heroes.json").read_text())["heroes"]
    text = re.sub(r"\s+", " ", README)
    assert [hero["name"] for hero in heroes.values() if hero["name"] not in text] == []
    config = GameConfig(patch=patch, mode="1v1_mid", heroes_per_team=1, start_seconds=0.0,
                        hero_pool=[name.removeprefix(HERO_PREFIX) for name in heroes])
    VecGame(config, 2, seed=1).step()  # raises for a hero whose program is incomplete


def test_readme_names_presets_that_load() -> None:
    for name in re.findall(r"`((?:laptop|gpu)-\w+|rerun)`", README):
        assert name in presets() and load(name)
