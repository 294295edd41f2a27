"""Necrophos by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/necrolyte.md)."""

from typing import Any

import pytest

from tests.dota.scenes.actions import give, make_immune, order, until_cast, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import DISARMED, STUNNED
from tests.dota.scenes.units import set_health


def test_death_pulse_cannot_be_disjointed(core: Any, patch: str) -> None:
    """Note. Queen of Pain blinks away, and the pulse follows her: 100 magical damage at rank 1."""
    arena = duel(core, "necrolyte", enemy="queenofpain", away=450, patch=patch)
    target = arena.unit(5)
    hp = arena.hp(target)
    arena.teach(5, "queenofpain_blink", 4)
    order(arena, "queenofpain_blink", 4, at=(1000, 300), hero=5)
    arena.world.run_frames(6)
    order(arena, "necrolyte_death_pulse", 1)
    arena.world.run_frames(12)
    assert arena.hp(target) == hp
    assert arena.world.unit(target)["x"] > CENTRE[0] + 800
    arena.seconds(3)
    assert hp - arena.hp(target) == pytest.approx(100 * arena.amp(arena.unit(0)) * arena.magic(target), rel=1e-3)


def test_death_pulse_heals_himself_and_the_immune(core: Any) -> None:
    """Tooltip: allied units; note: spell-immune ones too. 60 at rank 1."""
    arena = duel(core, "necrolyte", ally="sven")
    arena.place(arena.unit(1), -200, 0)
    make_immune(arena, 1)
    for hero in (0, 1):
        arena.world.set_unit(arena.unit(hero), hp=200)
    order(arena, "necrolyte_death_pulse", 1)
    arena.seconds(0.9)
    assert arena.hp(arena.unit(0)) == pytest.approx(260, abs=0.5)
    assert arena.hp(arena.unit(1)) == pytest.approx(260, abs=3)  # Sven regenerates


def test_ghost_shroud_amplifies_all_restoration(core: Any) -> None:
    """Restoration amplification 75 %: what he regenerates of health and mana, and heals such as Death Pulse's 60."""
    arena = duel(core, "necrolyte", away=2000)
    a = arena.unit(0)
    order(arena, "necrolyte_sadist", 1)
    arena.world.set_unit(a, extra_hp_regen=0, extra_mana_regen=0)
    arena.seconds(4)
    before = arena.world.unit(a)
    arena.seconds(28)
    order(arena, "necrolyte_sadist", 1)
    arena.world.set_unit(a, extra_hp_regen=0, extra_mana_regen=0, hp=100, mana=200)
    arena.world.run_frames(3)
    within = arena.world.unit(a)
    assert before["hp_regen"] > 0.9 and before["mana_regen"] > 0.9
    assert within["hp_regen"] == pytest.approx(1.75 * before["hp_regen"], rel=1e-4)
    assert within["mana_regen"] == pytest.approx(1.75 * before["mana_regen"], rel=1e-4)
    arena.still(a)
    hp = arena.hp(a)
    order(arena, "necrolyte_death_pulse", 1)
    arena.seconds(0.2)
    assert arena.hp(a) - hp == pytest.approx(1.75 * 60, abs=1)


def test_ghost_shroud_keeps_him_from_attacking(core: Any) -> None:
    arena = duel(core, "necrolyte")
    order(arena, "necrolyte_sadist", 1)
    arena.seconds(0.2)
    assert arena.world.unit(arena.unit(0))["status"] & DISARMED
    arena.world.set_unit(arena.unit(0), attack_ready=0)
    arena.world.order(arena.unit(0), "attack", arena.unit(5))
    hp = arena.hp(arena.unit(5))
    arena.seconds(2.5)
    assert arena.hp(arena.unit(5)) == hp


