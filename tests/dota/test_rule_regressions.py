"""Rules with past regressions: damage block, kill bounties, ward placement."""

from typing import Any

import pytest

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.readings import physical_share


def test_a_block_comes_off_before_armor(new_world: Any, data: dict[str, Any]) -> None:
    """Vanguard's block reduces the attack's damage before armor applies."""
    a = Arena(new_world(("sven",), ("sven",)), data)
    mine, theirs = a.unit(0), a.unit(5)
    a.world.set_unit(mine, extra_hp=3000, extra_armor=20)
    a.world.set_unit(mine, hp=3000)
    block = a.data["items"]["items"]["item_vanguard"]["specials"]
    a.world.give_item(0, "item_vanguard")
    a.seconds(0.2)
    a.still(mine)
    armor = a.world.unit(mine)["armor"]
    through = physical_share(armor)
    seen = set()
    for _ in range(40):
        hp = a.hp(mine)
        a.world.damage(theirs, mine, 200, attack=True)
        seen.add(round(hp - a.hp(mine), 2))
        a.world.set_unit(mine, hp=3000)
    blocked = block["block_damage_melee"]["v"][0]
    assert seen <= {round(200 * through, 2), round((200 - blocked) * through, 2)}
    assert round((200 - blocked) * through, 2) in seen


@pytest.mark.parametrize("part", [True, False])
def test_a_hero_killed_by_neutrals_pays_nobody(new_world: Any, part: bool) -> None:
    """Unless an enemy hero hurt it within 20 s: then that hero gets the kill."""
    world = new_world(("nevermore",), ("nevermore",))
    hero, enemy = world.hero(0)["unit"], world.hero(5)["unit"]
    at = world.unit(hero)
    world.set_unit(enemy, x=at["x"] + 300, y=at["y"])
    camp = world.spawn("npc_dota_neutral_centaur_khan", 2, at["x"] + 200, at["y"])
    if part:
        world.damage(enemy, hero, 10, "pure")
    gold, xp = world.hero(5)["gold"] + world.hero(5)["reliable"], world.hero(5)["xp"]
    world.kill(hero, camp)
    assert world.hero(0)["deaths"] == 1
    assert world.team(1)["kills"] == int(part)
    assert world.hero(5)["kills"] == int(part)
    assert (world.hero(5)["gold"] + world.hero(5)["reliable"] > gold) == part
    assert (world.hero(5)["xp"] > xp) == part


@pytest.mark.parametrize("allowed", [True, False])
def test_wards_are_refused_where_the_map_forbids_them(new_world: Any, core: Any, data: dict[str, Any],
                                                      allowed: bool) -> None:
    """In no_ward areas of map.json the ward stays in its owner's inventory."""
    lengths = data["map"]["grids"]["no_ward"]
    cells = [v for v, n in zip(lengths[::2], lengths[1::2], strict=True) for _ in range(n)]
    blocked = [v for f in ("blocked_at_start",) for v, n in
               zip(data["map"]["grids"][f][::2], data["map"]["grids"][f][1::2], strict=True) for _ in range(n)]
    side = 260
    low_x, low_y = data["map"]["world"]["min_x"], data["map"]["world"]["min_y"]
    open_here = [i for i in range(side * side) if not blocked[i] and bool(cells[i]) != allowed
                 and 60 < i % side < 200 and 60 < i // side < 200]
    world = new_world(("lion",))
    world.clear_items(0)
    hero = world.hero(0)["unit"]
    world.give_item(0, "item_ward_observer", 1)
    cell = open_here[len(open_here) // 2]
    x, y = low_x + 64 * (cell % side) + 32, low_y + 64 * (cell // side) + 32
    world.set_unit(hero, x=x, y=y)
    world.step(2)
    slot = world.ability(0, "item_ward_observer")["slot"]
    world.order(hero, "cast_point", x=x, y=y, slot=slot)
    world.step(12)
    assert bool(world.units("ward")) == allowed
    assert bool([i for i in world.hero(0)["items"] if i and i[0] == "item_ward_observer"]) != allowed
