"""Programs of effects, run by Lion's Hex."""

import copy
import math
from typing import Any

from tests.dota.scenes.actions import order_slot
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.patches import QUIET, load_tables, read_data

HEX = "lion_voodoo"


def without_talents_on(heroes: dict[str, Any], ability: str) -> dict[str, Any]:
    """Return heroes.json with plain talents in place of those that change this ability: talents without effect are
    refused."""
    heroes = copy.deepcopy(heroes)
    for hero in heroes["heroes"].values():
        for talent in hero["talents"]:
            if any(name == ability for name, _ in talent.get("affects", [])):
                del talent["affects"]
                talent["effects"] = [{"p": "passive_stats", "stats": {"hp": 1}}]
    return heroes


def programmed(core: Any, *effects: dict[str, Any], behavior: tuple[str, ...] = ("unit_target",),
               enemy: str = "nevermore", **more: Any) -> Arena:
    """Return an arena in which Lion's Hex (rank 1, no cast point) runs the given effects; Sniper is Lion's ally."""
    changed = read_data("7.21d")
    changed["abilities"]["abilities"][HEX] |= {
        "behavior": list(behavior), "effects": list(effects), "target_team": ["both"], "cast_range": [2000],
        "specials": {}, "mana_cost": [0], "cooldown": [0.1]} | more
    changed["heroes"] = without_talents_on(changed["heroes"], HEX)
    tables = load_tables(core, changed)
    settings = QUIET | {"max_game_s": 1e5}
    arena = Arena(core.World(tables, settings, ["lion", "sniper"], [enemy, "viper"], 1), changed)
    for hero, x in {0: 0, 1: -300, 5: 400, 6: 2500}.items():
        arena.place(arena.unit(hero), x, 0, math.pi if hero >= 5 else 0.0)
    arena.teach(0, HEX, 1)
    arena.seconds(0.2)
    return arena


def cast_hex(arena: Arena, target: int | None = None, at: tuple[float, float] | None = None, wait: float = 0.2) -> None:
    """Let Lion cast Hex on a unit, at an offset from the centre, or without a target."""
    order_slot(arena, arena.world.ability(0, HEX)["slot"], target, at)
    arena.seconds(wait)


def circle(r: float) -> dict[str, Any]:
    return {"t": "circle", "r": r}
