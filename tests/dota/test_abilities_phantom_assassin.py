"""Phantom Assassin's abilities in both patches, computed by hand from the game's files and tooltips.

Her damage is exact here: both ends of her base damage are 24. Daggers and Phantom Strike have no cooldown.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.units import without_armor

DAGGER, STRIKE = "phantom_assassin_stifling_dagger", "phantom_assassin_phantom_strike"
BLUR, COUP = "phantom_assassin_blur", "phantom_assassin_coup_de_grace"
EXACT = (("npc_dota_hero_phantom_assassin", "base_dmg_min", 24), ("npc_dota_hero_phantom_assassin", "base_dmg_max", 24),
         (DAGGER, "@cooldown", 0), (STRIKE, "@cooldown", 0))
Fight = Callable[..., Arena]


@pytest.fixture
def fight(core: Any, patch: str) -> Fight:
    """Return a function that makes an arena: the hero at the centre, Sven without armor in front of her, others far."""

    def make(away: float = 300) -> Arena:
        arena = duel(core, "phantom_assassin", patch, enemy="sven", away=away, behind=2500, far=2800, changes=EXACT)
        without_armor(arena, arena.unit(5))
        return arena

    return make


def damage(arena: Arena) -> float:
    u = arena.world.unit(arena.unit(0))
    assert u["dmg_min"] == pytest.approx(u["dmg_max"])
    number: float = math.floor(u["dmg_min"]) + u["dmg_bonus"]
    return number


def throw(arena: Arena, target: int, level: int = 4, wait: float = 1.0) -> float:
    """Throw the dagger and return the health that the target lost."""
    slot, before = arena.teach(0, DAGGER, level), arena.hp(target)
    arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
    arena.seconds(wait)
    return before - arena.hp(target)


@pytest.mark.parametrize(("level", "share", "slow_s"), [(1, 0.25, 1.75), (2, 0.40, 2.5), (3, 0.55, 3.25), (4, 0.70, 4)])
def test_dagger_damages_by_share_and_slows(fight: Fight, level: int, share: float, slow_s: float) -> None:
    """65 plus a share of the attack damage, before armor (none here); slows by half for 1.75 to 4 s."""
    arena = fight()
    target = arena.unit(5)
    speed = arena.world.unit(target)["move_speed"]
    assert throw(arena, target, level, 0.3 + 300 / 1200 + 0.2) == pytest.approx(65 + share * damage(arena), rel=1e-4)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(
        speed - 0.5 * arena.base_speed("sven"), rel=1e-3)
    arena.seconds(slow_s - 0.4)
    assert arena.world.unit(target)["move_speed"] < speed
    arena.seconds(0.5)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speed)


def test_dagger_flies_at_its_speed(fight: Fight) -> None:
    """0.3 s of aim, then 960 units less the target's radius at 1,200 a second: 1.08 s."""
    arena = fight(away=960)
    assert throw(arena, arena.unit(5), wait=0.95) == 0
    before = arena.hp(arena.unit(5))
    arena.seconds(0.27)
    assert arena.hp(arena.unit(5)) < before


def test_dagger_carries_lifesteal_and_corruption(fight: Fight) -> None:
    """A dagger lowers armor with Desolator, and lifesteal heals by its damage."""
    arena = fight(away=700)
    a, target = arena.unit(0), arena.unit(5)
    give(arena, "desolator")
    give(arena, "lifesteal")
    arena.world.set_unit(a, hp=100)
    dealt = throw(arena, target)
    items = arena.data["items"]["items"]
    armor = items["item_desolator"]["specials"]["corruption_armor"]["v"][0]
    assert arena.world.unit(target)["armor"] == pytest.approx(armor, abs=1e-3)
    assert dealt > 65 + 0.7 * damage(arena)  # armor below 0 takes more
    steal = items["item_lifesteal"]["specials"]["lifesteal_percent"]["v"][0] / 100
    assert arena.hp(a) == pytest.approx(100 + steal * dealt, rel=1e-3)


