"""Named pools of `game.hero_pool` and the heroes of the data."""

from typing import Any

import pytest

from dota.config import GameConfig
from dota.hero_pools import POOLS
from dota.tables import hero_ids
from tests.dota.scenes.patches import read_data

PREFIX = "npc_dota_hero_"


def test_pools_are_those_of_the_data(data: dict[str, Any]) -> None:
    known = data["heroes"]
    assert {PREFIX + hero for hero in POOLS["finals_2019"]} == set(known["pool_finals_2019_17"])
    assert {PREFIX + hero for hero in POOLS["ti8_2018"]} == set(known["pool_ti8_2018_18"])


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_25_heroes_can_be_played_in_both_patches(patch: Any) -> None:
    config = GameConfig(patch=patch, hero_pool=["heroes_25"])
    assert len(set(config.hero_pool)) == 25 == len(hero_ids(config))
    assert {PREFIX + hero for hero in config.hero_pool} == set(read_data(patch)["heroes"]["heroes"])


def test_a_pool_stands_beside_heroes() -> None:
    assert GameConfig(hero_pool=["lich", "finals_2019"]).hero_pool == ["lich", *POOLS["finals_2019"]]


def test_a_hero_of_a_pool_is_not_named_again() -> None:
    with pytest.raises(ValueError, match="names a hero twice: 'axe'"):
        GameConfig(hero_pool=["axe", "finals_2019"])
