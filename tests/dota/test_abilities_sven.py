"""Sven's abilities in patch 7.21d, computed by hand from abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import STUNNED


@pytest.fixture
def arena(core: Any) -> Arena:
    return line_up(core, "7.21d", ("sven", "lion"), ("nevermore",), {0: 0, 1: -300, 5: 500})


@pytest.mark.parametrize("level", [1, 4])
def test_storm_bolt_splashes(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    beside, far = arena.dummy(500 + 240, 0), arena.dummy(500, 300)
    slot = arena.teach(0, "sven_storm_bolt", level)
    hp = {u: arena.hp(u) for u in (b, beside, far)}
    start = arena.world.time
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(1.0)
    damage = [80, 160, 240, 320][level - 1] * arena.amp(a)
    for u in (b, beside):
        assert hp[u] - arena.hp(u) == pytest.approx(damage * arena.magic(u), rel=1e-4)
        assert arena.world.unit(u)["status"] & STUNNED
    assert arena.hp(far) == hp[far]
    ready = start + 0.3 + [16, 15, 14, 13][level - 1]
    assert arena.world.ability(0, "sven_storm_bolt")["ready"] == pytest.approx(ready, abs=0.15)
    arena.seconds([1.7, 1.8, 1.9, 2][level - 1])
    assert not arena.world.unit(b)["status"] & STUNNED


def test_storm_bolt_stops_at_spell_immunity(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.give_item(5, "black_king_bar")
    arena.seconds(0.2)
    bar = arena.world.ability(5, "item_black_king_bar")["slot"]
    slot = arena.teach(0, "sven_storm_bolt", 1)
    hp = arena.hp(b)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.4)  # in flight
    arena.world.order(b, "cast", slot=bar)
    arena.seconds(0.8)
    assert arena.hp(b) == hp
    assert not arena.world.unit(b)["status"] & STUNNED


def test_great_cleave_in_its_cone(arena: Arena) -> None:
    a = arena.unit(0)
    arena.teach(0, "sven_great_cleave", 4)
    target = arena.dummy(120, 0)
    inside, wide, behind = arena.dummy(400, 150), arena.dummy(400, 330), arena.dummy(-200, 0)
    for u in (target, inside, wide, behind):
        arena.world.set_unit(u, extra_armor=-arena.world.unit(u)["armor"])
    hp = {u: arena.hp(u) for u in (target, inside, wide, behind)}
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    for _ in range(20):
        arena.world.step()
        if arena.hp(target) < hp[target]:
            break
    dealt = hp[target] - arena.hp(target)
    assert dealt > 0
    assert hp[inside] - arena.hp(inside) == pytest.approx(0.9 * dealt, rel=1e-3)
    assert arena.hp(wide) == hp[wide]
    assert arena.hp(behind) == hp[behind]


@pytest.mark.parametrize("level", [1, 4])
def test_warcry_speeds_and_shields(arena: Arena, level: int) -> None:
    """The shield takes attack damage only: 60 to 150 and 1 to 2.5 for each point of Sven's strength."""
    a, mate, b = arena.unit(0), arena.unit(1), arena.unit(5)
    slot = arena.teach(0, "sven_warcry", level)
    speed = arena.world.unit(a)["move_speed"]
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.2)
    bonus = [5, 10, 15, 20][level - 1]
    assert arena.world.unit(a)["move_speed"] == pytest.approx(speed + bonus / 100 * arena.base_speed("sven"), rel=1e-4)
    shield = [60, 90, 120, 150][level - 1] + [1, 1.5, 2, 2.5][level - 1] * arena.world.unit(a)["str"]
    found = [m["shield"] for m in arena.modifiers(mate, "sven_warcry") if m["shield"] > 0]
    assert found == pytest.approx([shield], rel=1e-5)
    hp = arena.hp(mate)
    spell = arena.world.damage(b, mate, 20, "magical")
    assert hp - arena.hp(mate) == pytest.approx(spell)
    assert spell > 0
    hp = arena.hp(mate)
    through = physical_share(arena.world.unit(mate)["armor"])
    assert arena.world.damage(b, mate, shield / through - 1, "physical", attack=True) == 0
    assert arena.hp(mate) == hp
    assert arena.world.damage(b, mate, 10, "physical", attack=True) == pytest.approx(10 * through - through, rel=2e-2)
    assert not arena.modifiers(mate, "sven_warcry")  # with the shield goes the speed
    assert arena.modifiers(a, "sven_warcry")
    arena.seconds(10)
    assert arena.world.unit(a)["move_speed"] == pytest.approx(speed)


@pytest.mark.parametrize("level", [1, 3])
def test_gods_strength(arena: Arena, level: int) -> None:
    a = arena.unit(0)
    slot = arena.teach(0, "sven_gods_strength", level)
    before = arena.world.unit(a)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.5)
    now = arena.world.unit(a)
    strength = [10, 20, 30][level - 1]
    factor = 1 + [80, 120, 160][level - 1] / 100
    assert now["str"] - before["str"] == pytest.approx(strength)
    assert now["dmg_min"] == pytest.approx((before["dmg_min"] + strength) * factor, rel=1e-4)
    assert now["max_hp"] - before["max_hp"] == pytest.approx(20 * strength, rel=1e-4)
    arena.seconds(24)
    assert arena.world.unit(a)["str"] == pytest.approx(now["str"])
    arena.seconds(1.2)
    assert arena.world.unit(a)["str"] == pytest.approx(before["str"])
    assert arena.world.unit(a)["dmg_min"] == pytest.approx(before["dmg_min"])