@pytest.mark.parametrize("near", [False, True])
def test_heartstopper_ends_no_salve(core: Any, near: bool) -> None:
    """Note: it disables no items. Its loss of health is no damage event (patch 7.22b): a salve, 50
    a second, works on, and spell lifesteal gives nothing back."""
    arena = duel(core, "necrolyte", away=300 if near else 2000)
    a, target = arena.unit(0), arena.unit(5)
    set_health(arena, target, hp=4000)
    arena.world.set_unit(target, hp=2000)
    arena.teach(0, "necrolyte_heartstopper_aura", 1)
    give(arena, "octarine_core")
    arena.world.set_unit(a, hp=300)
    use(arena, give(arena, "flask", hero=5, charges=1), target, hero=5)
    arena.seconds(5)
    assert arena.modifiers(target, "item_flask")
    assert arena.hp(a) == pytest.approx(300, abs=0.5)
    lost = 20 * 5.25 if near else 0  # half a percent of 4,000 a second
    assert arena.hp(target) == pytest.approx(2000 + 50 * 5.25 - lost, abs=20)


@pytest.mark.parametrize(("patch", "ability", "other"), [
    ("7.21d", "necrolyte_heartstopper_aura", "necrolyte_death_pulse"),
    ("7.19", "necrolyte_death_pulse", "necrolyte_heartstopper_aura")])
def test_which_ability_regenerates_by_kills(core: Any, patch: str, ability: str, other: str) -> None:
    """Patch 7.20 moved it. Each unit counts once, a denied creep too, a hero six times."""
    arena = duel(core, "necrolyte", away=2000, patch=patch)
    a = arena.unit(0)
    arena.world.teach(0, ability, 0)
    arena.teach(0, other, 1)
    arena.world.kill(arena.dummy(900, 0), a)
    assert not any(m["stacks"] for m in arena.modifiers(a, "stack_"))
    arena.teach(0, ability, 1)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 900, CENTRE[1])
    for victim, stacks in ((creep, 1), (arena.unit(6), 7)):
        arena.world.kill(victim, a)
        assert [m["stacks"] for m in arena.modifiers(a, "stack_" + ability) if m["left"] < 1e6] == [stacks]
    arena.seconds(0.2)
    assert arena.world.unit(a)["hp_regen"] > 7 * 2 - 0.1
    assert arena.world.unit(a)["mana_regen"] > 7 * (3 if patch == "7.21d" else 2.25) - 0.1


def test_scythe_stuns_the_immune_without_damage(core: Any, patch: str) -> None:
    """Note."""
    arena = duel(core, "necrolyte", patch=patch)
    target = arena.unit(5)
    arena.world.set_unit(target, hp=100)
    make_immune(arena, 5)
    hp = arena.hp(target)
    order(arena, "necrolyte_reapers_scythe", 3, target)
    arena.seconds(1)
    assert arena.world.unit(target)["status"] & STUNNED
    arena.seconds(1.5)
    assert arena.hp(target) >= hp


def test_scythe_damages_at_the_end_of_its_stun(core: Any) -> None:
    """Note: 1.5 s after the cast; 0.9 of the missing health at rank 3, of a hero with half of 2,000."""
    arena = duel(core, "necrolyte")
    target = arena.unit(5)
    set_health(arena, target, hp=2000)
    arena.world.set_unit(target, hp=1000)
    order(arena, "necrolyte_reapers_scythe", 3, target)
    until_cast(arena, "necrolyte_reapers_scythe")
    begun = arena.world.time
    while arena.hp(target) == pytest.approx(1000, abs=0.5):
        assert arena.world.unit(target)["status"] & STUNNED
        arena.world.run_frames(1)
    assert arena.world.time - begun == pytest.approx(1.5, abs=0.05)
    assert 1000 - arena.hp(target) == pytest.approx(900 * arena.amp(arena.unit(0)) * arena.magic(target), rel=1e-3)
    arena.world.run_frames(1)
    assert not arena.world.unit(target)["status"] & STUNNED


def test_scythe_goes_on_without_him(core: Any) -> None:
    """Any kill under its effect is his, also when he died before it struck."""
    arena = duel(core, "necrolyte")
    target = arena.unit(5)
    arena.world.set_unit(target, hp=60)
    order(arena, "necrolyte_reapers_scythe", 3, target)
    until_cast(arena, "necrolyte_reapers_scythe")
    arena.seconds(0.5)
    arena.world.kill(arena.unit(0), arena.unit(6))
    arena.seconds(1.3)
    assert not arena.world.unit(target)["alive"]
    assert arena.world.hero(0)["kills"] == 1
