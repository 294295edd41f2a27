"""Death Prophet by her tooltips: Crypt Swarm, Silence, Spirit Siphon and Exorcism in both patches."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, hold, use
from tests.dota.scenes.arena import STEP, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.units import set_health

SIPHON, EXORCISM = "death_prophet_spirit_siphon", "death_prophet_exorcism"
SLOW = {"7.21d": "movement_steal", "7.19": "movement_slow"}


def siphon_duel(core: Any, patch: str = "7.21d", level: int = 2, **more: Any) -> tuple[Arena, float, float]:
    """Return a scene with a siphon on the first enemy, and the speeds of both before it."""
    arena = duel(core, "death_prophet", patch, **more)
    arena.world.teach(0, SIPHON, level)
    arena.seconds(62 * level)
    set_health(arena, arena.unit(0), arena.unit(5))
    speeds = [arena.world.unit(arena.unit(i))["move_speed"] for i in (0, 5)]
    cast(arena, SIPHON, level, arena.unit(5), wait=0.6)
    return arena, speeds[0], speeds[1]


@pytest.mark.parametrize("end", ["distance", "immunity", "death", "time"])
def test_the_stolen_speed_lasts_as_long_as_the_link(core: Any, patch: str, end: str) -> None:
    """Tooltip: the link slows (7.21d: steals the speed) while it drains; it breaks beyond 500 + 250."""
    arena, own, theirs = siphon_duel(core, patch)
    me, enemy = arena.unit(0), arena.unit(5)
    slow = arena.special(SIPHON, SLOW[patch])[1] / 100
    lost = theirs - arena.world.unit(enemy)["move_speed"]
    assert lost == pytest.approx(slow * arena.base_speed("nevermore"), abs=0.1)
    gain = slow * arena.base_speed("death_prophet") if patch == "7.21d" else 0
    assert arena.world.unit(me)["move_speed"] - own == pytest.approx(gain, abs=0.1)
    if end == "distance":
        arena.place(enemy, 770, 0)
    elif end == "immunity":
        use(arena, give(arena, "black_king_bar", 5), hero=5)
    elif end == "death":
        arena.world.kill(me, -1)
    arena.seconds(6 if end == "time" else 0.5)
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(theirs, abs=0.1)
    if end != "death":
        assert arena.world.unit(me)["move_speed"] == pytest.approx(own, abs=0.1)


def test_a_siphon_reaches_the_buffer_beyond_its_range(core: Any) -> None:
    """`siphon_buffer` is 250: at 730 the link still drains."""
    arena, _, _ = siphon_duel(core)
    enemy = arena.unit(5)
    arena.place(enemy, 730, 0)
    hp = arena.hp(enemy)
    arena.seconds(1)
    assert arena.hp(enemy) < hp - 10


def test_each_siphon_steals_speed(core: Any) -> None:
    """Rank 2: 6 % from each of two enemies."""
    arena, own, _ = siphon_duel(core)
    arena.place(arena.unit(6), 300, 200)
    cast(arena, SIPHON, 2, arena.unit(6), wait=0.6)
    gained = arena.world.unit(arena.unit(0))["move_speed"] - own
    assert gained == pytest.approx(2 * 0.06 * arena.base_speed("death_prophet"), abs=0.1)
    arena.place(arena.unit(5), 1500, 0)
    arena.seconds(0.5)
    gained = arena.world.unit(arena.unit(0))["move_speed"] - own
    assert gained == pytest.approx(0.06 * arena.base_speed("death_prophet"), abs=0.1)


def test_siphon_charges_return_one_by_one(core: Any) -> None:
    """Rank 4: four charges, one every 36 s; a cast takes one."""
    arena = duel(core, "death_prophet")
    arena.teach(0, SIPHON, 4)
    arena.seconds(36 * 4 + 1)
    assert arena.world.ability(0, SIPHON)["charges"] == 4
    cast(arena, SIPHON, 4, arena.unit(5), wait=0.4)
    assert arena.world.ability(0, SIPHON)["charges"] == 3
    arena.seconds(35)
    assert arena.world.ability(0, SIPHON)["charges"] == 3
    arena.seconds(1.2)
    assert arena.world.ability(0, SIPHON)["charges"] == 4


def test_crypt_swarm_reaches_1110(core: Any) -> None:
    """Note: 810 of flight and the end radius of 300."""
    arena = duel(core, "death_prophet", away=2000)
    near, far, beside = arena.dummy(1095, 0), arena.dummy(1125, 0), arena.dummy(100, 160)
    cast(arena, "death_prophet_carrion_swarm", 1, at=(500, 0), wait=1.6)
    taken = 75 * arena.amp(arena.unit(0)) * arena.magic(near)
    assert 5000 - arena.hp(near) == pytest.approx(taken, rel=1e-3)
    assert (arena.hp(far), arena.hp(beside)) == (5000, 5000)


@pytest.mark.parametrize(("patch", "least", "most"), [("7.21d", 59, 64), ("7.19", 56, 61)])
def test_damage_block_does_not_hold_spirits_off(core: Any, patch: str, least: float, most: float) -> None:
    """Note: each does its physical damage, whatever its target blocks of attacks (patch 7.20e: 59 to 64)."""
    arena = duel(core, "death_prophet", patch, enemy="sven", changes=(("item_vanguard", "block_chance", 100),))
    enemy = arena.unit(5)
    give(arena, "vanguard", 5)
    set_health(arena, enemy)
    armor, rules = arena.world.unit(enemy)["armor"], arena.data["rules"]["rules"]["armor"]
    through = (1 - rules["a"] * armor / (rules["b"] + rules["c"] * armor)) * arena.amp(arena.unit(0))
    hp = arena.hp(enemy)
    cast(arena, EXORCISM, 1, wait=0.6)
    hits = []
    for _ in range(int(4 / STEP)):
        arena.world.step(1)
        if arena.hp(enemy) < hp:
            hits.append(hp - arena.hp(enemy))
        hp = arena.hp(enemy)
    assert len(hits) > 3
    assert least * through - 0.01 <= min(hits) <= most * through + 0.01


@pytest.mark.parametrize("reach", [650, 760])
def test_spirits_go_for_what_is_within_700(core: Any, reach: float) -> None:
    """Note: the radius is that of acquiring targets around her."""
    arena = duel(core, "death_prophet", away=reach)
    enemy = arena.unit(5)
    set_health(arena, enemy)
    hp = arena.hp(enemy)
    cast(arena, EXORCISM, 1, wait=4)
    assert (arena.hp(enemy) < hp) == (reach < 700)


def test_a_chased_enemy_is_followed_until_1200(core: Any) -> None:
    """`give_up_distance`: a spirit on its way turns round when its prey is farther from her."""
    lost = []
    for away in (1150, 1300):
        arena = duel(core, "death_prophet", away=600)
        enemy = arena.unit(5)
        set_health(arena, enemy)
        hp = arena.hp(enemy)
        cast(arena, EXORCISM, 1, wait=1.3)
        assert arena.hp(enemy) == hp
        arena.place(enemy, away, 0)
        arena.seconds(2)
        lost.append(hp - arena.hp(enemy))
    assert lost[0] > 0 and lost[1] == 0


def test_spirits_strike_towers(core: Any) -> None:
    """Tooltip: nearby enemy units and structures."""
    arena = duel(core, "death_prophet", away=3000)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1)
    me = arena.unit(0)
    set_health(arena, me)
    arena.world.set_unit(me, x=tower["x"] - 400, y=tower["y"] - 400)
    hold(arena, me)
    arena.seconds(0.3)
    cast(arena, EXORCISM, 1, wait=5)
    assert arena.hp(tower["index"]) < tower["hp"] - 100


def test_no_spirits_and_no_healing_after_her_death(core: Any) -> None:
    """The spirits are hers: they end with her, and heal at their time's end only."""
    arena = duel(core, "death_prophet")
    enemy = arena.unit(5)
    set_health(arena, enemy)
    cast(arena, EXORCISM, 1, wait=4)
    arena.world.kill(arena.unit(0), -1)
    arena.seconds(0.5)
    hp = arena.hp(enemy)
    arena.seconds(3)
    assert arena.hp(enemy) == hp


