"""Item effects: damage return, lifesteal, protection, reflection, invisibility, consumption, drops."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give, use
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.program import cast_hex, programmed
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import GUARDED, INVISIBLE, MUTED, SCEPTER, UNSEEN
from tests.dota.scenes.units import lane_creep


def arena(new_world: Any, data: dict[str, Any], radiant: Any = ("lion",), dire: Any = ("sniper",)) -> Arena:
    made = Arena(new_world(radiant, dire), data)
    made.place(made.unit(0), 0, 0)
    made.place(made.unit(5), 400, 0, math.pi)
    for hero in (0, 5):
        made.world.set_unit(made.unit(hero), extra_hp=3000)
        made.world.set_unit(made.unit(hero), hp=3500)
    return made


@pytest.mark.parametrize("kind", ["physical", "magical", "pure"])
def test_blade_mail_returns_the_damage(new_world: Any, data: dict[str, Any], kind: str) -> None:
    """Returns the damage before the bearer's armor and resistance, of the same type, for 4.5 s."""
    a = arena(new_world, data)
    use(a, give(a, "blade_mail"))
    mine, theirs = a.unit(0), a.unit(5)
    hp = a.hp(theirs)
    a.world.damage(theirs, mine, 200, kind)
    armor = a.world.unit(theirs)["armor"]
    through = {"physical": physical_share(armor), "magical": a.magic(theirs), "pure": 1}[kind]
    assert hp - a.hp(theirs) == pytest.approx(200 * through, rel=1e-3)
    a.seconds(4.6)
    hp = a.hp(theirs)
    a.world.damage(theirs, mine, 200, kind)
    assert a.hp(theirs) == hp


@pytest.mark.parametrize(("creep", "share"), [(False, 0.25), (True, 0.05)])
def test_spells_give_life_back(new_world: Any, data: dict[str, Any], creep: bool, share: float) -> None:
    """Octarine Core: a quarter of the damage done to heroes, a twentieth of that done to creeps."""
    a = arena(new_world, data)
    give(a, "octarine_core")
    slot = a.teach(0, "lion_finger_of_death", 1)
    target = a.dummy(250, 0) if creep else a.unit(5)
    a.world.set_unit(a.unit(0), hp=1000, mana=900)
    a.seconds(0.2)
    before, hp = a.hp(a.unit(0)), a.hp(target)
    a.world.order(a.unit(0), "cast_unit", target=target, slot=slot)
    a.seconds(1.5)
    assert a.hp(a.unit(0)) - before == pytest.approx((hp - a.hp(target)) * share, rel=1e-2)
    assert hp - a.hp(target) > 100


def test_aeon_disk_guards_below_seventy_percent(new_world: Any, data: dict[str, Any]) -> None:
    """2.5 s in which its bearer neither takes nor deals damage, and resists status; again after 115 s."""
    a = arena(new_world, data)
    give(a, "aeon_disk")
    mine, theirs = a.unit(0), a.unit(5)
    full = a.world.unit(mine)["max_hp"]
    a.world.set_unit(mine, hp=full)
    a.world.damage(theirs, mine, 0.2 * full, "pure")
    assert not a.world.unit(mine)["status"] & GUARDED
    a.world.damage(theirs, mine, 0.2 * full, "pure")
    assert a.world.unit(mine)["status"] & GUARDED
    hp, enemy = a.hp(mine), a.hp(theirs)
    a.world.damage(theirs, mine, 500, "pure")
    a.world.damage(mine, theirs, 500, "pure")
    assert (a.hp(mine), a.hp(theirs)) == (hp, enemy)
    a.seconds(2.7)
    assert not a.world.unit(mine)["status"] & GUARDED
    a.world.damage(theirs, mine, 100, "pure")
    assert a.hp(mine) == pytest.approx(hp - 100)


def test_aeon_disk_is_set_off_by_heroes_only(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data)
    give(a, "aeon_disk")
    a.world.damage(a.dummy(200, 0), a.unit(0), 0.8 * a.hp(a.unit(0)), "pure")
    assert not a.world.unit(a.unit(0))["status"] & GUARDED


