"""Items with attack effects, with the numbers of items.json: procs, poison, armor reduction, lifesteal, auras."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.units import without_armor

MELEE, RANGED = "sven", "lion"


def specials(item: str, data: dict[str, Any]) -> dict[str, float]:
    return {name: values["v"][0] for name, values in data["items"]["items"]["item_" + item]["specials"].items()}


def arena(new_world: Any, data: dict[str, Any], hero: str = MELEE, allies: tuple[str, ...] = ()) -> Arena:
    """Return an arena: the hero at the centre at half health; the enemy far away; no abilities."""
    made = Arena(new_world((hero, *allies), ("axe",)), data)
    for index, name in ((0, hero), (5, "axe"), *enumerate(allies, start=1)):
        for ability in data["heroes"]["heroes"]["npc_dota_hero_" + name]["abilities"]:
            made.world.teach(index, ability, 0)
    made.place(made.unit(0), 0, 0, 0.0)
    made.place(made.unit(5), 2500, 0)
    made.world.set_unit(made.unit(0), extra_hp=5000)
    made.world.set_unit(made.unit(0), hp=1000)
    return made


def hits(a: Arena, target: int, count: int, hero: int = 0) -> list[float]:
    """Return the damage of that many hits of the hero, misses excluded; then stop attacking."""
    unit = a.unit(hero)
    a.world.set_unit(unit, attack_ready=0)
    a.world.order(unit, "attack", target)
    lost: list[float] = []
    hp = a.hp(target)
    for _ in range(70 * count + 60):
        a.world.run_frames(1)
        if a.hp(target) < hp - 10:  # not a poison's tick
            lost.append(hp - a.hp(target))
        hp = a.hp(target)
        if len(lost) == count:
            break
    a.world.set_unit(unit, attack_ready=1e9)
    a.world.order(unit, "hold")
    assert len(lost) == count
    return lost


@pytest.mark.parametrize("hero", [MELEE, RANGED])
def test_javelin_strikes_with_magic_now_and_then(new_world: Any, data: dict[str, Any], hero: str) -> None:
    """A quarter of the attacks do 100 magical damage more, less what the target resists; the others do nothing more."""
    a = arena(new_world, data, hero)
    give(a, "javelin")
    unit, stated = a.unit(0), specials("javelin", data)
    a.world.set_unit(unit, extra_as=300)
    target = without_armor(a, a.dummy(120, 0), hp=1e6)
    u = a.world.unit(unit)
    low, high = u["dmg_min"] + u["dmg_bonus"] - 0.1, u["dmg_max"] + u["dmg_bonus"] + 0.1
    bolt = stated["bonus_chance_damage"] * a.magic(target) * a.amp(unit)
    assert low + bolt > high
    lost = hits(a, target, 400)
    plain = [x for x in lost if low <= x <= high]
    struck = [x for x in lost if low + bolt <= x <= high + bolt]
    assert len(plain) + len(struck) == len(lost)
    assert len(struck) / len(lost) == pytest.approx(stated["bonus_chance"] / 100, abs=0.04)


def test_javelin_finds_the_evasive(new_world: Any, data: dict[str, Any]) -> None:
    """An attack with a bolt does not miss: of all attacks on a bearer of Butterfly a quarter has one all the same."""
    a = arena(new_world, data)
    give(a, "javelin")
    give(a, "butterfly", hero=5)
    unit, enemy, stated = a.unit(0), a.unit(5), specials("javelin", data)
    a.place(enemy, 120, 0, math.pi)
    a.world.set_unit(unit, extra_as=300)
    a.world.set_unit(without_armor(a, enemy, hp=1e6), attack_ready=1e9)
    u = a.world.unit(unit)
    bolt = stated["bonus_chance_damage"] * a.magic(enemy) * a.amp(unit)
    a.world.set_unit(unit, attack_ready=0)
    a.world.order(unit, "attack", enemy)
    swings = landed = bolts = 0
    last, hp = u["last_attack"], a.hp(enemy)
    while swings < 400:
        a.world.run_frames(1)
        now = a.world.unit(unit)["last_attack"]
        swings += now != last
        last = now
        lost = hp - a.hp(enemy)
        landed += lost > 1
        bolts += lost > u["dmg_min"] + u["dmg_bonus"] + bolt - 1
        hp = a.hp(enemy)
    chance = stated["bonus_chance"] / 100
    evasion = data["items"]["items"]["item_butterfly"]["stats"]["evasion_pct"] / 100
    assert bolts / swings == pytest.approx(chance, abs=0.04)
    assert landed / swings == pytest.approx(chance + (1 - chance) * (1 - evasion), abs=0.06)


@pytest.mark.parametrize("hero", [MELEE, RANGED])
def test_morbid_mask_steals_a_share_of_the_damage(new_world: Any, data: dict[str, Any], hero: str) -> None:
    """15 % of the damage after the target's armor, for melee and ranged attackers."""
    a = arena(new_world, data, hero)
    give(a, "lifesteal")
    unit, target = a.unit(0), a.dummy(120, 0, hp=1e5)
    a.world.set_unit(target, extra_armor=20)  # the damage dealt is well below the raw damage
    mine = a.hp(unit)
    lost = hits(a, target, 5)
    u = a.world.unit(unit)
    assert max(lost) < 0.6 * (u["dmg_min"] + u["dmg_bonus"])
    share = specials("lifesteal", data)["lifesteal_percent"] / 100
    assert a.hp(unit) - mine == pytest.approx(share * sum(lost), rel=1e-3)


