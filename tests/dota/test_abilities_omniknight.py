"""Omniknight's abilities in both patches, computed by hand from the tooltips and abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, make_immune, order, order_slot
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import river_scene
from tests.dota.scenes.statuses import SILENCED, SPELL_IMMUNE, STUNNED
from tests.dota.scenes.units import down_river, river, river_creep

IMMUNE = 1 << 7


def fight(core: Any, patch: str, enemy: str = "nevermore", behind: float = 200) -> Arena:
    """Return Omniknight at the centre, an ally behind, an enemy 200 in front; another enemy is far away."""
    return river_scene(core, patch, ("omniknight", "sniper"), (enemy, "viper"), {0: 0, 1: -behind, 5: 200, 6: 3000})


@pytest.mark.parametrize(("level", "amount"), [(1, 90), (2, 160), (3, 230), (4, 300)])
def test_purification_heals_and_damages_around(core: Any, patch: str, level: int, amount: float) -> None:
    """Tooltip: 90/160/230/300 healed, and as much pure damage to enemies within 260 of the target."""
    arena = fight(core, patch)
    mate, b = arena.unit(1), arena.unit(5)
    down_river(arena, b, 40)  # 240 from the ally
    small, beyond = river_creep(arena, -200, 250), river_creep(arena, -200, -275)
    hp_mate, hp, hp_creep = arena.hp(mate), arena.hp(b), arena.hp(small)
    own = arena.hp(arena.unit(0))
    cast(arena, "omniknight_purification", level, mate, wait=0.3)
    dealt = amount * arena.amp(arena.unit(0))
    assert arena.hp(mate) - hp_mate == pytest.approx(amount, rel=1e-3)
    assert hp - arena.hp(b) == pytest.approx(dealt, rel=1e-3)
    assert hp_creep - arena.hp(small) == pytest.approx(dealt, rel=1e-3)
    assert arena.hp(beyond) == hp_creep and arena.hp(arena.unit(0)) == own


def test_purification_on_himself_and_on_creeps(core: Any, patch: str) -> None:
    arena = fight(core, patch)
    a = arena.unit(0)
    hp = arena.hp(a)
    cast(arena, "omniknight_purification", 1, a, wait=0.4)
    assert arena.hp(a) - hp == pytest.approx(90, rel=1e-3)
    own_creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, 0, 0)
    down_river(arena, own_creep, -150, 100)
    arena.still(own_creep)
    arena.world.set_unit(own_creep, hp=100)
    arena.seconds(14)
    down_river(arena, own_creep, -150, 100)
    arena.world.set_unit(own_creep, hp=100)
    cast(arena, "omniknight_purification", 1, own_creep, wait=0.5)
    assert arena.hp(own_creep) == pytest.approx(190, abs=1)


def test_purification_and_spell_immunity(core: Any, patch: str) -> None:
    """7.20 lets it reach spell-immune allies. Immune enemies take nothing (patch 7.41 changes that)."""
    arena = fight(core, patch)
    mate, b = arena.unit(1), arena.unit(5)
    down_river(arena, b, 0)
    make_immune(arena, 1)
    make_immune(arena, 5)
    hp_mate, hp = arena.hp(mate), arena.hp(b)
    cast(arena, "omniknight_purification", 1, mate, wait=0.5)
    healed = 90 if patch == "7.21d" else 0
    assert arena.hp(mate) - hp_mate == pytest.approx(healed, abs=0.5)
    assert arena.hp(b) == hp


@pytest.mark.parametrize(("level", "strength", "regen"), [(1, 7, 8), (2, 14, 12), (3, 21, 16), (4, 28, 20)])
def test_heavenly_grace_strengthens(core: Any, level: int, strength: float, regen: float) -> None:
    """7.21b: 50 % status resistance, 7/14/21/28 strength, 8/12/16/20 health a second for 12 s."""
    arena = fight(core, "7.21d")
    mate = arena.unit(1)
    before = arena.world.unit(mate)
    cast(arena, "omniknight_repel", level, mate, wait=0.6)
    during = arena.world.unit(mate)
    assert during["str"] - before["str"] == pytest.approx(strength)
    assert during["hp_regen"] - before["hp_regen"] == pytest.approx(regen + 0.1 * strength, abs=1e-3)
    arena.seconds(11.2)
    assert arena.world.unit(mate)["str"] - before["str"] == pytest.approx(strength)
    arena.seconds(0.8)
    assert arena.world.unit(mate)["str"] == pytest.approx(before["str"])


def test_heavenly_grace_halves_stuns(core: Any) -> None:
    """50 % status resistance: Storm Bolt's 1.7 s at rank 1 become 0.85 s."""
    arena = fight(core, "7.21d", "sven")
    a = arena.unit(0)
    cast(arena, "omniknight_repel", 1, a, wait=0.4)
    slot = arena.teach(5, "sven_storm_bolt", 1)
    order_slot(arena, slot, a, hero=5)
    frames = 0
    for _ in range(90):
        arena.world.run_frames(1)
        frames += bool(arena.world.unit(a)["status"] & STUNNED)
    assert frames / 30 == pytest.approx(0.85, abs=0.05)


