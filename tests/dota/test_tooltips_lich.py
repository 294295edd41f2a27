"""Lich by his tooltips: Frost Blast, Frost Shield, Sinister Gaze and Chain Frost; Frost Armor and Dark Ritual in
7.19."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give, hold, use
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import STUNNED
from tests.dota.scenes.units import set_health

CHAIN, SHIELD, GAZE = "lich_chain_frost", "lich_frost_shield", "lich_sinister_gaze"


def test_frost_blast_hits_its_target_twice(core: Any, patch: str) -> None:
    """Tooltip: area damage within 200, and the primary target takes the most; all are slowed for 4 s."""
    arena = duel(core, "lich", patch)
    enemy = arena.unit(5)
    near, far = arena.dummy(300, 185), arena.dummy(300, -215)
    hp, before = arena.hp(enemy), arena.world.unit(enemy)
    cast(arena, "lich_frost_nova", 1, enemy)
    amp = arena.amp(arena.unit(0))
    assert hp - arena.hp(enemy) == pytest.approx((50 + 75) * amp * arena.magic(enemy), rel=1e-3)
    assert 5000 - arena.hp(near) == pytest.approx(75 * amp * arena.magic(near), rel=1e-3)
    assert arena.hp(far) == 5000
    slowed = arena.world.unit(enemy)
    assert before["attack_speed"] - slowed["attack_speed"] == pytest.approx(30)
    assert before["move_speed"] - slowed["move_speed"] == pytest.approx(0.3 * arena.base_speed("nevermore"))
    arena.seconds(3.9)
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(before["move_speed"])


def near_tower(core: Any, team: int, patch: str) -> tuple[Arena, dict[str, Any]]:
    """Return a scene with Lich beside a tower of a team."""
    arena = duel(core, "lich", patch, away=3000)
    tower = next(u for u in arena.world.units("tower") if u["team"] == team and u["tier"] == 1)
    arena.world.set_unit(arena.unit(0), x=tower["x"] - 300, y=tower["y"] - 300)
    hold(arena, arena.unit(0))
    arena.seconds(0.3)
    return arena, tower


def test_frost_shield_on_a_tower(core: Any) -> None:
    """Patch 7.20: friendly buildings may be shielded: 30 % off attacks at rank 1, and frost around them."""
    arena, tower = near_tower(core, 0, "7.21d")
    creep = arena.dummy(tower["x"] - CENTRE[0] + 400, tower["y"] - CENTRE[1])
    arena.world.set_unit(creep, extra_armor=0)
    bare = arena.world.damage(arena.unit(5), tower["index"], 100, "physical", True)
    cast(arena, SHIELD, 1, tower["index"], wait=0.6)
    assert arena.world.damage(arena.unit(5), tower["index"], 100, "physical", True) == pytest.approx(0.7 * bare)
    arena.seconds(1.2)
    assert arena.hp(creep) < 5000


def test_a_pulse_a_second_slows_for_half_of_it(core: Any) -> None:
    """Tooltip: enemies within 600 take 20 damage each second at rank 1, and are 20 % slower for 0.5 s."""
    arena = duel(core, "lich", away=560)
    enemy = arena.unit(5)
    speed, hp = arena.world.unit(enemy)["move_speed"], arena.hp(enemy)
    cast(arena, SHIELD, 1, arena.unit(0), wait=0.2)
    slow = []
    for _ in range(round(6 / STEP)):
        arena.world.step(1)
        slow.append(speed - arena.world.unit(enemy)["move_speed"])
    each = 20 * arena.amp(arena.unit(0)) * arena.magic(enemy)
    assert (hp - arena.hp(enemy)) / each == pytest.approx(6, abs=0.01)
    assert max(slow) == pytest.approx(0.2 * arena.base_speed("nevermore"), abs=0.1)
    assert sum(s > 1 for s in slow) * STEP == pytest.approx(6 * 0.5, abs=0.9)


def test_a_shield_outlives_lich(core: Any) -> None:
    """It is the bearer's buff: the ally keeps it, and its frost, when Lich dies."""
    arena = duel(core, "lich")
    ally, enemy = arena.unit(1), arena.unit(5)
    arena.place(ally, 200, 100)
    cast(arena, SHIELD, 4, ally, wait=0.5)
    arena.world.kill(arena.unit(0), -1)
    hp = arena.hp(enemy)
    arena.seconds(2.2)
    assert arena.modifiers(ally, SHIELD) and arena.hp(enemy) < hp


@pytest.mark.parametrize(("level", "share"), [(1, 0.32), (4, 0.5)])
def test_gaze_draws_by_its_share_of_the_way(core: Any, level: int, share: float) -> None:
    """Tooltip: towards a point between the two; 32 to 50 % of the distance, in its duration."""
    arena = duel(core, "lich", away=400)
    enemy = arena.unit(5)
    cast(arena, GAZE, level, enemy, wait=3)
    moved = CENTRE[0] + 400 - arena.world.unit(enemy)["x"]
    assert moved == pytest.approx(share * 400, abs=8)


