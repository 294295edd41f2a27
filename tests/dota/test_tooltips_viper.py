"""Viper by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, cast, give
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.patches import PATCHES

POISON, SKIN = "viper_poison_attack", "viper_corrosive_skin"


def test_poison_renews_and_does_not_add_up(core: Any) -> None:
    """Note: a later attack renews the 3 s and adds neither slow nor damage."""
    arena = duel(core, "viper", away=400, hp=4000)
    enemy = arena.unit(5)
    arena.teach(0, POISON, 4)
    speed = arena.world.unit(enemy)["attack_speed"]
    poison(arena, enemy)
    arena.seconds(1.6)
    poison(arena, enemy)
    arena.world.step(1)
    assert len({m["name"] for m in arena.modifiers(enemy, POISON)}) == len(arena.modifiers(enemy, POISON)) == 2
    assert arena.world.unit(enemy)["attack_speed"] == pytest.approx(speed - 40)
    arena.seconds(2.6)
    assert arena.world.unit(enemy)["attack_speed"] == pytest.approx(speed - 40)
    arena.seconds(0.5)
    assert arena.world.unit(enemy)["attack_speed"] == pytest.approx(speed)


def test_poison_of_7_19_slows_by_more(core: Any) -> None:
    """Patch 7.21c: from 25/30/35/40 to 10/20/30/40."""
    slowed = []
    for patch in PATCHES:
        arena = duel(core, "viper", patch, away=400, hp=4000)
        enemy = arena.unit(5)
        arena.teach(0, POISON, 1)
        speed = arena.world.unit(enemy)["attack_speed"]
        poison(arena, enemy)
        arena.world.step(1)
        slowed.append(speed - arena.world.unit(enemy)["attack_speed"])
    assert slowed == pytest.approx([10, 25])


def poison(arena: Arena, target: int) -> None:
    """Let Viper land one attack with his poison on autocast."""
    arena.world.set_autocast(0, POISON, True)
    attack_once(arena, arena.unit(0), target)


@pytest.mark.parametrize(("patch", "times"), [("7.21d", 1), ("7.19", 2)])
def test_nethertoxins_add_up_in_7_19(core: Any, patch: str, times: int) -> None:
    """Patch 7.21c: the damage no longer stacks with itself."""
    lost = []
    for casts in (1, 2):
        arena = duel(core, "viper", patch, away=400, hp=4000)
        enemy = arena.unit(5)
        for _ in range(casts):
            arena.seconds(6)  # its cooldown
            cast(arena, "viper_nethertoxin", 1, at=(400, 0))
        hp = arena.hp(enemy)
        arena.seconds(1)
        lost.append(hp - arena.hp(enemy))
    assert lost[1] == pytest.approx(times * lost[0], rel=0.02)


def test_corrosive_skin_answers_spells_and_no_towers(core: Any) -> None:
    """Tooltip: any enemy that damages it within 1400; buildings take no such effects."""
    arena = duel(core, "viper", away=400, hp=4000)
    a, enemy, tower = arena.unit(0), arena.unit(5), next(u for u in arena.world.units("tower") if u["team"] == 1)
    arena.teach(0, SKIN, 1)
    arena.world.set_unit(a, x=tower["x"] - 300, y=tower["y"])
    arena.world.damage(tower["index"], a, 10, "physical", attack=True)
    assert not arena.modifiers(tower["index"], SKIN)
    arena.world.set_unit(enemy, x=tower["x"] - 1680, y=tower["y"])
    arena.world.damage(enemy, a, 10, "magical")
    assert arena.modifiers(enemy, SKIN)


def test_corrosive_skin_multiplies_with_other_resistance(core: Any) -> None:
    """Note: 25 % of the skin and a Cloak's 15 %."""
    arena = duel(core, "viper", away=400, hp=4000)
    a = arena.unit(0)
    plain = arena.magic(a)
    arena.teach(0, SKIN, 4)
    give(arena, "cloak")
    assert arena.magic(a) == pytest.approx(plain * 0.75 * 0.85, rel=1e-4)


def test_nobody_dispels_viper_strike_and_anybody_the_poison(core: Any) -> None:
    """Files: Viper Strike is not dispellable, the poison is (here by a Manta Style's kind of basic dispel)."""
    arena = duel(core, "viper", enemy="slark", away=400, hp=4000)
    enemy = arena.unit(5)
    arena.teach(0, POISON, 4)
    poison(arena, enemy)
    pact = arena.teach(5, "slark_dark_pact", 1)
    arena.world.order(enemy, "cast", slot=pact)
    slot = arena.teach(0, "viper_viper_strike", 1)
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    arena.seconds(1)
    assert arena.modifiers(enemy, POISON) and arena.modifiers(enemy, "viper_viper_strike")
    arena.seconds(0.8)
    assert not arena.modifiers(enemy, POISON) and arena.modifiers(enemy, "viper_viper_strike")


def test_corrosive_skin_answers_no_mere_loss_of_health(core: Any) -> None:
    """Tooltip: who damages him; a Heartstopper Aura only takes health."""
    arena = duel(core, "viper", enemy="necrolyte", hp=4000)
    arena.teach(0, SKIN, 4)
    arena.teach(5, "necrolyte_heartstopper_aura", 4)
    hp = arena.hp(arena.unit(0))
    arena.seconds(1)
    assert arena.hp(arena.unit(0)) < hp and not arena.modifiers(arena.unit(5), SKIN)
