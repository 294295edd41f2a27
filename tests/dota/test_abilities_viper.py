"""Viper's abilities in patch 7.21d, computed by hand from abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.statuses import BROKEN
from tests.dota.scenes.units import set_health


@pytest.fixture
def arena(core: Any) -> Arena:
    return line_up(core, "7.21d", ("viper",), ("nevermore",), {0: 0, 5: 400})


def test_poison_attack_cast_rides_on_one_attack(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "viper_poison_attack", 2)
    before, mana = arena.world.unit(b), arena.world.unit(a)["mana"]
    start = arena.world.time
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(1.0)
    arena.world.set_unit(a, attack_ready=1e9)
    assert mana - arena.world.unit(a)["mana"] == pytest.approx(35, abs=0.01)
    assert arena.world.ability(0, "viper_poison_attack")["ready"] == pytest.approx(start + 4, abs=0.3)
    slowed = before["move_speed"] - 0.20 * arena.base_speed("nevermore")
    assert arena.world.unit(b)["move_speed"] == pytest.approx(slowed, rel=1e-4)
    assert arena.world.unit(b)["attack_speed"] == pytest.approx(before["attack_speed"] - 20)
    assert not arena.world.ability(0, "viper_poison_attack")["toggled"]
    arena.seconds(3.2)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(before["move_speed"])


def test_poison_damage_grows_with_missing_health(arena: Arena) -> None:
    """Half a point a second for each percent of health missing, looked at when it ticks."""
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "viper_poison_attack", 2)
    arena.world.set_unit(b, extra_hp=2000)
    arena.seconds(0.2)
    most = arena.world.unit(b)["max_hp"]
    arena.world.set_unit(b, hp=0.5 * most)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    hit = None
    for _ in range(30):
        arena.world.step()
        if arena.modifiers(b, "viper_poison"):
            arena.world.set_unit(a, attack_ready=1e9)
            hit = arena.hp(b)
            break
    assert hit is not None
    arena.world.order(a, "hold")
    expected = hit
    for _ in range(3):
        expected -= 0.5 * 100 * (1 - expected / most) * arena.amp(a) * arena.magic(b)
    arena.seconds(3.4)
    assert arena.hp(b) == pytest.approx(expected, rel=1e-4)


def test_poison_attack_on_autocast(arena: Arena) -> None:
    a = arena.unit(0)
    arena.teach(0, "viper_poison_attack", 4)
    arena.world.set_autocast(0, "viper_poison_attack", True)
    target = arena.dummy(300, 0, hp=20000)
    arena.world.set_unit(a, mana=arena.world.unit(a)["max_mana"])
    mana = arena.world.unit(a)["mana"]
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    arena.seconds(6)
    attacks = (mana - arena.world.unit(a)["mana"]) / 25
    assert attacks >= 3
    assert attacks == pytest.approx(round(attacks), abs=0.01)
    assert arena.modifiers(target, "viper_poison")


@pytest.mark.parametrize("level", [1, 4])
def test_nethertoxin(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=2000)
    arena.seconds(0.2)
    hp, plain = 2000.0, arena.magic(b)
    arena.world.set_unit(b, hp=hp)
    cast(arena, "viper_nethertoxin", level, at=(400, 0))
    lowered = [10, 15, 20, 25][level - 1] / 100
    assert arena.magic(b) == pytest.approx(plain * (1 + lowered), rel=1e-4)
    assert arena.world.unit(b)["status"] & BROKEN
    arena.seconds(8)
    total = [30, 45, 60, 75][level - 1] * 8
    assert hp - arena.hp(b) == pytest.approx(total * arena.amp(a) * plain * (1 + lowered), rel=1e-3)
    arena.seconds(0.3)
    assert not arena.world.unit(b)["status"] & BROKEN
    assert arena.magic(b) == pytest.approx(plain, rel=1e-4)


def test_break_switches_passives_off(arena: Arena) -> None:
    """Nethertoxin applies break: an enemy's Presence of the Dark Lord has no effect inside it."""
    a, b = arena.unit(0), arena.unit(5)
    arena.world.teach(5, "nevermore_dark_lord", 4)
    arena.seconds(0.3)
    low = arena.world.unit(a)["armor"]
    cast(arena, "viper_nethertoxin", 1, at=(400, 0), wait=1.5)
    assert arena.world.unit(b)["status"] & BROKEN
    assert arena.world.unit(a)["armor"] == pytest.approx(low + 7)


@pytest.mark.parametrize("level", [1, 4])
def test_corrosive_skin(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=1000)
    plain = arena.magic(a)
    arena.teach(0, "viper_corrosive_skin", level)
    assert arena.magic(a) == pytest.approx(plain * (1 - [10, 15, 20, 25][level - 1] / 100), rel=1e-5)
    arena.seconds(0.2)
    speed, hp = arena.world.unit(b)["attack_speed"], arena.hp(b)
    arena.world.damage(b, a, 10, "physical")
    arena.seconds(0.2)
    assert arena.world.unit(b)["attack_speed"] == pytest.approx(speed - [8, 16, 24, 32][level - 1])
    arena.seconds(4.2)
    total = 4 * [8, 16, 24, 32][level - 1]
    assert hp - arena.hp(b) == pytest.approx(total * arena.amp(a) * arena.magic(b), rel=1e-3)
    assert arena.world.unit(b)["attack_speed"] == pytest.approx(speed)


def test_corrosive_skin_has_a_reach(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "viper_corrosive_skin", 1)
    arena.place(b, 1500, 0)
    arena.world.damage(b, a, 10, "physical")
    assert not arena.modifiers(b, "viper_corrosive")


@pytest.mark.parametrize("level", [1, 3])
def test_viper_strike_fades(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    set_health(arena, b, hp=2000)
    speed = arena.world.unit(b)["attack_speed"]
    cast(arena, "viper_viper_strike", level, b, wait=0.3 + 0.3 + 0.1)
    slow = [40, 60, 80][level - 1]
    first = speed - arena.world.unit(b)["attack_speed"]
    assert first == pytest.approx(slow, rel=0.06)
    arena.seconds(2.5)
    assert speed - arena.world.unit(b)["attack_speed"] == pytest.approx(first - slow / 2, rel=0.05)
    arena.seconds(2.6)
    assert arena.world.unit(b)["attack_speed"] == pytest.approx(speed)
    total = 5 * [60, 100, 145][level - 1]
    assert 2000 - arena.hp(b) == pytest.approx(total * arena.amp(a) * arena.magic(b), rel=1e-3)


def test_viper_strike_slows_the_spell_immune_without_damage(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.world.give_item(5, "black_king_bar")
    arena.seconds(0.2)
    arena.world.order(b, "cast", slot=arena.world.ability(5, "item_black_king_bar")["slot"])
    arena.seconds(0.2)
    speed, hp = arena.world.unit(b)["move_speed"], arena.hp(b)
    slot = arena.teach(0, "viper_viper_strike", 1)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(2)
    assert arena.world.unit(b)["move_speed"] < speed
    assert arena.hp(b) == hp