def test_gaze_ends_with_its_channel(core: Any) -> None:
    arena = duel(core, "lich", away=400)
    enemy = arena.unit(5)
    cast(arena, GAZE, 4, enemy)
    assert arena.world.unit(enemy)["status"] & STUNNED
    arena.world.order(arena.unit(0), "stop")
    arena.seconds(0.2)
    assert not arena.world.unit(enemy)["status"] & STUNNED


def test_chain_frost_follows_a_blink(core: Any, patch: str) -> None:
    """Note: it cannot be disjointed."""
    arena = duel(core, "lich", patch, enemy="queenofpain", away=700)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    hp = arena.hp(enemy)
    arena.teach(5, "queenofpain_blink", 1)
    cast(arena, CHAIN, 1, enemy, wait=0.2)
    cast(arena, "queenofpain_blink", 1, at=(1300, -400), wait=0.8, hero=5)
    assert arena.world.unit(enemy)["x"] > CENTRE[0] + 1000 and arena.hp(enemy) == hp
    arena.seconds(1.5)
    damage = arena.special(CHAIN, "damage")[0]
    assert hp - arena.hp(enemy) == pytest.approx(damage * arena.amp(arena.unit(0)) * arena.magic(enemy), rel=1e-3)


@pytest.mark.parametrize("scepter", [False, True])
def test_a_scepter_lets_chain_frost_jump_on_and_on(core: Any, patch: str, scepter: bool) -> None:
    """Tooltip: up to 10 bounces after the first hit. Scepter: no limit, and 400 damage at rank 1."""
    arena = duel(core, "lich", patch, away=3000)
    pair = arena.dummy(300, 0, hp=60000), arena.dummy(380, 0, hp=60000)
    if scepter:
        give(arena, "ultimate_scepter")
    cast(arena, CHAIN, 1, pair[0], wait=12)
    each = 400 if scepter else arena.special(CHAIN, "damage")[0]
    each *= arena.amp(arena.unit(0)) * arena.magic(pair[0])
    hits = (120000 - arena.hp(pair[0]) - arena.hp(pair[1])) / each
    assert hits == pytest.approx(round(hits), abs=0.02)
    assert hits > 25 if scepter else round(hits) == 11


def test_chain_frost_passes_the_immune_without_harm(core: Any, patch: str) -> None:
    """`magic_immune_enemies`: it may be aimed at them and bounces to them, but neither slows nor hurts them."""
    arena = duel(core, "lich", patch)
    enemy, creep = arena.unit(5), arena.dummy(300, 300, hp=20000)
    use(arena, give(arena, "black_king_bar", 5), hero=5)
    before = arena.world.unit(enemy)
    cast(arena, CHAIN, 1, enemy, wait=3)
    after = arena.world.unit(enemy)
    assert (after["hp"], after["move_speed"]) == (before["hp"], before["move_speed"])
    each = arena.special(CHAIN, "damage")[0] * arena.amp(arena.unit(0)) * arena.magic(creep)
    assert (20000 - arena.hp(creep)) / each > 1.9


def test_chain_frost_ends_without_another_enemy_near(core: Any) -> None:
    """It bounces between enemies within 600: a second one 640 away is not reached."""
    arena = duel(core, "lich", away=3000)
    give(arena, "ultimate_scepter")
    first, far = arena.dummy(300, 0), arena.dummy(940, 0)
    cast(arena, CHAIN, 1, first, wait=3)
    assert 5000 - arena.hp(first) == pytest.approx(400 * arena.amp(arena.unit(0)) * arena.magic(first), rel=1e-3)
    assert arena.hp(far) == 5000


def test_chain_frost_lets_its_team_see(core: Any) -> None:
    """`vision_radius`: 800 around the orb."""
    arena = duel(core, "lich", away=3000)
    first, second = arena.dummy(600, 0, hp=60000), arena.dummy(700, 0, hp=60000)
    give(arena, "ultimate_scepter")
    cast(arena, CHAIN, 1, first, wait=1.6)
    for hero in (0, 1):
        arena.place(arena.unit(hero), 0, -7000)
    arena.seconds(1)
    assert arena.world.visible(0, second)
    watched = arena.dummy(1200, 0)
    arena.seconds(0.2)
    assert arena.world.visible(0, watched)


@pytest.mark.parametrize(("patch", "slow"), [("7.21d", 50), ("7.19", 40)])
def test_attacks_slow_movement_and_attacks_with_the_talent(core: Any, patch: str, slow: float) -> None:
    """Talent: attacks apply 50 % (7.19: 40 %) movement and attack speed slow."""
    arena = duel(core, "lich", patch)
    enemy = arena.unit(5)
    arena.world.teach(0, "special_bonus_unique_lich_2", 1)
    before = arena.world.unit(enemy)
    attack_for(arena, arena.unit(0), enemy, seconds=1.2)
    after = arena.world.unit(enemy)
    assert before["attack_speed"] - after["attack_speed"] == pytest.approx(slow)
    assert before["move_speed"] - after["move_speed"] == pytest.approx(slow / 100 * arena.base_speed("nevermore"))
    arena.seconds(3)
    assert arena.world.unit(enemy)["attack_speed"] == pytest.approx(before["attack_speed"])


