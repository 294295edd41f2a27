"""Crystal Maiden by her tooltips: Crystal Nova, Frostbite, Arcane Aura and Freezing Field in both patches."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import ROOTED
from tests.dota.scenes.units import set_health

CHANNEL = "channel"
# Explosions that all reach everyone around.
EVERYWHERE = (("crystal_maiden_freezing_field", "explosion_min_dist", 0),
              ("crystal_maiden_freezing_field", "explosion_max_dist", 0))


@pytest.mark.parametrize(("patch", "others", "own"), [("7.21d", 1, 2.5), ("7.19", 0.7, 1.8)])
def test_percentages_do_not_raise_the_mana_of_arcane_aura(core: Any, patch: str, others: float, own: float) -> None:
    """Note: its flat bonus does not count for increases by a share: Bloodstone's, and intelligence's in 7.19."""
    arena = duel(core, "crystal_maiden", patch, ally="lion")
    if patch == "7.21d":
        for hero in (0, 1):
            give(arena, "bloodstone", hero)
    units = [arena.unit(0), arena.unit(1)]
    before = [arena.world.unit(u)["mana_regen"] for u in units]
    arena.world.teach(0, "crystal_maiden_brilliance_aura", 1)
    arena.seconds(0.3)
    gained = [arena.world.unit(u)["mana_regen"] - r for u, r in zip(units, before, strict=True)]
    assert gained == pytest.approx([own, others], abs=1e-3)


@pytest.mark.parametrize(("reduction", "share"), [("", 1), ("talent", 0.86), ("item", 0.88)])
def test_mana_losses_are_reduced_with_the_costs(core: Any, reduction: str, share: float) -> None:
    """Talent: 14 % off mana costs and losses of all allies; Kaya (7.21d): 12 % of its bearer's."""
    arena = duel(core, "crystal_maiden", enemy="lion", away=400)
    victim = arena.unit(0)
    arena.teach(0, "crystal_maiden_brilliance_aura", 1)
    if reduction == "talent":
        arena.world.teach(0, "special_bonus_unique_crystal_maiden_4", 1)
    elif reduction == "item":
        give(arena, "kaya")
    arena.seconds(0.5)
    arena.still(victim)
    cast(arena, "lion_mana_drain", 1, victim, wait=0.5, hero=5)
    arena.world.set_unit(victim, mana=400)
    arena.seconds(2)
    drained = arena.special("lion_mana_drain", "mana_per_second")[0] * 2
    assert 400 - arena.world.unit(victim)["mana"] == pytest.approx(drained * share, rel=0.07)


@pytest.mark.parametrize(("patch", "interrupts"), [("7.21d", False), ("7.19", True)])
def test_frostbite_interrupts_in_the_older_patch(core: Any, patch: str, interrupts: bool) -> None:
    """Patch 7.20: it no longer has an interrupt. A root alone leaves a channel such as Mana Drain."""
    arena = duel(core, "crystal_maiden", patch, enemy="lion", away=400)
    arena.place(arena.unit(1), 200, 0)
    cast(arena, "lion_mana_drain", 4, arena.unit(1), wait=0.6, hero=5)
    assert arena.world.unit(arena.unit(5))["act"] == CHANNEL
    cast(arena, "crystal_maiden_frostbite", 1, arena.unit(5), wait=0.6)
    assert arena.world.unit(arena.unit(5))["status"] & ROOTED
    assert (arena.world.unit(arena.unit(5))["act"] != CHANNEL) == interrupts


def test_frostbite_bites_twice_a_second_in_the_older_patch(core: Any) -> None:
    """Tooltip of 7.19: 50 damage every half-second; with 1.5 s more by the talent 6 bites, 300."""
    arena = duel(core, "crystal_maiden", "7.19")
    arena.world.teach(0, "special_bonus_unique_crystal_maiden_1", 1)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    hp = arena.hp(enemy)
    cast(arena, "crystal_maiden_frostbite", 1, enemy, wait=0.4 + 1.6)
    through = arena.amp(arena.unit(0)) * arena.magic(enemy)
    assert hp - arena.hp(enemy) == pytest.approx(3 * 50 * through, rel=1e-3)
    arena.seconds(2)
    assert hp - arena.hp(enemy) == pytest.approx(6 * 50 * through, rel=1e-3)


def test_frostbite_on_a_creep_in_the_older_patch(core: Any) -> None:
    """Tooltip of 7.19: 10 s and 1,000 damage to creeps of level 6 or lower."""
    arena = duel(core, "crystal_maiden", "7.19")
    creep = arena.dummy(300, 100)
    cast(arena, "crystal_maiden_frostbite", 1, creep, wait=10.8)
    through = arena.amp(arena.unit(0)) * arena.magic(creep)
    assert 5000 - arena.hp(creep) == pytest.approx(1000 * through, rel=1e-3)


