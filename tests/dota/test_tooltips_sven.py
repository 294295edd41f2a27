"""Sven by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, cast, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel


def test_storm_bolt_sees_what_it_flies_over(core: Any) -> None:
    """Files: vision 225 around the gauntlet."""
    arena = duel(core, "sven", away=500, behind=300)
    enemy, slot = arena.unit(5), arena.teach(0, "sven_storm_bolt", 1)
    near, far = arena.unit(6), arena.world.spawn("npc_dota_neutral_kobold", 2, CENTRE[0], CENTRE[1] - 4000)
    arena.place(near, 100, -1500)
    arena.seconds(0.2)
    assert not arena.world.visible(0, near)
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    arena.seconds(0.4)
    arena.place(enemy, 0, -3500)
    shown = set()
    for _ in range(18):
        arena.world.step(1)
        shown |= {u for u in (near, far) if arena.world.visible(0, u)}
    assert shown == {near}


def test_cleave_goes_through_spell_immunity(core: Any) -> None:
    arena = duel(core, "sven")
    arena.teach(0, "sven_great_cleave", 4)
    enemy, target = arena.unit(5), arena.dummy(120, 0)
    use(arena, give(arena, "black_king_bar", hero=5), hero=5)
    hp = arena.hp(enemy)
    attack_once(arena, arena.unit(0), target)
    assert arena.hp(enemy) < hp - 10


@pytest.mark.parametrize(("patch", "inside", "outside"), [
    ("7.21d", ((640, 350), (10, 145)), ((640, 365), (660, 0), (-20, 0), (10, 165))),
    ("7.19", ((615, 320), (10, 145)), ((615, 335), (635, 0), (-20, 0), (10, 165)))])
def test_cleave_covers_its_area(core: Any, patch: str, inside: Any, outside: Any) -> None:
    """Files: 150 to either side at Sven, 360 at 650 (7.19: 330 at 625); between them a straight line."""
    arena = duel(core, "sven", patch, away=2500)
    arena.teach(0, "sven_great_cleave", 4)
    target = arena.dummy(120, 0)
    struck, spared = ([arena.dummy(*at) for at in places] for places in (inside, outside))
    a = arena.unit(0)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    while arena.hp(target) == 5000:
        arena.world.run_frames(1)
        arena.place(a, 0, 0)
        for unit, at in zip((*struck, *spared), (*inside, *outside), strict=True):
            arena.place(unit, *at)  # they push each other aside
    assert all(arena.hp(u) < 5000 for u in struck)
    assert all(arena.hp(u) == 5000 for u in spared)


def test_cleave_does_not_start_at_buildings(core: Any) -> None:
    arena = duel(core, "sven", away=500)
    arena.teach(0, "sven_great_cleave", 4)
    tower = next(u["index"] for u in arena.world.units("tower")
                 if u["team"] == 1 and not arena.world.protected(u["index"]))
    at = arena.world.unit(tower)
    arena.world.set_unit(arena.unit(0), x=at["x"] - 180, y=at["y"] - 180, hp=2000)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, at["x"] + 150, at["y"] + 150)
    arena.world.order(creep, "hold")
    arena.still(creep)
    arena.seconds(0.2)
    hp = arena.hp(creep)
    assert attack_once(arena, arena.unit(0), tower) > 0
    assert arena.hp(creep) == hp


def test_warcry_of_both_patches(core: Any, patch: str) -> None:
    """7.20 made it a shield for heroes within 700; 7.19: armor for all allies within 900, for 8 s."""
    arena = duel(core, "sven", patch, away=500)
    hero, creep, beyond = arena.unit(1), *(
        arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + x, CENTRE[1] - 300) for x in (200, -900))
    for unit in (creep, beyond):
        arena.world.order(unit, "hold")
    arena.place(hero, -800, 0)
    units = (arena.unit(0), hero, creep, beyond)
    before = [arena.world.unit(u) for u in units]
    cast(arena, "sven_warcry", 4, wait=0.2)
    after = [arena.world.unit(u) for u in units]
    faster = [b["move_speed"] > a["move_speed"] for a, b in zip(before, after, strict=True)]
    armor = [b["armor"] - a["armor"] for a, b in zip(before, after, strict=True)]
    assert faster == ([True, False, False, False] if patch == "7.21d" else [True, True, True, False])
    assert armor == pytest.approx([0] * 4 if patch == "7.21d" else [20, 20, 20, 0])
    if patch == "7.19":
        base = arena.base_speed("sven")
        assert after[0]["move_speed"] - before[0]["move_speed"] == pytest.approx(0.12 * base, rel=1e-3)
        arena.seconds(7.6)
        assert arena.world.unit(arena.unit(0))["armor"] == pytest.approx(after[0]["armor"])
        arena.seconds(0.4)
        assert arena.world.unit(arena.unit(0))["armor"] == pytest.approx(before[0]["armor"])


def test_a_second_warcry_fills_the_shield(core: Any) -> None:
    arena = duel(core, "sven", away=500)
    a = arena.unit(0)

    def shield() -> float:
        return float(max(m["shield"] for m in arena.modifiers(a, "sven_warcry")))

    cast(arena, "sven_warcry", 1, wait=0.2)
    full = shield()
    arena.world.damage(arena.unit(5), a, 60, "physical", attack=True)
    assert shield() < full - 30
    slot = give(arena, "refresher")
    arena.world.set_unit(a, mana=1000)
    use(arena, slot)
    cast(arena, "sven_warcry", 1, wait=0.2)
    assert shield() == pytest.approx(full)


@pytest.mark.parametrize(("patch", "radius"), [("7.21d", 1200), ("7.19", 900)])
def test_the_scepter_shares_gods_strength(core: Any, patch: str, radius: float) -> None:
    """Files: allied heroes within 1200 (7.19: 900) have 75 % more base damage."""
    arena = duel(core, "sven", patch, away=500)
    give(arena, "ultimate_scepter")
    ally = arena.unit(1)
    cast(arena, "sven_gods_strength", 1, wait=0.6)
    base = arena.world.unit(ally)["dmg_min"] / 1.75
    for x, factor in ((radius - 20, 1.75), (radius + 20, 1)):
        arena.place(ally, -x, 0)
        arena.seconds(0.8)
        assert arena.world.unit(ally)["dmg_min"] == pytest.approx(base * factor, rel=1e-3)
