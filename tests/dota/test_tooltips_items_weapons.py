"""Items of those who attack: procs, crits, lifesteal, burns, and what an attack out of invisibility does."""

import itertools
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, give, use
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.readings import damage_range
from tests.dota.scenes.statuses import INVISIBLE, ROOTED, SPELL_IMMUNE, STUNNED
from tests.dota.scenes.units import lane_creep, without_armor

ALWAYS = (("item_butterfly", "bonus_evasion", 100), ("item_butterfly", "evasion_pct", 100))


@pytest.mark.parametrize("item", ["maelstrom", "mjollnir"])
def test_chain_lightning_is_not_evaded(core: Any, item: str) -> None:
    """Tooltip: lightning procs pierce evasion. With a chance of 100 every attack lands on an enemy who evades all."""
    arena = item_duel(core, away=120, changes=(*ALWAYS, ("item_" + item, "chain_chance", 100)))
    assert arena.world.give_item(5, "item_butterfly")
    enemy = without_armor(arena, arena.unit(5))
    assert attack_once(arena, arena.unit(0), enemy) == 0
    give(arena, item)
    low, high = damage_range(arena, arena.unit(0))
    bolt = {"maelstrom": 160, "mjollnir": 170}[item] * arena.magic(enemy) * arena.amp(arena.unit(0))
    for _ in range(5):
        arena.seconds(1)
        hp = arena.hp(enemy)
        attack_once(arena, arena.unit(0), enemy)
        arena.seconds(0.5)
        assert low - 1 <= hp - arena.hp(enemy) - bolt <= high + 1


def test_a_bash_does_not_pierce_evasion(core: Any) -> None:
    """Patch 7.14."""
    arena = item_duel(core, away=120, changes=(*ALWAYS, ("item_basher", "bash_chance_melee", 100)))
    assert arena.world.give_item(5, "item_butterfly")
    give(arena, "basher")
    assert attack_once(arena, arena.unit(0), without_armor(arena, arena.unit(5))) == 0


def test_a_bash_stuns_the_spell_immune(core: Any) -> None:
    """Public wikis, Skull Basher: the bash goes through spell immunity; its magical damage does not."""
    arena = item_duel(core, away=120, changes=(("item_basher", "bash_chance_melee", 100),))
    give(arena, "basher")
    enemy = without_armor(arena, arena.unit(5))
    use(arena, give(arena, "black_king_bar", hero=5), hero=5)
    arena.world.set_unit(enemy, extra_armor=0)
    arena.world.set_unit(enemy, extra_armor=-arena.world.unit(enemy)["armor"])
    low, high = damage_range(arena, arena.unit(0))
    assert arena.world.unit(enemy)["status"] & SPELL_IMMUNE
    assert low - 1 <= attack_once(arena, arena.unit(0), enemy) <= high + 1
    assert arena.world.unit(enemy)["status"] & STUNNED


@pytest.mark.parametrize(("patch", "flat", "share"), [("7.21d", 25, 0), ("7.19", 0, 0.12)])
def test_the_speed_of_a_berserk(core: Any, patch: str, flat: float, share: float) -> None:
    """Tooltip: 25 speed; in 7.19 12 % (patch 7.20d)."""
    arena = item_duel(core, patch)
    slot = give(arena, "mask_of_madness")
    before = arena.world.unit(arena.unit(0))["move_speed"]
    use(arena, slot)
    base = arena.base_speed("sven")
    now = arena.world.unit(arena.unit(0))["move_speed"]
    assert now - before == pytest.approx(flat + share * base, abs=1)


def test_the_share_of_battle_fury_against_creeps_in_7_19(core: Any) -> None:
    """The files: 150, so half of the damage without items more (patch 7.08); a number of its own since 7.21."""
    arena = item_duel(core, "7.19", away=900)
    target = without_armor(arena, lane_creep(arena, 1, 120, 0))
    arena.world.order(target, "hold")
    give(arena, "bfury")
    u = arena.world.unit(arena.unit(0))
    dealt = attack_once(arena, arena.unit(0), target)
    assert 1.5 * u["dmg_min"] + u["dmg_bonus"] - 2 <= dealt <= 1.5 * u["dmg_max"] + u["dmg_bonus"] + 2


@pytest.mark.parametrize("item", ["invis_sword", "silver_edge"])
def test_the_bonus_out_of_invisibility_is_not_multiplied(core: Any, item: str) -> None:
    """Public wikis, Shadow Blade: 175 beside the crit, and nothing of it on buildings."""
    arena = item_duel(core, away=120, changes=(("item_greater_crit", "crit_chance", 100),))
    slot = give(arena, item)
    give(arena, "greater_crit")
    enemy = without_armor(arena, arena.unit(5))
    use(arena, slot)
    arena.seconds(0.4)
    low, high = damage_range(arena, arena.unit(0))
    dealt = attack_once(arena, arena.unit(0), enemy)
    assert 2.35 * low + 175 - 2 <= dealt <= 2.35 * high + 175 + 2


