"""Riki by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/riki.md)."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import make_immune, order, until_cast
from tests.dota.scenes.arena import CENTRE, FRAME
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import damage_range, physical_share
from tests.dota.scenes.statuses import BANISHED, INVISIBLE
from tests.dota.scenes.units import set_health


def test_smoke_silences_without_muting(core: Any) -> None:
    """Note: active items still work."""
    arena = duel(core, "riki")
    arena.teach(5, "nevermore_shadowraze1", 1)
    assert arena.world.give_item(5, "item_faerie_fire", 1)
    order(arena, "riki_smoke_screen", 1, at=(300, 0))
    arena.seconds(0.6)
    assert not arena.world.ability(5, "nevermore_shadowraze1")["castable"]
    assert arena.world.ability(5, "item_faerie_fire")["castable"]


def test_smoke_lingers_for_half_a_second(core: Any) -> None:
    """Public wikis."""
    arena = duel(core, "riki")
    target = arena.unit(5)
    order(arena, "riki_smoke_screen", 4, at=(300, 0))
    arena.seconds(1)
    arena.place(target, 1500, 0)
    arena.seconds(0.3)
    assert arena.modifiers(target, "riki_smoke_screen")
    arena.seconds(0.35)
    assert not arena.modifiers(target, "riki_smoke_screen")


@pytest.mark.parametrize(("patch", "rank", "bonus"), [("7.21d", 1, 75), ("7.21d", 4, 120), ("7.19", 4, 100)])
def test_blink_strike_damages_then_backstabs(core: Any, patch: str, rank: int, bonus: int) -> None:
    """Notes: its damage comes before the next attack, which is a backstab. He attacks by himself (public wikis): his
    attack and 0.4 of his agility at rank 1 of Cloak and Dagger."""
    arena = duel(core, "riki", patch=patch)
    arena.place(arena.unit(5), 2500, 400)
    arena.teach(0, "riki_permanent_invisibility", 1)
    riki, target = arena.unit(0), arena.dummy(400, 0)
    order(arena, "riki_blink_strike", rank, target)
    arena.world.set_unit(riki, attack_ready=0)
    until_cast(arena, "riki_blink_strike")
    first = 5000 - arena.hp(target)
    assert first == pytest.approx(bonus * arena.amp(riki) * arena.magic(target), rel=1e-4)
    assert arena.world.unit(riki)["x"] < arena.world.unit(target)["x"]  # it faces away from him
    for _ in range(30):
        arena.world.run_frames(1)
        if 5000 - arena.hp(target) > first + 1:
            break
    u = arena.world.unit(riki)
    share = physical_share(arena.world.unit(target)["armor"])
    low, high = (share * (damage + 0.4 * u["agi"]) for damage in damage_range(arena, riki))
    assert low - 1 <= 5000 - arena.hp(target) - first <= high + 1


def test_blink_strike_to_an_ally_does_no_damage(core: Any) -> None:
    arena = duel(core, "riki")
    riki, ally = arena.unit(0), arena.unit(1)
    arena.place(ally, -400, 0, 0.0)
    hp = arena.hp(ally)
    order(arena, "riki_blink_strike", 1, ally)
    arena.seconds(0.8)
    assert arena.world.unit(riki)["x"] == pytest.approx(CENTRE[0] - 400 - 48, abs=20)
    assert arena.hp(ally) == hp


def test_blink_strike_at_the_immune(core: Any, patch: str) -> None:
    """Patch 7.16: "riki_blink_strike" can be cast on them; its damage is magical."""
    arena = duel(core, "riki", patch=patch)
    riki, target = arena.unit(0), arena.unit(5)
    make_immune(arena, 5)
    hp = arena.hp(target)
    order(arena, "riki_blink_strike", 4, target)
    arena.seconds(0.6)
    there = (arena.world.unit(target)["x"], arena.world.unit(target)["y"])
    assert math.dist((arena.world.unit(riki)["x"], arena.world.unit(riki)["y"]), there) < 100
    assert arena.hp(target) == hp


def test_blink_strike_evades_no_projectiles(core: Any) -> None:
    """Public wikis."""
    arena = duel(core, "riki", enemy="sven")
    riki = arena.unit(0)
    arena.place(arena.unit(1), -300, 0)
    arena.place(arena.unit(5), 600, 0, math.pi)
    hp = arena.hp(riki)
    arena.teach(0, "riki_blink_strike", 1)
    order(arena, "sven_storm_bolt", 1, riki, hero=5)
    until_cast(arena, "sven_storm_bolt", hero=5)
    order(arena, "riki_blink_strike", 1, arena.unit(1))
    arena.seconds(1.5)
    assert hp - arena.hp(riki) > 40


def test_backstab_cannot_be_evaded(core: Any) -> None:
    """Note. Blinded by an enemy's Smoke Screen, seven of ten attacks miss; what his agility adds always hits."""
    arena = duel(core, "riki", enemy="riki", away=500)
    arena.teach(0, "riki_permanent_invisibility", 4)
    riki, target = arena.unit(0), arena.dummy(120, 0, hp=60000)
    order(arena, "riki_smoke_screen", 4, at=(0, 0), hero=5)
    arena.seconds(0.8)
    arena.world.set_unit(riki, attack_ready=0, extra_as=500)
    arena.world.order(riki, "attack", target)
    losses, hp = [], arena.hp(target)
    for _ in range(round(4.8 / FRAME)):
        arena.world.run_frames(1)
        if arena.hp(target) < hp - 1:
            losses.append(hp - arena.hp(target))
            hp = arena.hp(target)
    extra = arena.world.unit(riki)["agi"] * physical_share(arena.world.unit(target)["armor"])
    missed = [x for x in losses if x == pytest.approx(extra, abs=0.05)]
    assert len(losses) >= 10 and 0.4 < len(missed) / len(losses) < 0.95
    assert min(x for x in losses if x not in missed) > extra + 20


