"""Numbers of heroes, items, abilities and trees in Dota 2's own protocols."""

import pytest

from dota import _core
from dota.hero_pools import POOLS
from dota.tables import HERO_PREFIX, load_tables
from dota.valve_ids import valve_ids


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_every_supported_hero_has_a_number_and_its_abilities(patch: str) -> None:
    ids = valve_ids(patch)
    assert set(POOLS["heroes_25"]) == set(ids.heroes.values()) == ids.abilities.keys() == ids.talents.keys()
    assert {HERO_PREFIX + hero for hero in ids.heroes.values()} == set(load_tables(patch).heroes)
    assert all(list(slots.values()) == list(range(len(slots))) for slots in ids.abilities.values())
    assert all(list(slots.values()) == list(range(8)) for slots in ids.talents.values())


def test_numbers_are_those_of_the_game() -> None:
    ids = valve_ids("7.21d")
    assert (ids.heroes[11], ids.heroes[35], ids.items[1], ids.items[46]) == (
        "nevermore", "sniper", "item_blink", "item_tpscroll")
    assert ids.abilities["nevermore"]["nevermore_requiem"] == 5
    assert set(ids.items.values()) <= set(load_tables("7.21d").items)


def test_trees_are_numbered_as_in_the_core() -> None:
    trees = _core.map_trees(load_tables("7.21d"))
    assert valve_ids("7.21d").trees == tuple((x, y) for x, y, _ in trees) and len(trees) > 2000


def test_a_patch_without_data_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"patch 6\.00"):
        valve_ids("6.00")