def test_an_attack_on_a_tower_has_no_bonus_out_of_invisibility(core: Any) -> None:
    """Public wikis, Shadow Blade."""
    arena = item_duel(core, away=2400)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    a, slot = arena.unit(0), give(arena, "invis_sword")
    arena.world.set_unit(a, x=tower["x"] - 230, y=tower["y"])
    arena.world.set_unit(tower["index"], extra_armor=-tower["armor"])
    arena.world.spawn("npc_dota_creep_goodguys_melee", 0, tower["x"] - 300, tower["y"] + 200)
    arena.seconds(0.5)
    use(arena, slot)
    arena.seconds(0.4)
    _, high = damage_range(arena, a)
    assert 0 < attack_once(arena, a, tower["index"]) < high + 1


def test_mana_break_and_reduced_mana_loss(core: Any, patch: str) -> None:
    """Tooltip of Diffusal Blade: 50 mana, 0.8 damage for each; of Kaya: mana loss is reduced as well, by 12 % (7.19:
    10 %)."""
    arena = item_duel(core, patch, away=120)
    give(arena, "diffusal_blade")
    enemy = without_armor(arena, arena.unit(5))
    low, high = damage_range(arena, arena.unit(0))
    for reduction in (0, 0.12 if patch == "7.21d" else 0.10):
        if reduction:
            assert arena.world.give_item(5, "item_kaya")
            arena.seconds(0.2)
            arena.still(enemy)
        arena.world.set_unit(enemy, mana=200)
        dealt = attack_once(arena, arena.unit(0), enemy)
        burned = 50 * (1 - reduction)
        assert 200 - arena.world.unit(enemy)["mana"] == pytest.approx(burned, abs=0.4)
        assert low + 0.8 * burned - 2 <= dealt <= high + 0.8 * burned * (arena.amp(arena.unit(0))) + 2


def test_radiance_burns_and_blinds_when_switched_on(core: Any) -> None:
    """Tooltip: 60 magical damage a second and 17 % misses within 700, only while it is active."""
    arena = item_duel(core, away=690)
    slot, enemy = give(arena, "radiance"), without_armor(arena, arena.unit(5))
    arena.seconds(2)
    assert arena.hp(enemy) == 20000
    use(arena, slot)
    arena.seconds(3.9)
    ticks = (20000 - arena.hp(enemy)) / (60 * arena.magic(enemy) * arena.amp(arena.unit(0)))
    assert ticks in (pytest.approx(4, abs=0.02), pytest.approx(5, abs=0.02))
    assert arena.world.unit(enemy)["miss"] == pytest.approx(0.17)
    use(arena, slot)
    arena.seconds(1)
    hp = arena.hp(enemy)
    arena.seconds(2)
    assert arena.hp(enemy) == hp and arena.world.unit(enemy)["miss"] == 0


def test_a_bloodthorn_makes_every_attack_on_the_silenced_a_crit(core: Any) -> None:
    """Tooltip: true strike, and at least 140 % from everyone for 5 s; at the end 30 % of the damage as magic."""
    arena = item_duel(core, away=120, ally="sven", changes=ALWAYS)
    assert arena.world.give_item(5, "item_butterfly")
    slot, enemy = give(arena, "bloodthorn"), without_armor(arena, arena.unit(5))
    mate = arena.unit(1)
    arena.place(mate, 0, 130)
    arena.place(arena.unit(0), -600, 0)
    use(arena, slot, enemy)
    low, high = damage_range(arena, mate)
    dealt = attack_once(arena, mate, enemy)
    assert 1.4 * low - 2 <= dealt <= 1.4 * high + 2
    hp = arena.hp(enemy)
    arena.seconds(5)
    expected = 0.3 * dealt * arena.magic(enemy) * arena.amp(arena.unit(0))
    assert hp - arena.hp(enemy) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("hero", "lasts"), [("sven", 5), ("sniper", 2.5)])
def test_skadi_slows_by_the_kind_of_its_bearer(core: Any, hero: str, lasts: float) -> None:
    """Tooltip: 35 % and 45 attack speed, 5 s by melee heroes, 2.5 s by ranged ones."""
    arena = item_duel(core, hero=hero, enemy="axe", away=120)
    give(arena, "skadi")
    enemy = without_armor(arena, arena.unit(5))
    before = arena.world.unit(enemy)
    attack_once(arena, arena.unit(0), enemy)
    arena.world.run_frames(1)  # statistics follow
    now = arena.world.unit(enemy)
    assert now["attack_speed"] - before["attack_speed"] == pytest.approx(-45)
    assert now["move_speed"] - before["move_speed"] == pytest.approx(-0.35 * arena.base_speed("axe"), abs=1)
    (left,) = (m["left"] for m in arena.modifiers(enemy, "item_skadi"))
    assert left == pytest.approx(lasts, abs=0.15)


