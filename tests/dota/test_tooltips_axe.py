"""Axe by his tooltips: Berserker's Call, Battle Hunger, Counter Helix and Culling Blade in both patches."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give, hold, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel, line_up
from tests.dota.scenes.units import set_health

EACH = 0.12  # of the base speed, for each unit that hungers
# Counter Helix on every attack, once in 10 s.
ALWAYS = (("axe_counter_helix", "trigger_chance", 100), ("axe_counter_helix", "@cooldown", 10))


def bonus(arena: Arena, bare: float) -> float:
    """Return how many times Axe has the speed of Battle Hunger."""
    return float((arena.world.unit(arena.unit(0))["move_speed"] - bare) / (EACH * arena.base_speed("axe")))


def hunger_duel(core: Any, patch: str = "7.21d") -> tuple[Arena, float]:
    arena = duel(core, "axe", patch)
    speed = arena.world.unit(arena.unit(0))["move_speed"]
    cast(arena, "axe_battle_hunger", 4, arena.unit(5))
    return arena, speed


@pytest.mark.parametrize("end", ["kill", "building", "death", "dispel"])
def test_the_speed_of_hunger_ends_with_the_hunger(core: Any, patch: str, end: str) -> None:
    """Tooltip: Axe is faster for each unit that is affected, and a kill, of a building too, ends that."""
    arena, speed = hunger_duel(core, patch)
    target = arena.unit(5)
    assert bonus(arena, speed) == pytest.approx(1, abs=1e-3)
    if end == "kill":
        arena.world.kill(arena.dummy(600, 300), target)
    elif end == "building":
        tower = next(u["index"] for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 1)
        arena.world.kill(tower, target)
    elif end == "death":
        arena.world.kill(target, -1)
    else:
        slot = give(arena, "cyclone", 5)
        use(arena, slot, target, 5)
    arena.seconds(0.2)
    assert not arena.modifiers(target, "axe_battle_hunger")
    assert bonus(arena, speed) == pytest.approx(0, abs=1e-3)


def test_a_second_hunger_on_the_same_unit_renews_the_speed(core: Any) -> None:
    """At rank 4 it lasts 12 s and returns after 5: 12 % for one enemy, however often; 24 % for two."""
    arena, speed = hunger_duel(core)
    arena.seconds(5)
    cast(arena, "axe_battle_hunger", 4, arena.unit(5))
    assert bonus(arena, speed) == pytest.approx(1, abs=1e-3)
    arena.seconds(5)
    cast(arena, "axe_battle_hunger", 4, arena.dummy(300, 200))
    assert bonus(arena, speed) == pytest.approx(2, abs=1e-3)
    arena.seconds(6.5)  # the first one's 12 s are over
    assert bonus(arena, speed) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("hungers", [False, True])
def test_a_hungry_creep_cannot_be_denied(core: Any, hungers: bool) -> None:
    """Note: units affected cannot be denied; others can below half of their health."""
    arena = duel(core, "axe", away=600)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, CENTRE[0] + 400, CENTRE[1])
    arena.still(creep)
    if hungers:
        cast(arena, "axe_battle_hunger", 1, creep, wait=0.4)
    arena.world.set_unit(creep, hp=200)
    attack_for(arena, arena.unit(5), creep, seconds=0.9)
    struck = arena.hp(creep) < 200 - 20
    assert struck != hungers


@pytest.mark.parametrize("scepter", [False, True])
def test_a_scepter_spreads_hunger_after_a_culling(core: Any, scepter: bool) -> None:
    """Scepter: a successful Culling Blade applies Battle Hunger to enemies within `scepter_aoe`, 700."""
    arena = duel(core, "axe", away=160)
    if scepter:
        give(arena, "ultimate_scepter")
    arena.teach(0, "axe_battle_hunger", 2)
    near, far = arena.unit(6), arena.dummy(0, 730)
    arena.place(near, 0, -670)
    arena.world.set_unit(arena.unit(5), hp=200)
    cast(arena, "axe_culling_blade", 1, arena.unit(5), wait=0.5)
    assert not arena.world.unit(arena.unit(5))["alive"]
    hungers = [bool(arena.modifiers(u, "axe_battle_hunger")) for u in (near, far)]
    assert hungers == [scepter, False]


def test_a_culling_that_does_not_kill_spreads_nothing(core: Any) -> None:
    arena = duel(core, "axe", away=160)
    give(arena, "ultimate_scepter")
    arena.teach(0, "axe_battle_hunger", 2)
    cast(arena, "axe_culling_blade", 1, arena.unit(5), wait=0.5)
    assert arena.world.unit(arena.unit(5))["alive"]
    assert not arena.modifiers(arena.unit(5), "axe_battle_hunger")


@pytest.mark.parametrize(("hp", "immune", "lost"), [(250, False, 150), (250, True, 0), (249, False, 249),
                                                    (249, True, 249)])
def test_culling_blade_kills_below_its_threshold(core: Any, hp: float, immune: bool, lost: float) -> None:
    """Tooltip: below 250 health it kills, else it deals 150 magical damage, which immunity keeps out."""
    arena = duel(core, "axe", away=160)
    target = arena.unit(5)
    if immune:
        use(arena, give(arena, "black_king_bar", 5), hero=5)
    arena.world.set_unit(target, hp=hp)
    cast(arena, "axe_culling_blade", 1, target, wait=0.5)
    if lost == hp:
        assert not arena.world.unit(target)["alive"]
    else:
        taken = lost * arena.magic(target) * arena.amp(arena.unit(0))
        assert hp - arena.hp(target) == pytest.approx(taken, rel=1e-3)


@pytest.mark.parametrize("creep", [False, True])
def test_a_culled_hero_speeds_axe_and_allies_near(core: Any, creep: bool) -> None:
    """Tooltip: 30 % speed and 30 attack speed for 6 s within 900, and no cooldown; a creep's death gives neither."""
    places = {0: 0, 1: -600, 2: -600, 5: 160, 6: 2500}
    arena = line_up(core, "7.21d", ("axe", "sniper", "lion"), ("nevermore", "viper"), places)
    axe, near, far = (arena.unit(i) for i in range(3))
    arena.place(near, -880, 0)
    arena.place(far, -920, 0)
    target = arena.dummy(100, 0) if creep else arena.unit(5)
    arena.world.set_unit(target, hp=100)
    before = {u: arena.world.unit(u) for u in (axe, near, far)}
    cast(arena, "axe_culling_blade", 1, target, wait=0.5)
    assert arena.world.ability(0, "axe_culling_blade")["castable"] != creep
    gained = [arena.world.unit(u)["attack_speed"] - before[u]["attack_speed"] for u in (axe, near, far)]
    assert gained == pytest.approx([0, 0, 0] if creep else [30, 30, 0])
    faster = arena.world.unit(axe)["move_speed"] - before[axe]["move_speed"]
    assert faster == pytest.approx(0 if creep else 0.3 * arena.base_speed("axe"), abs=0.1)
    arena.seconds(5.4)
    assert (arena.world.unit(axe)["move_speed"] > before[axe]["move_speed"]) != creep
    arena.seconds(0.4)
    assert arena.world.unit(axe)["move_speed"] == pytest.approx(before[axe]["move_speed"])


