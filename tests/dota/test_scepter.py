"""Aghanim's Scepter upgrades of the heroes' ultimates, with the numbers of abilities.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, cooldown_of_cast, give
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import ROOTED, UNSEEN
from tests.dota.scenes.talents import duel


def scepter(arena: Arena, hero: int = 0) -> None:
    give(arena, "ultimate_scepter", hero)
    arena.world.set_unit(arena.unit(hero), mana=5000)


def scepter_duels(new_world: Any, data: dict[str, Any], hero: str, **more: Any) -> list[Arena]:
    """Return the same duel twice, without and with the scepter."""
    arenas = [duel(new_world, data, hero, **more) for _ in range(2)]
    scepter(arenas[1])
    return arenas


FIELDS = [
    ("lion", "lion_finger_of_death", "cooldown"), ("lion", "lion_finger_of_death", "mana_cost"),
    ("necrolyte", "necrolyte_reapers_scythe", "cooldown"), ("queenofpain", "queenofpain_sonic_wave", "cooldown"),
    ("tidehunter", "tidehunter_gush", "cooldown"),
    ("viper", "viper_viper_strike", "cooldown"), ("viper", "viper_viper_strike", "mana_cost"),
]  # fmt: skip


@pytest.mark.parametrize(("hero", "ability", "field"), FIELDS)
def test_cooldowns_and_mana(new_world: Any, data: dict[str, Any], hero: str, ability: str, field: str) -> None:
    plain, upgraded = scepter_duels(new_world, data, hero)
    expected = [plain.field(ability, field)[0], plain.special(ability, field + "_scepter")[0]]
    for arena, number in zip((plain, upgraded), expected, strict=True):
        slot = arena.teach(0, ability, 1)
        arena.still(arena.unit(0))
        mana = arena.world.unit(arena.unit(0))["mana"]
        if field == "cooldown":
            assert cooldown_of_cast(arena, ability, slot, arena.unit(5)) == pytest.approx(number + STEP / 2, abs=STEP)
        else:
            cooldown_of_cast(arena, ability, slot, arena.unit(5))
            assert mana - arena.world.unit(arena.unit(0))["mana"] == pytest.approx(number, abs=0.5)


@pytest.mark.parametrize(("hero", "ability"), [("lich", "lich_chain_frost"), ("viper", "viper_viper_strike")])
def test_cast_ranges(new_world: Any, data: dict[str, Any], hero: str, ability: str) -> None:
    moved = []
    for arena in scepter_duels(new_world, data, hero):
        far = arena.special(ability, "cast_range_scepter")[0] - 50
        slot = arena.teach(0, ability, 1)
        arena.place(arena.unit(0), 0, 0, -math.pi / 4)
        arena.place(arena.unit(5), min(far, 790) * 0.707, -min(far, 790) * 0.707)
        if arena.field(ability, "cast_range")[0] + 48 >= 790:
            arena.place(arena.unit(5), far * 0.707, -far * 0.707)
        arena.seconds(0.2)
        before = arena.world.unit(arena.unit(0))
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        arena.world.step(1)
        after = arena.world.unit(arena.unit(0))
        moved.append(math.hypot(after["x"] - before["x"], after["y"] - before["y"]))
    assert moved[1] == 0
    if hero == "viper":  # 500 without
        assert moved[0] > 20


def test_a_scepter_changes_nothing_of_call_down(new_world: Any, data: dict[str, Any]) -> None:
    """Its tooltip names the Side Gunner alone; `damage_second_scepter` is left over in the files."""
    lost = []
    for arena in scepter_duels(new_world, data, "gyrocopter"):
        slot = arena.teach(0, "gyrocopter_call_down", 1)
        arena.place(arena.unit(5), 900, 0)
        hp = arena.hp(arena.unit(5))
        arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 900, y=CENTRE[1], slot=slot)
        arena.seconds(4.6)
        lost.append((hp - arena.hp(arena.unit(5))) / arena.magic(arena.unit(5)) / arena.amp(arena.unit(0)))
    assert lost == pytest.approx([150 + 100] * 2, rel=1e-3)


def test_battle_hunger_weakens(new_world: Any, data: dict[str, Any]) -> None:
    dealt = []
    for arena in scepter_duels(new_world, data, "axe"):
        cast(arena, "axe_battle_hunger", 1, arena.unit(5), wait=0.6)
        dealt.append(arena.world.damage(arena.unit(5), arena.unit(0), 100, "pure"))
    assert dealt == [pytest.approx(100), pytest.approx(70)]


def test_freezing_field_damages_units_that_stay(new_world: Any, data: dict[str, Any]) -> None:
    """Frostbite at its rank after 2.5 s within the area; none for a unit that leaves in between."""
    arenas = scepter_duels(new_world, data, "crystal_maiden", enemies=("sven", "axe"))
    for arena, bites in zip(arenas, (False, True), strict=True):
        arena.teach(0, "crystal_maiden_frostbite", 2)
        slot = arena.teach(0, "crystal_maiden_freezing_field", 1)
        arena.place(arena.unit(6), 400, 300)
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(2)
        assert not arena.modifiers(arena.unit(5), "crystal_maiden_frostbite")
        arena.place(arena.unit(6), 2000, 300)
        arena.seconds(0.4)
        arena.place(arena.unit(6), 400, 300)
        arena.seconds(0.5)
        assert bool(arena.world.unit(arena.unit(5))["status"] & ROOTED) == bites
        assert not arena.modifiers(arena.unit(6), "crystal_maiden_frostbite")
        if bites:
            root = arena.modifiers(arena.unit(5), "crystal_maiden_frostbite")[0]
            assert root["left"] <= arena.special("crystal_maiden_frostbite", "duration")[1]


def test_finger_of_death_strikes_around(new_world: Any, data: dict[str, Any]) -> None:
    lost = []
    for arena in scepter_duels(new_world, data, "lion"):
        slot = arena.teach(0, "lion_finger_of_death", 1)
        near, far = arena.dummy(550, 0), arena.dummy(700, 0)
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        arena.seconds(1)
        lost.append([round((5000 - arena.hp(u)) / arena.amp(arena.unit(0)) / arena.magic(u)) for u in (near, far)])
    assert lost == [[0, 0], [arena.special("lion_finger_of_death", "damage_scepter")[0], 0]]


def test_tricks_of_the_trade_last_longer(new_world: Any, data: dict[str, Any]) -> None:
    lasted = []
    for arena in scepter_duels(new_world, data, "riki"):
        cast(arena, "riki_tricks_of_the_trade", 1, wait=0.5)
        start = arena.world.time
        while arena.world.unit(arena.unit(0))["act"] == "channel":
            arena.world.step(1)
        lasted.append(arena.world.time - start)
        assert not arena.modifiers(arena.unit(0), "riki_tricks")
    bonus = arena.special("riki_tricks_of_the_trade", "scepter_bonus")[0]
    assert lasted[1] - lasted[0] == pytest.approx(bonus, abs=STEP)


def test_more_souls(new_world: Any, data: dict[str, Any]) -> None:
    souls = []
    for arena in scepter_duels(new_world, data, "nevermore"):
        arena.teach(0, "nevermore_necromastery", 1)
        for _ in range(30):
            arena.world.kill(arena.dummy(900, 0), arena.unit(0))
        souls.append(arena.world.ability(0, "nevermore_necromastery")["stacks"])
        rank = arena.world.ability(0, "nevermore_necromastery")["level"] - 1
    assert souls == [arena.special("nevermore_necromastery", "necromastery_max_souls")[rank],
                     arena.special("nevermore_necromastery", "necromastery_max_souls_scepter")[rank]]


def test_requiem_comes_home(new_world: Any, data: dict[str, Any]) -> None:
    """Returning lines hit again with 40 % of the damage, and heal by that amount."""
    for arena, returns in zip(scepter_duels(new_world, data, "nevermore"), (False, True), strict=True):
        arena.teach(0, "nevermore_necromastery", 1)
        slot = arena.teach(0, "nevermore_requiem", 1)
        for _ in range(2):
            arena.world.kill(arena.dummy(-1800, 0), arena.unit(0))  # one line, straight ahead
        arena.world.set_unit(arena.unit(0), hp=1000)
        arena.still(arena.unit(0))
        arena.world.order(arena.unit(0), "cast", slot=slot)
        hp = arena.hp(arena.unit(5))
        arena.seconds(2.6)
        first = hp - arena.hp(arena.unit(5))
        through = arena.magic(arena.unit(5)) * arena.amp(arena.unit(0))
        assert first == pytest.approx(arena.field("nevermore_requiem", "damage")[0] * through, rel=1e-3)
        arena.seconds(2)
        second = hp - arena.hp(arena.unit(5)) - first
        assert second == pytest.approx(0.4 * first if returns else 0, rel=1e-3)
        assert arena.hp(arena.unit(0)) - 1000 == pytest.approx(second, abs=0.5)


def test_shadow_dance_covers_allies(new_world: Any, data: dict[str, Any]) -> None:
    hidden = []
    for arena in scepter_duels(new_world, data, "slark", allies=("lion", "viper")):
        arena.place(arena.unit(1), 200, 100)
        arena.place(arena.unit(2), 600, 100)
        cast(arena, "slark_shadow_dance", 1, wait=0.3)
        hidden.append([bool(arena.world.unit(arena.unit(i))["status"] & UNSEEN) for i in range(3)])
    assert hidden == [[True, False, False], [True, True, False]]


def test_scepter_assassinate_hits_an_area(new_world: Any, data: dict[str, Any]) -> None:
    """Every visible hero within 400 of the target takes an attack of 280 % instead of the spell's damage."""
    arena = scepter_duels(new_world, data, "sniper", enemies=("sven", "axe"))[1]
    arena.place(arena.unit(6), 650, 0)
    arena.world.set_unit(arena.unit(6), extra_hp=4000)
    arena.world.set_unit(arena.unit(6), hp=4000)
    slot = arena.teach(0, "sniper_assassinate", 1)
    hp = [arena.hp(arena.unit(i)) for i in (5, 6)]
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(2.8)
    u = arena.world.unit(arena.unit(0))
    for before, i in zip(hp, (5, 6), strict=True):
        armor = arena.world.unit(arena.unit(i))["armor"]
        through = physical_share(armor)
        # An attack's damage, with a Headshot's of rank 1; the spell's own would be 240.
        low, high = ((2.8 * (u[k] + u["dmg_bonus"]) + 30 * arena.amp(arena.unit(0))) * through
                     for k in ("dmg_min", "dmg_max"))
        assert low - 3 <= before - arena.hp(arena.unit(i)) <= high + 3


