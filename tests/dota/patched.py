"""Duels in either patch, single attacks and casts in them."""

from collections.abc import Sequence
from typing import Any

from tests.dota.arena import Arena
from tests.dota.patch_worlds import duel_of
from tests.dota.tooltip_scenes import PATCHES as PATCHES
from tests.dota.tooltip_scenes import order


def patched_duel(core: Any, patch: str, hero: str, enemy: str = "nevermore", away: float = 120,
                 allies: Sequence[str] = ()) -> Arena:
    """Return a duel on level ground: the hero at the centre, the enemy in front of it, both with plenty of health."""
    places = {0: 0, 5: away} | {1 + i: -300 - 100 * i for i in range(len(allies))}
    arena = duel_of(core, patch, (hero, *allies), (enemy,), places, keep_teleport=1)
    for unit in (arena.unit(0), arena.unit(5)):
        arena.world.set_unit(unit, extra_hp=20000)
        arena.world.set_unit(unit, hp=20000)
    return arena


def naked(arena: Arena, unit: int) -> int:
    """Take the unit's armor, and return it."""
    arena.world.set_unit(unit, extra_armor=0)
    arena.world.set_unit(unit, extra_armor=-arena.world.unit(unit)["armor"])
    return unit


def strike(arena: Arena, attacker: int, target: int) -> float:
    """Let one attack be made, and return the health it took."""
    world, hp = arena.world, arena.hp(target)
    before = world.unit(attacker)["last_attack"]
    world.set_unit(attacker, attack_ready=0)
    world.order(attacker, "attack", target)
    for _ in range(90):
        world.run_frames(1)
        if world.unit(attacker)["last_attack"] > before:
            break
    else:
        raise AssertionError("no attack was made")
    world.set_unit(attacker, attack_ready=1e9)
    world.order(attacker, "hold")
    return hp - arena.hp(target)


def blow(arena: Arena, attacker: int) -> tuple[float, float]:
    """Return the least and the greatest damage of an attack, before armor."""
    u = arena.world.unit(attacker)
    return float(int(u["dmg_min"])) + u["dmg_bonus"], float(int(u["dmg_max"])) + u["dmg_bonus"]


def cast(arena: Arena, ability: str, rank: int, target: int | None = None, hero: int = 0, wait: float = 0.5) -> None:
    """Teach an ability and cast it, on a unit or without a target."""
    order(arena, ability, rank, target, hero=hero)
    arena.seconds(wait)
