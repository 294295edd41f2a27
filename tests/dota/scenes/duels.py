"""Arenas of either patch: heroes on a line through the centre, or along the river."""

import math
from typing import Any

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.patches import Changes, load, quiet_world
from tests.dota.scenes.units import down_river, set_health


def line_up(core: Any, patch: str, radiant: tuple[str, ...], dire: tuple[str, ...], places: dict[int, float],
            changes: Changes = (), **settings: Any) -> Arena:
    """Return an arena with heroes on a line through the centre, at x by hero; the teams face each other."""
    arena = Arena(quiet_world(core, patch, radiant, dire, changes, **settings), load(core, patch, changes)[0])
    for hero, x in places.items():
        arena.place(arena.unit(hero), x, 0, math.pi if hero >= 5 else 0.0)
    arena.seconds(0.2)
    return arena


def duel(core: Any, hero: str, patch: str = "7.21d", *, enemy: str = "nevermore", ally: str = "sniper",
         second: str = "viper", away: float = 300, behind: float = 600, far: float = 2500, hp: float = 0,
         changes: Changes = (), **settings: Any) -> Arena:
    """Return an arena: the hero (0) at the centre, an ally (1) behind it, the enemy (5) `away` in front of it and a
    second enemy (6) `far` away. `hp` sets the health of hero and enemy, with room to heal."""
    places = {0: 0.0, 1: -behind, 5: away, 6: far}
    arena = line_up(core, patch, (hero, ally), (enemy, second), places, changes, **settings)
    if hp:
        set_health(arena, arena.unit(0), arena.unit(5), hp=hp, max_hp=hp + 1000)
    return arena


def item_duel(core: Any, patch: str = "7.21d", hero: str = "sven", *, ally: str = "lion", away: float = 500,
              **options: Any) -> Arena:
    """Return a duel of heroes without abilities."""
    arena = duel(core, hero, patch, ally=ally, away=away, behind=300, **options)
    for index in (0, 1, 5, 6):
        name = arena.world.hero(index)["name"]
        for ability in arena.data["heroes"]["heroes"][name]["abilities"]:
            arena.world.teach(index, ability, 0)
    return arena


def river_scene(core: Any, patch: str, radiant: tuple[str, ...], dire: tuple[str, ...],
                places: dict[int, float]) -> Arena:
    """Return an arena with heroes of much health along the river, at distances from the centre by hero."""
    arena = Arena(quiet_world(core, patch, radiant, dire, max_game_s=1e5), load(core, patch)[0])
    for hero, along in places.items():
        down_river(arena, arena.unit(hero), along)
        set_health(arena, arena.unit(hero), hp=4000, max_hp=6000)
    arena.seconds(0.2)
    return arena