def test_gods_strength_is_shared(new_world: Any, data: dict[str, Any]) -> None:
    """Allied heroes within 1200 have 75 % more damage; his own grows as before."""
    bonus = []
    for arena in scepter_duels(new_world, data, "sven", allies=("lion",)):
        arena.place(arena.unit(1), 800, 100)
        slot = arena.teach(0, "sven_gods_strength", 1)
        before = [arena.world.unit(arena.unit(i)) for i in (0, 1)]
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(1)
        after = [arena.world.unit(arena.unit(i)) for i in (0, 1)]
        bonus.append([(a["dmg_min"] + a["dmg_bonus"]) / (b["dmg_min"] + b["dmg_bonus"])
                      for a, b in zip(after, before, strict=True)])
    assert bonus[0][1] == 1
    assert bonus[1][1] == pytest.approx(1.75, abs=0.35)
    assert bonus[1][0] == pytest.approx(bonus[0][0], abs=0.15)


def test_gush_becomes_a_wave(new_world: Any, data: dict[str, Any]) -> None:
    struck = []
    for arena in scepter_duels(new_world, data, "tidehunter"):
        behind, beside = arena.dummy(900, 0), arena.dummy(600, 500)
        cast(arena, "tidehunter_gush", 1, arena.unit(5), wait=1.6)
        struck.append([bool(arena.modifiers(u, "tidehunter_gush")) for u in (arena.unit(5), behind, beside)])
    assert struck == [[True, False, False], [True, True, False]]


