"""Earthshaker by his tooltips: Fissure, Enchant Totem, Aftershock and Echo Slam in both patches."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import STUNNED
from tests.dota.scenes.units import set_health


def test_a_unit_that_dies_of_the_slam_still_echoes(core: Any, patch: str) -> None:
    """Tooltip: each enemy hit causes an echo, so one that 100 damage kills as well: 100 + 70 from it."""
    arena = duel(core, "earthshaker", patch)
    enemy = arena.unit(5)
    weak = arena.dummy(200, 200)
    arena.world.set_unit(weak, hp=40)
    hp = arena.hp(enemy)
    cast(arena, "earthshaker_echo_slam", 1, wait=0.5)
    through = arena.amp(arena.unit(0)) * arena.magic(enemy)
    assert hp - arena.hp(enemy) == pytest.approx((100 + 70) * through, rel=1e-3)


def test_echoes_reach_600_from_each_unit(core: Any) -> None:
    """`echo_slam_echo_range`: who stands outside the slam is reached by the echo of a unit within it."""
    arena = duel(core, "earthshaker", away=2000)
    arena.dummy(500, 0)
    near, far = arena.dummy(1080, 0), arena.dummy(1120, 100)
    cast(arena, "earthshaker_echo_slam", 1, wait=0.5)
    through = arena.amp(arena.unit(0)) * arena.magic(near)
    assert 5000 - arena.hp(near) == pytest.approx(70 * through, rel=1e-3)
    assert arena.hp(far) == 5000


def test_the_spell_immune_take_no_echo_and_give_none(core: Any) -> None:
    arena = duel(core, "earthshaker")
    creep = arena.dummy(300, 200)
    use(arena, give(arena, "black_king_bar", 5), hero=5)
    hp = arena.hp(arena.unit(5))
    cast(arena, "earthshaker_echo_slam", 1, wait=0.5)
    assert arena.hp(arena.unit(5)) == hp
    through = arena.amp(arena.unit(0)) * arena.magic(creep)
    assert 5000 - arena.hp(creep) == pytest.approx(100 * through, rel=1e-3)


def across_mid(core: Any) -> tuple[Any, int]:
    """Return a scene with a Dire creep on its way along mid, and a fissure across that way."""
    arena = duel(core, "earthshaker", away=3000)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, CENTRE[0] - 400, CENTRE[1] - 400, 1)
    arena.place(arena.unit(0), -300, 700, -math.pi / 4)
    cast(arena, "earthshaker_fissure", 1, at=(700, -300), wait=0.9)
    for hero in (0, 1):
        arena.place(arena.unit(hero), -3000, 3000 + 200 * hero)
    return arena, creep


def test_creeps_wait_until_a_fissure_is_gone(core: Any) -> None:
    """Note: creeps wait for it to disappear, 8 s, and do not walk around."""
    arena, creep = across_mid(core)
    arena.seconds(2.5)
    waits = arena.world.unit(creep)
    assert waits["x"] + waits["y"] < CENTRE[0] + CENTRE[1] + 400
    arena.seconds(4)
    there = arena.world.unit(creep)
    assert math.hypot(there["x"] - waits["x"], there["y"] - waits["y"]) < 1
    arena.seconds(3)
    there = arena.world.unit(creep)
    assert there["x"] + there["y"] > CENTRE[0] + CENTRE[1] + 600


def test_fissure_passes_linkens_sphere(core: Any) -> None:
    """Note: it is not blocked, and leaves the sphere ready."""
    arena = duel(core, "earthshaker")
    give(arena, "sphere", 5)
    cast(arena, "earthshaker_fissure", 1, at=(600, 0), wait=0.85)
    assert arena.world.unit(arena.unit(5))["status"] & STUNNED


def test_items_trigger_no_aftershock(core: Any) -> None:
    """Note: using items does not trigger it; a spell does, for 75 damage and 0.6 s at rank 1."""
    arena = duel(core, "earthshaker", away=200)
    enemy = arena.unit(5)
    slot = give(arena, "phase_boots")
    arena.teach(0, "earthshaker_aftershock", 1)
    hp = arena.hp(enemy)
    use(arena, slot)
    assert arena.hp(enemy) == hp and not arena.world.unit(enemy)["status"] & STUNNED
    cast(arena, "earthshaker_enchant_totem", 1)
    through = arena.amp(arena.unit(0)) * arena.magic(enemy)
    assert hp - arena.hp(enemy) == pytest.approx(75 * through, rel=1e-3)


@pytest.mark.parametrize("ability", ["earthshaker_fissure", "earthshaker_enchant_totem", "earthshaker_echo_slam"])
def test_every_spell_of_his_triggers_aftershock(core: Any, ability: str) -> None:
    arena = duel(core, "earthshaker", away=200)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    arena.teach(0, "earthshaker_aftershock", 4)
    at = (600.0, 600.0) if ability == "earthshaker_fissure" else None
    cast(arena, ability, 1, at=at, wait=0.9)
    assert arena.modifiers(enemy, "earthshaker_aftershock")
    assert arena.world.unit(enemy)["status"] & STUNNED


def test_totem_multiplies_base_damage_alone(core: Any) -> None:
    """Note: of base damage and primary attribute, 400 % more at rank 4; an item's damage stays as it is."""
    arena = duel(core, "earthshaker", away=2000)
    give(arena, "claymore")
    before = arena.world.unit(arena.unit(0))
    cast(arena, "earthshaker_enchant_totem", 4)
    after = arena.world.unit(arena.unit(0))
    assert after["dmg_min"] == pytest.approx(5 * before["dmg_min"])
    assert after["dmg_bonus"] == before["dmg_bonus"]


