"""Viper by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

from typing import Any

import pytest

from tests.dota.arena import CENTRE, Arena, give
from tests.dota.patch_worlds import duel_of

POISON, SKIN = "viper_poison_attack", "viper_corrosive_skin"


def duel(core: Any, patch: str = "7.21d", enemy: str = "nevermore", away: float = 400) -> Arena:
    arena = duel_of(core, patch, ("viper", "lion"), (enemy, "axe"), {0: 0, 1: -600, 5: away, 6: 2900})
    arena.world.set_unit(arena.unit(5), extra_hp=4000)
    arena.world.step(1)
    arena.world.set_unit(arena.unit(5), hp=4000)
    arena.still(arena.unit(5))
    return arena


def poison(arena: Arena, target: int) -> None:
    """Let Viper land one attack with his poison on autocast."""
    a, hp = arena.unit(0), arena.hp(target)
    arena.world.set_autocast(0, POISON, True)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.hp(target) < hp:
            break
    arena.world.set_unit(a, attack_ready=1e9)
    arena.world.order(a, "hold")


def test_poison_renews_and_does_not_add_up(core: Any) -> None:
    """Note: a later attack renews the 3 s and adds neither slow nor damage."""
    arena = duel(core)
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
    for patch in ("7.21d", "7.19"):
        arena = duel(core, patch)
        enemy = arena.unit(5)
        arena.teach(0, POISON, 1)
        speed = arena.world.unit(enemy)["attack_speed"]
        poison(arena, enemy)
        arena.world.step(1)
        slowed.append(speed - arena.world.unit(enemy)["attack_speed"])
    assert slowed == pytest.approx([10, 25])


@pytest.mark.parametrize(("patch", "times"), [("7.21d", 1), ("7.19", 2)])
def test_nethertoxins_add_up_in_7_19(core: Any, patch: str, times: int) -> None:
    """Patch 7.21c: the damage no longer stacks with itself."""
    lost = []
    for casts in (1, 2):
        arena = duel(core, patch)
        enemy = arena.unit(5)
        for _ in range(casts):
            arena.seconds(6)  # its cooldown
            slot = arena.teach(0, "viper_nethertoxin", 1)
            arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 400, y=CENTRE[1], slot=slot)
            arena.seconds(0.8)
        hp = arena.hp(enemy)
        arena.seconds(1)
        lost.append(hp - arena.hp(enemy))
    assert lost[1] == pytest.approx(times * lost[0], rel=0.02)


def test_corrosive_skin_answers_spells_and_no_towers(core: Any) -> None:
    """Tooltip: any enemy that damages it within 1400; buildings take no such effects."""
    arena = duel(core)
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
    arena = duel(core)
    a = arena.unit(0)
    plain = arena.magic(a)
    arena.teach(0, SKIN, 4)
    give(arena, "cloak")
    assert arena.magic(a) == pytest.approx(plain * 0.75 * 0.85, rel=1e-4)


def test_nobody_dispels_viper_strike_and_anybody_the_poison(core: Any) -> None:
    """Files: Viper Strike is not dispellable, the poison is (here by a Manta Style's kind of basic dispel)."""
    arena = duel(core, enemy="slark")
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
    arena = duel(core, enemy="necrolyte", away=300)
    arena.teach(0, SKIN, 4)
    arena.teach(5, "necrolyte_heartstopper_aura", 4)
    hp = arena.hp(arena.unit(0))
    arena.seconds(1)
    assert arena.hp(arena.unit(0)) < hp and not arena.modifiers(arena.unit(5), SKIN)