def test_lotus_orb_casts_back(new_world: Any, data: dict[str, Any]) -> None:
    """An enemy's targeted spell on its bearer is also cast on the enemy; both are hit."""
    a = arena(new_world, data, ("sniper",), ("lion",))
    orb = give(a, "lotus_orb")
    use(a, orb, a.unit(0))
    slot = a.teach(5, "lion_finger_of_death", 1)
    mine, theirs = a.unit(0), a.unit(5)
    hp = a.hp(mine), a.hp(theirs)
    a.world.order(theirs, "cast_unit", target=mine, slot=slot)
    a.seconds(1.2)
    amount = a.special("lion_finger_of_death", "damage")[0]
    assert hp[0] - a.hp(mine) == pytest.approx(amount * a.magic(mine) * a.amp(theirs), rel=2e-2)
    assert hp[1] - a.hp(theirs) == pytest.approx(amount * a.magic(theirs) * a.amp(mine), rel=2e-2)


def test_smoke_hides_until_an_enemy_is_near(new_world: Any, data: dict[str, Any]) -> None:
    """35 s unseen and 15 % faster, until within 1025 of an enemy hero."""
    a = arena(new_world, data)
    mine, theirs = a.unit(0), a.unit(5)
    a.place(theirs, 1600, 0)
    speed = a.world.unit(mine)["move_speed"]
    use(a, give(a, "smoke_of_deceit", charges=1))
    assert a.world.unit(mine)["status"] & UNSEEN and a.world.unit(mine)["status"] & INVISIBLE
    assert a.world.unit(mine)["move_speed"] == pytest.approx(speed + 0.15 * a.base_speed("lion"), rel=0.01)
    a.place(theirs, 1000, 0)
    a.seconds(0.3)
    assert not a.world.unit(mine)["status"] & INVISIBLE


def test_no_creep_eats_a_moon_shard(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data)
    creep = lane_creep(a, 0, 300, 0)
    speed = a.world.unit(creep)["attack_speed"]
    use(a, give(a, "moon_shard"), creep)
    assert a.world.unit(creep)["attack_speed"] == speed
    assert [i for i in a.world.hero(0)["items"] if i and i[0] == "item_moon_shard"]


def test_consumed_moon_shard_is_permanent(new_world: Any, data: dict[str, Any]) -> None:
    """60 attack speed permanently, through death; the shard is used up."""
    a = arena(new_world, data)
    mine = a.unit(0)
    base = a.world.unit(mine)["attack_speed"]
    use(a, give(a, "moon_shard"), mine)
    assert a.world.unit(mine)["attack_speed"] == pytest.approx(base + 60)
    assert not [i for i in a.world.hero(0)["items"] if i and i[0] == "item_moon_shard"]
    a.world.kill(mine, a.unit(5))
    a.seconds(15)
    assert a.world.unit(mine)["alive"]
    assert a.world.unit(mine)["attack_speed"] == pytest.approx(base + 60, abs=1)


@pytest.mark.parametrize("item", ["gem", "rapier"])
def test_items_drop_when_their_bearer_dies(new_world: Any, data: dict[str, Any], item: str) -> None:
    """It drops at the place of death; the first hero of either side that passes picks it up."""
    a = arena(new_world, data)
    mine, theirs = a.unit(0), a.unit(5)
    give(a, item)
    a.world.kill(mine, theirs)
    (lying,) = a.world.ground_items()
    assert lying[0] == "item_" + item
    assert not [i for i in a.world.hero(0)["items"] if i and i[0] == "item_" + item]
    a.place(theirs, 50, 0)
    a.seconds(0.6)
    assert a.world.ground_items() == []
    assert [i for i in a.world.hero(5)["items"] if i and i[0] == "item_" + item]


def test_a_gem_shows_the_invisible(new_world: Any, data: dict[str, Any]) -> None:
    """True sight within 900 of its bearer; it does not reveal the bearer."""
    a = arena(new_world, data, ("sniper",), ("riki",))
    a.teach(5, "riki_permanent_invisibility", 4)
    riki = a.unit(5)
    a.seconds(8)
    assert not a.world.visible(0, riki)
    give(a, "gem")
    a.seconds(0.3)
    assert a.world.visible(0, riki)
    a.place(riki, 1200, 0)
    a.seconds(0.3)
    assert not a.world.visible(0, riki)


def test_a_branch_becomes_a_tree_in_the_way(new_world: Any, data: dict[str, Any]) -> None:
    """For 20 s the place is blocked; the branch is used up."""
    a = arena(new_world, data)
    slot = give(a, "branches")
    mine = a.unit(0)
    a.world.order(mine, "cast_point", x=CENTRE[0] + 150, y=CENTRE[1], slot=slot)
    a.seconds(0.6)
    assert not [i for i in a.world.hero(0)["items"] if i and i[0] == "item_branches"]
    a.place(mine, 60, 0)
    a.world.order(mine, "move", x=CENTRE[0] + 240, y=CENTRE[1])
    off = 0.0
    for _ in range(int(1.5 / STEP)):
        a.world.step(1)
        off = max(off, abs(a.world.unit(mine)["y"] - CENTRE[1]))
    assert off > 40  # around it
    a.seconds(20)
    a.place(mine, 60, 0)
    a.world.order(mine, "move", x=CENTRE[0] + 240, y=CENTRE[1])
    off = 0.0
    for _ in range(int(1.0 / STEP)):
        a.world.step(1)
        off = max(off, abs(a.world.unit(mine)["y"] - CENTRE[1]))
    assert off < 10