def test_dagger_crits_as_often_as_attacks(fight: Fight) -> None:
    """Tooltip of Coup de Grace: daggers crit with its chance of 15 %, for 450 % of all of their damage."""
    arena = fight()
    target = arena.unit(5)
    arena.teach(0, COUP, 3)
    slot = arena.teach(0, DAGGER, 4)
    plain = 65 + 0.7 * damage(arena)
    hits = {1.0: 0, 4.5: 0}
    for _ in range(200):
        arena.world.set_unit(arena.unit(0), mana=5000)
        arena.world.set_unit(target, hp=20000)
        arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
        arena.seconds(0.7)
        factor = (20000 - arena.hp(target)) / plain
        hits[min(hits, key=lambda known: abs(known - factor))] += 1
        assert min(abs(known - factor) for known in hits) < 1e-3
    assert hits[4.5] / 200 == pytest.approx(0.15, abs=0.05)


def test_dagger_never_misses(fight: Fight) -> None:
    """Valve's scripts flag its attack as "never miss"; Sven holds Butterflies."""
    arena = fight()
    for _ in range(3):
        give(arena, "butterfly", hero=5)
    without_armor(arena, arena.unit(5))
    for _ in range(12):
        assert throw(arena, arena.unit(5)) > 0


def test_dagger_hurts_the_spell_immune_without_slowing(fight: Fight) -> None:
    """Patch 7.12: the damage goes through spell immunity, the slow does not."""
    arena = fight()
    target = arena.unit(5)
    arena.world.order(target, "cast", slot=give(arena, "black_king_bar", hero=5))
    arena.seconds(0.2)
    speed = arena.world.unit(target)["move_speed"]
    assert throw(arena, target) == pytest.approx(65 + 0.7 * damage(arena), rel=1e-4)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speed)


def test_triple_dagger_strikes_two_more_in_reach(fight: Fight) -> None:
    """The talent: two more visible enemies within cast range + 300 (patch 7.10), here two of three."""
    arena = fight()
    arena.world.teach(0, "special_bonus_unique_phantom_assassin", 1)
    others = [arena.dummy(200, y) for y in (-300, 300, 450)]
    far = arena.dummy(-1400, 700)
    for _ in range(6):
        before = {unit: arena.hp(unit) for unit in (*others, far)}
        assert throw(arena, arena.unit(5), 3) == pytest.approx(65 + 0.55 * damage(arena), rel=1e-4)
        assert sum(arena.hp(unit) < before[unit] for unit in others) == 2
        assert arena.hp(far) == before[far]


def test_strike_blinks_to_an_enemy_and_attacks_it(fight: Fight, patch: str) -> None:
    """175 attack speed at rank 4 (7.19: 130), and an attack without another order (public wikis)."""
    arena = fight(away=900)
    a, target = arena.unit(0), arena.unit(5)
    speed, before = arena.world.unit(a)["attack_speed"], arena.hp(target)
    arena.world.set_unit(a, attack_ready=0)
    slot = arena.teach(0, STRIKE, 4)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "cast_unit", target=target, slot=slot)
    arena.seconds(0.5)
    gap = arena.world.unit(target)["x"] - arena.world.unit(a)["x"]
    assert gap == pytest.approx(2 * 24, abs=40)
    assert arena.world.unit(a)["attack_speed"] - speed == pytest.approx(175 if patch == "7.21d" else 130)
    arena.seconds(0.5)
    assert arena.hp(target) < before


def test_strike_haste_lasts_its_time_on_any_target(fight: Fight, patch: str) -> None:
    """7.21d: 2 s, whatever she attacks. 7.19: 3 s, while she attacks the one she struck."""
    arena = fight(away=900)
    a = arena.unit(0)
    other = arena.dummy(900, 150)
    speed = arena.world.unit(a)["attack_speed"]
    cast(arena, STRIKE, 4, arena.unit(5), wait=0.5)
    assert arena.world.unit(a)["attack_speed"] > speed
    arena.world.order(a, "attack", other)
    arena.seconds(0.3)
    assert (arena.world.unit(a)["attack_speed"] > speed) == (patch == "7.21d")
    arena.world.order(a, "attack", arena.unit(5))
    arena.seconds(0.3)
    assert arena.world.unit(a)["attack_speed"] > speed
    arena.seconds(0.7 if patch == "7.21d" else 1.7)
    assert arena.world.unit(a)["attack_speed"] > speed
    arena.seconds(0.6)
    assert arena.world.unit(a)["attack_speed"] == pytest.approx(speed)


