"""Interaction of damage and effects, by the tooltips of patch 7.21d and the patch notes named in each test."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, give
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import duel, line_up
from tests.dota.scenes.program import cast_hex, programmed
from tests.dota.scenes.readings import physical_share

BLOW = 60


def same_blow(arena: Arena, hero: int = 0) -> float:
    """Take the spread out of a hero's attack damage and return that damage."""
    unit = arena.unit(hero)
    u = arena.world.unit(unit)
    base = math.floor((u["dmg_min"] + u["dmg_max"]) / 2)
    arena.world.set_unit(unit, dmg_min=base, dmg_max=base)
    return float(base + u["dmg_bonus"])


# ---- physical spells ------------------------------------------------------------------------------------------------


def test_ghost_form_takes_nothing_from_a_physical_spell(core: Any) -> None:
    """Tooltip of Ghost Scepter: immune to physical damage."""
    arena = programmed(core, {"p": "damage", "to": "target", "amount": 100, "type": "physical"})
    target = arena.unit(5)
    slot = give(arena, "ghost", hero=5)
    arena.world.order(target, "cast", slot=slot)
    arena.seconds(0.2)
    hp = arena.hp(target)
    cast_hex(arena, target)
    assert arena.hp(target) == hp


def test_exorcism_takes_nothing_from_a_ghost(core: Any) -> None:
    arena = duel(core, "death_prophet", away=250)
    target = arena.unit(5)
    arena.world.order(target, "cast", slot=give(arena, "ghost", hero=5))
    arena.world.order(arena.unit(0), "cast", slot=arena.teach(0, "death_prophet_exorcism", 3))
    hp = arena.hp(target)
    arena.seconds(3)
    assert arena.hp(target) == hp


def test_spell_amplification_strengthens_physical_spells(core: Any) -> None:
    arena = programmed(core, {"p": "damage", "to": "target", "amount": 100, "type": "physical"})
    target = arena.unit(5)
    arena.world.set_unit(target, extra_armor=-arena.world.unit(target)["armor"])
    assert arena.amp(arena.unit(0)) > 1
    hp = arena.hp(target)
    cast_hex(arena, target)
    assert hp - arena.hp(target) == pytest.approx(100 * arena.amp(arena.unit(0)), rel=1e-3)


# ---- heals from damage ----------------------------------------------------------------------------------------------


def test_lifesteal_heals_by_the_blow_and_not_by_the_health_that_was_left(core: Any) -> None:
    """Patch 7.20: lifesteal is not limited by the target's health."""
    arena = duel(core, "sven", away=120)
    give(arena, "lifesteal")  # Morbid Mask, 15 %
    a, creep = arena.unit(0), arena.dummy(120, 0, hp=600)
    arena.world.set_unit(creep, extra_armor=-arena.world.unit(creep)["armor"], hp=1)
    arena.world.set_unit(a, hp=100)
    low = arena.world.unit(a)["dmg_min"] + arena.world.unit(a)["dmg_bonus"]
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", creep)
    arena.seconds(1.5)
    assert arena.hp(a) - 100 >= 0.15 * low - 0.01


# ---- corruption -----------------------------------------------------------------------------------------------------


def test_corruption_lowers_armor_before_its_own_hit(core: Any) -> None:
    """Liquipedia, Desolator: the first hit already profits."""
    arena = duel(core, "sven", away=120)
    give(arena, "desolator")
    a, target = arena.unit(0), arena.dummy(120, 0)
    u = arena.world.unit(a)
    factor = physical_share(arena.world.unit(target)["armor"] - 7)
    lost = attack_once(arena, arena.unit(0), target)
    assert factor * (u["dmg_min"] + u["dmg_bonus"]) - 1 <= lost <= factor * (u["dmg_max"] + u["dmg_bonus"]) + 1


def test_corruption_reaches_towers(core: Any) -> None:
    arena = duel(core, "sven", away=120)
    give(arena, "desolator")
    tower = next(u["index"] for u in arena.world.units("tower")
                 if u["team"] == 1 and not arena.world.protected(u["index"]))
    at, armor = arena.world.unit(tower), arena.world.unit(tower)["armor"]
    arena.world.set_unit(arena.unit(0), x=at["x"] - 180, y=at["y"] - 180, hp=2000)
    arena.seconds(0.2)
    arena.world.set_unit(arena.unit(0), attack_ready=0)
    arena.world.order(arena.unit(0), "attack", tower)
    arena.seconds(1.5)
    assert arena.world.unit(tower)["armor"] == pytest.approx(armor - 7)