def test_nullifier_slows_its_target(new_world: Any, data: dict[str, Any]) -> None:
    """Its bearer is muted for 6 s, and for 0.4 s after every attack slowed by 100 %."""
    a = arena(new_world, data)
    mine, theirs = a.unit(0), a.unit(5)
    use(a, give(a, "nullifier"), theirs)
    a.seconds(0.8)
    assert a.world.unit(theirs)["status"] & MUTED
    speed = a.world.unit(theirs)["move_speed"]
    a.world.set_unit(mine, attack_ready=0)
    a.world.order(mine, "attack", target=theirs)
    slowest = speed
    for _ in range(25):
        a.world.step(1)
        slowest = min(slowest, a.world.unit(theirs)["move_speed"])
    assert slowest == 100  # no unit is slower


def test_tomes_teach_more_each_time(new_world: Any, data: dict[str, Any]) -> None:
    """700 experience, and 135 more for every one the team has read before."""
    a = arena(new_world, data)
    gained = []
    for _ in range(3):
        before = a.world.hero(0)["xp"]
        use(a, give(a, "tome_of_knowledge", charges=1))
        gained.append(a.world.hero(0)["xp"] - before)
    assert gained == [pytest.approx(700), pytest.approx(835), pytest.approx(970)]


@pytest.mark.parametrize(("item", "left"), [("refresher_shard", False), ("refresher", True)])
def test_refresher_resets_other_cooldowns(new_world: Any, data: dict[str, Any], item: str, left: bool) -> None:
    """Resets every cooldown but its own; the shard is used up, the orb goes on its own cooldown."""
    a = arena(new_world, data, ("sven",))
    refresher = give(a, item, charges=1)
    greaves = give(a, "guardian_greaves")
    mine = a.unit(0)
    bolt = a.teach(0, "sven_storm_bolt", 1)
    a.world.order(mine, "cast_unit", target=a.unit(5), slot=bolt)
    a.seconds(0.8)
    a.world.set_unit(mine, mana=5000)
    use(a, greaves)
    resting = ("sven_storm_bolt", "item_guardian_greaves")
    for name in resting:
        assert a.world.ability(0, name)["ready"] > a.world.time + 10
    a.world.set_unit(mine, mana=5000)
    assert a.world.ability(0, "item_" + item)["castable"]
    begun = a.world.time
    use(a, refresher)
    for name in resting:
        assert a.world.ability(0, name)["castable"], name
    held = [i[0] for i in a.world.hero(0)["items"] if i]
    assert ("item_" + item in held) == left
    if left:
        (whole,) = data["items"]["items"]["item_refresher"]["cooldown"]
        assert a.world.ability(0, "item_refresher")["ready"] - begun == pytest.approx(whole, abs=STEP)


def test_a_vessel_holds_regeneration_back(new_world: Any, data: dict[str, Any]) -> None:
    """The target regenerates 70 % less for 8 s, and loses 25 plus a twentieth of its current health each second."""
    a = arena(new_world, data)
    theirs, specials = a.unit(5), data["items"]["items"]["item_spirit_vessel"]["specials"]
    drain, share, less, lasts = (specials[k]["v"][0] for k in ("soul_damage_amount", "enemy_hp_drain",
                                                               "hp_regen_reduction_enemy", "duration"))
    a.world.set_unit(theirs, extra_hp_regen=0)
    regen = a.world.unit(theirs)["hp_regen"]
    slot = give(a, "spirit_vessel", charges=1)
    hp = a.hp(theirs)
    use(a, slot, theirs)
    assert a.world.unit(theirs)["hp_regen"] == pytest.approx(regen * (1 - less / 100), rel=1e-3)
    a.seconds(lasts + 0.3)
    assert a.world.unit(theirs)["hp_regen"] == pytest.approx(regen, rel=1e-3)
    for _ in range(round(lasts)):
        hp += regen * (1 - less / 100)
        hp -= (drain + share / 100 * hp) * a.magic(theirs) * a.amp(a.unit(0))
    assert a.hp(theirs) == pytest.approx(hp, rel=0.01)


