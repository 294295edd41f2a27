"""Actions of heroes in an arena: casts, items, attacks."""

from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.statuses import SPELL_IMMUNE


def order_slot(arena: Arena, slot: int, target: int | None = None, at: tuple[float, float] | None = None,
               hero: int = 0) -> None:
    """Order a cast from a slot: on a unit, at an offset from the centre, or without a target."""
    unit = arena.unit(hero)
    if at is not None:
        arena.world.order(unit, "cast_point", x=CENTRE[0] + at[0], y=CENTRE[1] + at[1], slot=slot)
    elif target is not None:
        arena.world.order(unit, "cast_unit", target=target, slot=slot)
    else:
        arena.world.order(unit, "cast", slot=slot)


def order(arena: Arena, ability: str, level: int, target: int | None = None, at: tuple[float, float] | None = None,
          hero: int = 0) -> None:
    """Teach a hero an ability and order its cast."""
    order_slot(arena, arena.teach(hero, ability, level), target, at, hero)


def cast(arena: Arena, ability: str, level: int, target: int | None = None, at: tuple[float, float] | None = None,
         wait: float = 0.8, hero: int = 0) -> None:
    """Teach a hero an ability, order its cast and wait."""
    order(arena, ability, level, target, at, hero)
    arena.seconds(wait)


def until_cast(arena: Arena, ability: str, hero: int = 0) -> None:
    """Run until the cooldown of an ordered ability begins."""
    before = arena.world.ability(hero, ability)["ready"]
    for _ in range(240):
        if arena.world.ability(hero, ability)["ready"] != before:
            return
        arena.world.run_frames(1)
    raise AssertionError(f"{ability} was not cast")


def order_by_type(arena: Arena, ability: str, slot: int, target: int, hero: int = 0) -> None:
    """Order a cast by the ability's own target type: on the target, at its position, or without a target."""
    behavior = arena.field(ability, "behavior")
    if "unit_target" in behavior:
        order_slot(arena, slot, target, hero=hero)
    elif "point" in behavior:
        at = arena.world.unit(target)
        arena.world.order(arena.unit(hero), "cast_point", x=at["x"], y=at["y"], slot=slot)
    else:
        order_slot(arena, slot, hero=hero)


def cooldown_of_cast(arena: Arena, ability: str, slot: int, target: int, hero: int = 0) -> float:
    """Cast an ability by its own target type and return its cooldown in seconds, at most a frame too short."""
    order_by_type(arena, ability, slot, target, hero)
    until_cast(arena, ability, hero)
    left: float = arena.world.ability(hero, ability)["ready"] - arena.world.time
    return left


def give(arena: Arena, item: str, hero: int = 0, charges: int = 0) -> int:
    """Put an item into the hero's inventory, fill its mana, and return the item's slot."""
    assert arena.world.give_item(hero, "item_" + item, charges)
    arena.seconds(0.2)
    unit = arena.unit(hero)
    arena.still(unit)
    arena.world.set_unit(unit, mana=arena.world.unit(unit)["max_mana"])
    slot: int = arena.world.ability(hero, "item_" + item)["slot"]
    return slot


def use(arena: Arena, slot: int, target: int | None = None, hero: int = 0) -> None:
    """Use an item, on a unit or without a target."""
    order_slot(arena, slot, target, hero=hero)
    arena.seconds(0.25)


def make_immune(arena: Arena, hero: int) -> None:
    """Let a hero use Black King Bar."""
    order_slot(arena, give(arena, "black_king_bar", hero), hero=hero)
    arena.world.run_frames(2)
    assert arena.world.unit(arena.unit(hero))["status"] & SPELL_IMMUNE


def hold(arena: Arena, unit: int) -> None:
    """Let a unit stand where it is, without attacks."""
    arena.world.set_unit(unit, attack_ready=1e9)
    arena.world.order(unit, "hold")


def attack_for(arena: Arena, attacker: int, target: int, seconds: float = 0.8) -> None:
    """Let a unit attack another for that time, which is one attack unless it is fast."""
    arena.world.set_unit(attacker, attack_ready=0)
    arena.world.order(attacker, "attack", target)
    arena.seconds(seconds)
    hold(arena, attacker)


def attack_once(arena: Arena, attacker: int, target: int, seconds: float = 3.0) -> float:
    """Let a unit attack another once; return the health it took with the attack, 0 when it missed."""
    world, hp = arena.world, arena.hp(target)
    last = world.unit(attacker)["last_attack"]
    world.set_unit(attacker, attack_ready=0)
    world.order(attacker, "attack", target)
    for _ in range(round(30 * seconds)):
        world.run_frames(1)
        if world.unit(attacker)["last_attack"] != last and not world.projectiles():
            break
    else:
        raise AssertionError("no attack was made")
    hold(arena, attacker)
    return hp - arena.hp(target)
