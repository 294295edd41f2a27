"""Crystal Maiden's abilities in patch 7.21d, computed by hand from abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.statuses import DISARMED, ROOTED
from tests.dota.scenes.units import set_health


@pytest.fixture
def arena(core: Any) -> Arena:
    return line_up(core, "7.21d", ("crystal_maiden", "lion"), ("nevermore",), {0: 0, 1: -300, 5: 500})


@pytest.mark.parametrize("level", [1, 4])
def test_nova_damages_and_slows_the_circle(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    inside, outside = arena.dummy(500 + 400, 0), arena.dummy(500 + 450, 60)
    slot = arena.teach(0, "crystal_maiden_crystal_nova", level)
    hp = {u: arena.hp(u) for u in (b, inside, outside)}
    before = arena.world.unit(b)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 500, y=CENTRE[1], slot=slot)
    arena.seconds(0.5)
    damage = [130, 170, 210, 260][level - 1] * arena.amp(a)
    assert hp[b] - arena.hp(b) == pytest.approx(damage * arena.magic(b), rel=1e-4)
    assert hp[inside] - arena.hp(inside) == pytest.approx(damage * arena.magic(inside), rel=1e-4)
    assert arena.hp(outside) == hp[outside]
    slow = [20, 30, 40, 50][level - 1]
    slowed = before["move_speed"] - slow / 100 * arena.base_speed("nevermore")
    assert arena.world.unit(b)["move_speed"] == pytest.approx(slowed, rel=1e-4)
    assert arena.world.unit(b)["attack_speed"] == pytest.approx(before["attack_speed"] - slow)
    arena.seconds(4.0)
    assert arena.world.unit(b)["move_speed"] < before["move_speed"]
    arena.seconds(0.4)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(before["move_speed"])


@pytest.mark.parametrize("level", [1, 4])
def test_frostbite_on_a_hero(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "crystal_maiden_frostbite", level)
    hp = arena.hp(b)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.5)
    assert arena.world.unit(b)["status"] & (ROOTED | DISARMED) == ROOTED | DISARMED
    duration = [1.5, 2, 2.5, 3][level - 1]
    arena.seconds(duration + 0.2)
    assert not arena.world.unit(b)["status"] & (ROOTED | DISARMED)
    total = [150, 200, 250, 300][level - 1] * arena.amp(a) * arena.magic(b)
    assert hp - arena.hp(b) == pytest.approx(total, rel=1e-3)


def test_frostbite_on_a_creep_lasts_ten_seconds_for_a_thousand(arena: Arena) -> None:
    a = arena.unit(0)
    creep = arena.dummy(300, 0)
    slot = arena.teach(0, "crystal_maiden_frostbite", 1)
    hp = arena.hp(creep)
    arena.world.order(a, "cast_unit", target=creep, slot=slot)
    arena.seconds(0.4 + 5.05)
    tick = 1000 / 20 * arena.amp(a) * arena.magic(creep)
    assert hp - arena.hp(creep) == pytest.approx(10 * tick, rel=1e-3)
    arena.seconds(5.2)
    assert hp - arena.hp(creep) == pytest.approx(20 * tick, rel=1e-3)
    assert not arena.world.unit(creep)["status"] & ROOTED


def test_frostbite_talent_lengthens_it_and_keeps_the_total(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "crystal_maiden_frostbite", 1)
    arena.world.teach(0, "special_bonus_unique_crystal_maiden_1", 1)
    hp = arena.hp(b)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.4 + 1.6)
    assert arena.world.unit(b)["status"] & ROOTED
    arena.seconds(1.6)
    assert not arena.world.unit(b)["status"] & ROOTED
    assert hp - arena.hp(b) == pytest.approx(150 * arena.amp(a) * arena.magic(b), rel=1e-3)


@pytest.mark.parametrize("level", [1, 4])
def test_brilliance_everywhere_and_more_for_herself(arena: Arena, level: int) -> None:
    a, mate, b = arena.unit(0), arena.unit(1), arena.unit(5)
    arena.place(mate, 3000, 3000)
    before = [arena.world.unit(u)["mana_regen"] for u in (a, mate, b)]
    arena.world.teach(0, "crystal_maiden_brilliance_aura", level)
    arena.seconds(0.3)
    gained = [arena.world.unit(u)["mana_regen"] - r for u, r in zip((a, mate, b), before, strict=True)]
    own, others = [2.5, 4.5, 6.5, 8.5][level - 1], [1, 1.5, 2, 2.5][level - 1]
    assert gained == pytest.approx([own, others, 0], abs=1e-4)


def test_freezing_field(arena: Arena) -> None:
    """A hundred explosions in ten seconds, each 105 within 300 of a spot 195 to 785 away; 20 armor to herself."""
    a, b = arena.unit(0), arena.unit(5)
    set_health(arena, b, hp=20000)
    slot = arena.teach(0, "crystal_maiden_freezing_field", 1)
    armor, speed = arena.world.unit(a)["armor"], arena.world.unit(b)["move_speed"]
    hp = arena.hp(b)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.5)
    assert arena.world.unit(a)["armor"] - armor == pytest.approx(20)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed - 0.30 * arena.base_speed("nevermore"), rel=1e-4)
    arena.seconds(9.8)
    assert arena.world.unit(a)["act"] != "channel"
    hits = (hp - arena.hp(b)) / (105 * arena.amp(a) * arena.magic(b))
    assert hits == pytest.approx(round(hits), abs=0.01)
    # An explosion reaches a target 500 away from about one sixth of the ring's area.
    assert 5 <= round(hits) <= 35
    assert arena.world.unit(a)["armor"] == pytest.approx(armor)
    arena.seconds(1.2)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)


def test_freezing_field_ends_with_the_channel(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    cast(arena, "crystal_maiden_freezing_field", 1, wait=1)
    arena.world.order(a, "stop")
    arena.seconds(0.2)
    armor, hp = arena.world.unit(a)["armor"], arena.hp(b)
    assert armor < 15
    arena.seconds(2)
    assert arena.hp(b) == hp
