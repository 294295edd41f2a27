"""Tidehunter by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import INVISIBLE, STUNNED

SMASH = "tidehunter_anchor_smash"


# ---- Gush -----------------------------------------------------------------------------------------------------------


def test_gush_with_the_scepter_is_a_wave_of_1800(core: Any) -> None:
    """Scepter and files: 240 to either side of a line of 1800 from him, at 1500; no Linken's Sphere stops it (wiki)."""
    arena = duel(core, "tidehunter", hp=4000)
    give(arena, "ultimate_scepter")
    give(arena, "sphere", hero=5)
    hit, missed = ([arena.dummy(*at) for at in places]
                   for places in (((600, 225), (1750, 0)), ((600, 265), (2080, 0), (-300, 0))))
    cast(arena, "tidehunter_gush", 1, arena.unit(5), wait=0.3 + 0.8)
    assert not arena.modifiers(hit[1], "tidehunter_gush")  # after 0.8 s it has flown 1200, and reaches 240 ahead
    arena.seconds(0.7)
    assert all(arena.modifiers(u, "tidehunter_gush") for u in hit)
    assert not any(arena.modifiers(u, "tidehunter_gush") for u in missed)


def test_gush_with_the_scepter_is_aimed_from_1800(core: Any) -> None:
    moved = []
    for upgraded in (False, True):
        arena = duel(core, "tidehunter", away=900, hp=4000)
        if upgraded:
            give(arena, "ultimate_scepter")
        cast(arena, "tidehunter_gush", 1, arena.unit(5), wait=0.2)
        moved.append(arena.world.unit(arena.unit(0))["x"] > CENTRE[0] + 1)
    assert moved == [True, False]


# ---- Kraken Shell ---------------------------------------------------------------------------------------------------


def test_kraken_shell_counts_damage_of_players_alone(core: Any) -> None:
    """Note: 700 of a neutral creep do not count, 600 of a hero do."""
    arena = duel(core, "tidehunter", enemy="sven", hp=4000)
    a, enemy, creep = arena.unit(0), arena.unit(5), arena.dummy(200, 200)
    arena.teach(0, "tidehunter_kraken_shell", 1)
    bolt = arena.teach(5, "sven_storm_bolt", 1)
    arena.world.order(enemy, "cast_unit", target=a, slot=bolt)
    arena.seconds(0.8)
    for source, shaken in ((creep, False), (enemy, True)):
        assert arena.world.unit(a)["status"] & STUNNED
        arena.world.damage(source, a, 700, "pure")
        assert bool(arena.world.unit(a)["status"] & STUNNED) != shaken


def test_kraken_shell_blocks_attacks_alone(core: Any) -> None:
    arena = duel(core, "tidehunter", hp=4000)
    a, enemy = arena.unit(0), arena.unit(5)
    arena.teach(0, "tidehunter_kraken_shell", 4)
    arena.world.set_unit(a, extra_armor=0)
    arena.world.set_unit(a, extra_armor=-arena.world.unit(a)["armor"])
    for attack, taken in ((True, 52), (False, 100)):
        assert arena.world.damage(enemy, a, 100, "physical", attack) == pytest.approx(taken, abs=0.01)


def test_kraken_shell_does_not_add_to_other_blocks(core: Any) -> None:
    """Tooltip: of 48 and a Vanguard's 70 the greater one counts."""
    arena = duel(core, "tidehunter", hp=4000)
    a, enemy = arena.unit(0), arena.unit(5)
    arena.teach(0, "tidehunter_kraken_shell", 4)
    give(arena, "vanguard")
    arena.world.set_unit(a, extra_armor=0)
    arena.world.set_unit(a, extra_armor=-arena.world.unit(a)["armor"])
    taken = {round(100 - arena.world.damage(enemy, a, 100, "physical", attack=True)) for _ in range(30)}
    assert taken == {48, 70}


# ---- Anchor Smash ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_anchor_smash_strikes_ancients_and_spares_roshan(core: Any, patch: str) -> None:
    arena = duel(core, "tidehunter", patch, away=2500, hp=4000)
    ancient = arena.dummy(200, 100, kind="npc_dota_neutral_black_dragon")
    roshan = arena.world.spawn("npc_dota_roshan", 2, CENTRE[0] + 200, CENTRE[1] - 100)
    hp = arena.hp(ancient), arena.hp(roshan)
    cast(arena, SMASH, 1, wait=0.55)
    assert arena.hp(ancient) < hp[0] and arena.hp(roshan) == hp[1]
    assert arena.modifiers(ancient, SMASH) and not arena.modifiers(roshan, SMASH)


def test_anchor_smash_of_7_19_does_its_own_damage(core: Any) -> None:
    """75/125/175/225 physical (7.20 made it an attack), also to the spell-immune; 45 % less attack damage at rank 1."""
    arena = duel(core, "tidehunter", "7.19", hp=4000)
    enemy = arena.unit(5)
    use(arena, give(arena, "black_king_bar", hero=5), hero=5)
    hp, armor, blow = arena.hp(enemy), arena.world.unit(enemy)["armor"], arena.world.unit(enemy)["dmg_min"]
    cast(arena, SMASH, 1, wait=0.6)
    r = arena.data["rules"]["rules"]["armor"]
    through = 1 - r["a"] * armor / (r["b"] + r["c"] * abs(armor))
    assert hp - arena.hp(enemy) == pytest.approx(75 * through * arena.amp(arena.unit(0)), rel=0.01)
    assert arena.world.unit(enemy)["dmg_min"] == pytest.approx(0.55 * blow, rel=1e-3)


# ---- Ravage ---------------------------------------------------------------------------------------------------------


def test_ravage_hits_the_invisible(core: Any) -> None:
    arena = duel(core, "tidehunter", enemy="riki", hp=4000)
    enemy = arena.unit(5)
    arena.teach(5, "riki_permanent_invisibility", 4)
    arena.seconds(7)
    assert arena.world.unit(enemy)["status"] & INVISIBLE and not arena.world.visible(0, enemy)
    hp = arena.hp(enemy)
    cast(arena, "tidehunter_ravage", 1, wait=1)
    assert arena.hp(enemy) < hp - 100 and arena.world.unit(enemy)["status"] & STUNNED


def test_ravage_moves_outwards_at_725(core: Any) -> None:
    """Files; the tooltip's note says 775."""
    arena = duel(core, "tidehunter", away=2500, hp=4000)
    far, beyond = arena.dummy(1200, 0), arena.dummy(1290, 100)
    hp = arena.hp(far), arena.hp(beyond)
    arena.world.order(arena.unit(0), "cast", slot=arena.teach(0, "tidehunter_ravage", 1))
    frames = 0
    while arena.hp(far) == hp[0] and frames < 120:
        arena.world.run_frames(1)
        frames += 1
    assert frames / 30 == pytest.approx(0.3 + 1200 / 725, abs=0.1)
    arena.seconds(0.5)
    assert arena.hp(beyond) == hp[1]