@pytest.mark.parametrize("taken", [False, True])
def test_with_the_talent_nothing_ends_his_invisibility(core: Any, patch: str, taken: bool) -> None:
    """Tooltip of the talent: no action does, only true sight shows him."""
    arena = duel(core, "riki", patch=patch)
    riki, target = arena.unit(0), arena.dummy(150, 0)
    if taken:
        arena.world.teach(0, "special_bonus_unique_riki_5", 1)
    arena.teach(0, "riki_permanent_invisibility", 4)
    arena.seconds(8)
    assert arena.world.unit(riki)["status"] & INVISIBLE
    arena.world.set_unit(riki, attack_ready=0)
    arena.world.order(riki, "attack", target)
    arena.seconds(0.8)
    assert arena.hp(target) < 5000
    assert bool(arena.world.unit(riki)["status"] & INVISIBLE) == taken
    arena.world.order(riki, "hold")
    arena.seconds(3.5)
    order(arena, "riki_smoke_screen", 1, at=(400, 0))
    arena.seconds(0.5)
    assert bool(arena.world.unit(riki)["status"] & INVISIBLE) == taken
    arena.seconds(3.2)
    assert not arena.world.visible(1, riki)
    arena.world.spawn("npc_dota_sentry_wards", 1, CENTRE[0] + 60, CENTRE[1] + 60)
    arena.seconds(0.3)
    assert arena.world.visible(1, riki)


def test_tricks_strike_creeps_if_there_is_no_hero(core: Any) -> None:
    """Patch 7.12."""
    arena = duel(core, "riki", away=2000)
    creep = arena.dummy(200, 0)
    order(arena, "riki_tricks_of_the_trade", 1)
    arena.seconds(1.3)
    assert arena.hp(creep) < 5000


def test_tricks_strike_the_immune_from_behind(core: Any) -> None:
    """His attacks, which immunity does not stop, backstab from every side: once his agility more at rank 4."""
    arena = duel(core, "riki")
    riki, target = arena.unit(0), arena.unit(5)
    set_health(arena, target, hp=5000)
    arena.teach(0, "riki_permanent_invisibility", 4)
    make_immune(arena, 5)
    hp = arena.hp(target)
    order(arena, "riki_tricks_of_the_trade", 1)
    arena.seconds(0.3 + 0.6 + 0.2)
    u = arena.world.unit(riki)
    share = physical_share(arena.world.unit(target)["armor"])
    low, high = (share * (damage + u["agi"]) for damage in damage_range(arena, riki))
    assert low - 1 <= hp - arena.hp(target) <= high + 1


def test_an_order_to_move_ends_tricks(core: Any) -> None:
    """Note."""
    arena = duel(core, "riki")
    riki = arena.unit(0)
    order(arena, "riki_tricks_of_the_trade", 1)
    arena.seconds(0.8)
    assert arena.world.unit(riki)["status"] & BANISHED
    arena.world.order(riki, "move", x=CENTRE[0] - 1000, y=CENTRE[1])
    arena.seconds(0.4)
    assert not arena.world.unit(riki)["status"] & BANISHED
    assert arena.world.unit(riki)["x"] < CENTRE[0] - 10


def test_no_blink_strike_while_rooted(core: Any) -> None:
    """Files: roots disable it."""
    arena = duel(core, "riki", enemy="crystal_maiden")
    arena.teach(0, "riki_blink_strike", 1)
    assert arena.world.ability(0, "riki_blink_strike")["castable"]
    order(arena, "crystal_maiden_frostbite", 1, arena.unit(0), hero=5)
    arena.seconds(0.8)
    assert arena.modifiers(arena.unit(0), "crystal_maiden_frostbite")
    assert not arena.world.ability(0, "riki_blink_strike")["castable"]


def test_the_crit_talent(core: Any) -> None:
    """Every fifth attack on average does 50 % more damage."""
    arena = duel(core, "riki", away=2000)
    arena.world.teach(0, "riki_permanent_invisibility", 0)
    arena.world.teach(0, "special_bonus_20_crit_15", 1)
    riki, target = arena.unit(0), arena.dummy(120, 0, hp=60000)
    arena.world.set_unit(riki, attack_ready=0, extra_as=500)
    arena.world.order(riki, "attack", target)
    losses, hp = [], arena.hp(target)
    for _ in range(900):
        arena.world.run_frames(1)
        if arena.hp(target) < hp - 1:
            losses.append(hp - arena.hp(target))
            hp = arena.hp(target)
    u = arena.world.unit(riki)
    most = (u["dmg_max"] + u["dmg_bonus"]) * physical_share(arena.world.unit(target)["armor"]) + 0.1
    crits = [x for x in losses if x > most]
    assert len(losses) > 60 and len(crits) / len(losses) == pytest.approx(0.2, abs=0.08)
    assert max(crits) <= 1.5 * most