@pytest.mark.parametrize("target", [0, 1, 5])
def test_euls_lifts_its_bearer_or_an_enemy(new_world: Any, data: dict[str, Any], target: int) -> None:
    """For 2.5 s; an order on an ally is refused and costs nothing."""
    a = arena(new_world, data, ("lion", "sven"))
    a.place(a.unit(1), 200, 100)
    slot = give(a, "cyclone")
    mana = a.world.unit(a.unit(0))["mana"]
    use(a, slot, a.unit(target))
    lifted = [hero for hero in (0, 1, 5) if a.modifiers(a.unit(hero), "item_cyclone")]
    assert lifted == ([] if target == 1 else [target])
    assert (a.world.unit(a.unit(0))["mana"] < mana) == (target != 1)


def test_an_amulet_hides_a_unit_that_stands_still(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data)
    mine = a.unit(0)
    use(a, give(a, "shadow_amulet"), mine)
    a.seconds(1.5)
    assert a.world.unit(mine)["status"] & INVISIBLE
    a.world.order(mine, "move", x=CENTRE[0] - 300, y=CENTRE[1])
    a.seconds(0.4)
    assert not a.world.unit(mine)["status"] & INVISIBLE


def test_a_scepter_changes_the_numbers_it_names(new_world: Any, data: dict[str, Any]) -> None:
    """Finger of Death with Aghanim's Scepter strikes with damage_scepter."""
    a = arena(new_world, data)
    slot = a.teach(0, "lion_finger_of_death", 1)
    mine, theirs = a.unit(0), a.unit(5)
    give(a, "ultimate_scepter")
    assert a.world.unit(mine)["status"] & SCEPTER
    hp = a.hp(theirs)
    a.world.order(mine, "cast_unit", target=theirs, slot=slot)
    a.seconds(1.2)
    amount = a.special("lion_finger_of_death", "damage_scepter")[0]
    assert hp - a.hp(theirs) == pytest.approx(amount * a.magic(theirs) * a.amp(mine), rel=1e-2)


def test_a_golem_breaks_in_two(new_world: Any, data: dict[str, Any]) -> None:
    """mud_golem_rock_destroy: its death spawns two shards for a minute."""
    a = arena(new_world, data)
    golem = a.dummy(300, 0, kind="npc_dota_neutral_mud_golem")
    a.world.kill(golem, a.unit(0))
    shards = [u for u in a.world.units("neutral") if u["type"] == "npc_dota_neutral_mud_golem_split"]
    assert len(shards) == 2
    a.seconds(61)
    assert not [u for u in a.world.units("neutral") if u["type"] == "npc_dota_neutral_mud_golem_split"]


@pytest.mark.parametrize(("effect", "behavior", "says"), [
    ({"p": "summon", "on": "attacked", "unit": "npc_dota_creep_goodguys_melee"}, ("unit_target",),
     "'on' of summon: nothing runs it on 'attacked' \\(it has: cast"),
    ({"p": "crit", "on": "death", "chance_pct": 1, "mult_pct": 2}, ("unit_target",), "'on' of crit"),
    ({"p": "linear_wave", "len": 1, "w0": 1, "speed": 1, "then": [{"p": "cleave", "pct": 1}]}, ("unit_target",),
     "'cleave' within another effect"),
    ({"p": "stun", "dur": 1, "on": "channel"}, ("unit_target",), "no 'channelled'"),
    ({"p": "stun", "dur": 1, "on": "toggle"}, ("no_target",), "no 'toggle'"),
    ({"p": "stun", "dur": 1}, ("passive",), "'behavior' says passive"),
])
def test_programs_that_never_run_are_refused(core: Any, effect: Any, behavior: Any,
                                             says: str) -> None:
    """The error names file, ability and reason."""
    with pytest.raises(ValueError, match=says) as error:
        programmed(core, effect, behavior=behavior)
    assert "abilities.json" in str(error.value) and "lion_voodoo" in str(error.value)


def test_leash_stops_at_its_radius(core: Any) -> None:
    a = programmed(core, {"p": "leash", "r": 300, "dur": 3})
    a.place(a.unit(5), 250, 0)
    cast_hex(a, a.unit(5))
    a.world.order(a.unit(5), "move", x=CENTRE[0] + 700, y=CENTRE[1])
    a.seconds(2)
    assert 270 < a.world.unit(a.unit(5))["x"] - CENTRE[0] <= 301
