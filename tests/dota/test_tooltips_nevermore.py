"""Shadow Fiend by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/nevermore.md)."""

from typing import Any

import pytest

from tests.dota.scenes.actions import give, make_immune, order, until_cast, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.units import set_health

RAZE = "nevermore_shadowraze1"


def souls(arena: Arena, count: int, rank: int = 4) -> None:
    """Give Shadow Fiend souls of creeps killed far from everyone."""
    arena.teach(0, "nevermore_necromastery", rank)
    for _ in range(count):
        arena.world.kill(arena.dummy(2500, 2500, hp=100), arena.unit(0))
    assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == count


def test_a_raze_renews_all_its_stacks(core: Any, patch: str) -> None:
    """Note: the duration, 8 s, refreshes on each gain. Razes at 0 and 5 s: the third, at 12.4 s, finds two stacks."""
    arena = duel(core, "nevermore", enemy="sven", away=200, patch=patch)
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    for raze, away in ((RAZE, 200), ("nevermore_shadowraze2", 450)):
        arena.place(target, away, 0)
        order(arena, raze, 4)
        until_cast(arena, raze)
        arena.seconds(4.3)
    assert [m["stacks"] for m in arena.modifiers(target, "stack_raze")] == [2]
    arena.seconds(2.4)
    assert [m["stacks"] for m in arena.modifiers(target, "stack_raze")] == [2]
    arena.place(target, 700, 0)
    hp = arena.hp(target)
    order(arena, "nevermore_shadowraze3", 4)
    until_cast(arena, "nevermore_shadowraze3")
    assert hp - arena.hp(target) == pytest.approx((300 + 2 * 80) * arena.amp(arena.unit(0)) * arena.magic(target),
                                                  rel=1e-3)
    arena.seconds(8.2)
    assert not arena.modifiers(target, "stack_raze")


def test_souls_of_denies_neutrals_and_heroes(core: Any) -> None:
    """Note: denies and neutral creeps count; tooltip: a hero is worth twelve. 2 damage for each."""
    arena = duel(core, "nevermore", away=2000)
    a = arena.unit(0)
    arena.teach(0, "nevermore_necromastery", 4)
    plain = arena.world.unit(a)["dmg_bonus"]
    denied = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 900, CENTRE[1])
    for victim, count in ((denied, 1), (arena.dummy(900, 0), 2), (arena.unit(6), 14)):
        arena.world.kill(victim, a)
        assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == count
    arena.seconds(0.2)
    assert arena.world.unit(a)["dmg_bonus"] - plain == pytest.approx(14 * 2)


def test_presence_adds_to_other_armor_reductions(core: Any) -> None:
    """Note: it stacks fully. Medallion of Courage takes its own on top of 7 at rank 4 and 5 more of the talent."""
    arena = duel(core, "nevermore", enemy="sven", away=2500)
    target = arena.unit(5)
    armor = arena.world.unit(target)["armor"]
    arena.world.teach(0, "special_bonus_unique_nevermore_5", 1)
    arena.teach(0, "nevermore_dark_lord", 4)
    arena.place(target, 400, 0)
    arena.seconds(0.3)
    assert armor - arena.world.unit(target)["armor"] == pytest.approx(12, abs=1e-3)
    slot = give(arena, "medallion_of_courage")
    use(arena, slot, target)
    (taken,) = arena.data["items"]["items"]["item_medallion_of_courage"]["specials"]["armor_reduction"]["v"]
    assert armor - arena.world.unit(target)["armor"] == pytest.approx(12 + abs(taken), abs=1e-3)


@pytest.mark.parametrize(("patch", "radius"), [("7.21d", 1200), ("7.19", 900)])
def test_presence_reaches_its_radius(core: Any, patch: str, radius: int) -> None:
    arena = duel(core, "nevermore", enemy="sven", away=2500, patch=patch)
    target = arena.unit(5)
    armor = arena.world.unit(target)["armor"]
    arena.teach(0, "nevermore_dark_lord", 1)
    taken = []
    for away in (radius + 15, radius - 15):
        arena.place(target, away, 0)
        arena.seconds(0.3)
        taken.append(armor - arena.world.unit(target)["armor"])
    assert taken == [0, pytest.approx(4 if patch == "7.21d" else 3, abs=1e-3)]


@pytest.mark.parametrize(("count", "scepter", "lines"), [(1, False, 0), (7, False, 3), (36, False, 18), (46, True, 23)])
def test_requiem_has_a_line_for_two_souls(core: Any, count: int, scepter: bool, lines: int) -> None:
    """Note: at most 18 lines, 23 with the scepter, which raises the most of 36 souls to 46."""
    arena = duel(core, "nevermore", away=3000)
    if scepter:
        give(arena, "ultimate_scepter")
    souls(arena, count)
    order(arena, "nevermore_requiem", 1)
    until_cast(arena, "nevermore_requiem")
    arena.world.run_frames(1)
    assert arena.world.projectiles() == lines


def test_requiem_weakens_the_immune_without_damage(core: Any, patch: str) -> None:
    """Note: the reductions of speed and attack damage go through spell immunity: 25 % and half, for 5 s."""
    arena = duel(core, "nevermore", enemy="sven", patch=patch)
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    souls(arena, 2)
    order(arena, "nevermore_requiem", 1)
    arena.seconds(1.3)
    make_immune(arena, 5)
    before, hp = arena.world.unit(target), arena.hp(target)
    until_cast(arena, "nevermore_requiem")
    arena.seconds(1)
    (debuff,) = arena.modifiers(target, "nevermore_requiem")
    assert debuff["left"] == pytest.approx(5, abs=1)
    now = arena.world.unit(target)
    assert now["dmg_min"] == pytest.approx(before["dmg_min"] / 2, rel=1e-3)
    assert before["move_speed"] - now["move_speed"] == pytest.approx(0.25 * arena.base_speed("sven"), rel=1e-3)
    assert arena.hp(target) >= hp


@pytest.mark.parametrize(("rank", "cooling", "lines"), [(0, False, 0), (1, False, 4), (1, True, 4)])
def test_requiem_at_death_whatever_its_cooldown(core: Any, rank: int, cooling: bool, lines: int) -> None:
    """Tooltip: cast at his death, with half of 16 souls; not before it is learned."""
    arena = duel(core, "nevermore", away=3000)
    souls(arena, 16)
    if cooling:
        order(arena, "nevermore_requiem", rank)
        until_cast(arena, "nevermore_requiem")
        arena.seconds(4)
    else:
        arena.world.teach(0, "nevermore_requiem", rank)
    assert arena.world.projectiles() == 0
    arena.world.kill(arena.unit(0), arena.unit(5))
    assert arena.world.projectiles() == lines
    assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == 8


def test_lines_near_him_meet_one_unit_often(core: Any) -> None:
    """Tooltip: units near him are damaged by several lines. Eighteen lines of 250 in width, 160 each at rank 3: one who
    stands 60 away is within 125 of all of them, one 900 away of those within 405 of him."""
    arena = duel(core, "nevermore", enemy="sven", away=3000)
    souls(arena, 36)
    near, far = arena.dummy(60, 0, hp=20000), arena.dummy(-900, 0, hp=20000)
    order(arena, "nevermore_requiem", 3)
    arena.seconds(4)
    each = 160 * arena.amp(arena.unit(0))
    hits = [(20000 - arena.hp(u)) / (each * arena.magic(u)) for u in (near, far)]
    assert hits[0] == pytest.approx(18, abs=0.01)
    assert 1 <= round(hits[1]) < 5 and hits[1] == pytest.approx(round(hits[1]), abs=0.01)
