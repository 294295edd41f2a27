"""Lion's abilities in patch 7.21d, computed by hand from abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.statuses import HEXED, STUNNED


@pytest.fixture
def arena(core: Any) -> Arena:
    return line_up(core, "7.21d", ("lion",), ("nevermore",), {0: 0, 5: 400})


@pytest.mark.parametrize("level", [1, 4])
def test_impale_damages_late_and_stuns_all_on_its_way(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    near, beside = arena.dummy(300, 60), arena.dummy(300, 300)
    slot = arena.teach(0, "lion_impale", level)
    hp = {u: arena.hp(u) for u in (b, near, beside)}
    arena.world.order(a, "cast_point", x=CENTRE[0] + 400, y=CENTRE[1], slot=slot)
    arena.seconds(0.3 + 0.4)
    assert arena.world.unit(b)["status"] & STUNNED
    assert arena.world.unit(near)["status"] & STUNNED
    assert not arena.world.unit(beside)["status"] & STUNNED
    assert arena.hp(b) == hp[b]
    arena.seconds(0.5)
    damage = arena.field("lion_impale", "damage")[level - 1] * arena.amp(a)
    for u in (b, near):
        assert hp[u] - arena.hp(u) == pytest.approx(damage * arena.magic(u), rel=1e-4)
    assert arena.hp(beside) == hp[beside]
    duration = arena.special("lion_impale", "duration")[level - 1]
    stun = [m for m in arena.modifiers(b, "lion_impale") if m["status"] & STUNNED]
    assert stun[0]["left"] == pytest.approx(duration - 0.75, abs=0.35)
    arena.seconds(duration)
    assert not arena.world.unit(b)["status"] & STUNNED


@pytest.mark.parametrize("level", [1, 3])
def test_hex(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "lion_voodoo", level)
    speed = arena.world.unit(b)["move_speed"]
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.3)
    assert arena.world.unit(b)["status"] & HEXED
    bonus = speed / arena.base_speed("nevermore")  # by agility
    assert arena.world.unit(b)["move_speed"] == pytest.approx(140 * bonus, rel=1e-5)
    duration = arena.special("lion_voodoo", "duration")[level - 1]
    arena.seconds(duration - 0.6)
    assert arena.world.unit(b)["status"] & HEXED
    arena.seconds(0.6)
    assert not arena.world.unit(b)["status"] & HEXED
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)


def test_mana_drain_moves_mana_and_slows(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "lion_mana_drain", 3)
    arena.world.set_unit(a, mana=100)
    speed = arena.world.unit(b)["move_speed"]
    theirs = arena.world.unit(b)["mana"]
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.3 + 2.1)
    assert arena.world.unit(a)["act"] == "channel"
    taken = theirs - arena.world.unit(b)["mana"]
    assert taken == pytest.approx(60 * 2, abs=9)
    assert arena.world.unit(a)["mana"] == pytest.approx(100 - 10 + taken, abs=0.5)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed - 0.28 * arena.base_speed("nevermore"), rel=1e-4)
    arena.seconds(3.2)
    assert arena.world.unit(a)["act"] != "channel"
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)


def test_mana_drain_breaks_beyond_its_distance(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    cast(arena, "lion_mana_drain", 1, b, wait=1)
    arena.place(b, 1300, 0)
    arena.seconds(0.3)
    assert arena.world.unit(a)["act"] != "channel"
    assert not arena.modifiers(b, "lion_mana_drain")


@pytest.mark.parametrize("level", [1, 3])
def test_finger_after_its_delay(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=2000)
    arena.seconds(0.2)
    arena.world.set_unit(b, hp=2400)
    cast(arena, "lion_finger_of_death", level, b, wait=0.4)
    assert arena.hp(b) == pytest.approx(2400)
    arena.seconds(0.4)
    damage = [600, 725, 850][level - 1]
    assert 2400 - arena.hp(b) == pytest.approx(damage * arena.amp(a) * arena.magic(b), rel=1e-4)


def test_a_hero_that_dies_later_does_not_count(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=2000)
    cast(arena, "lion_finger_of_death", 1, b, wait=0.8 + 3.2)
    arena.world.kill(b, a)
    assert arena.world.ability(0, "lion_finger_of_death")["stacks"] == 0
