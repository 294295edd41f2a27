"""Abilities of Queen of Pain, Razor, Riki, Slark, Tidehunter and Witch Doctor in patch 7.21d, computed by hand from
abilities.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, order, order_slot
from tests.dota.scenes.arena import CENTRE, FRAME
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import BANISHED, INVISIBLE, LEASHED, STUNNED, UNSEEN
from tests.dota.scenes.units import set_health

# ---- Queen of Pain ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 4])
def test_shadow_strike_strikes_and_poisons(core: Any, rank: int) -> None:
    """Damage at once and every 3 s for 15 s; the slow is greatest at first and fades to zero."""
    arena = duel(core, "queenofpain", away=400)
    a, b = arena.unit(0), arena.unit(5)
    set_health(arena, b, hp=3000)
    speed = arena.world.unit(b)["move_speed"]
    order(arena, "queenofpain_shadow_strike", rank, b)
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


@pytest.mark.parametrize(("rank", "away", "lands"), [(1, 600, 600), (4, 600, 600), (1, 2000, 1300), (1, 60, 200)])
def test_queen_of_pains_blink(core: Any, rank: int, away: float, lands: float) -> None:
    """Blinks to the target after the cast point, within the maximum and minimum range."""
    arena = duel(core, "queenofpain", away=400)
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


def test_queen_of_pains_blink_evades_projectiles(core: Any) -> None:
    """Blinking disjoints a projectile; a rooted hero cannot blink."""
    arena = duel(core, "queenofpain", enemy="sven", away=400)
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


# ---- Razor -----------------------------------------------------------------------------------------------------------


def test_static_link_moves_damage_and_it_lasts(core: Any) -> None:
    arena = duel(core, "razor", away=400)
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


def test_plasma_field_damage_grows_with_distance(core: Any) -> None:
    """15 to 80 by distance, out of 700, once on the way out and once on the way back."""
    arena = duel(core, "razor", away=400)
    a, near, far = arena.unit(0), arena.dummy(150, 150), arena.dummy(600, 0)
    arena.place(arena.unit(5), 3000, 0)
    hp = arena.hp(near)
    cast(arena, "razor_plasma_field", 1, wait=3.0)
    amp = arena.amp(a)
    for unit, dist in ((near, math.hypot(150, 150)), (far, 600)):
        each = (15 + 65 * dist / 700) * amp * arena.magic(unit)
        assert hp - arena.hp(unit) == pytest.approx(2 * each, rel=0.03)


def test_eye_of_the_storm_takes_armor_of_the_weakest(core: Any) -> None:
    arena = duel(core, "razor", away=400)
    strong, weak = arena.dummy(200, 100, hp=5000), arena.dummy(200, -100, hp=3000)
    arena.place(arena.unit(5), 3000, 0)
    armor = arena.world.unit(weak)["armor"]
    cast(arena, "razor_eye_of_the_storm", 1, wait=0.7 * 4 + 0.3)
    strikes = armor - arena.world.unit(weak)["armor"]
    assert strikes in (pytest.approx(4), pytest.approx(5))
    assert arena.hp(strong) == 5000
    arena.seconds(28)
    assert arena.world.unit(weak)["armor"] == pytest.approx(armor)  # gone with the ability


def test_unstable_current_strikes_periodically(core: Any) -> None:
    arena = duel(core, "razor", away=400)
    a, creep = arena.unit(0), arena.dummy(300, 0)
    arena.place(arena.unit(5), 3000, 0)
    hp = arena.hp(creep)
    arena.teach(0, "razor_unstable_current", 4)
    start = arena.world.time
    arena.seconds(9.5)
    hits = (hp - arena.hp(creep)) / (120 * arena.amp(a) * arena.magic(creep))
    assert hits == pytest.approx(round(hits), abs=0.01)
    assert round(hits) == int((arena.world.time - start) / 3) + 1


# ---- Riki ------------------------------------------------------------------------------------------------------------


def test_riki_fades_and_comes_back(core: Any) -> None:
    """Invisible 7.5 s after his last attack."""
    a = duel(core, "riki", enemy="sven", away=400, hp=5000)
    a.teach(0, "riki_permanent_invisibility", 1)
    riki, enemy = a.unit(0), a.unit(5)
    a.place(riki, 300, 0)
    a.seconds(7.8)
    assert a.world.unit(riki)["status"] & INVISIBLE
    a.world.set_unit(riki, attack_ready=0)
    a.world.order(riki, "attack", target=enemy)
    a.seconds(1.0)
    assert not a.world.unit(riki)["status"] & INVISIBLE
    a.world.order(riki, "hold")
    a.world.set_unit(riki, attack_ready=1e9)
    a.seconds(6)
    assert not a.world.unit(riki)["status"] & INVISIBLE
    a.seconds(2.5)
    assert a.world.unit(riki)["status"] & INVISIBLE


@pytest.mark.parametrize("behind", [True, False])
def test_backstab(core: Any, behind: bool) -> None:
    """An attack from behind does 0.4 of his agility as additional damage."""
    a = duel(core, "riki", enemy="sven", away=400, hp=5000)
    a.teach(0, "riki_permanent_invisibility", 1)
    riki, enemy = a.unit(0), a.dummy(400, 0)  # it does not turn to him
    a.place(riki, 300, 0)
    a.place(enemy, 400, 0, 0.0 if behind else math.pi)
    a.place(a.unit(5), 2500, 0)
    a.world.set_unit(enemy, extra_armor=-a.world.unit(enemy)["armor"])
    a.world.set_unit(riki, attack_ready=0)
    hp = a.hp(enemy)
    a.world.order(riki, "attack", target=enemy)
    for _ in range(20):
        a.world.step(1)
        if a.hp(enemy) < hp:
            break
    a.world.order(riki, "stop")
    unit = a.world.unit(riki)
    extra = 0.4 * unit["agi"] if behind else 0
    lost = hp - a.hp(enemy)
    assert unit["dmg_min"] + extra - 1 <= lost <= unit["dmg_max"] + unit["dmg_bonus"] + extra + 1


def test_tricks_of_the_trade(core: Any) -> None:
    """Out of the world, he strikes an enemy within 450 every 0.6 s, heroes first."""
    a = duel(core, "riki", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "riki_tricks_of_the_trade", 1)
    riki, enemy = a.unit(0), a.unit(5)
    other = a.dummy(200, 0)
    a.place(enemy, 300, 0)
    hp, spared = a.hp(enemy), a.hp(other)
    order_slot(a, slot)
    a.seconds(0.6 * 3 + 0.7)
    assert a.world.unit(riki)["status"] & BANISHED
    armor = a.world.unit(enemy)["armor"]
    through = physical_share(armor)
    unit = a.world.unit(riki)
    assert 3 * unit["dmg_min"] * through * 0.95 <= hp - a.hp(enemy) <= 4 * (unit["dmg_max"] + 5) * through
    assert a.hp(other) == spared


# ---- Slark -----------------------------------------------------------------------------------------------------------


def test_dark_pact_strikes_both(core: Any) -> None:
    """After 1.5 s ten pulses: 75 in all to enemies within 325, half of it to himself: magical damage to both."""
    a = duel(core, "slark", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "slark_dark_pact", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.place(enemy, 250, 0)
    hp, own = a.hp(enemy), a.hp(slark)
    order_slot(a, slot)
    a.seconds(1.3)
    assert a.hp(slark) == own
    a.seconds(1.6)
    total = a.special("slark_dark_pact", "total_damage")[0]
    assert hp - a.hp(enemy) == pytest.approx(total * a.magic(enemy) * a.amp(slark), rel=0.01)
    assert own - a.hp(slark) == pytest.approx(total / 2 * a.magic(slark) * a.amp(slark), rel=0.01)


def test_pounce_leashes_the_first_hero(core: Any) -> None:
    """A leap of 700 at 933 a second; the hero it meets stays within 400 of that place for 2.5 s."""
    a = duel(core, "slark", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "slark_pounce", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.place(slark, 500, 0, math.pi)
    a.place(enemy, 100, 0)
    order_slot(a, slot)
    a.seconds(0.6)
    met = a.world.unit(slark)
    assert 80 < met["x"] - CENTRE[0] < 250
    assert a.world.unit(enemy)["status"] & LEASHED
    a.world.order(enemy, "move", x=CENTRE[0] - 600, y=CENTRE[1])
    a.seconds(1.9)
    away = met["x"] - a.world.unit(enemy)["x"]
    assert 350 < away <= 402
    a.world.order(enemy, "move", x=CENTRE[0] - 600, y=CENTRE[1])
    a.seconds(1.5)
    assert met["x"] - a.world.unit(enemy)["x"] > 403


def test_shadow_dance_hides_from_true_sight(core: Any) -> None:
    """4 s unseen even beside a gem, whatever he does; fast while no enemy sees him."""
    a = duel(core, "slark", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "slark_shadow_dance", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.world.give_item(5, "item_gem")
    a.seconds(0.5)
    assert a.world.visible(1, slark)
    slow = a.world.unit(slark)["move_speed"]
    order_slot(a, slot)
    a.seconds(1.2)
    assert a.world.unit(slark)["status"] & UNSEEN
    assert not a.world.visible(1, slark)
    assert a.world.unit(slark)["move_speed"] > slow * 1.15
    a.place(slark, 200, 0)
    a.world.set_unit(slark, attack_ready=0)
    a.world.order(slark, "attack", target=enemy)
    a.seconds(1.0)
    assert not a.world.visible(1, slark)
    a.seconds(4 - 2.2 + 4 * FRAME)
    assert a.world.visible(1, slark)


# ---- Tidehunter ------------------------------------------------------------------------------------------------------


def test_anchor_smash_attacks_all_around_and_weakens(core: Any) -> None:
    arena = duel(core, "tidehunter", away=400)
    a, near, far = arena.unit(0), arena.dummy(300, 0), arena.dummy(500, 0)
    for u in (near, far):
        arena.world.set_unit(u, extra_armor=-arena.world.unit(u)["armor"])
    low, high = (arena.world.unit(a)[k] + arena.world.unit(a)["dmg_bonus"] for k in ("dmg_min", "dmg_max"))
    damage, hp = arena.world.unit(near)["dmg_min"], arena.hp(near)
    cast(arena, "tidehunter_anchor_smash", 2)
    assert low + 90 - 1 <= hp - arena.hp(near) <= high + 90 + 1
    assert arena.hp(far) == hp
    assert arena.world.unit(near)["dmg_min"] == pytest.approx(damage * 0.6, rel=1e-3)


def test_kraken_shell_blocks_and_shakes_off(core: Any) -> None:
    arena = duel(core, "tidehunter", enemy="sven", away=400)
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


def test_kraken_shell_forgets_after_a_while(core: Any) -> None:
    arena = duel(core, "tidehunter", enemy="sven", away=400)
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "tidehunter_kraken_shell", 1)
    set_health(arena, a, hp=5000)
    arena.world.damage(b, a, 500, "pure")
    arena.seconds(7)
    bolt = arena.teach(5, "sven_storm_bolt", 1)
    arena.place(b, 300, 0, math.pi)
    arena.world.order(b, "cast_unit", target=a, slot=bolt)
    arena.seconds(0.9)
    arena.world.damage(b, a, 400, "pure")
    assert arena.world.unit(a)["status"] & STUNNED


# ---- Witch Doctor ----------------------------------------------------------------------------------------------------


def test_death_ward_attacks_heroes_while_channelled(core: Any) -> None:
    arena = duel(core, "witch_doctor", away=400)
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


def test_maledict(core: Any) -> None:
    """7 a second for 12 s, and three times 16 % of the health lost since it began."""
    a = duel(core, "witch_doctor", enemy="sven", hp=4000)
    enemy = a.unit(5)
    order(a, "witch_doctor_maledict", 1, at=(300, 0))
    while not a.modifiers(enemy, "witch_doctor_maledict"):
        a.world.step(1)
    start = a.hp(enemy)
    a.world.damage(a.unit(0), enemy, 500, "pure")
    a.seconds(13)
    through = a.magic(enemy) * a.amp(a.unit(0))
    lost = 500.0
    for burst in range(3):
        del burst
        lost += 4 * 7 * through
        lost += 0.16 * lost * through
    assert start - a.hp(enemy) == pytest.approx(lost, rel=0.06)