def test_heavenly_grace_dispels_strongly_and_cannot_be_dispelled(core: Any) -> None:
    """Tooltip: strong dispel, which ends a stun; KV: it is not dispellable itself."""
    arena = fight(core, "7.21d", "sven", behind=450)
    mate = arena.unit(1)
    before = arena.world.unit(mate)["str"]
    order(arena, "sven_storm_bolt", 4, mate, hero=5)
    arena.seconds(1.3)
    assert arena.world.unit(mate)["status"] & STUNNED
    cast(arena, "omniknight_repel", 1, mate, wait=0.7)
    assert not arena.world.unit(mate)["status"] & STUNNED
    arena.world.teach(5, "special_bonus_unique_sven_3", 1)  # Storm Bolt dispels
    arena.seconds(17)
    cast(arena, "omniknight_repel", 1, mate, wait=0.7)
    order(arena, "sven_storm_bolt", 4, mate, hero=5)
    arena.seconds(1.3)
    assert arena.world.unit(mate)["status"] & STUNNED and arena.world.unit(mate)["str"] == pytest.approx(before + 7)


@pytest.mark.parametrize(("level", "seconds"), [(1, 4), (4, 7)])
def test_repel_of_719_makes_spell_immune(core: Any, level: int, seconds: float) -> None:
    """7.19: spell immunity for 4/5/6/7 s, no magical damage meanwhile."""
    arena = fight(core, "7.19")
    mate = arena.unit(1)
    hp = arena.hp(mate)
    cast(arena, "omniknight_repel", level, mate, wait=0.5)
    assert arena.world.unit(mate)["status"] & SPELL_IMMUNE
    assert arena.world.damage(arena.unit(5), mate, 100, "magical") == 0 and arena.hp(mate) == hp
    arena.seconds(seconds - 0.4)
    assert arena.world.unit(mate)["status"] & SPELL_IMMUNE
    arena.seconds(0.5)
    assert not arena.world.unit(mate)["status"] & SPELL_IMMUNE


def test_repel_of_719_dispels_basically(core: Any) -> None:
    """Tooltip: basic dispel: a silence goes, a stun stays. Note: Repel itself is not purged."""
    arena = fight(core, "7.19", "death_prophet", behind=450)
    mate = arena.unit(1)
    cast(arena, "death_prophet_silence", 4, at=river(-700), wait=1, hero=5)
    assert arena.world.unit(mate)["status"] & SILENCED
    cast(arena, "omniknight_repel", 4, mate, wait=0.8)
    assert not arena.world.unit(mate)["status"] & SILENCED
    (repel,) = arena.modifiers(mate, "omniknight_repel")
    assert not repel["flags"] & 3


def test_repel_of_719_leaves_stuns(core: Any) -> None:
    arena = fight(core, "7.19", "sven", behind=450)
    mate = arena.unit(1)
    order(arena, "sven_storm_bolt", 4, mate, hero=5)
    arena.seconds(1.3)
    cast(arena, "omniknight_repel", 1, mate, wait=0.7)
    assert arena.world.unit(mate)["status"] & SPELL_IMMUNE and arena.world.unit(mate)["status"] & STUNNED


@pytest.mark.parametrize(("level", "talent", "slow"), [(1, False, 10), (4, False, 34), (4, True, 46)])
def test_degen_aura_slows_who_comes_near(core: Any, patch: str, level: int, talent: bool, slow: float) -> None:
    """Tooltip: 10/18/26/34 % slower movement and as much attack speed within 300; 12 more with the talent."""
    arena = fight(core, patch)
    b, beyond = arena.unit(5), arena.unit(6)
    down_river(arena, beyond, 320)
    before, far = arena.world.unit(b), arena.world.unit(beyond)
    if talent:
        arena.world.teach(0, "special_bonus_unique_omniknight_2", 1)
    arena.teach(0, "omniknight_degen_aura", level)
    arena.seconds(0.4)
    during = arena.world.unit(b)
    speed = before["move_speed"] - arena.base_speed("nevermore") * slow / 100
    assert during["move_speed"] == pytest.approx(speed, rel=1e-3)
    assert during["attack_speed"] == pytest.approx(before["attack_speed"] - slow, rel=1e-3)
    assert arena.world.unit(beyond)["move_speed"] == far["move_speed"]


