"""Places, health and armor of units in an arena."""

import math

from tests.dota.scenes.arena import CENTRE, Arena

ROOT = math.sqrt(0.5)


def set_health(arena: Arena, *units: int, hp: float = 9000, max_hp: float = 0) -> None:
    """Set the units' health, and their maximum, which is the same unless it is given."""
    for unit in units:
        arena.world.set_unit(unit, extra_hp=0)
        arena.world.set_unit(unit, extra_hp=(max_hp or hp) - arena.world.unit(unit)["max_hp"])
        arena.world.set_unit(unit, hp=hp)


def wounded(arena: Arena, hp: float, hero: int = 0) -> int:
    """Set a hero's health and return its unit."""
    unit = arena.unit(hero)
    arena.world.set_unit(unit, hp=hp)
    return unit


def without_armor(arena: Arena, unit: int, hp: float = 20000) -> int:
    """Take a unit's armor, set its health, with room to heal, and return the unit."""
    arena.world.set_unit(unit, extra_armor=0)
    arena.world.set_unit(unit, extra_armor=-arena.world.unit(unit)["armor"])
    set_health(arena, unit, hp=hp, max_hp=hp + 1000)
    return unit


def lane_creep(arena: Arena, team: int, x: float, y: float, kind: str = "melee") -> int:
    """Spawn a lane creep that stands still."""
    side = "goodguys" if team == 0 else "badguys"
    unit: int = arena.world.spawn(f"npc_dota_creep_{side}_{kind}", team, CENTRE[0] + x, CENTRE[1] + y)
    arena.still(unit)
    arena.world.order(unit, "hold")
    return unit


def river(along: float, across: float = 0.0) -> tuple[float, float]:
    """Return the offset of a place down the river, where the ground is level and no tower reaches."""
    return (along + across) * ROOT, (across - along) * ROOT


def down_river(arena: Arena, unit: int, along: float, across: float = 0.0) -> None:
    """Place a unit down the river, facing downstream."""
    arena.place(unit, *river(along, across), -math.pi / 4)


def river_creep(arena: Arena, along: float, across: float = 0.0) -> int:
    """Spawn a neutral creep without AI down the river."""
    return arena.dummy(*river(along, across))

