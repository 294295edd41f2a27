"""Duels of either patch for scenes of items, with some numbers of the data changed where a scene leaves no chance."""

import copy
from functools import cache
from typing import Any

from tests.dota.arena import CENTRE, Arena, line_up
from tests.dota.conftest import FILES, read_data

QUIET = {"start_s": 0.0, "max_game_s": 1e5, "neutrals": False, "roshan": False, "runes": False, "lanes": [False] * 3,
         "keep_tango": 0, "keep_salve": 0, "keep_clarity": 0}
Changes = tuple[tuple[str, str, float], ...]  # (item, special value, its number)


@cache
def data_of(patch: str, changes: Changes = ()) -> dict[str, Any]:
    data = read_data(patch)
    if changes:
        data["items"] = copy.deepcopy(data["items"])
        for item, special, number in changes:
            data["items"]["items"][item]["specials"][special]["v"] = [number]
            if item == "item_butterfly" and special == "bonus_evasion":
                data["items"]["items"][item]["stats"]["evasion_pct"] = number
    return data


@cache
def tables_of(core: Any, patch: str, changes: Changes) -> Any:
    data = data_of(patch, changes)
    return core.load_tables(*(data[f] for f in FILES))


def duel(core: Any, patch: str = "7.21d", hero: str = "sven", enemy: str = "nevermore", ally: str = "lion",
         away: float = 500, changes: Changes = (), **settings: Any) -> Arena:
    """Return an arena of heroes without abilities: 0 and 1 of Radiant at the centre and behind it, 5 of Dire in front,
    6 far away."""
    world = core.World(tables_of(core, patch, changes), QUIET | settings, [hero, ally], [enemy, "viper"], 1)
    data = data_of(patch, changes)
    for index, name in ((0, hero), (1, ally), (5, enemy), (6, "viper")):
        for ability in data["heroes"]["heroes"]["npc_dota_hero_" + name]["abilities"]:
            world.teach(index, ability, 0)
    return line_up(world, data, {0: 0, 1: -300, 5: away, 6: 2500})


def strong(arena: Arena, unit: int, hp: float = 20000) -> int:
    """Give a unit much health and no armor."""
    arena.world.set_unit(unit, extra_hp=hp)
    arena.world.set_unit(unit, hp=hp, extra_armor=0)
    arena.world.set_unit(unit, extra_armor=-arena.world.unit(unit)["armor"])
    return unit


def hit(arena: Arena, attacker: int, target: int, seconds: float = 3.0) -> float:
    """Let one unit attack another once; return the health it took with the attack, 0 when it missed."""
    world = arena.world
    hp, last = arena.hp(target), world.unit(attacker)["last_attack"]
    world.set_unit(attacker, attack_ready=0)
    world.order(attacker, "attack", target)
    for _ in range(round(30 * seconds)):
        world.run_frames(1)
        if world.unit(attacker)["last_attack"] != last and not world.projectiles():
            break
    world.set_unit(attacker, attack_ready=1e9)
    world.order(attacker, "hold")
    world.run_frames(1)  # statistics follow
    return hp - arena.hp(target)


def level_damage(arena: Arena, unit: int) -> tuple[float, float]:
    """Return the least and the greatest damage of a unit's attack."""
    u = arena.world.unit(unit)
    return u["dmg_min"] + u["dmg_bonus"], u["dmg_max"] + u["dmg_bonus"]


def creep(arena: Arena, team: int, x: float, y: float, kind: str = "melee") -> int:
    """Spawn a lane creep that stands still."""
    side = "goodguys" if team == 0 else "badguys"
    unit: int = arena.world.spawn(f"npc_dota_creep_{side}_{kind}", team, CENTRE[0] + x, CENTRE[1] + y)
    arena.still(unit)
    arena.world.order(unit, "hold")
    return unit