def test_exorcisms_haste_cannot_be_slowed(core: Any) -> None:
    """Talent: she moves at 550, whatever slows her; Crystal Nova's 20 % does nothing."""
    arena = duel(core, "death_prophet", enemy="crystal_maiden")
    me = arena.unit(0)
    arena.world.teach(0, "special_bonus_unique_death_prophet_4", 1)
    cast(arena, EXORCISM, 1)
    cast(arena, "crystal_maiden_crystal_nova", 1, at=(0, 0), wait=0.6, hero=5)
    assert arena.modifiers(me, "crystal_maiden_crystal_nova")
    assert arena.world.unit(me)["move_speed"] == 550


def test_more_spirits_with_the_talent(core: Any) -> None:
    """8 more: at rank 1 16 in all, seen as the damage to a crowd in the same time."""
    lost = []
    for taken in (0, 1):
        arena = duel(core, "death_prophet", away=300)
        arena.world.teach(0, "special_bonus_unique_death_prophet", taken)
        enemy = arena.unit(5)
        set_health(arena, enemy, hp=20000)
        cast(arena, EXORCISM, 1, wait=7)
        hp = arena.hp(enemy)
        arena.seconds(10)
        lost.append(hp - arena.hp(enemy))
    assert lost[1] / lost[0] == pytest.approx(2, rel=0.15)