def turns(arena: Arena, seen: int, full: float) -> float:
    each = arena.field("axe_counter_helix", "damage")[0] * arena.amp(arena.unit(0))
    return (full - arena.hp(seen)) / each


def test_both_ways_to_turn_share_one_cooldown(core: Any) -> None:
    """Talent: his own attacks have a chance too; the ability has one cooldown (public wikis)."""
    arena = duel(core, "axe", away=130, changes=ALWAYS)
    arena.world.teach(0, "special_bonus_unique_axe_3", 1)
    arena.teach(0, "axe_counter_helix", 1)
    seen = arena.dummy(0, 200)
    set_health(arena, arena.unit(0), arena.unit(5))
    attack_for(arena, arena.unit(5), arena.unit(0))
    assert turns(arena, seen, 5000) == pytest.approx(1, abs=1e-3)
    attack_for(arena, arena.unit(0), arena.unit(5))
    assert turns(arena, seen, 5000) == pytest.approx(1, abs=1e-3)
    arena.seconds(10)
    attack_for(arena, arena.unit(0), arena.unit(5))
    assert turns(arena, seen, 5000) == pytest.approx(2, abs=1e-3)


def test_counter_helix_waits_for_the_hit(core: Any) -> None:
    """Note: it triggers when the attack hits; Sniper's bullet needs 0.18 s for 540 units."""
    arena = duel(core, "axe", ally="lion", enemy="sniper", away=540, changes=ALWAYS)
    arena.teach(0, "axe_counter_helix", 1)
    seen = arena.dummy(0, 200)
    shooter = arena.unit(5)
    arena.world.set_unit(shooter, attack_ready=0)
    arena.world.order(shooter, "attack", target=arena.unit(0))
    hp = arena.hp(arena.unit(0))
    while arena.world.unit(shooter)["last_attack"] < 0:
        arena.world.run_frames(1)
    assert turns(arena, seen, 5000) == 0 and arena.hp(arena.unit(0)) == hp
    arena.seconds(0.4)
    assert turns(arena, seen, 5000) == pytest.approx(1, abs=1e-3) and arena.hp(arena.unit(0)) < hp


def test_a_taunt_ends_when_axe_dies(core: Any) -> None:
    """Public wikis: the taunt ends with his death; nobody is left to be attacked."""
    arena = duel(core, "axe", away=200)
    enemy = arena.unit(5)
    cast(arena, "axe_berserkers_call", 4, wait=0.6)
    arena.world.order(enemy, "move", x=CENTRE[0] + 900, y=CENTRE[1])
    arena.seconds(0.4)
    assert arena.world.unit(enemy)["x"] == pytest.approx(CENTRE[0] + 200, abs=60)
    arena.world.kill(arena.unit(0), -1)
    arena.seconds(0.2)
    arena.world.order(enemy, "move", x=CENTRE[0] + 900, y=CENTRE[1])
    arena.seconds(1)
    assert arena.world.unit(enemy)["x"] > CENTRE[0] + 330


def test_creeps_walk_on_after_a_taunt(core: Any) -> None:
    """The taunt lasts its time only: then a lane creep follows its lane again."""
    arena = duel(core, "axe", away=2000)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, CENTRE[0] + 150, CENTRE[1], 1)
    arena.world.set_unit(creep, extra_hp=5000)
    cast(arena, "axe_berserkers_call", 1, wait=0.6)
    assert arena.world.unit(creep)["attack_target"] == arena.unit(0)
    arena.place(arena.unit(0), 3000, 3000)
    hold(arena, arena.unit(0))
    arena.seconds(2)
    before = arena.world.unit(creep)
    arena.seconds(2)
    after = arena.world.unit(creep)
    assert math.hypot(after["x"] - before["x"], after["y"] - before["y"]) > 300
