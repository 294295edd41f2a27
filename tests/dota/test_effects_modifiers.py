"""Rules common to all modifiers: refreshing, stacking, dispelling, immunity, death, expiry, determinism."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import ROOTED, SPELL_IMMUNE, STUNNED


@pytest.fixture
def arena(core: Any) -> Arena:
    return duel(core, "crystal_maiden", ally="crystal_maiden", second="sven", behind=200)


def nova(arena: Arena, hero: int, level: int = 4) -> None:
    slot = arena.teach(hero, "crystal_maiden_crystal_nova", level)
    arena.world.order(arena.unit(hero), "cast_point", x=CENTRE[0] + 300, y=CENTRE[1], slot=slot)
    arena.seconds(0.6)


def test_the_same_source_refreshes_and_another_adds(arena: Arena) -> None:
    b = arena.unit(5)
    speed = arena.world.unit(b)["move_speed"]
    nova(arena, 0, 1)
    first = arena.modifiers(b, "crystal_maiden_crystal_nova")
    assert len(first) == 1
    arena.world.set_unit(b, hp=arena.world.unit(b)["max_hp"])
    nova(arena, 1, 1)
    both = arena.modifiers(b, "crystal_maiden_crystal_nova")
    assert sorted(m["source"] for m in both) == sorted([arena.unit(0), arena.unit(1)])
    slow = 0.20 * arena.base_speed("nevermore")
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed - 2 * slow, rel=1e-4)
    arena.seconds(11)
    arena.world.set_unit(b, hp=arena.world.unit(b)["max_hp"])
    nova(arena, 0, 1)
    arena.seconds(2)
    left = arena.modifiers(b, "crystal_maiden_crystal_nova")[0]["left"]
    arena.world.set_unit(b, hp=arena.world.unit(b)["max_hp"])
    arena.seconds(9)
    nova(arena, 0, 1)
    assert len(arena.modifiers(b, "crystal_maiden_crystal_nova")) == 1
    assert arena.modifiers(b, "crystal_maiden_crystal_nova")[0]["left"] > left


def test_spell_immunity_dispels_and_keeps_out(arena: Arena) -> None:
    b = arena.unit(5)
    arena.world.give_item(5, "item_black_king_bar")
    arena.seconds(0.2)
    speed = arena.world.unit(b)["move_speed"]
    nova(arena, 0)
    assert arena.world.unit(b)["move_speed"] < speed
    arena.world.order(b, "cast", slot=arena.world.ability(5, "item_black_king_bar")["slot"])
    arena.seconds(0.2)
    assert arena.world.unit(b)["status"] & SPELL_IMMUNE
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)
    arena.still(b)
    hp = arena.hp(b)
    nova(arena, 1)
    assert arena.hp(b) == hp
    assert arena.world.unit(b)["move_speed"] == pytest.approx(speed)
    bite = arena.teach(0, "crystal_maiden_frostbite", 1)
    arena.world.order(arena.unit(0), "cast_unit", target=b, slot=bite)
    arena.seconds(0.6)
    assert not arena.world.unit(b)["status"] & ROOTED


def test_status_resistance_shortens(arena: Arena) -> None:
    b = arena.unit(5)
    arena.world.give_item(5, "item_satanic")
    arena.seconds(0.2)
    bite = arena.teach(0, "crystal_maiden_frostbite", 4)
    arena.world.order(arena.unit(0), "cast_unit", target=b, slot=bite)
    arena.seconds(0.4)
    left = arena.modifiers(b, "crystal_maiden_frostbite")[0]["left"]
    assert left == pytest.approx(3 * 0.70, abs=0.15)


def test_death_clears_and_passives_come_back(arena: Arena) -> None:
    b = arena.unit(5)
    arena.teach(5, "nevermore_dark_lord", 1)
    bite = arena.teach(0, "crystal_maiden_frostbite", 4)
    arena.world.order(arena.unit(0), "cast_unit", target=b, slot=bite)
    arena.seconds(0.5)
    arena.world.kill(b, arena.unit(0))
    assert not arena.modifiers(b, "crystal_maiden")
    arena.seconds(8)
    assert arena.world.unit(b)["alive"]
    assert arena.modifiers(b, "nevermore_dark_lord")
    assert arena.world.unit(b)["status"] == 0


def test_a_dead_carriers_aura_is_gone(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    armor = arena.world.unit(a)["armor"]
    arena.teach(5, "nevermore_dark_lord", 1)
    arena.seconds(0.3)
    assert arena.world.unit(a)["armor"] == pytest.approx(armor - 4)
    arena.world.kill(b, a)
    arena.seconds(0.7)
    assert arena.world.unit(a)["armor"] == pytest.approx(armor)


def test_damage_over_time_kills_and_credits_the_caster(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    bite = arena.teach(0, "crystal_maiden_frostbite", 1)
    arena.world.set_unit(b, hp=60)
    arena.world.order(a, "cast_unit", target=b, slot=bite)
    arena.seconds(2.2)
    assert not arena.world.unit(b)["alive"]
    assert arena.world.hero(0)["kills"] == 1


def test_casting_needs_mana_rank_cooldown_and_a_free_mouth(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)

    def castable() -> bool:
        return bool(arena.world.ability(0, "crystal_maiden_frostbite")["castable"])

    arena.world.teach(0, "crystal_maiden_frostbite", 0)
    assert not castable()
    slot = arena.teach(0, "crystal_maiden_frostbite", 1)
    assert castable()
    arena.world.set_unit(a, mana=139)
    assert not castable()
    arena.world.set_unit(a, mana=200)
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(0.5)
    arena.world.set_unit(a, mana=200)
    assert not castable()
    arena.seconds(9)
    assert castable()
    bolt = arena.teach(6, "sven_storm_bolt", 1)
    arena.place(arena.unit(6), 400, 100, math.pi)
    arena.world.order(arena.unit(6), "cast_unit", target=a, slot=bolt)
    arena.seconds(0.9)
    assert arena.world.unit(a)["status"] & STUNNED
    assert not castable()


def test_targets_of_the_wrong_kind_are_refused(arena: Arena) -> None:
    """An enemy-targeted spell cannot be ordered on an ally, a tower, or an unseen unit."""
    a, mate = arena.unit(0), arena.unit(1)
    slot = arena.teach(0, "crystal_maiden_frostbite", 1)
    tower = next(u["index"] for u in arena.world.units("tower") if u["team"] == 1)
    for target in (mate, tower):
        mana = arena.world.unit(a)["mana"]
        arena.world.order(a, "cast_unit", target=target, slot=slot)
        arena.seconds(0.6)
        assert arena.world.unit(a)["mana"] == pytest.approx(mana)
        assert arena.world.ability(0, "crystal_maiden_frostbite")["castable"]


def test_the_pool_gives_slots_back(arena: Arena) -> None:
    """Far more modifiers come and go than the pool holds."""
    b = arena.unit(5)
    arena.world.set_unit(b, extra_hp=1e6)
    arena.seconds(0.2)
    arena.world.set_unit(b, hp=1e6)
    slot = arena.teach(0, "crystal_maiden_frostbite", 4)
    for _ in range(600):
        arena.world.set_unit(arena.unit(0), mana=500)
        arena.world.order(arena.unit(0), "cast_unit", target=b, slot=slot)
        arena.seconds(7)
    assert arena.hp(b) < 1e6 - 100000
    assert len(arena.world.modifiers(b)) <= 6


def test_the_same_seed_gives_the_same_game(new_world: Any, data: dict[str, Any]) -> None:
    def play(seed: int) -> list[int]:
        arena = Arena(new_world(("sniper", "crystal_maiden"), ("viper", "sven"), seed=seed), data)
        arena.teach(0, "sniper_headshot", 4)
        field = arena.teach(1, "crystal_maiden_freezing_field", 3)
        arena.teach(5, "viper_corrosive_skin", 4)
        arena.teach(6, "sven_great_cleave", 4)
        for k, hero in enumerate((0, 1, 5, 6)):
            arena.place(arena.unit(hero), 250 * k - 400, 0)
            arena.world.set_unit(arena.unit(hero), attack_ready=0, extra_hp=5000)
            arena.world.set_unit(arena.unit(hero), hp=4000)
        arena.world.order(arena.unit(1), "cast", slot=field)
        arena.world.order(arena.unit(0), "attack", arena.unit(5))
        arena.world.order(arena.unit(5), "attack", arena.unit(0))
        hashes = []
        for _ in range(60):
            arena.world.step()
            hashes.append(arena.world.hash())
        return hashes

    assert play(3) == play(3)
    assert play(3) != play(4)


def test_snapshot_and_restore_in_the_middle_of_effects(arena: Arena) -> None:
    b = arena.unit(5)
    cast(arena, "crystal_maiden_freezing_field", 1, wait=2)
    snapshot = arena.world.snapshot()
    arena.seconds(3)
    after, hp = arena.world.hash(), arena.hp(b)
    arena.world.restore(snapshot)
    arena.seconds(3)
    assert arena.world.hash() == after
    assert arena.hp(b) == hp
