"""Duels of a hero with and without a talent."""

import math
from collections.abc import Iterator
from typing import Any

from tests.dota.scenes.arena import Arena


def value(data: dict[str, Any], hero: str, talent: str, key: str = "value") -> float:
    talents = data["heroes"]["heroes"]["npc_dota_hero_" + hero]["talents"]
    number: float = next(t["values"][key] for t in talents if t["id"] == "special_bonus_unique_" + talent)
    return number


def duel(new_world: Any, data: dict[str, Any], hero: str, *, allies: Any = (), enemies: Any = ("sven",)) -> Arena:
    """Return a duel: the hero at the centre, the first enemy 300 in front of it, all with plenty of health."""
    arena = Arena(new_world((hero, *allies), enemies), data)
    arena.place(arena.unit(0), 0, 0)
    arena.place(arena.unit(5), 300, 0, math.pi)
    for i in (0, 5):
        arena.world.set_unit(arena.unit(i), extra_hp=4000)
        arena.world.set_unit(arena.unit(i), hp=4000)
    return arena


def take(arena: Arena, talent: str, hero: int = 0) -> None:
    arena.world.teach(hero, "special_bonus_unique_" + talent, 1)
    arena.still(arena.unit(hero))


def without_and_with(new_world: Any, data: dict[str, Any], hero: str, talent: str, **sides: Any) -> Iterator[Arena]:
    """Return a duel without the talent, then one with it."""
    for taken in (False, True):
        arena = duel(new_world, data, hero, **sides)
        if taken:
            take(arena, talent)
        yield arena
