"""Abilities of other heroes that are complete in patch 7.21d, computed by hand from abilities.json."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.arena import CENTRE, Arena, give, use

STUNNED = 1

Duel = Callable[..., Arena]


@pytest.fixture
def duel(new_world: Any, data: dict[str, Any]) -> Duel:
    def make(hero: str, enemy: str = "nevermore") -> Arena:
        arena = Arena(new_world((hero, "sniper"), (enemy, "viper")), data)
        arena.place(arena.unit(0), 0, 0, 0.0)
        arena.place(arena.unit(1), -300, 0, 0.0)
        arena.place(arena.unit(5), 400, 0, math.pi)
        arena.place(arena.unit(6), 2500, 0, math.pi)
        arena.seconds(0.2)
        return arena

    return make


def cast(arena: Arena, ability: str, level: int, target: int | None = None, wait: float = 0.8) -> None:
    slot = arena.teach(0, ability, level)
    if target is None:
        arena.world.order(arena.unit(0), "cast", slot=slot)
    else:
        arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
    arena.seconds(wait)


def test_battle_hunger_speeds_axe_for_each_that_hungers(duel: Duel) -> None:
    arena = duel("axe")
    a, creep = arena.unit(0), arena.dummy(300, 200)
    speed = arena.world.unit(a)["move_speed"]
    each = 0.12 * arena.base_speed("axe")
    cast(arena, "axe_battle_hunger", 1, arena.unit(5))
    assert arena.world.unit(a)["move_speed"] == pytest.approx(speed + each, rel=1e-3)
    arena.seconds(20)
    arena.place(arena.unit(5), 400, 0)
    arena.place(a, 0, 0)
    cast(arena, "axe_battle_hunger", 1, arena.unit(5))
    assert arena.modifiers(arena.unit(5), "axe_battle_hunger")
    creep_kill = arena.dummy(600, 300, hp=10)
    arena.world.kill(creep_kill, arena.unit(5))  # a kill feeds the bearer of the hunger
    assert not arena.modifiers(arena.unit(5), "axe_battle_hunger")
    assert arena.hp(creep) > 0


def test_anchor_smash_attacks_all_around_and_weakens(duel: Duel) -> None:
    arena = duel("tidehunter")
    a, near, far = arena.unit(0), arena.dummy(300, 0), arena.dummy(500, 0)
    for u in (near, far):
        arena.world.set_unit(u, extra_armor=-arena.world.unit(u)["armor"])
    low, high = (arena.world.unit(a)[k] + arena.world.unit(a)["dmg_bonus"] for k in ("dmg_min", "dmg_max"))
    damage, hp = arena.world.unit(near)["dmg_min"], arena.hp(near)
    cast(arena, "tidehunter_anchor_smash", 2)
    assert low + 90 - 1 <= hp - arena.hp(near) <= high + 90 + 1
    assert arena.hp(far) == hp
    assert arena.world.unit(near)["dmg_min"] == pytest.approx(damage * 0.6, rel=1e-3)


def test_kraken_shell_blocks_and_shakes_off(duel: Duel) -> None:
    arena = duel("tidehunter", "sven")
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "tidehunter_kraken_shell", 1)
    arena.world.set_unit(a, extra_hp=5000, extra_armor=0)
    arena.world.set_unit(a, extra_armor=-arena.world.unit(a)["armor"])
    arena.world.set_unit(a, hp=5000)
    assert arena.world.damage(b, a, 50, "physical", attack=True) == pytest.approx(50 - 12, rel=1e-3)
    bolt = arena.teach(5, "sven_storm_bolt", 4)
    arena.world.order(b, "cast_unit", target=a, slot=bolt)
    arena.seconds(0.9)
    assert arena.world.unit(a)["status"] & STUNNED
    arena.world.damage(b, a, 400, "pure")  # 600 in all within six seconds
    assert not arena.world.unit(a)["status"] & STUNNED


def test_kraken_shell_forgets_after_a_while(duel: Duel) -> None:
    arena = duel("tidehunter", "sven")
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "tidehunter_kraken_shell", 1)
    arena.world.set_unit(a, extra_hp=5000)
    arena.seconds(0.2)
    arena.world.set_unit(a, hp=5000)
    arena.world.damage(b, a, 500, "pure")
    arena.seconds(7)
    bolt = arena.teach(5, "sven_storm_bolt", 1)
    arena.place(b, 300, 0, math.pi)
    arena.world.order(b, "cast_unit", target=a, slot=bolt)
    arena.seconds(0.9)
    arena.world.damage(b, a, 400, "pure")
    assert arena.world.unit(a)["status"] & STUNNED


def test_death_ward_shoots_heroes_while_it_is_channelled(duel: Duel) -> None:
    arena = duel("witch_doctor")
    a, b, creep = arena.unit(0), arena.unit(5), arena.dummy(200, 150)
    arena.world.set_unit(b, extra_hp=20000)
    arena.seconds(0.2)
    arena.world.set_unit(b, hp=20000, extra_armor=0)
    arena.world.set_unit(b, extra_armor=-arena.world.unit(b)["armor"])
    slot = arena.teach(0, "witch_doctor_death_ward", 1)
    hp = arena.hp(creep)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 100, y=CENTRE[1], slot=slot)
    arena.seconds(0.6)
    ward = [u for u in arena.world.units("summon")]
    assert len(ward) == 1
    before = arena.hp(b)
    arena.seconds(2.2)
    lost = before - arena.hp(b)
    assert lost / 75 == pytest.approx(2.2 / 0.22, abs=2)
    assert arena.hp(creep) == hp
    assert arena.world.damage(b, ward[0]["index"], 50, "pure") == 0
    arena.world.order(a, "stop")
    arena.seconds(0.3)
    assert not arena.world.units("summon")


def test_sinister_gaze_draws_the_target_in(duel: Duel) -> None:
    arena = duel("lich")
    a, b = arena.unit(0), arena.unit(5)
    arena.place(b, -346, -200, math.pi)
    cast(arena, "lich_sinister_gaze", 4, b, wait=1.0)
    assert arena.world.unit(b)["status"] & STUNNED
    arena.seconds(2.4)
    assert not arena.world.unit(b)["status"] & STUNNED
    u = arena.world.unit(b)
    assert math.dist((u["x"], u["y"]), CENTRE) == pytest.approx(400 * (1 - 0.5), abs=40)
    assert arena.world.unit(a)["act"] != "channel"


def test_static_link_moves_damage_and_it_lasts(duel: Duel) -> None:
    arena = duel("razor")
    a, b = arena.unit(0), arena.unit(5)
    own, theirs = arena.world.unit(a)["dmg_bonus"], arena.world.unit(b)["dmg_bonus"]
    cast(arena, "razor_static_link", 2, b, wait=4.0)
    gained, lost = arena.world.unit(a)["dmg_bonus"] - own, theirs - arena.world.unit(b)["dmg_bonus"]
    assert gained == pytest.approx(lost)
    assert gained == pytest.approx(14 * 3.8, rel=0.1)
    arena.place(b, 1500, 0)
    arena.seconds(0.3)
    kept = arena.world.unit(a)["dmg_bonus"] - own
    arena.seconds(10)
    assert arena.world.unit(a)["dmg_bonus"] - own == pytest.approx(kept)
    arena.seconds(9)
    assert arena.world.unit(a)["dmg_bonus"] == pytest.approx(own)
    assert arena.world.unit(b)["dmg_bonus"] == pytest.approx(theirs)


def test_plasma_field_goes_out_and_back_stronger_far_off(duel: Duel) -> None:
    """15 to 80 by distance, out of 700, once on the way out and once on the way back."""
    arena = duel("razor")
    a, near, far = arena.unit(0), arena.dummy(150, 150), arena.dummy(600, 0)
    arena.place(arena.unit(5), 3000, 0)
    hp = arena.hp(near)
    cast(arena, "razor_plasma_field", 1, wait=3.0)
    amp = arena.amp(a)
    for unit, dist in ((near, math.hypot(150, 150)), (far, 600)):
        each = (15 + 65 * dist / 700) * amp * arena.magic(unit)
        assert hp - arena.hp(unit) == pytest.approx(2 * each, rel=0.03)


def test_eye_of_the_storm_picks_the_weakest_and_wears_armor_down(duel: Duel) -> None:
    arena = duel("razor")
    strong, weak = arena.dummy(200, 100, hp=5000), arena.dummy(200, -100, hp=3000)
    arena.place(arena.unit(5), 3000, 0)
    armor = arena.world.unit(weak)["armor"]
    cast(arena, "razor_eye_of_the_storm", 1, wait=0.7 * 4 + 0.3)
    strikes = armor - arena.world.unit(weak)["armor"]
    assert strikes in (pytest.approx(4), pytest.approx(5))
    assert arena.hp(strong) == 5000
    arena.seconds(28)
    assert arena.world.unit(weak)["armor"] == pytest.approx(armor)  # gone with the ability


def test_unstable_current_strikes_by_itself(duel: Duel) -> None:
    arena = duel("razor")
    a, creep = arena.unit(0), arena.dummy(300, 0)
    arena.place(arena.unit(5), 3000, 0)
    hp = arena.hp(creep)
    arena.teach(0, "razor_unstable_current", 4)
    start = arena.world.time
    arena.seconds(9.5)
    hits = (hp - arena.hp(creep)) / (120 * arena.amp(a) * arena.magic(creep))
    assert hits == pytest.approx(round(hits), abs=0.01)
    assert round(hits) == int((arena.world.time - start) / 3) + 1


def test_sadist_reaper_and_heartstopper(duel: Duel) -> None:
    arena = duel("necrolyte")
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, hp=0.5 * arena.world.unit(b)["max_hp"])
    most = arena.world.unit(b)["max_hp"]
    slot = arena.teach(0, "necrolyte_reapers_scythe", 1)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(1.2)
    assert arena.world.unit(b)["status"] & STUNNED
    factor = arena.special("necrolyte_reapers_scythe", "damage_per_health")[0]
    arena.seconds(1.5)
    expected = 0.5 * most - factor * 0.5 * most * arena.amp(a) * arena.magic(b)
    assert arena.hp(b) == pytest.approx(expected, rel=0.01)
    arena.world.set_unit(b, hp=most)
    arena.teach(0, "necrolyte_heartstopper_aura", 1)
    arena.place(b, 300, 0)
    hp, start = arena.hp(b), arena.world.time
    arena.seconds(5)
    pct = arena.special("necrolyte_heartstopper_aura", "aura_damage")[0]
    assert (hp - arena.hp(b)) / (arena.world.time - start) == pytest.approx(pct / 100 * most, rel=0.08)


def test_sonic_wave_is_pure(duel: Duel) -> None:
    arena = duel("queenofpain")
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=2000)
    arena.seconds(0.2)
    arena.world.set_unit(b, hp=2000)
    slot = arena.teach(0, "queenofpain_sonic_wave", 1)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 600, y=CENTRE[1], slot=slot)
    arena.seconds(1.5)
    wave = arena.special("queenofpain_sonic_wave", "damage")[0]
    assert 2000 - arena.hp(b) == pytest.approx(wave * arena.amp(a), rel=1e-3)


@pytest.mark.parametrize("rank", [1, 4])
def test_shadow_strike_strikes_and_poisons(duel: Duel, rank: int) -> None:
    """At once, then every 3 s for 15 s; the slow is all there at first and fades to nothing."""
    arena = duel("queenofpain")
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, extra_hp=3000)
    arena.seconds(0.2)
    arena.world.set_unit(b, hp=3000)
    speed = arena.world.unit(b)["move_speed"]
    slot = arena.teach(0, "queenofpain_shadow_strike", rank)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    while not arena.modifiers(b, "queenofpain_shadow_strike"):
        arena.seconds(0.1)
    through = arena.magic(b) * arena.amp(a)
    first = arena.special("queenofpain_shadow_strike", "strike_damage")[rank - 1]
    tick = arena.special("queenofpain_shadow_strike", "duration_damage")[rank - 1]
    slow = -arena.special("queenofpain_shadow_strike", "movement_slow")[rank - 1] / 100
    assert 3000 - arena.hp(b) == pytest.approx(first * through, rel=1e-3)
    lost = speed - arena.world.unit(b)["move_speed"]
    assert lost == pytest.approx(slow * arena.base_speed("nevermore"), rel=0.05)
    for ticks in range(1, 6):
        arena.seconds(3)
        assert 3000 - arena.hp(b) == pytest.approx((first + ticks * tick) * through, rel=1e-3)
        now = speed - arena.world.unit(b)["move_speed"]
        assert now < lost - 1
        lost = now
    arena.seconds(1)
    assert not arena.modifiers(b, "queenofpain_shadow_strike")
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)


@pytest.mark.parametrize("rank", [1, 4])
def test_ghost_shroud_hides_from_blows_and_slows_around(duel: Duel, rank: int) -> None:
    """For its duration attacks cannot hit him, magic hurts more, heals are larger, and enemies within 750 are slower.
    """
    arena = duel("necrolyte")
    a, near, far = arena.unit(0), arena.unit(5), arena.unit(6)

    def number(name: str) -> float:
        values = arena.special("necrolyte_sadist", name)
        return values[min(rank, len(values)) - 1]

    arena.place(near, number("slow_aoe") - 20, 0, math.pi)
    arena.place(far, 0, -number("slow_aoe") - 20)
    arena.world.set_unit(a, extra_hp=3000)
    arena.world.set_unit(a, hp=1000)
    arena.still(a)
    speed = {u: arena.world.unit(u)["move_speed"] for u in (near, far)}
    magic, begun = arena.magic(a), arena.world.time
    cast(arena, "necrolyte_sadist", rank, wait=0.3)
    assert not arena.world.can_attack(near, a)
    assert arena.world.damage(near, a, 100, "physical", attack=True) == 0
    assert arena.magic(a) == pytest.approx(magic * (1 - number("bonus_damage") / 100), rel=1e-4)
    assert arena.world.damage(near, a, 100, "magical") == pytest.approx(100 * arena.magic(a), rel=1e-3)
    slowed = speed[near] - number("movement_speed") / 100 * arena.base_speed("nevermore")
    assert arena.world.unit(near)["move_speed"] == pytest.approx(slowed, rel=1e-4)
    assert arena.world.unit(far)["move_speed"] == speed[far]
    hp, (heal,) = arena.hp(a), arena.data["items"]["items"]["item_faerie_fire"]["specials"]["hp_restore"]["v"]
    use(arena, give(arena, "faerie_fire", charges=1))
    assert arena.hp(a) - hp == pytest.approx(heal * (1 + number("heal_bonus") / 100), rel=1e-3)
    arena.seconds(begun + number("duration") - arena.world.time - 0.2)
    assert not arena.world.can_attack(near, a)
    arena.seconds(0.6)
    assert arena.world.can_attack(near, a)
    assert arena.magic(a) == pytest.approx(magic)
    assert arena.world.unit(near)["move_speed"] == pytest.approx(speed[near])


@pytest.mark.parametrize(("rank", "away", "lands"), [(1, 600, 600), (4, 600, 600), (1, 2000, 1300), (1, 60, 200)])
def test_queen_of_pains_blink(duel: Duel, rank: int, away: float, lands: float) -> None:
    """Blinks to the target after the cast point, within the maximum and minimum range."""
    arena = duel("queenofpain")
    a = arena.unit(0)
    for other in (1, 5, 6):
        arena.place(arena.unit(other), -1500, 1500 + 200 * other)
    arena.place(a, 0, 0, -math.pi / 4)
    slot = arena.teach(0, "queenofpain_blink", rank)
    begun, root = arena.world.time, math.sqrt(0.5)
    arena.world.order(a, "cast_point", x=CENTRE[0] + away * root, y=CENTRE[1] - away * root, slot=slot)
    u = arena.world.unit(a)
    while math.dist((u["x"], u["y"]), CENTRE) < 1:
        arena.world.run_frames(1)
        u = arena.world.unit(a)
    (point,) = arena.field("queenofpain_blink", "cast_point")
    assert arena.world.time - begun == pytest.approx(point, abs=0.05)
    assert (u["x"] - CENTRE[0], u["y"] - CENTRE[1]) == pytest.approx((lands * root, -lands * root), abs=30)
    assert arena.world.ability(0, "queenofpain_blink")["ready"] - arena.world.time == pytest.approx(
        arena.field("queenofpain_blink", "cooldown")[rank - 1], abs=0.05)


def test_queen_of_pains_blink_evades_projectiles(duel: Duel) -> None:
    """Blinking disjoints a projectile; a rooted hero cannot blink."""
    arena = duel("queenofpain", "sven")
    a, b = arena.unit(0), arena.unit(5)
    arena.place(b, 550, 0, math.pi)
    bolt, slot = arena.teach(5, "sven_storm_bolt", 1), arena.teach(0, "queenofpain_blink", 1)
    hp = arena.hp(a)
    arena.world.order(b, "cast_unit", target=a, slot=bolt)
    arena.seconds(0.15)
    arena.world.order(a, "cast_point", x=CENTRE[0] - 600, y=CENTRE[1] + 200, slot=slot)
    arena.seconds(2)
    assert math.dist((arena.world.unit(a)["x"], arena.world.unit(a)["y"]), CENTRE) > 500
    assert arena.hp(a) == hp
    assert not arena.modifiers(a, "sven_storm_bolt")


@pytest.mark.parametrize("rank", [1, 4])
def test_silence_keeps_from_abilities_alone(duel: Duel, rank: int) -> None:
    """Within 425 of where it is aimed, for its time; items can still be used, and beyond it nobody is silenced."""
    arena = duel("death_prophet")
    a, near, far = arena.unit(0), arena.unit(5), arena.unit(6)
    radius = arena.special("death_prophet_silence", "radius")[0]
    arena.place(far, 400, radius + 20)
    arena.teach(5, "nevermore_shadowraze1", 1)
    arena.teach(6, "viper_poison_attack", 1)
    assert arena.world.give_item(5, "item_faerie_fire", 1)
    slot = arena.teach(0, "death_prophet_silence", rank)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 400, y=CENTRE[1], slot=slot)
    while not arena.modifiers(near, "death_prophet_silence"):
        arena.world.run_frames(1)
    begun = arena.world.time
    assert not arena.world.ability(5, "nevermore_shadowraze1")["castable"]
    assert arena.world.ability(5, "item_faerie_fire")["castable"]
    assert arena.world.ability(6, "viper_poison_attack")["castable"]
    while not arena.world.ability(5, "nevermore_shadowraze1")["castable"]:
        arena.world.run_frames(1)
    lasts = arena.special("death_prophet_silence", "duration")[rank - 1]
    assert arena.world.time - begun == pytest.approx(lasts, abs=0.05)


@pytest.mark.parametrize("rank", [1, 4])
def test_berserkers_call_makes_them_strike_axe_in_his_armor(duel: Duel, rank: int) -> None:
    """For its duration enemies within 300 attack only him, and he has 30 more armor."""
    arena = duel("axe")
    a, near, far = arena.unit(0), arena.unit(5), arena.unit(6)
    radius = arena.special("axe_berserkers_call", "radius")[0]
    arena.place(near, radius - 20, 0, math.pi)
    arena.place(far, 0, radius + 20)
    arena.place(arena.unit(1), radius - 20, 150)
    for unit in (near, far):
        arena.world.set_unit(unit, attack_ready=0)
        arena.world.order(unit, "attack", arena.unit(1))
    armor = arena.world.unit(a)["armor"]
    cast(arena, "axe_berserkers_call", rank, wait=0.0)
    while arena.world.unit(near)["attack_target"] != a:
        arena.world.run_frames(1)
    begun = arena.world.time
    assert arena.world.unit(a)["armor"] - armor == pytest.approx(arena.special("axe_berserkers_call", "bonus_armor")[0])
    held = arena.world.unit(near)
    arena.world.order(near, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    lasts = arena.special("axe_berserkers_call", "duration")[rank - 1]
    arena.seconds(lasts - 0.4)
    there = arena.world.unit(near)
    assert (there["attack_target"], there["x"], there["y"]) == (a, held["x"], held["y"])
    assert arena.world.unit(far)["attack_target"] == arena.unit(1)
    while arena.world.unit(a)["armor"] > armor + 1:
        arena.world.run_frames(1)
    assert arena.world.time - begun == pytest.approx(lasts, abs=0.08)
    arena.world.order(near, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    arena.seconds(0.8)
    assert arena.world.unit(near)["x"] > held["x"] + 50