@pytest.mark.parametrize("building", [False, True])
def test_frost_armor_slows_who_attacks_its_bearer(core: Any, building: bool) -> None:
    """Tooltip of 7.19: armor for a friendly unit or building, and attackers are slowed, 8 % at rank 1."""
    if building:
        arena, tower = near_tower(core, 0, "7.19")
        bearer = tower["index"]
        arena.world.set_unit(arena.unit(5), x=tower["x"] + 300, y=tower["y"] + 300)
        arena.seconds(0.3)
    else:
        arena = duel(core, "lich", "7.19")
        bearer = arena.unit(0)
    attacker = arena.unit(5)
    set_health(arena, attacker)
    armor, before = arena.world.unit(bearer)["armor"], arena.world.unit(attacker)
    cast(arena, "lich_frost_armor", 1, bearer)
    assert arena.world.unit(bearer)["armor"] - armor == pytest.approx(4)
    attack_for(arena, attacker, bearer, seconds=1.2)
    after = arena.world.unit(attacker)
    assert before["attack_speed"] - after["attack_speed"] == pytest.approx(8)
    assert before["move_speed"] - after["move_speed"] == pytest.approx(0.08 * arena.base_speed("nevermore"))
    arena.seconds(2)
    assert arena.world.unit(attacker)["attack_speed"] == pytest.approx(before["attack_speed"])


def test_frost_armor_lasts_40_seconds(core: Any) -> None:
    arena = duel(core, "lich", "7.19")
    ally = arena.unit(1)
    armor = arena.world.unit(ally)["armor"]
    cast(arena, "lich_frost_armor", 4, ally)
    arena.seconds(39)
    assert arena.world.unit(ally)["armor"] - armor == pytest.approx(10)
    arena.seconds(0.8)
    assert arena.world.unit(ally)["armor"] == pytest.approx(armor)


def test_frost_armor_regenerates_with_the_talent(core: Any) -> None:
    """30 a second in 7.19, which strength raises by its share as every regeneration."""
    arena = duel(core, "lich", "7.19")
    ally = arena.unit(1)
    arena.world.teach(0, "special_bonus_unique_lich_1", 1)
    bare = arena.world.unit(ally)["hp_regen"]
    cast(arena, "lich_frost_armor", 1, ally)
    by_strength = arena.data["rules"]["rules"]["attributes"]["hp_regen_pct_per_str"] / 100
    expected = 30 * (1 + arena.world.unit(ally)["str"] * by_strength)
    assert arena.world.unit(ally)["hp_regen"] - bare == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("level", [1, 4])
def test_dark_ritual_turns_a_creep_into_mana(core: Any, level: int) -> None:
    """Tooltip of 7.19: 55 to 100 % of the creep's current health becomes mana of Lich."""
    arena = duel(core, "lich", "7.19")
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 200, CENTRE[1] + 100)
    arena.still(creep)
    arena.world.set_unit(creep, hp=200)
    slot = arena.teach(0, "lich_dark_ritual", level)
    arena.world.set_unit(arena.unit(0), mana=10)
    arena.world.order(arena.unit(0), "cast_unit", target=creep, slot=slot)
    arena.seconds(0.8)
    gained = arena.world.unit(arena.unit(0))["mana"] - 10
    assert gained == pytest.approx(200 * [0.55, 0.7, 0.85, 1][level - 1], abs=1)
    assert creep not in [u["index"] for u in arena.world.units("lane_creep")]


def test_dark_ritual_takes_no_enemies_and_no_heroes(core: Any) -> None:
    arena = duel(core, "lich", "7.19")
    slot = arena.teach(0, "lich_dark_ritual", 1)
    enemy = arena.world.spawn("npc_dota_creep_badguys_melee", 1, CENTRE[0] + 200, CENTRE[1] + 100)
    for target in (enemy, arena.unit(1)):
        arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
        arena.seconds(0.8)
        assert arena.world.ability(0, "lich_dark_ritual")["castable"]


@pytest.mark.parametrize(("ability", "level", "mana", "seconds"), [
    ("lich_frost_armor", 1, 50, 5), ("lich_dark_ritual", 1, 0, 60), ("lich_dark_ritual", 4, 0, 18)])
def test_costs_of_what_the_older_patch_has(core: Any, ability: str, level: int, mana: float, seconds: float) -> None:
    """Both from 1,000 or 400 away, after 0.4 s."""
    arena = duel(core, "lich", "7.19")
    me = arena.unit(0)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 380, CENTRE[1])
    arena.still(creep)
    slot = arena.teach(0, ability, level)
    before = arena.world.unit(me)["mana"]
    arena.world.order(me, "cast_unit", target=creep, slot=slot)
    begun = arena.world.time
    while arena.world.ability(0, ability)["castable"]:
        arena.world.run_frames(1)
    assert arena.world.time - begun == pytest.approx(0.4, abs=0.1)
    assert arena.world.ability(0, ability)["ready"] - arena.world.time == pytest.approx(seconds, abs=0.1)
    if mana:
        assert before - arena.world.unit(me)["mana"] == pytest.approx(mana, abs=0.5)