def test_quelling_blade_of_a_ranged_hero(core: Any) -> None:
    """Tooltip: 7 more damage to creeps."""
    arena = item_duel(core, hero="sniper", enemy="axe", away=1500)
    target = without_armor(arena, lane_creep(arena, 1, 200, 0))
    give(arena, "quelling_blade")
    low, high = damage_range(arena, arena.unit(0))
    seen = [attack_once(arena, arena.unit(0), target) for _ in range(12)]
    assert all(low + 7 - 1 <= dealt <= high + 7 + 1 for dealt in seen) and max(seen) > high - 3


@pytest.mark.parametrize(("hero", "more"), [("sven", 24), ("sniper", 7)])
def test_battle_fury_strikes_creeps_harder(core: Any, hero: str, more: float) -> None:
    """Tooltip of 7.21d: 24 damage more, 7 by ranged heroes."""
    arena = item_duel(core, hero=hero, enemy="axe", away=1500)
    target = without_armor(arena, lane_creep(arena, 1, 120, 0))
    give(arena, "bfury")
    low, high = damage_range(arena, arena.unit(0))
    for _ in range(4):
        assert low + more - 1 <= attack_once(arena, arena.unit(0), target) <= high + more + 1


@pytest.mark.parametrize(("patch", "share", "far"), [("7.21d", 0.6, 650), ("7.19", 0.4, 625)])
def test_battle_fury_cleaves_in_a_cone(core: Any, patch: str, share: float, far: float) -> None:
    """The files: as wide as 150 to 360 over 650 (7.19: 330 over 625); without armor a share of the blow."""
    arena = item_duel(core, patch, away=120)
    enemy = without_armor(arena, arena.unit(5))
    inside, outside, aside = (without_armor(arena, arena.dummy(x, y, hp=5000), 5000)
                              for x, y in ((far - 20, 0), (far + 60, 0), (200, 330)))
    give(arena, "bfury")
    dealt = attack_once(arena, arena.unit(0), enemy)
    lost = [5000 - arena.hp(u) for u in (inside, outside, aside)]
    assert lost == pytest.approx([share * dealt, 0, 0], abs=1.5)


def test_a_diffusal_blade_roots_creeps(core: Any) -> None:
    """The files: creeps for 3 s, heroes not."""
    for target, rooted in ((-1, True), (5, False)):
        arena = item_duel(core)
        unit = lane_creep(arena, 1, 300, 0) if target < 0 else arena.unit(target)
        use(arena, give(arena, "diffusal_blade"), unit)
        assert bool(arena.world.unit(unit)["status"] & ROOTED) == rooted
        arena.seconds(2.9)
        assert not arena.world.unit(unit)["status"] & ROOTED


def test_crits_of_a_bloodthorn(core: Any) -> None:
    """Tooltip: a chance of 20 %, here 100, of 175 %."""
    arena = item_duel(core, away=120, changes=(("item_bloodthorn", "crit_chance", 100),))
    give(arena, "bloodthorn")
    enemy = without_armor(arena, arena.unit(5))
    low, high = damage_range(arena, arena.unit(0))
    assert 1.75 * low - 2 <= attack_once(arena, arena.unit(0), enemy) <= 1.75 * high + 2


def test_a_cast_ends_shadow_walk(core: Any) -> None:
    """Tooltip: until an attack or a cast."""
    arena = item_duel(core, away=1500)
    a, slot = arena.unit(0), give(arena, "invis_sword")
    shout = arena.teach(0, "sven_warcry", 1)
    use(arena, slot)
    arena.seconds(0.4)
    assert arena.world.unit(a)["status"] & INVISIBLE
    arena.world.order(a, "cast", slot=shout)
    arena.seconds(0.6)
    assert not arena.world.unit(a)["status"] & INVISIBLE


@pytest.mark.parametrize(("item", "most"), [("maelstrom", 4), ("mjollnir", 12)])
def test_chain_lightning_leaps_every_quarter_second(core: Any, item: str, most: int) -> None:
    """Tooltip and the files: 4 or 12 enemies, each within 900 of the last, 0.25 s after it."""
    arena = item_duel(core, away=2400, changes=(("item_" + item, "chain_chance", 100),))
    a = arena.unit(0)
    row = [without_armor(arena, arena.dummy(120 + 60 * k, 0, hp=5000), 5000) for k in range(most + 2)]
    give(arena, item)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", row[0])
    struck: list[float] = []
    for _ in range(30 * (1 + most // 3)):
        arena.world.run_frames(1)
        now = sum(arena.hp(u) < 5000 for u in row)
        if now > len(struck):
            arena.world.set_unit(a, attack_ready=1e9)
            struck += [arena.world.time] * (now - len(struck))
    assert len(struck) == most
    assert [later - earlier for earlier, later in itertools.pairwise(struck)] == pytest.approx(
        [0.25] * (most - 1), abs=0.035)
