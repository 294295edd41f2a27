"""Scenes of tooltip tests: heroes of either patch on a line through the arena's centre, and what they do there."""

import copy
from collections.abc import Callable
from typing import Any

from tests.dota.arena import CENTRE, FILES, Arena, line_up
from tests.dota.patch_worlds import loaded

PATCHES = ("7.21d", "7.19")
QUIET = {"start_s": 0.0, "neutrals": False, "roshan": False, "runes": False, "lanes": [False] * 3, "keep_tango": 0,
         "keep_salve": 0, "keep_clarity": 0}
Change = Callable[[dict[str, Any]], None]


def scene(core: Any, hero: str, patch: str = "7.21d", *, enemies: Any = ("nevermore", "viper"),
          allies: Any = ("sniper",), away: float = 300, change: Change | None = None, **settings: Any) -> Arena:
    """Return an arena: the hero at the centre, the first enemy `away` in front of it, the others out of the way.
    `change` edits the data."""
    data, tables = loaded(core, patch)
    if change:
        data = copy.deepcopy(data)
        change(data)
        tables = core.load_tables(*(data[f] for f in FILES))
    world = core.World(tables, QUIET | settings, [hero, *allies], list(enemies), 1)
    places = {0: 0.0, 5: away} | {i + 1: -600.0 for i in range(len(allies))}
    return line_up(world, data, places | {i + 5: 2500.0 for i in range(1, len(enemies))})


def order(arena: Arena, ability: str, level: int, target: int | None = None, at: tuple[float, float] | None = None,
          hero: int = 0) -> None:
    """Teach a hero an ability and order its cast: on a unit, at an offset from the centre, or without a target."""
    slot = arena.teach(hero, ability, level)
    unit = arena.unit(hero)
    if at is not None:
        arena.world.order(unit, "cast_point", x=CENTRE[0] + at[0], y=CENTRE[1] + at[1], slot=slot)
    elif target is not None:
        arena.world.order(unit, "cast_unit", target=target, slot=slot)
    else:
        arena.world.order(unit, "cast", slot=slot)


def cast(arena: Arena, ability: str, level: int, target: int | None = None, at: tuple[float, float] | None = None,
         wait: float = 0.8, hero: int = 0) -> None:
    """Order a cast and let it happen."""
    order(arena, ability, level, target, at, hero)
    arena.seconds(wait)


def hold(arena: Arena, unit: int) -> None:
    """Let a unit stand where it is, without attacks."""
    arena.world.set_unit(unit, attack_ready=1e9)
    arena.world.order(unit, "hold")


def strike(arena: Arena, attacker: int, target: int, wait: float = 0.8) -> None:
    """Let a unit attack another for a while, which is one attack unless it is fast."""
    arena.world.set_unit(attacker, attack_ready=0)
    arena.world.order(attacker, "attack", target=target)
    arena.seconds(wait)
    hold(arena, attacker)


def strengthen(arena: Arena, *units: int, hp: float = 9000) -> None:
    """Give units so much more health, and fill it."""
    for unit in units:
        arena.world.set_unit(unit, extra_hp=hp)
        arena.world.set_unit(unit, hp=arena.world.unit(unit)["max_hp"])


