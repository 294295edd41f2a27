"""Numbers read from an arena."""

from tests.dota.scenes.arena import Arena


def damage_range(arena: Arena, unit: int) -> tuple[float, float]:
    """Return the least and the greatest damage of a unit's attack, before armor."""
    u = arena.world.unit(unit)
    return float(int(u["dmg_min"])) + u["dmg_bonus"], float(int(u["dmg_max"])) + u["dmg_bonus"]


def physical_share(armor: float) -> float:
    """Return the share of physical damage that passes armor (patch 7.20)."""
    return 1 - 0.052 * armor / (0.9 + 0.048 * abs(armor))


def magical_damage(arena: Arena, target: int, amount: float) -> float:
    """Return what the first hero's magical damage of that amount takes from the unit."""
    return amount * arena.magic(target) * arena.amp(arena.unit(0))


def lost(arena: Arena, unit: int, before: float) -> float:
    """Return lost health as the first hero's damage before the unit's resistance and the hero's amplification."""
    return (before - arena.hp(unit)) / magical_damage(arena, unit, 1)


def speed_factor(arena: Arena, unit: int) -> float:
    """Return the unit's speed as a share of its base speed, to which percentages such as agility's add."""
    u = arena.world.unit(unit)
    return float(u["move_speed"] / arena.base_speed(u["type"].removeprefix("npc_dota_hero_")))