def test_morbid_mask_takes_nothing_from_spells_and_buildings(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data)
    give(a, "lifesteal")
    unit, mine = a.unit(0), a.hp(a.unit(0))
    a.world.damage(unit, a.unit(5), 100, "magical")
    tower = next(u for u in a.world.units("tower") if u["team"] == 1 and not a.world.protected(u["index"]))
    a.world.set_unit(unit, x=tower["x"] - 200, y=tower["y"])
    a.seconds(0.2)
    assert a.world.can_attack(unit, tower["index"])
    hits(a, tower["index"], 2)
    assert a.hp(unit) <= mine


@pytest.mark.parametrize(("hero", "name"), [(MELEE, "vampiric_aura"), (RANGED, "vampiric_aura_ranged")])
def test_vladmirs_offering_is_for_allies_around(new_world: Any, data: dict[str, Any], hero: str, name: str) -> None:
    """Armor, mana, damage share and lifesteal for the bearer and allies within 1200; less for ranged units; none
    farther away and none for enemies."""
    a = arena(new_world, data, hero, ("witch_doctor",))
    fighter, bearer, enemy = a.unit(0), a.unit(1), a.unit(5)
    stated = specials("vladmir", data)
    around = stated["aura_radius"]
    a.place(bearer, -around - 30, 0)
    a.place(enemy, -around, 200)
    a.seconds(0.3)
    before = {u: a.world.unit(u) for u in (fighter, bearer, enemy)}
    assert a.world.give_item(1, "item_vladmir")
    a.seconds(0.6)
    assert a.world.unit(fighter) == before[fighter] | {k: a.world.unit(fighter)[k] for k in ("x", "y")}
    assert a.world.unit(bearer)["armor"] - before[bearer]["armor"] == pytest.approx(stated["armor_aura"])
    a.place(bearer, -around + 30, 0)
    a.seconds(0.3)
    after = a.world.unit(fighter)
    assert after["armor"] - before[fighter]["armor"] == pytest.approx(stated["armor_aura"])
    assert after["mana_regen"] - before[fighter]["mana_regen"] == pytest.approx(stated["mana_regen_aura"], rel=1e-4)
    for end in ("dmg_min", "dmg_max"):
        assert after[end] == pytest.approx(before[fighter][end] * (1 + stated["damage_aura"] / 100), rel=1e-4)
    foe = a.world.unit(enemy)
    assert (foe["armor"], foe["dmg_min"]) == (before[enemy]["armor"], before[enemy]["dmg_min"])
    a.still(fighter)
    mine = a.hp(fighter)
    lost = hits(a, a.dummy(120, 0, hp=1e5), 5)
    assert a.hp(fighter) - mine == pytest.approx(stated[name] / 100 * sum(lost), rel=1e-3)


