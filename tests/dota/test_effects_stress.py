"""Heroes of every built kind cast everything at each other at random: nothing breaks, twice the same."""

import math
import random
from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE

RADIANT = ("nevermore", "lion", "viper", "queenofpain", "sniper")
DIRE = ("sven", "crystal_maiden", "sniper", "necrolyte", "lion")
ITEMS = ("black_king_bar", "blink", "mjollnir", "hurricane_pike", "silver_edge", "satanic", "glimmer_cape", "armlet",
         "mask_of_madness", "diffusal_blade", "cyclone", "sheepstick", "shivas_guard", "guardian_greaves",
         "rod_of_atos", "ethereal_blade", "bloodthorn", "meteor_hammer", "radiance", "assault", "echo_sabre",
         "abyssal_blade")


def brawl(new_world: Any, data: dict[str, Any], seed: int, steps: int) -> tuple[list[int], int]:
    world = new_world(RADIANT, DIRE, seed=seed, neutrals=True)
    dice = random.Random(seed)
    units = []
    for hero in range(10):
        name = world.hero(hero)["name"]
        units.append(world.hero(hero)["unit"])
        world.give_xp(hero, 27235)
        for ability in data["heroes"]["heroes"][name]["abilities"]:
            world.teach(hero, ability, data["abilities"]["abilities"][ability]["max_level"])
        world.clear_items(hero)
        for item in dice.sample(ITEMS, 6):
            world.give_item(hero, "item_" + item, 3)
    for creep in range(12):
        world.spawn("npc_dota_neutral_centaur_khan", 2, CENTRE[0] + 100 * creep - 600, CENTRE[1] + 150)
    hashes = []
    for step in range(steps):
        for unit in units:
            u = world.unit(unit)
            if step % 40 == 0 and u["alive"]:
                world.set_unit(unit, x=CENTRE[0] + dice.uniform(-500, 500), y=CENTRE[1] + dice.uniform(-300, 300),
                               mana=u["max_mana"])
            if dice.random() < 0.3:
                slot = dice.choice([*range(6), *range(16, 22)])
                target = dice.choice(units)
                kind = dice.choice(["cast", "cast_unit", "cast_point", "attack"])
                world.order(unit, kind, target=target if kind in ("cast_unit", "attack") else -1, slot=slot,
                            x=CENTRE[0] + dice.uniform(-600, 600), y=CENTRE[1] + dice.uniform(-600, 600))
        world.step()
        if step % 20 == 0:
            hashes.append(world.hash())
            for u in world.units():
                for key in ("x", "y", "hp", "mana", "armor", "magic_resist", "move_speed", "attack_speed", "dmg_min"):
                    assert math.isfinite(u[key]), (u["type"], key)
                assert u["hp"] <= u["max_hp"] + 1
                assert 0 <= u["mana"] <= u["max_mana"] + 1
    deaths = sum(world.hero(h)["deaths"] for h in range(10))
    return hashes, deaths


@pytest.mark.parametrize("seed", [1, 2])
def test_a_brawl(new_world: Any, data: dict[str, Any], seed: int) -> None:
    first, deaths = brawl(new_world, data, seed, 1500)
    assert deaths > 5
    second, _ = brawl(new_world, data, seed, 1500)
    assert first == second
