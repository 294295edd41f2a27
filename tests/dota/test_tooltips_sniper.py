"""Sniper by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, cast, give, order, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel, line_up
from tests.dota.scenes.program import cast_hex, programmed
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import INVISIBLE
from tests.dota.scenes.units import set_health

HEADSHOT = "sniper_headshot"
SURE = ((HEADSHOT, "proc_chance", 100),)


def teleport(arena: Arena) -> int:
    """Let the enemy channel a teleport home and return its unit."""
    enemy, slot = arena.unit(5), give(arena, "tpscroll", hero=5, charges=1)
    home = arena.data["map"]["hero_spawn"]["dire"]
    arena.world.order(enemy, "cast_point", x=home[0], y=home[1], slot=slot)
    arena.seconds(0.4)
    assert arena.world.unit(enemy)["act"] == "channel"
    return enemy


# ---- Shrapnel -------------------------------------------------------------------------------------------------------


def test_shrapnel_reveals_its_area_while_it_lasts(core: Any) -> None:
    """It shows the area from 1.2 s after the cast, for 10 s (public wikis: vision begins with the effect)."""
    arena = duel(core, "sniper", away=500, behind=300)
    arena.world.give_xp(0, 230)
    enemy = arena.unit(5)
    arena.place(enemy, 600, 300)  # behind trees
    slot = arena.teach(0, "sniper_shrapnel", 1)
    arena.seconds(0.3)
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 600, y=CENTRE[1] + 300, slot=slot)
    for wait, seen in ((1.2, False), (0.7, True), (9.4, True), (0.6, False)):
        arena.seconds(wait)
        assert arena.world.visible(0, enemy) == seen, wait


def test_shrapnel_spares_buildings(core: Any) -> None:
    arena = duel(core, "sniper", away=500)
    arena.world.give_xp(0, 230)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    arena.world.set_unit(arena.unit(0), x=tower["x"] - 1500, y=tower["y"] - 500)
    slot = arena.teach(0, "sniper_shrapnel", 4)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, tower["x"] - 200, tower["y"])
    arena.world.set_unit(creep, extra_hp=5000)
    arena.world.order(creep, "hold")
    arena.world.order(arena.unit(0), "cast_point", x=tower["x"], y=tower["y"], slot=slot)
    arena.seconds(4)
    assert arena.world.unit(creep)["hp"] < arena.world.unit(creep)["max_hp"]
    assert arena.hp(tower["index"]) == tower["hp"]


@pytest.mark.parametrize(("patch", "seconds"), [("7.21d", 40), ("7.19", 55)])
def test_a_charge_returns_after_its_time(core: Any, patch: str, seconds: float) -> None:
    """Tooltip: 55 s in 7.19; patches 7.21c and 7.21d: 50 s, then 40 s."""
    arena = line_up(core, patch, ("sniper",), ("nevermore",), {0: 0, 5: 2900})
    arena.world.give_xp(0, 230)
    slot = arena.teach(0, "sniper_shrapnel", 1)
    arena.seconds(1)
    assert arena.world.ability(0, "sniper_shrapnel")["charges"] == 3
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0], y=CENTRE[1] + 300, slot=slot)
    arena.seconds(0.6)
    for wait, charges in ((seconds - 1, 2), (1, 3)):
        arena.seconds(wait)
        assert arena.world.ability(0, "sniper_shrapnel")["charges"] == charges


# ---- Headshot -------------------------------------------------------------------------------------------------------


def test_headshot_works_on_own_creeps(core: Any) -> None:
    """Note: 120 more damage against no armor, and the slow."""
    arena = duel(core, "sniper", away=2900, changes=SURE)
    arena.teach(0, HEADSHOT, 4)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 300, CENTRE[1])
    arena.world.set_unit(creep, extra_hp=9000, extra_armor=-arena.world.unit(creep)["armor"])
    arena.world.order(creep, "hold")
    arena.still(creep)
    arena.world.set_unit(creep, hp=2000)
    u, hp = arena.world.unit(arena.unit(0)), arena.hp(creep)
    assert attack_once(arena, arena.unit(0), creep)
    low, high = (u[k] + u["dmg_bonus"] + 120 * arena.amp(arena.unit(0)) for k in ("dmg_min", "dmg_max"))
    assert low - 1 <= hp - arena.hp(creep) <= high + 1
    assert arena.modifiers(creep, HEADSHOT)


def test_headshot_stops_movement_and_nothing_else(core: Any) -> None:
    """Tooltip: it briefly stops movement; the push of 10 (patch 7.21) ends no channel."""
    arena = duel(core, "sniper", away=500, changes=SURE)
    arena.teach(0, HEADSHOT, 4)
    set_health(arena, arena.unit(5), hp=4000)
    enemy = teleport(arena)
    x = arena.world.unit(enemy)["x"]
    assert attack_once(arena, arena.unit(0), enemy)
    arena.seconds(0.2)
    assert arena.modifiers(enemy, HEADSHOT)
    assert arena.world.unit(enemy)["x"] - x == pytest.approx(10, abs=0.5)
    assert arena.world.unit(enemy)["act"] == "channel"


# ---- Take Aim -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("patch", "active"), [("7.21d", True), ("7.19", False)])
def test_take_aim_can_be_activated_since_7_20(core: Any, patch: str, active: bool) -> None:
    arena = line_up(core, patch, ("sniper",), ("nevermore",), {0: 0, 5: 2900})
    reach = arena.world.unit(arena.unit(0))["attack_range"]
    arena.teach(0, "sniper_take_aim", 2)
    assert arena.world.unit(arena.unit(0))["attack_range"] == reach + 200
    assert arena.world.ability(0, "sniper_take_aim")["castable"] == active


def test_a_dispel_takes_the_aim(core: Any) -> None:
    """Files: dispellable."""
    arena = programmed(core, {"p": "dispel", "to": "target", "kind": "basic"}, enemy="sniper")
    enemy, slot = arena.unit(5), arena.teach(5, "sniper_take_aim", 1)
    reach = arena.world.unit(enemy)["attack_range"]
    arena.world.order(enemy, "cast", slot=slot)
    arena.seconds(0.2)
    assert arena.world.unit(enemy)["attack_range"] == reach + 100
    cast_hex(arena, enemy)
    assert arena.world.unit(enemy)["attack_range"] == reach


# ---- Assassinate ----------------------------------------------------------------------------------------------------


def assassinate(arena: Arena, target: int, frames: int = 0) -> None:
    """Let Sniper aim at the target, and run so many frames after the shot."""
    order(arena, "sniper_assassinate", 1, target)
    for _ in range(90):
        arena.world.run_frames(1)
        if arena.world.projectiles():
            break
    assert arena.world.projectiles()
    arena.world.run_frames(frames)


@pytest.mark.parametrize("immune", [False, True])
def test_assassinate_interrupts_channels(core: Any, immune: bool) -> None:
    """Note: also of a unit that became spell immune; that one takes no damage."""
    arena = duel(core, "sniper", away=1000)
    enemy = arena.unit(5)
    set_health(arena, enemy, hp=4000)
    bar, scroll = give(arena, "black_king_bar", hero=5), give(arena, "tpscroll", hero=5, charges=1)
    assassinate(arena, enemy)  # a flight of 0.4 s
    hp = arena.hp(enemy)
    if immune:
        arena.world.order(enemy, "cast", slot=bar)
        arena.world.run_frames(2)
    home = arena.data["map"]["hero_spawn"]["dire"]
    arena.world.order(enemy, "cast_point", x=home[0], y=home[1], slot=scroll)
    arena.world.run_frames(2)
    assert arena.world.unit(enemy)["act"] == "channel"
    arena.seconds(0.6)
    assert arena.world.unit(enemy)["act"] != "channel"
    assert (arena.hp(enemy) == hp) == immune


@pytest.mark.parametrize(("gone", "fires"), [(3500, True), (3750, False)])
def test_the_aim_is_lost_600_beyond_its_range(core: Any, gone: float, fires: bool) -> None:
    """Files: a cast range of 3000 with a buffer of 600."""
    arena = duel(core, "sniper", away=900)
    enemy, slot = arena.unit(5), arena.teach(0, "sniper_assassinate", 1)
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    arena.seconds(1)
    arena.place(enemy, -gone, 0)
    arena.seconds(1.3)
    assert bool(arena.world.projectiles()) == fires


@pytest.mark.parametrize(("patch", "aims"), [("7.21d", False), ("7.19", True)])
def test_assassinate_is_aimed_at_the_immune_in_7_19_only(core: Any, patch: str, aims: bool) -> None:
    """Files: 7.19 has the target flag MAGIC_IMMUNE_ENEMIES."""
    arena = line_up(core, patch, ("sniper",), ("nevermore",), {0: 0, 5: 700})
    enemy = arena.unit(5)
    set_health(arena, enemy, hp=4000)
    use(arena, give(arena, "black_king_bar", hero=5), hero=5)
    cast(arena, "sniper_assassinate", 1, enemy, wait=0.5)
    assert (arena.world.unit(arena.unit(0))["act"] == "cast_windup") == aims


@pytest.mark.parametrize(("item", "lands"), [("invis_sword", True), ("blink", False)])
def test_invisibility_does_not_disjoint_assassinate(core: Any, item: str, lands: bool) -> None:
    """Note; a blink does."""
    arena = duel(core, "sniper", away=1000)
    enemy = arena.unit(5)
    set_health(arena, enemy, hp=4000)
    slot = give(arena, item, hero=5)
    hp = arena.hp(enemy)
    assassinate(arena, enemy)  # a flight of 0.4 s
    if item == "blink":
        arena.world.order(enemy, "cast_point", x=CENTRE[0] + 700, y=CENTRE[1], slot=slot)
    else:
        arena.world.order(enemy, "cast", slot=slot)  # 0.3 s until it has faded
    arena.world.run_frames(10)
    assert bool(arena.world.unit(enemy)["status"] & INVISIBLE) == lands and arena.hp(enemy) == hp
    arena.seconds(0.6)
    assert (arena.hp(enemy) < hp) == lands


def test_the_scepters_shots_are_headshots_on_seen_heroes(core: Any) -> None:
    """Scepter text: an attack of 280 % and a Headshot (120 damage) on each visible hero within 400 of the target."""
    arena = line_up(core, "7.21d", ("sniper", "lion"), ("nevermore", "sven", "riki", "axe"), {0: 0, 1: -300, 5: 500})
    for hero, (x, y) in zip((6, 7, 8), ((800, 0), (600, -100), (950, -100)), strict=True):
        arena.place(arena.unit(hero), x, y, math.pi)
    for hero in (5, 6, 7, 8):
        set_health(arena, arena.unit(hero), hp=4000)
    creep = arena.dummy(600, -200)
    arena.teach(7, "riki_permanent_invisibility", 4)
    arena.teach(0, HEADSHOT, 4)
    give(arena, "ultimate_scepter")
    arena.seconds(7)
    assert arena.world.unit(arena.unit(7))["status"] & INVISIBLE
    units = [*(arena.unit(i) for i in (5, 6, 7, 8)), creep]
    before, u, amp = [arena.hp(i) for i in units], arena.world.unit(arena.unit(0)), arena.amp(arena.unit(0))
    assassinate(arena, arena.unit(5), 20)
    for unit, hp, struck in zip(units, before, (True, True, False, False, False), strict=True):
        armor = arena.world.unit(unit)["armor"]
        through = physical_share(armor)
        low, high = ((2.8 * (u[k] + u["dmg_bonus"]) + 120 * amp) * through for k in ("dmg_min", "dmg_max"))
        lost = hp - arena.hp(unit)
        assert low - 3 <= lost <= high + 3 if struck else lost == 0