@pytest.mark.parametrize(("hero", "kind"), [(MELEE, "melee"), (RANGED, "range")])
def test_orb_of_venom_poisons_and_slows(new_world: Any, data: dict[str, Any], hero: str, kind: str) -> None:
    """3 s long so much magical damage a second, and so much slower; more of both in melee; another hit renews it."""
    a = arena(new_world, data, hero)
    give(a, "orb_of_venom")
    unit, enemy, stated = a.unit(0), a.unit(5), specials("orb_of_venom", data)
    a.place(enemy, 120, 0, math.pi)
    a.world.set_unit(enemy, extra_hp=5000)
    a.world.set_unit(enemy, hp=5000)
    a.still(enemy)
    speed = a.world.unit(enemy)["move_speed"]
    slowed = speed + stated["poison_movement_speed_" + kind] / 100 * a.base_speed("axe")
    hits(a, enemy, 2)
    hp, begun = a.hp(enemy), a.world.time
    assert a.world.unit(enemy)["move_speed"] == pytest.approx(slowed, rel=1e-4)
    ticks = []
    while a.modifiers(enemy, "item_orb_of_venom"):
        before = a.hp(enemy)
        a.world.run_frames(1)
        if a.hp(enemy) < before:
            ticks.append(a.world.time - begun)
    lasts = stated["poison_duration"]
    assert a.world.time - begun == pytest.approx(lasts, abs=0.07)
    assert len(ticks) == lasts  # once a second, counted from the first hit
    assert ticks[2] - ticks[1] == pytest.approx(1, abs=0.07)
    each = stated["poison_damage_" + kind] * a.magic(enemy) * a.amp(unit)
    assert hp - a.hp(enemy) == pytest.approx(lasts * each, rel=1e-3)
    a.world.step(1)
    assert a.world.unit(enemy)["move_speed"] == pytest.approx(speed)


@pytest.mark.parametrize(("item", "hero"), [("blight_stone", MELEE), ("blight_stone", RANGED), ("desolator", MELEE)])
def test_corruption_wears_armor_down_for_a_while(new_world: Any, data: dict[str, Any], item: str, hero: str) -> None:
    """Armor reduction after a hit, once for any number of hits, for its duration after the last; the hit itself is not
    affected."""
    a = arena(new_world, data, hero)
    give(a, item)
    target, stated = a.dummy(120, 0, hp=1e5), specials(item, data)
    armor, own = a.world.unit(target)["armor"], a.world.unit(a.unit(0))["armor"]
    hits(a, target, 3)
    begun = a.world.time
    a.world.run_frames(1)
    assert a.world.unit(target)["armor"] == pytest.approx(armor + stated["corruption_armor"])
    assert a.world.unit(a.unit(0))["armor"] == own
    a.seconds(stated["corruption_duration"] - 2 * STEP)
    assert a.world.unit(target)["armor"] == pytest.approx(armor + stated["corruption_armor"])
    a.seconds(3 * STEP)
    assert a.world.time - begun < stated["corruption_duration"] + 3 * STEP
    assert a.world.unit(target)["armor"] == pytest.approx(armor)


@pytest.mark.parametrize("item", ["orb_of_venom", "blight_stone", "javelin"])
def test_nothing_of_it_on_a_denied_creep(new_world: Any, data: dict[str, Any], item: str) -> None:
    """Attack effects apply to enemies only."""
    a = arena(new_world, data)
    give(a, item)
    creep = a.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 120, CENTRE[1])
    a.world.set_unit(without_armor(a, creep), hp=1000)
    a.world.order(creep, "hold")
    u = a.world.unit(a.unit(0))
    lost = hits(a, creep, 8)
    assert max(lost) <= u["dmg_max"] + u["dmg_bonus"] + 0.1
    assert not a.modifiers(creep, "item_" + item)


def test_the_corrupted_do_not_pass_it_on(new_world: Any, data: dict[str, Any]) -> None:
    """A corrupted unit that strikes back corrupts nobody, and the bearer's own effect stays permanent."""
    a = arena(new_world, data, allies=("lion",))
    give(a, "desolator")
    fighter, mate, enemy = a.unit(0), a.unit(1), a.unit(5)
    a.place(enemy, 120, 0, math.pi)
    a.place(mate, 120, 120)
    for unit in (fighter, mate, enemy):
        a.world.set_unit(unit, extra_hp=9000)
        a.world.set_unit(unit, hp=9000)
    armor = {u: a.world.unit(u)["armor"] for u in (fighter, mate)}
    hits(a, enemy, 1)
    assert a.modifiers(enemy, "item_desolator")
    for target in (fighter, mate):
        hits(a, target, 2, hero=5)
        a.world.run_frames(1)
        assert a.world.unit(target)["armor"] == armor[target]
    assert not a.modifiers(mate, "item_desolator")
    (carried,) = a.modifiers(fighter, "item_desolator")
    assert carried["left"] > 1e6
    a.seconds(20)
    armor[enemy] = a.world.unit(enemy)["armor"]
    hits(a, enemy, 1)
    a.world.run_frames(1)
    assert a.world.unit(enemy)["armor"] == armor[enemy] + specials("desolator", data)["corruption_armor"]
