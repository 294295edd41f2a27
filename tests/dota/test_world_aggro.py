"""Whom lane creeps attack: attackers of heroes, then attackers of anyone, then the nearest (Liquipedia, Aggro)."""

from typing import Any

import pytest

HERE = (-500.0, -400.0)


def creep(world: Any, team: int, x: float, y: float, kind: str = "ranged") -> int:
    side = ("goodguys", "badguys")[team]
    unit: int = world.spawn(f"npc_dota_creep_{side}_{kind}", team, HERE[0] + x, HERE[1] + y, 1)
    world.set_unit(unit, extra_armor=500)
    return unit


@pytest.fixture
def world(new_world: Any) -> Any:
    world = new_world()
    for hero, x in ((0, 0), (5, 400)):
        world.set_unit(world.hero(hero)["unit"], x=HERE[0] + x, y=HERE[1], extra_armor=500, attack_ready=1e9)
        world.order(world.hero(hero)["unit"], "hold")
    return world


def target_of(world: Any, unit: int) -> int:
    found: int = world.unit(unit)["attack_target"]
    return found


def test_an_order_on_an_own_creep_sheds_aggro(world: Any) -> None:
    """Within half a second they turn to another target, although the hero is nearer."""
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    enemy, own = creep(world, 1, 200, 150), creep(world, 0, -150, 250)
    world.order(a, "attack", b)
    world.step(2)
    assert target_of(world, enemy) == a
    world.set_unit(own, hp=100)  # may be denied
    world.order(a, "attack", own)
    world.step(3)
    assert target_of(world, enemy) == own


def test_a_lone_hero_is_not_shed(world: Any) -> None:
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    enemy = creep(world, 1, 200, 150)
    own = creep(world, 0, -150, 1500)
    world.order(a, "attack", b)
    world.step(2)
    world.set_unit(own, hp=100)
    world.order(a, "attack", own)
    world.step(2)
    assert target_of(world, enemy) == a


def test_attackers_of_a_hero_come_first(world: Any) -> None:
    """A creep that hits the hero is attacked before a nearer one that does nothing."""
    a = world.hero(0)["unit"]
    world.set_unit(world.hero(5)["unit"], x=HERE[0] + 3000)
    attacker, idle = creep(world, 1, 300, 0), creep(world, 1, 60, 320, "melee")
    world.set_unit(idle, attack_ready=1e9)
    world.step(8)
    assert target_of(world, attacker) == a
    own = creep(world, 0, -60, 260)
    world.step(3)
    assert target_of(world, own) == attacker


def test_attackers_of_creeps_come_before_the_nearest(world: Any) -> None:
    world.set_unit(world.hero(0)["unit"], x=HERE[0] - 3000)
    enemy_hero = world.hero(5)["unit"]
    world.set_unit(enemy_hero, x=HERE[0] + 150, y=HERE[1])
    victim, attacker = creep(world, 0, -200, 0), creep(world, 1, 250, 0)
    world.step(8)
    assert target_of(world, attacker) == victim
    own = creep(world, 0, -100, -150)
    world.step(3)
    assert target_of(world, own) == attacker