def test_death_ward_bounces(new_world: Any, data: dict[str, Any]) -> None:
    hurt = []
    for arena in scepter_duels(new_world, data, "witch_doctor", enemies=("sven", "axe", "viper", "razor")):
        for i, (x, y) in enumerate(((400, 0), (700, 0), (700, 300), (2200, 0))):
            arena.place(arena.unit(5 + i), x, y)
            arena.world.set_unit(arena.unit(5 + i), extra_hp=4000)
            arena.world.set_unit(arena.unit(5 + i), hp=4000)
        slot = arena.teach(0, "witch_doctor_death_ward", 1)
        arena.place(arena.unit(0), -500, 0)
        hp = [arena.hp(arena.unit(5 + i)) for i in range(4)]
        arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] - 300, y=CENTRE[1], slot=slot)
        arena.seconds(2.2)
        hurt.append([before > arena.hp(arena.unit(5 + i)) for i, before in enumerate(hp)])
    assert hurt[0].count(True) <= 1
    assert hurt[1][:3] == [True, True, True] and not hurt[1][3]


def test_the_numbers_of_damage(new_world: Any, data: dict[str, Any]) -> None:
    """Sonic Wave, Chain Frost and Eye of the Storm take the scepter's numbers in place of their own."""
    for hero, ability, special in (("queenofpain", "queenofpain_sonic_wave", "damage"),
                                   ("lich", "lich_chain_frost", "damage")):
        lost = []
        for arena in scepter_duels(new_world, data, hero):
            slot = arena.teach(0, ability, 1)
            hp = arena.hp(arena.unit(5))
            cooldown_of_cast(arena, ability, slot, arena.unit(5))
            arena.seconds(0.8)
            lost.append((hp - arena.hp(arena.unit(5))) / arena.amp(arena.unit(0)))
        assert lost[1] / lost[0] == pytest.approx(
            arena.special(ability, special + "_scepter")[0] / arena.special(ability, special)[0], rel=0.01)
