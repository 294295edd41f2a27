"""Gyrocopter by his tooltips: Rocket Barrage, Homing Missile, Flak Cannon, Call Down, Side Gunner in both patches."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give, hold, order, use
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import INVISIBLE, STUNNED
from tests.dota.scenes.units import set_health

BARRAGE, MISSILE, FLAK = "gyrocopter_rocket_barrage", "gyrocopter_homing_missile", "gyrocopter_flak_cannon"


@pytest.mark.parametrize("hidden", [False, True])
def test_rockets_need_sight_of_their_target(core: Any, hidden: bool) -> None:
    """Note: Rocket Barrage cannot hit units Gyrocopter has no vision over."""
    arena = duel(core, "gyrocopter")
    enemy = arena.unit(5)
    if hidden:
        use(arena, give(arena, "invis_sword", 5), hero=5)
        arena.seconds(1)
        assert arena.world.unit(enemy)["status"] & INVISIBLE
    hp = arena.hp(enemy)
    cast(arena, BARRAGE, 1, wait=1)
    assert (arena.hp(enemy) < hp) != hidden


def test_thirty_rockets_share_the_enemies_near(core: Any) -> None:
    """10 a second for 3 s, 7 damage each at rank 1, at random enemies within 400."""
    arena = duel(core, "gyrocopter", away=2000)
    near, other, far = arena.dummy(200, 0), arena.dummy(-200, 100), arena.dummy(0, 430)
    cast(arena, BARRAGE, 1, wait=3.4)
    each = 7 * arena.amp(arena.unit(0)) * arena.magic(near)
    hits = [(5000 - arena.hp(u)) / each for u in (near, other, far)]
    assert sum(hits) == pytest.approx(30, abs=0.01)
    assert min(hits[:2]) > 5 and hits[2] == 0


def test_a_dispel_ends_the_barrage(core: Any) -> None:
    """`SpellDispellableType` yes: a Nullifier takes it."""
    arena = duel(core, "gyrocopter")
    enemy = arena.unit(5)
    slot = give(arena, "nullifier", 5)
    arena.world.order(enemy, "cast_unit", target=arena.unit(0), slot=slot)
    cast(arena, BARRAGE, 1, wait=0.8)
    assert arena.modifiers(arena.unit(0), "item_nullifier")
    hp = arena.hp(enemy)
    arena.seconds(1)
    assert arena.hp(enemy) == hp


def missile_duel(core: Any, away: float = 300, **more: Any) -> tuple[Arena, int]:
    """Return a scene with a missile on its way to the first enemy, and the missile."""
    arena = duel(core, "gyrocopter", away=away, **more)
    set_health(arena, arena.unit(5), hp=3000)
    cast(arena, MISSILE, 1, arena.unit(5), wait=0.3)
    (missile,) = arena.world.units("summon")
    return arena, missile["index"]


@pytest.mark.parametrize(("heroes", "towers"), [(3, 0), (0, 6), (1, 4), (2, 2)])
def test_towers_do_half_damage_to_a_missile(core: Any, heroes: int, towers: int) -> None:
    """Note and `tower_hits_to_kill_tooltip`: 3 attacks of heroes, 6 of towers, or a mixture."""
    arena, missile = missile_duel(core)
    tower = next(u["index"] for u in arena.world.units("tower") if u["team"] == 1)
    for attacker in [arena.unit(5)] * heroes + [tower] * towers:
        assert arena.world.units("summon")
        arena.world.damage(attacker, missile, 10, attack=True)
    assert not arena.world.units("summon")


def test_spells_do_not_hurt_a_missile(core: Any) -> None:
    """It counts attacks: enemies must strike it."""
    arena, missile = missile_duel(core)
    arena.world.damage(arena.unit(5), missile, 900, "magical")
    assert arena.world.units("summon")


def test_a_missile_follows_the_invisible(core: Any) -> None:
    """Note: it follows and hits invisible units."""
    arena, _ = missile_duel(core, away=700)
    enemy = arena.unit(5)
    use(arena, give(arena, "invis_sword", 5), hero=5)
    arena.seconds(1)
    assert arena.world.unit(enemy)["status"] & INVISIBLE
    hp = arena.hp(enemy)
    arena.seconds(4)
    assert arena.hp(enemy) < hp


def test_a_missile_gains_speed(core: Any) -> None:
    """It waits 3 s and flies at 500, and 20 more after each second: 976 units in 1.89 s of 500 t + 10 t^2."""
    arena = duel(core, "gyrocopter", away=1000)
    enemy = arena.unit(5)
    order(arena, MISSILE, 1, enemy)
    while not arena.world.units("summon"):
        arena.world.run_frames(1)
    begun = arena.world.time
    while not arena.world.unit(enemy)["status"] & STUNNED:
        arena.world.run_frames(1)
    assert arena.world.time - begun == pytest.approx(3 + 1.88, abs=0.1)


def test_a_missile_does_nothing_to_the_spell_immune(core: Any) -> None:
    arena, _ = missile_duel(core)
    enemy = arena.unit(5)
    arena.seconds(2.2)
    use(arena, give(arena, "black_king_bar", 5), hero=5)
    hp = arena.hp(enemy)
    arena.seconds(2)
    assert arena.hp(enemy) == hp and not arena.world.units("summon")


def test_only_the_main_target_of_flak_takes_criticals(core: Any) -> None:
    """Tooltip: attack bonuses such as Critical Strike are for the main target."""
    arena = duel(core, "gyrocopter", changes=(("item_greater_crit", "crit_chance", 100),))
    main, other = arena.unit(5), arena.dummy(0, 300, hp=20000)
    give(arena, "greater_crit")
    set_health(arena, main)
    hp = arena.hp(main)
    cast(arena, FLAK, 1, wait=0.2)
    attack_for(arena, arena.unit(0), main, seconds=0.7)
    me = arena.world.unit(arena.unit(0))

    def through(unit: int) -> float:
        armor = arena.world.unit(unit)["armor"]
        return physical_share(armor)

    plain = [me["dmg_min"] + me["dmg_bonus"], me["dmg_max"] + me["dmg_bonus"]]
    struck = (20000 - arena.hp(other)) / through(other)
    assert plain[0] - 1 <= struck <= plain[1] + 1
    assert (hp - arena.hp(main)) / through(main) > 2 * plain[0]


def test_flak_goes_off_when_he_attacks_a_building(core: Any) -> None:
    """Tooltip: his attacks hit all enemies around, whatever they are aimed at."""
    arena = duel(core, "gyrocopter", away=3000)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1)
    me = arena.unit(0)
    set_health(arena, me)
    creep = arena.dummy(tower["x"] - 300 - CENTRE[0], tower["y"] - 300 - CENTRE[1])
    arena.world.set_unit(me, x=tower["x"] - 350, y=tower["y"])
    cast(arena, FLAK, 1, wait=0.2)
    attack_for(arena, me, tower["index"], seconds=1.2)
    assert arena.hp(tower["index"]) < tower["hp"] and arena.hp(creep) < 5000


def test_flak_lasts_15_seconds_or_its_attacks(core: Any) -> None:
    """Rank 1: 3 attacks. The range of the attack itself is the same as before."""
    arena = duel(core, "gyrocopter")
    me = arena.unit(0)
    reach = arena.world.unit(me)["attack_range"]
    cast(arena, FLAK, 1, wait=0.2)
    assert arena.world.unit(me)["attack_range"] == reach
    arena.seconds(14.5)
    assert arena.modifiers(me, FLAK)
    arena.seconds(0.6)
    assert not arena.modifiers(me, FLAK)


@pytest.mark.parametrize(("scepter", "level"), [(True, 1), (True, 0), (False, 1)])
def test_the_side_gunner_attacks_by_himself(core: Any, patch: str, scepter: bool, level: int) -> None:
    """Scepter: a random enemy unit within 600 is attacked every 1.1 s. His numbers are Flak Cannon's, whose rank he
    needs (public wikis: he is a part of it)."""
    arena = duel(core, "gyrocopter", patch, away=2000)
    near, far = arena.dummy(580, 0, hp=20000), arena.dummy(0, 640, hp=20000)
    if scepter:
        give(arena, "ultimate_scepter")
    arena.world.teach(0, FLAK, level)
    hold(arena, arena.unit(0))
    arena.seconds(1)
    hp, hits = arena.hp(near), 0
    for _ in range(round(11 / STEP)):
        arena.world.step(1)
        hits += arena.hp(near) < hp
        hp = arena.hp(near)
    assert hits == pytest.approx(10 if scepter and level else 0, abs=1 if scepter and level else 0)
    assert arena.hp(far) == 20000


def test_the_side_gunner_needs_sight_and_picks_at_random(core: Any) -> None:
    arena = duel(core, "gyrocopter", away=2000)
    give(arena, "ultimate_scepter")
    arena.world.teach(0, FLAK, 1)
    hold(arena, arena.unit(0))
    crowd = [arena.dummy(200, 150 * i, hp=20000) for i in (-1, 0, 1)]
    hidden = arena.unit(5)
    arena.place(hidden, 300, 300)
    use(arena, give(arena, "invis_sword", 5), hero=5)
    arena.seconds(0.5)
    hp = arena.hp(hidden)
    arena.seconds(11)
    assert all(arena.hp(u) < 20000 for u in crowd) and arena.hp(hidden) == hp


def test_two_missiles_of_call_down(core: Any, patch: str) -> None:
    """After 2 s 150 damage and 30 % slow for 2 s, after 4 s 100 and 60 % for 4 s, to those within 600."""
    arena = duel(core, "gyrocopter", patch, away=500)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    far = arena.dummy(-140, 0)
    hp, speed = arena.hp(enemy), arena.world.unit(enemy)["move_speed"]
    through = arena.amp(arena.unit(0)) * arena.magic(enemy)

    def state() -> tuple[float, float]:
        unit = arena.world.unit(enemy)
        return (hp - unit["hp"]) / through, (speed - unit["move_speed"]) / arena.base_speed("nevermore")

    cast(arena, "gyrocopter_call_down", 1, at=(500, 0), wait=0.3 + 1.8)
    assert state() == pytest.approx((0, 0), abs=1e-3)
    arena.seconds(0.4)
    assert state() == pytest.approx((150, 0.3), abs=0.2)
    arena.seconds(2)
    assert state() == pytest.approx((250, 0.6), abs=0.2)
    arena.seconds(3.6)
    assert state()[1] == pytest.approx(0.6, abs=0.01)
    arena.seconds(0.5)
    assert state() == pytest.approx((250, 0), abs=0.2)
    assert arena.hp(far) == 5000
