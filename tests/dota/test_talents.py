"""Effects of talents, with the numbers of heroes.json. Talents that add to a special value are tested with their
ability; these are the others, and a check that every talent has an effect."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, cooldown_of_cast, order
from tests.dota.scenes.arena import CENTRE, STEP
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.patches import load_tables, read_data
from tests.dota.scenes.statuses import BROKEN, DISARMED, HEXED, SILENCED, TAUNTED
from tests.dota.scenes.talents import duel, take, value, without_and_with
from tests.dota.scenes.units import set_health

COOLDOWNS = [
    ("death_prophet", "death_prophet_2", "death_prophet_carrion_swarm"),
    ("earthshaker", "earthshaker", "earthshaker_enchant_totem"),
    ("gyrocopter", "gyrocopter_4", "gyrocopter_call_down"),
    ("lich", "lich_3", "lich_frost_nova"),
    ("necrolyte", "necrophos", "necrolyte_death_pulse"),
    ("riki", "riki_2", "riki_smoke_screen"),
    ("sven", "sven", "sven_storm_bolt"),
]


@pytest.mark.parametrize(("hero", "talent", "ability"), COOLDOWNS, ids=[c[1] for c in COOLDOWNS])
def test_a_talent_shortens_a_cooldown(new_world: Any, data: dict[str, Any], hero: str, talent: str,
                                      ability: str) -> None:
    left = []
    for arena in without_and_with(new_world, data, hero, talent):
        slot = arena.teach(0, ability, 1)
        left.append(cooldown_of_cast(arena, ability, slot, arena.unit(5)))
    assert left[0] == pytest.approx(arena.field(ability, "cooldown")[0] + STEP / 2, abs=STEP)
    assert left[0] - left[1] == pytest.approx(value(data, hero, talent), abs=STEP)


@pytest.mark.parametrize(("hero", "talent", "ability"), [("lion", "lion_2", "lion_impale"),
                                                         ("riki", "riki_3", "riki_blink_strike")])
def test_a_talent_lengthens_a_cast(new_world: Any, data: dict[str, Any], hero: str, talent: str,
                                   ability: str) -> None:
    """Within the longer range he casts without walking; without the talent he walks first."""
    far = duel(new_world, data, hero).field(ability, "cast_range")[0] + 200
    assert value(data, hero, talent) > 200
    moved = []
    for arena in without_and_with(new_world, data, hero, talent):
        slot = arena.teach(0, ability, 1)
        arena.place(arena.unit(0), 0, 0, -math.pi / 4)
        arena.place(arena.unit(5), far * 0.707, -far * 0.707)  # down the river, in sight
        arena.seconds(0.2)
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        arena.world.step(1)
        moved.append(arena.world.unit(arena.unit(0))["x"] - CENTRE[0])
    assert moved[0] > 20 and moved[1] == 0


def test_call_down_reaches_everywhere(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "gyrocopter")
    take(arena, "gyrocopter_5")
    slot = arena.teach(0, "gyrocopter_call_down", 1)
    arena.place(arena.unit(5), 3000, 2500)
    hp = arena.hp(arena.unit(5))
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 3000, y=CENTRE[1] + 2500, slot=slot)
    arena.seconds(2.8)
    damage = arena.special("gyrocopter_call_down", "damage_first")[0]
    assert hp - arena.hp(arena.unit(5)) == pytest.approx(
        damage * arena.magic(arena.unit(5)) * arena.amp(arena.unit(0)), rel=1e-3)


def test_assassinate_takes_aim_sooner(new_world: Any, data: dict[str, Any]) -> None:
    aimed = []
    for arena in without_and_with(new_world, data, "sniper", "sniper_4"):
        order(arena, "sniper_assassinate", 1, arena.unit(5))
        start = arena.world.time
        while arena.world.ability(0, "sniper_assassinate")["castable"]:
            arena.world.step(1)
        aimed.append(arena.world.time - start)
    assert aimed[0] == pytest.approx(2.0, abs=0.2)
    assert aimed[0] - aimed[1] == pytest.approx(value(data, "sniper", "sniper_4"), abs=0.15)


def test_counter_helix_triggers_on_own_attacks(new_world: Any, data: dict[str, Any]) -> None:
    """Counter Helix with the talent: his own attacks trigger it with the same chance, a fifth."""
    turned = []
    for arena in without_and_with(new_world, data, "axe", "axe_3"):
        arena.teach(0, "axe_counter_helix", 4)
        beside = arena.dummy(0, 150, hp=60000)
        target = arena.dummy(130, 0, hp=60000)
        arena.world.order(arena.unit(0), "attack", target=target)
        arena.world.set_unit(arena.unit(0), attack_ready=0)
        arena.seconds(60)
        turned.append(arena.world.unit(beside)["max_hp"] - arena.hp(beside))
    assert turned[0] == 0
    each = arena.field("axe_counter_helix", "damage")[3] * arena.amp(arena.unit(0))
    assert turned[1] > 0 and turned[1] / each == pytest.approx(round(turned[1] / each), abs=0.01)


def test_arcane_aura_lowers_mana_costs(new_world: Any, data: dict[str, Any]) -> None:
    """14 % less, for allies everywhere."""
    arena = duel(new_world, data, "crystal_maiden", allies=("lion",))
    arena.teach(0, "crystal_maiden_brilliance_aura", 1)
    slot = arena.teach(1, "lion_impale", 1)
    spent = []
    for _ in range(2):
        arena.world.set_unit(arena.unit(1), mana=5000)
        mana = arena.world.unit(arena.unit(1))["mana"]
        arena.world.order(arena.unit(1), "cast_point", x=CENTRE[0] - 300, y=CENTRE[1] + 200, slot=slot)
        arena.seconds(1.5)
        spent.append(mana - arena.world.unit(arena.unit(1))["mana"])
        take(arena, "crystal_maiden_4")
        arena.seconds(12)
        arena.still(arena.unit(1))
    assert spent[0] == pytest.approx(70, abs=4)
    assert spent[0] - spent[1] == pytest.approx(0.14 * 70, abs=0.5)


def test_exorcism_hastens(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "death_prophet")
    take(arena, "death_prophet_4")
    cast(arena, "death_prophet_exorcism", 1, wait=1)
    assert arena.world.unit(arena.unit(0))["move_speed"] == data["rules"]["rules"]["runes"]["effects"]["haste"]["ms"]
    arena.seconds(35)
    assert arena.world.unit(arena.unit(0))["move_speed"] < 500


def test_homing_missile_has_charges(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "gyrocopter")
    slot = arena.teach(0, "gyrocopter_homing_missile", 4)
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(0.3)
    assert not arena.world.ability(0, "gyrocopter_homing_missile")["castable"]
    arena.seconds(12)
    take(arena, "gyrocopter_1")
    arena.seconds(11.2 * 3)
    assert arena.world.ability(0, "gyrocopter_homing_missile")["charges"] == 3
    for left in (2, 1, 0):
        arena.world.set_unit(arena.unit(0), mana=900)
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        arena.seconds(0.3)
        assert arena.world.ability(0, "gyrocopter_homing_missile")["charges"] == left
    assert not arena.world.ability(0, "gyrocopter_homing_missile")["castable"]


def test_frost_shield_heals(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "lich")
    take(arena, "lich_1")
    slot = arena.teach(0, "lich_frost_shield", 1)
    before = arena.world.unit(arena.unit(0))["hp_regen"]
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(0), slot=slot)
    arena.seconds(0.5)
    assert arena.world.unit(arena.unit(0))["hp_regen"] - before == pytest.approx(value(data, "lich", "lich_1"))


def test_lich_slows_by_attacks(new_world: Any, data: dict[str, Any]) -> None:
    """His attacks slow by 50 % for 3 s."""
    arena = duel(new_world, data, "lich")
    take(arena, "lich_2")
    target = arena.unit(5)
    speed = arena.world.unit(target)["move_speed"]
    arena.world.set_unit(arena.unit(0), attack_ready=0)
    arena.world.order(arena.unit(0), "attack", target=target)
    arena.seconds(1.2)
    base = arena.base_speed("sven")
    assert speed - arena.world.unit(target)["move_speed"] == pytest.approx(base / 2, rel=0.05)
    arena.world.order(arena.unit(0), "hold")
    arena.world.set_unit(arena.unit(0), attack_ready=1e9)
    arena.seconds(3.2)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speed)


def test_mana_drain_takes_more_targets(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "lion", enemies=("sven", "axe", "viper", "razor"))
    take(arena, "lion")
    for i, (x, y) in enumerate(((300, 0), (400, 150), (400, -150), (300, 900))):
        arena.place(arena.unit(5 + i), x, y, math.pi)
        arena.world.set_unit(arena.unit(5 + i), mana=150)
        arena.still(arena.unit(5 + i))
    slot = arena.teach(0, "lion_mana_drain", 1)
    arena.world.set_unit(arena.unit(0), mana=10)
    mana = [arena.world.unit(arena.unit(5 + i))["mana"] for i in range(4)]
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(3.3)
    lost = [m - arena.world.unit(arena.unit(5 + i))["mana"] for i, m in enumerate(mana)]
    assert lost[0] == pytest.approx(20 * 3, abs=5)
    assert lost[1] == pytest.approx(lost[0], abs=0.5) and lost[2] == pytest.approx(lost[0], abs=0.5)
    assert lost[3] == 0  # too far from the first


def test_hex_affects_an_area(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "lion")
    near, far = arena.dummy(550, 0), arena.dummy(700, 0)
    take(arena, "lion_4")
    cast(arena, "lion_voodoo", 1, arena.unit(5), wait=0.3)
    hexed = [bool(arena.world.unit(u)["status"] & HEXED) for u in (arena.unit(5), near, far)]
    assert hexed == [True, True, False]
    assert len(arena.modifiers(arena.unit(5), "lion_voodoo")) == 1


def test_shadow_strike_affects_an_area(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "queenofpain")
    near, far = arena.dummy(900, 0), arena.dummy(1000, 0)
    take(arena, "queen_of_pain")
    cast(arena, "queenofpain_shadow_strike", 1, arena.unit(5), wait=1.8)
    struck = [bool(arena.modifiers(u, "queenofpain_shadow_strike")) for u in (arena.unit(5), near, far)]
    assert struck == [True, True, False]


def test_scream_of_pain_frightens(new_world: Any, data: dict[str, Any]) -> None:
    """For 1.5 s enemies run home and do nothing else."""
    arena = duel(new_world, data, "queenofpain")
    take(arena, "queen_of_pain_2")
    slot = arena.teach(0, "queenofpain_scream_of_pain", 1)
    target = arena.unit(5)
    arena.world.order(arena.unit(0), "cast", slot=slot)
    arena.seconds(0.6)
    unit = arena.world.unit(target)
    assert unit["status"] & TAUNTED and unit["status"] & SILENCED and unit["status"] & DISARMED
    arena.world.order(target, "move", x=CENTRE[0] - 2000, y=CENTRE[1] - 2000)
    arena.seconds(0.6)
    moved = arena.world.unit(target)
    assert moved["x"] > unit["x"] + 50 and moved["y"] > unit["y"] + 50  # towards Dire's fountain
    arena.seconds(1)
    calm = arena.world.unit(target)
    assert not calm["status"] & TAUNTED
    arena.seconds(0.4)
    assert abs(arena.world.unit(target)["x"] - calm["x"]) < 5  # and it stops


def test_presence_lowers_armor_of_buildings(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "nevermore")
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1)
    arena.teach(0, "nevermore_dark_lord", 1)
    armor = []
    for taken in (False, True):
        if taken:
            take(arena, "nevermore_3")
        arena.world.set_unit(arena.unit(0), x=tower["x"] - 600, y=tower["y"], hp=4000)
        arena.seconds(0.4)
        armor.append(arena.world.unit(tower["index"])["armor"])
    assert armor[1] - armor[0] == pytest.approx(arena.special("nevermore_dark_lord", "presence_armor_reduction")[0])


def test_storm_bolt_dispels(new_world: Any, data: dict[str, Any]) -> None:
    left = []
    for arena in without_and_with(new_world, data, "sven", "sven_3", enemies=("sven",)):
        cry = arena.teach(5, "sven_warcry", 4)
        arena.world.order(arena.unit(5), "cast", slot=cry)
        arena.seconds(0.3)
        assert arena.modifiers(arena.unit(5), "sven_warcry")
        slot = arena.teach(0, "sven_storm_bolt", 1)
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        arena.seconds(0.9)
        left.append(bool(arena.modifiers(arena.unit(5), "sven_warcry")))
    assert left == [True, False]


def test_nethertoxin_silences(new_world: Any, data: dict[str, Any]) -> None:
    status = []
    for arena in without_and_with(new_world, data, "viper", "viper_3"):
        cast(arena, "viper_nethertoxin", 1, at=(300, 0), wait=1)
        status.append(arena.world.unit(arena.unit(5))["status"] & (BROKEN | SILENCED))
    assert status == [BROKEN, BROKEN | SILENCED]


def test_poison_attack_works_on_buildings(new_world: Any, data: dict[str, Any]) -> None:
    poisoned = []
    for taken in (False, True):
        arena = duel(new_world, data, "viper")
        tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1)
        if taken:
            take(arena, "viper_4")
        arena.teach(0, "viper_poison_attack", 4)
        arena.world.set_autocast(0, "viper_poison_attack", True)
        arena.world.set_unit(arena.unit(0), x=tower["x"] - 400, y=tower["y"], attack_ready=0, hp=4000)
        arena.world.set_unit(tower["index"], hp=tower["hp"] / 2)
        arena.world.order(arena.unit(0), "attack", target=tower["index"])
        arena.seconds(2)
        poisoned.append(bool(arena.modifiers(tower["index"], "viper_poison_attack")))
    assert poisoned == [False, True]


def test_death_ward_reaches_farther(new_world: Any, data: dict[str, Any]) -> None:
    reach = []
    for arena in without_and_with(new_world, data, "witch_doctor", "witch_doctor_1"):
        cast(arena, "witch_doctor_death_ward", 1, at=(200, 0))
        (ward,) = arena.world.units("summon")
        reach.append(ward["attack_range"])
    assert reach[1] - reach[0] == value(data, "witch_doctor", "witch_doctor_1")


def test_voodoo_restoration_heals_by_share(new_world: Any, data: dict[str, Any]) -> None:
    """1.5 % of the greatest health a second more."""
    healed = []
    for arena in without_and_with(new_world, data, "witch_doctor", "witch_doctor_2"):
        slot = arena.teach(0, "witch_doctor_voodoo_restoration", 1)
        arena.world.set_unit(arena.unit(0), hp=500)
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(0.4)
        before = arena.hp(arena.unit(0))
        arena.seconds(6)
        healed.append(arena.hp(arena.unit(0)) - before)
    most = arena.world.unit(arena.unit(0))["max_hp"]
    assert (healed[1] - healed[0]) / 6 == pytest.approx(0.015 * most, rel=0.07)


def test_headshot_pushes_in_the_older_patch(core: Any) -> None:
    """7.19: the talent alone knocks back, by 35."""
    arena = line_up(core, "7.19", ("sniper",), ("sven",), {0: 0, 5: 300})
    set_health(arena, arena.unit(5), hp=9000)
    arena.teach(0, "sniper_headshot", 4)
    arena.world.set_unit(arena.unit(0), attack_ready=0)
    arena.world.order(arena.unit(0), "attack", target=arena.unit(5))
    arena.seconds(10)
    start = arena.world.unit(arena.unit(5))["x"]
    assert start == pytest.approx(CENTRE[0] + 300, abs=1)
    take(arena, "sniper_3")
    arena.world.set_unit(arena.unit(0), attack_ready=0)
    step = 0.0
    for _ in range(150):
        before = arena.world.unit(arena.unit(5))["x"]
        arena.world.step(1)
        step = max(step, arena.world.unit(arena.unit(5))["x"] - before)
    assert step == pytest.approx(value(arena.data, "sniper", "sniper_3"), abs=6)


def test_effects_of_a_talent_end_with_it(new_world: Any, data: dict[str, Any]) -> None:
    """A passive that depends on a talent disappears with it."""
    arena = duel(new_world, data, "lich")
    take(arena, "lich_2")
    assert arena.modifiers(arena.unit(0), "special_bonus_unique_lich_2")
    arena.world.teach(0, "special_bonus_unique_lich_2", 0)
    assert not arena.modifiers(arena.unit(0), "special_bonus_unique_lich_2")


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_no_talent_is_inert(core: Any, patch: str) -> None:
    data = read_data(patch)
    tables = load_tables(core, data)  # a talent without effect is refused
    for hero in tables.heroes:
        talents = tables.hero(hero)["talents"]
        assert len(talents) == 8
        assert not [t for t in talents if core.ability_program(tables, t)["inert"]]