def test_nobody_blinks_out_of_frostbite(core: Any, patch: str) -> None:
    """Note: blinks cannot be used; Queen of Pain's can again when the 3 s of rank 4 are over."""
    arena = duel(core, "crystal_maiden", patch, enemy="queenofpain")
    arena.teach(5, "queenofpain_blink", 1)
    cast(arena, "crystal_maiden_frostbite", 4, arena.unit(5), wait=0.5)
    assert not arena.world.ability(5, "queenofpain_blink")["castable"]
    arena.seconds(3)
    assert arena.world.ability(5, "queenofpain_blink")["castable"]


def test_crystal_nova_shows_the_place_for_six_seconds(core: Any) -> None:
    """`vision_duration` is 6; the radius of 900 is that of public wikis."""
    arena = duel(core, "crystal_maiden", away=3000)
    cast(arena, "crystal_maiden_crystal_nova", 1, at=(600, 0), wait=0.5)
    for hero in (0, 1):
        arena.place(arena.unit(hero), 0, -7000)
    watched = arena.dummy(1000, -100)
    arena.seconds(0.3)
    assert arena.world.visible(0, watched)
    arena.seconds(4.9)
    assert arena.world.visible(0, watched)
    arena.seconds(0.7)
    assert not arena.world.visible(0, watched)


def test_a_hundred_explosions_in_ten_seconds(core: Any) -> None:
    """Note: one every 0.1 s, a hundred in all, 105 damage each within 300."""
    arena = duel(core, "crystal_maiden", away=250, changes=EVERYWHERE)
    near, far = arena.dummy(0, 280, hp=40000), arena.dummy(0, -330, hp=40000)
    cast(arena, "crystal_maiden_freezing_field", 1, wait=10.4)
    through = arena.amp(arena.unit(0)) * arena.magic(near)
    assert (40000 - arena.hp(near)) / (105 * through) == pytest.approx(100, abs=0.01)
    assert arena.hp(far) == 40000


def test_freezing_field_slows_for_a_second_after_it_is_left(core: Any) -> None:
    """Note: all enemies in the radius are slowed, hit or not, for 1 s."""
    arena = duel(core, "crystal_maiden", away=800)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    before = arena.world.unit(enemy)
    cast(arena, "crystal_maiden_freezing_field", 1, wait=0.4)
    slowed = arena.world.unit(enemy)
    assert slowed["attack_speed"] == pytest.approx(before["attack_speed"] - 60)
    assert slowed["move_speed"] == pytest.approx(before["move_speed"] - 0.3 * arena.base_speed("nevermore"))
    arena.place(enemy, 2000, 0)
    arena.seconds(0.8)
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(slowed["move_speed"])
    arena.seconds(0.4)
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(before["move_speed"])


@pytest.mark.parametrize(("patch", "armor"), [("7.21d", 20), ("7.19", 0)])
def test_armor_while_she_channels(core: Any, patch: str, armor: float) -> None:
    """Patches 7.21 and 7.21b: 20 armor for the channel; 7.19 has none."""
    arena = duel(core, "crystal_maiden", patch, away=2000)
    bare = arena.world.unit(arena.unit(0))["armor"]
    cast(arena, "crystal_maiden_freezing_field", 1)
    assert arena.world.unit(arena.unit(0))["armor"] - bare == pytest.approx(armor)
    arena.world.order(arena.unit(0), "stop")
    arena.seconds(0.2)
    assert arena.world.unit(arena.unit(0))["armor"] == pytest.approx(bare)


def test_freezing_field_goes_with_her(core: Any) -> None:
    """It surrounds Crystal Maiden, also where somebody pushes her; a stun ends it."""
    arena = duel(core, "crystal_maiden", away=2000, enemy="sven", changes=EVERYWHERE)
    cast(arena, "crystal_maiden_freezing_field", 1, wait=1)
    arena.place(arena.unit(0), 1000, 0)
    creep = arena.dummy(1100, 0, hp=40000)
    arena.seconds(1)
    assert arena.hp(creep) < 40000 - 500
    arena.place(arena.unit(5), 1400, 0, 3.14)
    cast(arena, "sven_storm_bolt", 1, arena.unit(0), wait=1.2, hero=5)
    assert arena.world.unit(arena.unit(0))["act"] != CHANNEL
    hp = arena.hp(creep)
    arena.seconds(1)
    assert arena.hp(creep) == hp