def test_strike_haste_ends_with_the_fourth_attack_in_7_19(fight: Fight, patch: str) -> None:
    """7.19: at most four attacks, long before the 3 s are over. 7.21d has no limit."""
    arena = fight(away=900)
    a, target = arena.unit(0), arena.unit(5)
    speed = arena.world.unit(a)["attack_speed"]
    arena.world.set_unit(a, extra_as=150)  # four attacks take 1.3 s
    slot = arena.teach(0, STRIKE, 4)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "cast_unit", target=target, slot=slot)
    landed, hp = 0, arena.hp(target)
    while landed < 4:
        arena.world.step(1)
        if arena.hp(target) < hp:
            landed, hp = landed + 1, arena.hp(target)
    arena.seconds(0.15)
    bonus = 175 if patch == "7.21d" else 0
    assert arena.world.unit(a)["attack_speed"] == pytest.approx(speed + 150 + bonus)


def test_strike_goes_to_allies_without_haste(fight: Fight) -> None:
    arena = fight()
    a, ally = arena.unit(0), arena.unit(1)
    arena.place(ally, -800, 0)
    arena.seconds(0.2)
    speed = arena.world.unit(a)["attack_speed"]
    cast(arena, STRIKE, 4, ally, wait=1.5)
    assert arena.world.unit(a)["x"] - arena.world.unit(ally)["x"] == pytest.approx(2 * 24, abs=40)
    assert arena.world.unit(a)["attack_speed"] == pytest.approx(speed)
    slot = arena.teach(0, STRIKE, 4)
    mana = arena.world.unit(a)["mana"]
    arena.world.order(a, "cast_unit", target=a, slot=slot)  # not on herself
    arena.seconds(0.5)
    assert arena.world.unit(a)["mana"] == pytest.approx(mana)


def test_strike_waits_for_the_end_of_a_root(fight: Fight) -> None:
    arena = fight(away=600)
    a, enemy = arena.unit(0), arena.unit(5)
    arena.world.order(enemy, "cast_unit", target=a, slot=give(arena, "rod_of_atos", hero=5))
    arena.seconds(0.6)
    assert arena.world.unit(a)["status"] & 1 << 1
    cast(arena, STRIKE, 4, enemy, wait=0.5)
    assert arena.world.unit(enemy)["x"] - arena.world.unit(a)["x"] == pytest.approx(600, abs=1)
    arena.seconds(2)
    cast(arena, STRIKE, 4, enemy, wait=0.5)
    assert arena.world.unit(enemy)["x"] - arena.world.unit(a)["x"] < 100


def test_strike_and_crits_reach_the_spell_immune(fight: Fight) -> None:
    """Both pierce spell immunity in the files."""
    arena = fight(away=900)
    a, target = arena.unit(0), arena.unit(5)
    arena.world.order(target, "cast", slot=give(arena, "black_king_bar", hero=5))
    arena.teach(0, COUP, 3)
    arena.seconds(0.2)
    cast(arena, STRIKE, 4, target, wait=0.5)
    assert abs(arena.world.unit(target)["x"] - arena.world.unit(a)["x"]) < 100
    arena.world.set_unit(a, attack_ready=0, extra_as=400)
    arena.world.order(a, "attack", target)
    most = 0.0
    for _ in range(55):
        hp = arena.hp(target)
        arena.world.step(1)
        most = max(most, hp - arena.hp(target))
    assert most == pytest.approx(4.5 * damage(arena), rel=1e-3)


def test_blur_evades(fight: Fight, patch: str) -> None:
    """20 to 50 %; the chances to be hit multiply with Butterfly's 35 %; the talent adds 20 (7.19: 25)."""
    arena = fight()
    for level, share in enumerate((0.2, 0.3, 0.4, 0.5), start=1):
        arena.teach(0, BLUR, level)
        assert arena.world.unit(arena.unit(0))["evasion"] == pytest.approx(share)
    arena.world.teach(0, "special_bonus_unique_phantom_assassin_3", 1)
    assert arena.world.unit(arena.unit(0))["evasion"] == pytest.approx(more := 0.7 if patch == "7.21d" else 0.75)
    give(arena, "butterfly")
    assert arena.world.unit(arena.unit(0))["evasion"] == pytest.approx(1 - (1 - more) * 0.65)


