"""Arenas in either patch, for abilities that differ between the two."""

import math
from collections.abc import Callable
from typing import Any

from tests.dota.arena import Arena
from tests.dota.patch_worlds import loaded

PATCHES = ("7.21d", "7.19")
ROOT = math.sqrt(0.5)
Scene = Callable[..., Arena]


class SteadyArena(Arena):
    """Arena without regeneration in 7.19 too, where attributes multiply it."""

    def still(self, unit: int) -> None:
        self.world.set_unit(unit, extra_hp_regen=0, extra_mana_regen=0, attack_ready=1e9)
        without = self.world.unit(unit)
        self.world.set_unit(unit, extra_hp_regen=1, extra_mana_regen=1)
        more = self.world.unit(unit)
        for kind in ("hp_regen", "mana_regen"):
            self.world.set_unit(unit, **{f"extra_{kind}": -without[kind] / (more[kind] - without[kind])})


def scenes(core: Any, patch: str) -> Scene:
    """Return a function that makes arenas of a patch: heroes of both sides, and places along the river by hero.

    Heroes have much health, do not regenerate and do not attack.
    """
    data, tables = loaded(core, patch)
    quiet = {"start_s": 0.0, "max_game_s": 1e5, "neutrals": False, "roshan": False, "runes": False,
             "lanes": [False] * 3, "keep_tango": 0, "keep_salve": 0, "keep_clarity": 0}

    def make(radiant: tuple[str, ...], dire: tuple[str, ...], places: dict[int, float]) -> Arena:
        arena = SteadyArena(core.World(tables, quiet, list(radiant), list(dire), 1), data)
        for hero, along in places.items():
            down_river(arena, arena.unit(hero), along)
            healthy(arena, arena.unit(hero))
        arena.seconds(0.2)
        return arena

    return make


def down_river(arena: Arena, unit: int, along: float, across: float = 0.0) -> None:
    """Place a unit so far down the river, where the ground is level and no tower reaches."""
    arena.place(unit, (along + across) * ROOT, (across - along) * ROOT, -math.pi / 4)


def healthy(arena: Arena, unit: int, hp: float = 4000) -> None:
    arena.world.set_unit(unit, extra_hp=6000)
    arena.world.set_unit(unit, hp=hp)
    arena.still(unit)


def creep(arena: Arena, along: float, across: float = 0.0) -> int:
    unit = arena.dummy(0, 0)
    down_river(arena, unit, along, across)
    return unit


def lost(arena: Arena, unit: int, before: float) -> float:
    """Return lost health as damage before the unit's resistance and the first hero's amplification."""
    return (before - arena.hp(unit)) / arena.magic(unit) / arena.amp(arena.unit(0))


def cast(arena: Arena, ability: str, level: int, on: int | tuple[float, float] | None = None, wait: float = 0.7,
         hero: int = 0) -> None:
    """Cast on a unit, at a place (along and across the river), or without a target, and wait."""
    slot = arena.teach(hero, ability, level)
    arena.world.set_unit(arena.unit(hero), mana=5000)
    order(arena, slot, on, hero)
    arena.seconds(wait)


def order(arena: Arena, slot: int, on: int | tuple[float, float] | None = None, hero: int = 0) -> None:
    unit = arena.unit(hero)
    if on is None:
        arena.world.order(unit, "cast", slot=slot)
    elif isinstance(on, int):
        arena.world.order(unit, "cast_unit", target=on, slot=slot)
    else:
        x, y = place(*on)
        arena.world.order(unit, "cast_point", x=x, y=y, slot=slot)


def place(along: float, across: float = 0.0) -> tuple[float, float]:
    """Return map coordinates of a place down the river."""
    return -500 + (along + across) * ROOT, -400 + (across - along) * ROOT
