"""Lina's abilities against numbers computed by hand from their tooltips; her numbers are those of 7.21d."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.scenes.actions import give, order, order_slot, until_cast, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.readings import magical_damage
from tests.dota.scenes.statuses import STUNNED
from tests.dota.scenes.talents import duel

DISPELLABLE = 3
Make = Callable[..., Arena]


@pytest.fixture
def make(new_world: Any, data: dict[str, Any]) -> Make:
    return lambda hero="lina", **sides: duel(new_world, data, hero, **sides)


def cast(arena: Arena, ability: str, rank: int, target: int | None = None, at: tuple[float, float] = (300, 0),
         wait: float = 0.0) -> None:
    """Cast on a unit or at a place; wait until the cooldown begins and so many seconds longer."""
    order(arena, ability, rank, target, None if target is not None else at)
    until_cast(arena, ability)
    arena.world.run_frames(round(wait * 30))


@pytest.mark.parametrize("aimed", ["at the ground", "at a unit"])
def test_dragon_slave_burns_a_narrowing_line(make: Make, aimed: str) -> None:
    """310 to everybody on the way: 275 wide to either side at first, 200 at its end, 1075 away. At 200 it is 261 wide
    (275 - 75 * 200 / 1075), at 1000 it is 205; its end reaches 1275."""
    arena = make()
    within = [arena.dummy(200, 250), arena.dummy(1000, -195), arena.dummy(1260, 0)]
    beyond = [arena.dummy(200, -290), arena.dummy(1000, 240), arena.dummy(1290, 0)]
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    cast(arena, "lina_dragon_slave", 4, enemy if aimed == "at a unit" else None, wait=1.2)
    assert hp - arena.hp(enemy) == pytest.approx(magical_damage(arena, enemy, 310), rel=1e-3)
    assert [5000 - arena.hp(u) for u in within] == pytest.approx([magical_damage(arena, within[0], 310)] * 3, rel=1e-3)
    assert [arena.hp(u) for u in beyond] == [5000] * 3


@pytest.mark.parametrize(("rank", "damage", "stun"), [(1, 80, 1.6), (4, 200, 2.5)])
def test_light_strike_array_strikes_after_its_delay(make: Make, rank: int, damage: float, stun: float) -> None:
    """Half a second after the cast; who left by then is spared, and who came is struck."""
    arena = make()
    enemy, leaves, comes = arena.unit(5), arena.dummy(300, 150), arena.dummy(300, 400)
    hp = arena.hp(enemy)
    cast(arena, "lina_light_strike_array", rank, wait=0.4)
    assert arena.hp(enemy) == hp
    arena.place(leaves, 300, 300)
    arena.place(comes, 300, 200)
    arena.world.run_frames(4)
    assert hp - arena.hp(enemy) == pytest.approx(magical_damage(arena, enemy, damage), rel=1e-3)
    assert arena.hp(leaves) == 5000 and arena.hp(comes) < 5000
    (held,) = [m for m in arena.modifiers(enemy, "lina_light_strike_array") if m["status"] & STUNNED]
    assert held["left"] == pytest.approx(stun, abs=0.11)


@pytest.mark.parametrize(("hero", "ability", "radius", "delay"), [
    ("lina", "lina_light_strike_array", 225, 0.5), ("leshrac", "leshrac_split_earth", 150, 0.35)])
@pytest.mark.parametrize("offset", [-20, 20])
def test_strikes_on_the_ground_fell_trees(make: Make, hero: str, ability: str, radius: float, delay: float,
                                          offset: float) -> None:
    """Notes: trees in the area are destroyed. Where one stood a blink ends; where one stands it ends beside it."""
    arena = make(hero, allies=("sniper",))
    trees = [(x - CENTRE[0], y - CENTRE[1]) for x, y, *_ in arena.data["map"]["trees"]]
    x, y = min(trees, key=lambda t: math.hypot(*t))
    far = math.hypot(x, y)
    ahead = (far - radius - offset) / far
    arena.place(arena.unit(0), x * (far - 600) / far, y * (far - 600) / far, math.atan2(y, x))
    arena.place(arena.unit(1), x * (far - 700) / far, y * (far - 700) / far, math.atan2(y, x))
    blink = give(arena, "blink", hero=1)
    cast(arena, ability, 1, at=(x * ahead, y * ahead), wait=delay + 0.1)
    arena.world.order(arena.unit(1), "cast_point", x=CENTRE[0] + x, y=CENTRE[1] + y, slot=blink)
    arena.seconds(0.5)
    landed = arena.world.unit(arena.unit(1))
    beside = math.hypot(landed["x"] - CENTRE[0] - x, landed["y"] - CENTRE[1] - y)
    assert (beside < 1) == (offset < 0), beside


def soul(arena: Arena) -> tuple[float, float]:
    """Return what Fiery Soul adds to attack speed and, in shares of the base speed, to movement speed."""
    u = arena.world.unit(arena.unit(0))
    return u["attack_speed"], u["move_speed"] / arena.base_speed("lina")


def test_fiery_soul_stacks_three_times(make: Make) -> None:
    """55 attack speed and 6 % movement speed a spell at rank 2, of three spells at most; the last renews all."""
    arena = make()
    arena.teach(0, "lina_fiery_soul", 2)
    speed, pace = soul(arena)
    enemy = arena.unit(5)
    for casts, (ability, target) in enumerate((("lina_dragon_slave", enemy), ("lina_light_strike_array", None),
                                               ("lina_laguna_blade", enemy)), 1):
        cast(arena, ability, 1, target, wait=0.1)
        assert soul(arena) == pytest.approx((speed + casts * 55, pace + casts * 0.06), abs=1e-3)
    (stacks,) = [m for m in arena.modifiers(arena.unit(0), "lina_fiery_soul") if m["stacks"]]
    assert stacks["stacks"] == 3 and not stacks["flags"] & DISPELLABLE
    arena.seconds(8)
    cast(arena, "lina_dragon_slave", 1, enemy, wait=0.1)
    assert soul(arena) == pytest.approx((speed + 165, pace + 0.18), abs=1e-3)
    arena.seconds(9.7)
    assert soul(arena) == pytest.approx((speed + 165, pace + 0.18), abs=1e-3)
    arena.seconds(0.4)
    assert soul(arena) == pytest.approx((speed, pace), abs=1e-3)


def test_items_do_not_kindle_fiery_soul(make: Make) -> None:
    arena = make()
    arena.teach(0, "lina_fiery_soul", 4)
    slot = give(arena, "faerie_fire", charges=1)
    before = soul(arena)
    use(arena, slot)
    assert not arena.modifiers(arena.unit(0), "item_faerie_fire")
    assert soul(arena) == pytest.approx(before)


def test_laguna_blade_waits_a_moment(make: Make) -> None:
    """450 magical damage, a quarter of a second after the cast."""
    arena = make()
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    cast(arena, "lina_laguna_blade", 1, enemy, wait=0.2)
    assert arena.hp(enemy) == hp
    arena.world.run_frames(3)
    assert hp - arena.hp(enemy) == pytest.approx(magical_damage(arena, enemy, 450), rel=1e-3)


@pytest.mark.parametrize("scepter", [False, True])
@pytest.mark.parametrize("when", ["before", "within the delay"])
def test_laguna_blade_cuts_through_immunity_with_the_scepter(make: Make, scepter: bool, when: str) -> None:
    """Scepter: pure damage, and through spell immunity. Without it immunity in time saves the target."""
    arena = make()
    enemy = arena.unit(5)
    shield = give(arena, "black_king_bar", hero=5)
    if scepter:
        give(arena, "ultimate_scepter")
    arena.still(enemy)
    hp = arena.hp(enemy)
    if when == "before":
        order_slot(arena, shield, hero=5)
        arena.world.run_frames(2)
    slot = arena.teach(0, "lina_laguna_blade", 3)
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    if when != "before":
        while arena.world.unit(arena.unit(0))["mana"] == 5000:
            arena.world.run_frames(1)
        order_slot(arena, shield, hero=5)
    arena.seconds(1)
    assert hp - arena.hp(enemy) == pytest.approx(850 * arena.amp(arena.unit(0)) if scepter else 0, rel=1e-3)