def test_blur_hides_until_an_enemy_hero_is_near(fight: Fight, patch: str) -> None:
    """7.21d: unseen, gem or not, while no enemy hero is within 600; then for 0.75 s more. 7.19: it only evades."""
    arena = fight(away=900)
    a, enemy = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, BLUR, 1)
    assert arena.world.visible(1, a)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.6)
    assert arena.world.visible(1, a) == (patch == "7.19")
    if patch == "7.19":
        return
    give(arena, "gem", hero=5)
    arena.seconds(0.3)
    assert not arena.world.visible(1, a)
    arena.dummy(200, 200)
    arena.place(enemy, 580, 0, math.pi)
    arena.seconds(0.6)
    assert not arena.world.visible(1, a)
    arena.place(enemy, 900, 0, math.pi)  # too late
    arena.seconds(0.4)
    assert arena.world.visible(1, a)


def test_blur_outlasts_attacks_and_ends_in_time(fight: Fight, patch: str) -> None:
    """7.21d: attacks, daggers (until patch 7.36) and dispels do not end it; it lasts 25 s."""
    if patch == "7.19":
        pytest.skip("passive in 7.19")
    arena = fight(away=900)
    a = arena.unit(0)
    cast(arena, BLUR, 1, wait=0.6)
    target = arena.dummy(150, 0)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    arena.seconds(1)
    assert arena.hp(target) < 5000 and not arena.world.visible(1, a)
    throw(arena, target)
    assert not arena.world.visible(1, a)
    arena.world.order(a, "hold")
    arena.seconds(22)
    assert not arena.world.visible(1, a)
    arena.seconds(0.9)
    assert arena.world.visible(1, a)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_coup_de_grace_chance_and_damage(fight: Fight, patch: str, level: int) -> None:
    """A chance of 15 %, 20 % with the talent, of 200, 325 and 450 % (7.19: 230, 340 and 450)."""
    arena = fight(away=120)
    a, target = arena.unit(0), arena.unit(5)
    arena.teach(0, COUP, level)
    if level == 3:
        arena.world.teach(0, "special_bonus_unique_phantom_assassin_2", 1)
    factor = {"7.21d": (2, 3.25, 4.5), "7.19": (2.3, 3.4, 4.5)}[patch][level - 1]
    arena.world.set_unit(a, extra_as=400, attack_ready=0)
    arena.world.order(a, "attack", target)
    plain, hp = damage(arena), arena.hp(target)
    count = {1.0: 0, factor: 0}
    for _ in range(1200):
        arena.world.step(1)
        if arena.hp(target) == hp:
            continue
        by = (hp - arena.hp(target)) / plain
        assert min(abs(known - by) for known in count) < 2e-3
        count[min(count, key=lambda known: abs(known - by))] += 1
        arena.world.set_unit(target, hp=20000)
        hp = arena.hp(target)
    total = sum(count.values())
    assert total > 250
    assert count[factor] / total == pytest.approx(0.2 if level == 3 else 0.15, abs=0.035)


def test_talents_corrupt_and_cleave(fight: Fight, patch: str) -> None:
    """4 armor less for 15 s (as Desolator's), and a quarter (7.19: a fifth) of the attack hits units behind."""
    arena = fight(away=120)
    a, target = arena.unit(0), arena.unit(5)
    behind = arena.dummy(300, 0)
    without_armor(arena, behind)
    arena.seconds(0.2)
    share = {"7.21d": 25, "7.19": 20}[patch]
    arena.world.teach(0, "special_bonus_corruption_4", 1)
    arena.world.teach(0, f"special_bonus_cleave_{share}", 1)
    before = arena.hp(behind)
    attack_for(arena, a, target, 0.6)
    assert before - arena.hp(behind) == pytest.approx(share / 100 * damage(arena), rel=1e-3)
    assert arena.world.unit(target)["armor"] == pytest.approx(-4, abs=1e-3)
    arena.seconds(14)
    assert arena.world.unit(target)["armor"] == pytest.approx(-4, abs=1e-3)
    arena.seconds(1.5)
    assert arena.world.unit(target)["armor"] == pytest.approx(0, abs=1e-3)


def test_plain_talents_add_their_values(fight: Fight, patch: str) -> None:
    """150 health, 15 damage, and 15 % (7.19: 20) lifesteal."""
    arena = fight()
    before = arena.world.unit(arena.unit(0))
    steal = 15 if patch == "7.21d" else 20
    for talent in ("hp_150", "attack_damage_15", f"lifesteal_{steal}"):
        arena.world.teach(0, f"special_bonus_{talent}", 1)
    after = arena.world.unit(arena.unit(0))
    gained = [after[key] - before[key] for key in ("max_hp", "dmg_bonus", "lifesteal")]
    assert gained == pytest.approx([150, 15, steal / 100])