def test_totem_is_spent_by_one_attack_or_after_14_seconds(core: Any) -> None:
    arena = duel(core, "earthshaker", away=2000)
    me, target = arena.unit(0), arena.dummy(140, 0, hp=20000)
    bare = arena.world.unit(me)["dmg_min"]
    cast(arena, "earthshaker_enchant_totem", 4)
    arena.seconds(12.5)
    assert arena.world.unit(me)["dmg_min"] == pytest.approx(5 * bare)
    arena.seconds(2)
    assert arena.world.unit(me)["dmg_min"] == pytest.approx(bare)
    cast(arena, "earthshaker_enchant_totem", 4)
    attack_for(arena, me, target)
    assert arena.hp(target) < 20000
    assert arena.world.unit(me)["dmg_min"] == pytest.approx(bare)


def test_totem_strikes_buildings(core: Any) -> None:
    """It is part of the attack's own damage, so a tower takes it as well."""
    lost = []
    for level in (1, 4):
        arena = duel(core, "earthshaker", away=3000)
        tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1)
        me = arena.unit(0)
        set_health(arena, me)
        arena.world.set_unit(me, x=tower["x"] - 230, y=tower["y"])
        cast(arena, "earthshaker_enchant_totem", level, wait=0.9)
        attack_for(arena, me, tower["index"], seconds=1.2)
        lost.append(tower["hp"] - arena.hp(tower["index"]))
    assert lost[1] / lost[0] == pytest.approx(5 / 2, rel=0.12)


def test_a_scepter_leaves_the_totem_as_it_is(core: Any) -> None:
    """Self-cast with the scepter is the plain form; the leap is not played."""
    arena = duel(core, "earthshaker", away=2000)
    give(arena, "ultimate_scepter")
    bare = arena.world.unit(arena.unit(0))["dmg_min"]
    cast(arena, "earthshaker_enchant_totem", 1)
    unit = arena.world.unit(arena.unit(0))
    assert unit["dmg_min"] == pytest.approx(2 * bare)
    assert (unit["x"], unit["y"]) == pytest.approx(CENTRE, abs=1)
