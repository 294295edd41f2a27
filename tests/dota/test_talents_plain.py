"""Talents that give their owner a plain number, in both patches: what the tooltip shows is what the hero gets."""

from typing import Any

import pytest

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.patches import PATCHES, read_data
from tests.dota.scenes.units import set_health

# Stem of a talent's name, and the field that grows by its value.
ADDED = {"strength": "str", "agility": "agi", "attack_speed": "attack_speed", "armor": "armor", "hp": "max_hp",
         "attack_damage": "dmg_bonus", "attack_range": "attack_range", "mp": "max_mana", "hp_regen": "hp_regen",
         "mp_regen": "mana_regen", "lifesteal": "lifesteal", "spell_amplify": "spell_amp", "evasion": "evasion"}
PERCENT = {"lifesteal", "spell_amplify", "evasion"}
OTHERS = {"movement_speed", "magic_resistance", "cooldown_reduction", "exp_boost", "gold_income", "spell_lifesteal",
          "night_vision"}
PLAIN = sorted({(patch, hero.removeprefix("npc_dota_hero_"), talent["id"], talent["values"].get("value", 0))
                for patch in PATCHES for hero, body in read_data(patch)["heroes"]["heroes"].items()
                for talent in body["talents"] if not talent.get("affects") and not talent.get("effects")})


def stem(talent: str) -> str:
    return talent.removeprefix("special_bonus_").rpartition("_")[0]


def of(kinds: Any) -> list[tuple[str, str, str, float]]:
    return [case for case in PLAIN if stem(case[2]) in kinds]


def with_talent(core: Any, patch: str, hero: str, talent: str) -> tuple[Arena, dict[str, Any], dict[str, Any]]:
    """Return a duel in which the hero has the talent, and its unit before and after it took it."""
    arena = line_up(core, patch, (hero,), ("lich" if hero != "lich" else "lion",), {0: 0, 5: 500})
    before = arena.world.unit(arena.unit(0))
    arena.world.teach(0, talent, 1)
    arena.world.step(1)
    return arena, before, arena.world.unit(arena.unit(0))


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of(ADDED))
def test_a_talent_adds_its_value(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    arena, before, after = with_talent(core, patch, hero, talent)
    attributes = arena.data["rules"]["rules"]["attributes"]
    primary = arena.data["heroes"]["heroes"]["npc_dota_hero_" + hero]["primary"]
    shares = (("hp_regen", "str", "hp_regen_pct_per_str"), ("mp_regen", "int", "mana_regen_pct_per_int"))
    for kind, attribute, rate in shares:
        if stem(talent) == kind:  # 7.19: an attribute gives a share of the regeneration
            points = before[attribute] * (attributes["primary_benefit_factor"] if primary == attribute else 1)
            value *= 1 + points * (attributes.get(rate) or 0) / 100
    field = ADDED[stem(talent)]
    gained = after[field] - before[field]
    assert gained == pytest.approx(value / 100 if stem(talent) in PERCENT else value, rel=1e-3)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"movement_speed"}))
def test_a_talent_adds_movement_speed(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    """Percentages grow it too."""
    arena, before, after = with_talent(core, patch, hero, talent)
    base = arena.base_speed(hero)
    assert after["move_speed"] == pytest.approx(before["move_speed"] * (base + value) / base, rel=1e-4)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"magic_resistance"}))
def test_a_talent_leaves_a_share_of_magic(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    _, before, after = with_talent(core, patch, hero, talent)
    assert 1 - after["magic_resist"] == pytest.approx((1 - before["magic_resist"]) * (1 - value / 100), rel=1e-4)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"cooldown_reduction"}))
def test_a_talent_shortens_cooldowns(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    arena, _, _ = with_talent(core, patch, hero, talent)
    assert arena.world.give_item(0, "item_black_king_bar")
    arena.seconds(0.2)
    slot = arena.world.ability(0, "item_black_king_bar")["slot"]
    arena.world.order(arena.unit(0), "cast", slot=slot)
    start = arena.world.time
    arena.world.step(2)
    left = arena.world.ability(0, "item_black_king_bar")["ready"] - start
    whole = arena.data["items"]["items"]["item_black_king_bar"]["cooldown"][0]
    assert left == pytest.approx(whole * (1 - value / 100), abs=0.3)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"exp_boost"}))
def test_a_talent_raises_experience(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    arena, _, _ = with_talent(core, patch, hero, talent)
    plain = line_up(core, patch, (hero,), ("lich",), {0: 0, 5: 500})
    gained = []
    for each in (plain, arena):
        before = each.world.hero(0)["xp"]
        each.world.kill(each.dummy(300, 0), each.unit(0))
        gained.append(each.world.hero(0)["xp"] - before)
    assert gained[1] == pytest.approx(gained[0] * (1 + value / 100), rel=1e-3)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"gold_income"}))
def test_a_talent_raises_the_income(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    """Values are gold for 10 seconds."""
    arena, _, _ = with_talent(core, patch, hero, talent)
    plain = line_up(core, patch, (hero,), ("lich" if hero != "lich" else "lion",), {0: 0, 5: 500})
    gained = []
    for each in (plain, arena):
        each.world.set_gold(0, -5000)  # nothing is bought
        before = each.world.hero(0)["gold"]
        each.seconds(20)
        gained.append(each.world.hero(0)["gold"] - before)
    assert gained[1] - gained[0] == pytest.approx(2 * value, abs=2)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"spell_lifesteal"}))
def test_a_talent_heals_by_spells(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    """Heals by the stated share of a spell's damage."""
    arena, _, _ = with_talent(core, patch, hero, talent)
    a, enemy = arena.unit(0), arena.unit(5)
    set_health(arena, enemy, hp=5000)
    for unit in (a, enemy):
        arena.still(unit)
    arena.world.set_unit(a, hp=100)
    ability = {"viper": "viper_viper_strike", "queenofpain": "queenofpain_sonic_wave"}[hero]
    slot = arena.teach(0, ability, 1)
    at = arena.world.unit(enemy)
    kind = "cast_unit" if hero == "viper" else "cast_point"
    arena.world.order(a, kind, target=enemy if hero == "viper" else -1, x=at["x"], y=at["y"], slot=slot)
    start = arena.world.time
    arena.seconds(7)
    flow = {unit: (arena.world.time - start) * arena.world.unit(unit)["hp_regen"] for unit in (a, enemy)}
    lost = 5000 - arena.hp(enemy) + flow[enemy]
    assert lost > 100
    assert arena.hp(a) - 100 - flow[a] == pytest.approx(lost * value / 100, rel=0.03)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), of({"night_vision"}))
def test_a_talent_sees_farther_at_night(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    """At minute 5.5 it is night: an enemy 990 away on level ground is seen with the talent alone."""
    seen = []
    for taken in (False, True):
        arena = line_up(core, patch, (hero,), ("lich",), {0: 0, 5: 500}, start_s=330.0)
        base = arena.data["heroes"]["heroes"]["npc_dota_hero_" + hero]["vision_night"]
        arena.world.teach(0, talent, int(taken))
        arena.place(arena.unit(5), 990, 0)
        arena.seconds(0.3)
        assert base < 990 < base + value
        seen.append(arena.world.visible(0, arena.unit(5)))
    assert seen == [False, True]


def test_all_plain_talents_are_here() -> None:
    elsewhere = {"cast_range", "spell_block", "20_crit"}
    assert {stem(talent) for _, _, talent, _ in PLAIN} <= {*ADDED, *OTHERS, *elsewhere}