@pytest.mark.parametrize("order", [("desolator", "blight_stone"), ("blight_stone", "desolator")])
def test_corruptions_do_not_add_up(core: Any, order: tuple[str, str]) -> None:
    """Patch 7.21 and the tooltips: the stronger one counts."""
    arena = duel(core, "sven", away=120)
    for item in order:
        give(arena, item)
    target = arena.dummy(120, 0)
    armor = arena.world.unit(target)["armor"]
    attack_once(arena, arena.unit(0), target)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor - 7)


def test_corruptions_of_two_heroes_do_not_add_up_and_last_as_the_newest(core: Any) -> None:
    arena = line_up(core, "7.21d", ("sven", "axe"), ("nevermore", "viper"), {0: 0, 1: 240, 5: 900, 6: 2500})
    target = arena.dummy(120, 0)
    armor = arena.world.unit(target)["armor"]
    for hero in (0, 1):
        give(arena, "desolator", hero=hero)
    attack_once(arena, arena.unit(0), target)
    arena.seconds(10)
    attack_once(arena, arena.unit(1), target)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor - 7)
    arena.seconds(10)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor - 7)
    arena.seconds(6)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor)


# ---- auras ----------------------------------------------------------------------------------------------------------


def test_assault_cuirass_reaches_towers_of_both_sides(core: Any) -> None:
    """Tooltip: allied units and structures +5, enemy units and structures -5."""
    arena = duel(core, "sven", away=120)
    towers = {u["team"]: u for u in arena.world.units("tower") if u["tier"] == 1 and u["lane"] == 1}
    give(arena, "assault")
    for team, change in ((0, 5), (1, -5)):
        tower = towers[team]
        arena.world.set_unit(arena.unit(0), x=tower["x"] - 900, y=tower["y"] - 300)
        arena.seconds(0.4)
        assert arena.world.unit(tower["index"])["armor"] == pytest.approx(tower["armor"] + change), f"team {team}"


def test_aura_lasts_half_a_second_longer(core: Any) -> None:
    """Liquipedia, Auras."""
    aura = {"p": "aura", "r": 500, "to": "allies", "stats": {"armor": 4}}
    arena = programmed(core, aura, behavior=("passive",))
    ally = arena.unit(1)
    armor = arena.world.unit(ally)["armor"]
    arena.place(ally, 1500, 0)
    arena.world.run_frames(10)
    assert arena.world.unit(ally)["armor"] == pytest.approx(armor), "the aura still counts after 0.33 s"
    arena.world.run_frames(10)
    assert arena.world.unit(ally)["armor"] == pytest.approx(armor - 4)


# ---- what disables items --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "kind", "disabled"), [
    ("hero", "magical", True), ("hero", "hp_loss", False), ("creep", "physical", False), ("roshan", "physical", True),
    ("fountain", "physical", True)])
def test_what_disables_a_blink_dagger(core: Any, source: str, kind: str, disabled: bool) -> None:
    """Tooltips of Blink Dagger and of Heartstopper Aura, whose loss of health disables nothing."""
    arena = line_up(core, "7.21d", ("sven",), ("necrolyte",), {0: 0, 5: 900}, roshan=True)
    slot, a = give(arena, "blink"), arena.unit(0)
    by = {"hero": lambda: arena.unit(5), "creep": lambda: arena.dummy(300, 0),
          "roshan": lambda: arena.world.units("roshan")[0]["index"],
          "fountain": lambda: next(u["index"] for u in arena.world.units("fountain") if u["team"] == 1)}[source]()
    arena.world.damage(by, a, 10, kind)
    before = arena.world.unit(a)["x"]
    arena.world.order(a, "cast_point", x=before - 800, y=arena.world.unit(a)["y"], slot=slot)
    arena.seconds(0.5)
    assert (abs(arena.world.unit(a)["x"] - before) < 200) == disabled


@pytest.mark.parametrize(("hero", "lockout"), [("sven", 5), ("sniper", 7)])
def test_heart_rests_by_the_kind_of_its_bearer(core: Any, hero: str, lockout: float) -> None:
    """Tooltip: 5 s for melee heroes, 7 s for ranged ones; 5 % of the health, amplified by its own 50 %."""
    arena = line_up(core, "7.21d", (hero,), ("viper",), {0: 0, 5: 900})
    assert arena.world.give_item(0, "item_heart")
    arena.seconds(0.2)
    a = arena.unit(0)
    arena.world.set_unit(a, extra_hp_regen=0)
    arena.seconds(0.2)
    full = arena.world.unit(a)["hp_regen"]
    assert full > 0.05 * 1.5 * arena.world.unit(a)["max_hp"]
    arena.world.damage(arena.unit(5), a, 10, "pure")
    arena.seconds(lockout - 0.5)
    assert full - arena.world.unit(a)["hp_regen"] == pytest.approx(0.05 * 1.5 * arena.world.unit(a)["max_hp"])
    arena.seconds(1)
    assert arena.world.unit(a)["hp_regen"] == pytest.approx(full)
