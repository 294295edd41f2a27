"""Steps of scenes with the abilities of one hero, in either patch."""

from typing import Any

from tests.dota.arena import Arena
from tests.dota.tooltip_scenes import PATCHES as PATCHES
from tests.dota.tooltip_scenes import order as order
from tests.dota.tooltip_scenes import scene


def stage(core: Any, hero: str, enemy: str = "nevermore", away: float = 300, patch: str = "7.21d",
          ally: str = "sniper", second: str = "viper") -> Arena:
    """Return an arena with the enemy `away` in front of hero 0, the ally 600 behind it, the second enemy out of reach.
    """
    return scene(core, hero, patch, enemies=(enemy, second), allies=(ally,), away=away)


def until_cast(arena: Arena, ability: str, hero: int = 0) -> None:
    """Run until the cooldown of an ordered ability begins."""
    before = arena.world.ability(hero, ability)["ready"]
    for _ in range(90):
        if arena.world.ability(hero, ability)["ready"] != before:
            return
        arena.world.run_frames(1)
    raise AssertionError(f"{ability} was not cast")


def strong(arena: Arena, *units: int, hp: float = 5000) -> None:
    """Give units so much health."""
    for unit in units:
        arena.world.set_unit(unit, extra_hp=hp - arena.world.unit(unit)["max_hp"])
        arena.world.run_frames(1)
        arena.world.set_unit(unit, hp=hp)


def immune(arena: Arena, hero: int) -> None:
    """Let a hero use Black King Bar."""
    arena.world.give_item(hero, "item_black_king_bar")
    arena.seconds(0.2)
    arena.world.set_unit(arena.unit(hero), mana=400)
    arena.world.order(arena.unit(hero), "cast", slot=arena.world.ability(hero, "item_black_king_bar")["slot"])
    arena.world.run_frames(1)


def speed_factor(arena: Arena, unit: int) -> float:
    """Return the unit's speed as a share of its base speed: what percentages such as agility's make of it."""
    speed: float = arena.world.unit(unit)["move_speed"] / arena.base_speed(
        arena.world.unit(unit)["type"].removeprefix("npc_dota_hero_"))
    return speed