def test_degen_aura_and_spell_immunity(core: Any, patch: str) -> None:
    """Note: spell-immune units are not slowed."""
    arena = fight(core, patch)
    b = arena.unit(5)
    before = arena.world.unit(b)["move_speed"]
    make_immune(arena, 5)
    arena.teach(0, "omniknight_degen_aura", 4)
    arena.seconds(0.4)
    assert arena.world.unit(b)["move_speed"] == before


@pytest.mark.parametrize(("level", "seconds"), [(1, 6), (2, 7), (3, 8)])
def test_guardian_angel_stops_physical_damage(core: Any, patch: str, level: int, seconds: float) -> None:
    """Tooltip: immunity to physical damage for 6/7/8 s, of attacks and abilities; magical damage comes through."""
    arena = fight(core, patch)
    b, mate = arena.unit(5), arena.unit(1)
    cast(arena, "omniknight_guardian_angel", level, wait=0.5)
    for u in (mate, arena.unit(0)):
        hp = arena.hp(u)
        assert arena.world.damage(b, u, 100) == 0
        assert arena.world.damage(b, u, 100, attack=True) == 0 and arena.hp(u) == hp
        assert arena.world.damage(b, u, 100, "magical") == pytest.approx(100 * arena.magic(u), rel=1e-3)
        assert arena.world.damage(b, u, 100, "pure") == pytest.approx(100)
    arena.seconds(seconds - 0.4)
    assert arena.world.damage(b, mate, 100) == 0
    arena.seconds(0.5)
    assert arena.world.damage(b, mate, 100) > 0


@pytest.mark.parametrize(("patch", "radius"), [("7.21d", 1200), ("7.19", 600)])
def test_guardian_angel_covers_allies_around(core: Any, patch: str, radius: float) -> None:
    """7.20: 1200 instead of 600; creeps too, spell-immune allies too (notes)."""
    arena = fight(core, patch)
    mate, b = arena.unit(1), arena.unit(5)
    own_creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, 0, 0)
    down_river(arena, own_creep, -100, 100)
    arena.still(own_creep)
    down_river(arena, mate, radius - 12)
    make_immune(arena, 1)
    down_river(arena, mate, radius - 12)
    cast(arena, "omniknight_guardian_angel", 1, wait=0.5)
    assert arena.world.damage(b, mate, 100) == 0 and arena.world.damage(b, own_creep, 100) == 0
    arena = fight(core, patch)
    down_river(arena, arena.unit(1), radius + 12)
    cast(arena, "omniknight_guardian_angel", 1, wait=0.5)
    assert arena.world.damage(arena.unit(5), arena.unit(1), 100) > 0


def test_guardian_angel_can_be_dispelled(core: Any, patch: str) -> None:
    """Note: it can be purged."""
    arena = fight(core, patch)
    cast(arena, "omniknight_guardian_angel", 1, wait=0.5)
    for u in (arena.unit(0), arena.unit(1)):
        (angel,) = arena.modifiers(u, "omniknight_guardian_angel")
        assert angel["flags"] & 1


@pytest.mark.parametrize(("level", "seconds"), [(1, 8), (2, 9), (3, 10)])
def test_guardian_angel_with_the_scepter(core: Any, patch: str, level: int, seconds: float) -> None:
    """Scepter: 8/9/10 s, everywhere, and buildings."""
    arena = fight(core, patch)
    b, mate = arena.unit(5), arena.unit(1)
    give(arena, "ultimate_scepter")
    arena.world.set_unit(mate, x=-5000, y=-4500)
    (tower,) = [u["index"] for u in arena.world.units("tower") if (u["team"], u["tier"], u["lane"]) == (0, 1, 1)]
    hp = arena.hp(tower)
    cast(arena, "omniknight_guardian_angel", level, wait=0.5)
    assert arena.world.damage(b, mate, 100) == 0
    assert arena.world.damage(b, tower, 100, attack=True) == 0 and arena.hp(tower) == hp
    arena.seconds(seconds - 0.4)
    assert arena.world.damage(b, mate, 100) == 0
    arena.seconds(0.5)
    assert arena.world.damage(b, mate, 100) > 0
    assert arena.world.damage(b, tower, 100, attack=True) > 0
