"""Active effects of items in patch 7.21d, computed by hand from items.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import INVISIBLE, SPELL_IMMUNE, STUNNED
from tests.dota.scenes.units import wounded


@pytest.fixture
def arena(core: Any) -> Arena:
    return duel(core, "sven", ally="lion", away=500, behind=300)


def test_salve_heals_in_all_and_ends_on_a_heros_damage(arena: Arena) -> None:
    slot = give(arena, "flask", charges=1)
    a = wounded(arena, 50)
    use(arena, slot, a)
    arena.seconds(8.2)
    flask = arena.data["items"]["items"]["item_flask"]["specials"]
    total = flask["health_regen"]["v"][0] * flask["buff_duration"]["v"][0]
    assert arena.hp(a) == pytest.approx(50 + total, abs=0.5)
    assert all(i is None or i[0] != "item_flask" for i in arena.world.hero(0)["items"])


def test_salve_stops_when_a_hero_hurts_and_not_when_a_creep_does(arena: Arena) -> None:
    slot = give(arena, "flask", charges=1)
    a = wounded(arena, 50)
    creep = arena.dummy(300, 0)
    use(arena, slot, a)
    arena.world.damage(creep, a, 1, "pure")
    arena.seconds(0.2)
    assert arena.modifiers(a, "item_flask")
    arena.world.damage(arena.unit(5), a, 1, "pure")
    arena.seconds(0.2)
    assert not arena.modifiers(a, "item_flask")


def test_clarity(arena: Arena) -> None:
    slot = give(arena, "clarity", charges=1)
    a = arena.unit(0)
    arena.world.set_unit(a, mana=0)
    use(arena, slot, a)
    arena.seconds(50.2)
    assert arena.world.unit(a)["mana"] == pytest.approx(min(4.5 * 50, arena.world.unit(a)["max_mana"]), abs=0.5)


def test_tango_on_a_tree(arena: Arena) -> None:
    slot = give(arena, "tango", charges=3)
    a = wounded(arena, 50)
    trees = arena.data["map"]["trees"]
    tree = min(range(len(trees)), key=lambda t: math.dist(trees[t][:2], CENTRE))
    arena.world.order(a, "cast_point", slot=slot, tree=tree, x=trees[tree][0], y=trees[tree][1])
    for _ in range(100):
        arena.world.step()
        if arena.modifiers(a, "item_tango"):
            break
    arena.world.order(a, "hold")
    start = arena.hp(a)
    arena.seconds(16.2)
    assert arena.hp(a) - start == pytest.approx(7 * 16, abs=2)
    assert [i for i in arena.world.hero(0)["items"] if i and i[0] == "item_tango"] == [("item_tango", 2)]


def test_tango_given_to_an_ally(arena: Arena) -> None:
    slot = give(arena, "tango", charges=3)
    use(arena, slot, arena.unit(1))
    arena.seconds(1.5)
    held = [i[0] for i in arena.world.hero(1)["items"] if i]
    assert "item_tango_single" in held
    assert not arena.modifiers(arena.unit(0), "item_tango")


def test_magic_wand_charges_by_enemy_casts_and_spends_them_all(arena: Arena) -> None:
    slot = give(arena, "magic_wand")
    raze = arena.teach(5, "nevermore_shadowraze1", 1)
    arena.place(arena.unit(5), 900, 0, 0.0)
    arena.seconds(0.2)
    for k in range(3):
        arena.world.set_unit(arena.unit(5), mana=500)
        arena.world.order(arena.unit(5), "cast", slot=raze)
        arena.seconds(0.8)
        assert arena.world.ability(0, "item_magic_wand")["charges"] == k + 1
        arena.seconds(10)
    a = wounded(arena, 100)
    arena.world.set_unit(a, mana=10)
    use(arena, slot)
    assert arena.hp(a) == pytest.approx(100 + 3 * 15, abs=0.5)
    assert arena.world.unit(a)["mana"] == pytest.approx(10 + 3 * 15, abs=0.5)
    state = arena.world.ability(0, "item_magic_wand")
    assert state["charges"] == 0
    assert not state["castable"]


def test_magic_wand_far_from_the_cast_gains_nothing(arena: Arena) -> None:
    give(arena, "magic_wand")
    raze = arena.teach(6, "viper_nethertoxin", 1)
    arena.place(arena.unit(6), 1300, 0, 0.0)
    arena.world.order(arena.unit(6), "cast_point", x=CENTRE[0] + 1400, y=CENTRE[1], slot=raze)
    arena.seconds(1)
    assert arena.world.ability(0, "item_magic_wand")["charges"] == 0


def test_power_treads_cycle(arena: Arena) -> None:
    a = arena.unit(0)
    before = arena.world.unit(a)
    slot = give(arena, "power_treads")
    arena.seconds(0.2)
    seen = []
    for _ in range(3):
        u = arena.world.unit(a)
        seen.append([u[k] - before[k] for k in ("str", "agi", "int")])
        use(arena, slot)
        arena.seconds(0.2)
    assert seen == [pytest.approx(s, abs=1e-4) for s in ([10, 0, 0], [0, 10, 0], [0, 0, 10])]


def test_teleport_to_a_tower(arena: Arena) -> None:
    a = arena.unit(0)
    slot = give(arena, "tpscroll", charges=1)
    tower = next(u for u in arena.world.units("tower") if u["building"] == "dota_goodguys_tower2_top")
    arena.world.order(a, "cast_point", x=tower["x"], y=tower["y"], slot=slot)
    arena.seconds(2.5)
    assert arena.world.unit(a)["act"] == "channel"
    arena.seconds(1.0)
    u = arena.world.unit(a)
    assert math.dist((u["x"], u["y"]), (tower["x"], tower["y"])) < 575 + 64
    assert all(i is None or i[0] != "item_tpscroll" for i in arena.world.hero(0)["items"])


def test_teleport_broken_by_a_stun(arena: Arena) -> None:
    a = arena.unit(5)
    slot = give(arena, "tpscroll", hero=5, charges=1)
    tower = next(u for u in arena.world.units("tower") if u["building"] == "dota_badguys_tower2_top")
    arena.world.order(a, "cast_point", x=tower["x"], y=tower["y"], slot=slot)
    arena.seconds(1)
    bolt = arena.teach(0, "sven_storm_bolt", 1)
    arena.world.order(arena.unit(0), "cast_unit", target=a, slot=bolt)
    arena.seconds(3)
    u = arena.world.unit(a)
    assert math.dist((u["x"], u["y"]), (CENTRE[0] + 500, CENTRE[1])) < 100


@pytest.mark.parametrize(("item", "unit", "life"), [("ward_observer", "npc_dota_observer_wards", 360),
                                                    ("ward_sentry", "npc_dota_sentry_wards", 360)])
def test_wards_stand_and_run_out(arena: Arena, item: str, unit: str, life: float) -> None:
    slot = give(arena, item, charges=1)
    a = arena.unit(0)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 200, y=CENTRE[1], slot=slot)
    arena.seconds(0.5)
    wards = [u for u in arena.world.units("ward") if u["type"] == unit]
    assert len(wards) == 1
    assert wards[0]["status"] & INVISIBLE
    assert not arena.world.visible(1, wards[0]["index"])
    arena.seconds(life - 2)
    assert arena.world.units("ward")
    arena.seconds(3)
    assert not arena.world.units("ward")


def test_black_king_bar_lasts_shorter_with_each_use(arena: Arena) -> None:
    a = arena.unit(0)
    slot = give(arena, "black_king_bar")
    for duration in (10, 9):
        use(arena, slot)
        found = arena.modifiers(a, "item_black_king_bar")
        assert found[0]["left"] == pytest.approx(duration - 0.25, abs=0.15)
        assert arena.world.unit(a)["status"] & SPELL_IMMUNE
        assert arena.world.damage(arena.unit(5), a, 100, "magical") == 0
        arena.seconds(70.5)
        assert not arena.world.unit(a)["status"] & SPELL_IMMUNE


def test_blink_and_its_limits(arena: Arena) -> None:
    a = arena.unit(0)
    slot = give(arena, "blink")
    arena.place(a, 0, 0, math.pi / 2)
    arena.world.order(a, "cast_point", x=CENTRE[0] - 700, y=CENTRE[1] - 300, slot=slot)
    arena.seconds(0.8)
    u = arena.world.unit(a)
    assert math.dist((u["x"], u["y"]), (CENTRE[0] - 700, CENTRE[1] - 300)) < 70
    arena.seconds(15)
    arena.world.damage(arena.unit(5), a, 5, "pure")
    assert not arena.world.ability(0, "item_blink")["castable"]
    arena.seconds(3.1)
    assert arena.world.ability(0, "item_blink")["castable"]


def test_blink_disjoints(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = give(arena, "blink")
    arena.place(b, 1000, 0, math.pi)
    arrow = arena.teach(6, "viper_viper_strike", 1)
    arena.place(arena.unit(6), 450, 0, math.pi)
    hp = arena.hp(a)
    arena.world.order(arena.unit(6), "cast_unit", target=a, slot=arrow)
    for _ in range(10):
        arena.world.step()
        if arena.world.projectiles():
            break
    arena.world.order(a, "cast_point", x=CENTRE[0] - 700, y=CENTRE[1] - 300, slot=slot)
    arena.seconds(1.5)
    assert arena.hp(a) == hp


def test_force_staff_pushes_600_along_the_targets_facing(arena: Arena) -> None:
    a = arena.unit(0)
    slot = give(arena, "force_staff")
    arena.place(a, 0, 0, math.radians(210))
    use(arena, slot, a)
    arena.seconds(0.4)
    u = arena.world.unit(a)
    assert math.dist((u["x"], u["y"]), CENTRE) == pytest.approx(600, abs=35)
    assert (u["x"] - CENTRE[0], u["y"] - CENTRE[1]) == pytest.approx(
        (600 * math.cos(math.radians(210)), 600 * math.sin(math.radians(210))), abs=40)


def test_arcane_boots_and_glimmer(arena: Arena) -> None:
    mate = arena.unit(1)
    boots = give(arena, "arcane_boots")
    arena.world.set_unit(mate, mana=0)
    use(arena, boots)
    assert arena.world.unit(mate)["mana"] == pytest.approx(160, abs=0.5)
    cape = give(arena, "glimmer_cape")
    resist = arena.magic(mate)
    use(arena, cape, mate)
    arena.seconds(0.8)
    assert arena.world.unit(mate)["status"] & INVISIBLE
    amount = arena.data["items"]["items"]["item_glimmer_cape"]["specials"]["active_magical_armor"]["v"][0]
    assert arena.magic(mate) == pytest.approx(resist * (1 - amount / 100), rel=1e-4)


@pytest.mark.parametrize(("kind", "what"), [(1, "dmg_min"), (2, "move_speed")])
def test_power_runes(arena: Arena, kind: int, what: str) -> None:
    a = arena.unit(0)
    before = arena.world.unit(a)[what]
    arena.world.rune(a, kind)
    arena.seconds(0.2)
    now = arena.world.unit(a)[what]
    assert now == pytest.approx(2 * before if kind == 1 else 550, rel=1e-4)
    arena.seconds({1: 45, 2: 22}[kind])
    assert arena.world.unit(a)[what] == pytest.approx(before)


def test_regeneration_rune_fills_and_ends(arena: Arena) -> None:
    a = wounded(arena, 100)
    arena.world.set_unit(a, mana=0)
    arena.world.rune(a, 4)
    arena.seconds(5)
    u = arena.world.unit(a)
    assert u["hp"] == pytest.approx(100 + 5 * 0.06 * u["max_hp"], rel=0.03)
    arena.world.damage(arena.unit(5), a, 1, "pure")
    arena.seconds(0.2)
    assert not arena.modifiers(a, "rune_")


def test_bottle_heals_and_is_filled_by_runes(arena: Arena) -> None:
    slot = give(arena, "bottle", charges=3)
    a = wounded(arena, 100)
    arena.world.set_unit(a, mana=10)
    use(arena, slot)
    arena.seconds(2.6)
    assert arena.hp(a) == pytest.approx(225, abs=1)
    assert arena.world.unit(a)["mana"] == pytest.approx(85, abs=1)
    assert arena.world.ability(0, "item_bottle")["charges"] == 2
    assert arena.world.store_rune(a, 2)
    assert arena.world.ability(0, "item_bottle")["charges"] == 3
    assert not arena.world.store_rune(a, 1)  # it holds one
    use(arena, slot)
    assert arena.world.unit(a)["move_speed"] == pytest.approx(550)
    assert arena.world.ability(0, "item_bottle")["charges"] == 3
    assert arena.world.store_rune(a, 1)
    damage = arena.world.unit(a)["dmg_min"]
    arena.seconds(120.3)  # a stored rune is used when its time is up
    assert arena.world.unit(a)["dmg_min"] == pytest.approx(2 * damage, rel=1e-4)


def test_hurricane_pike_pushes_both_apart(arena: Arena) -> None:
    slot = give(arena, "hurricane_pike", hero=6)
    a, b = arena.unit(6), arena.unit(0)
    arena.place(a, 100, 58, math.radians(210))
    arena.place(b, 0, 0)
    plain = arena.world.unit(a)["attack_speed"], arena.world.unit(a)["attack_range"]
    use(arena, slot, b, hero=6)
    arena.seconds(0.5)
    apart = math.dist(*[(arena.world.unit(u)["x"], arena.world.unit(u)["y"]) for u in (a, b)])
    assert apart == pytest.approx(math.hypot(100, 58) + 2 * 450, abs=80)
    assert arena.world.unit(a)["attack_speed"] - plain[0] == pytest.approx(100)
    arena.world.set_unit(a, attack_ready=0)
    hp = arena.hp(b)
    arena.world.order(a, "attack", b)
    for _ in range(40):
        arena.world.step()
        if arena.hp(b) < hp:
            break
    apart = math.dist(*[(arena.world.unit(u)["x"], arena.world.unit(u)["y"]) for u in (a, b)])
    assert arena.hp(b) < hp
    assert apart > plain[1] + 100  # from beyond its own range
    arena.seconds(5)
    assert arena.world.unit(a)["attack_speed"] == pytest.approx(plain[0])


def test_meteor_hammer_falls_after_a_whole_channel(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = give(arena, "meteor_hammer")
    hammer = arena.data["items"]["items"]["item_meteor_hammer"]
    channel, land = hammer["channel_time"][0], hammer["specials"]["land_time"]["v"][0]
    impact = hammer["specials"]["impact_damage_units"]["v"][0]
    hp = arena.hp(b)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 500, y=CENTRE[1], slot=slot)
    arena.seconds(channel + 0.2)
    assert arena.hp(b) == hp
    arena.seconds(land + 0.2)
    assert hp - arena.hp(b) == pytest.approx(impact * arena.amp(a) * arena.magic(b), rel=1e-3)
    assert arena.world.unit(b)["status"] & STUNNED
    arena.seconds(30)
    arena.world.set_unit(a, mana=500)
    arena.world.set_unit(b, hp=arena.world.unit(b)["max_hp"])
    hp = arena.hp(b)
    arena.world.order(a, "cast_point", x=CENTRE[0] + 500, y=CENTRE[1], slot=slot)
    arena.seconds(channel / 2)
    arena.world.order(a, "stop")
    arena.seconds(3)
    assert arena.hp(b) == pytest.approx(hp)


@pytest.mark.parametrize(("hero", "special"), [(5, "disarm_range"), (0, "disarm_melee")])
def test_halberd_disarms_ranged_heroes_longer(arena: Arena, hero: int, special: str) -> None:
    user, target = (0, arena.unit(5)) if hero == 5 else (6, arena.unit(0))
    arena.place(arena.unit(6), 500, 200, math.pi)
    slot = give(arena, "heavens_halberd", hero=user)
    use(arena, slot, target, hero=user)
    seconds = arena.data["items"]["items"]["item_heavens_halberd"]["specials"][special]["v"][0]
    left = [m["left"] for m in arena.modifiers(target, "item_heavens_halberd") if m["status"]]
    assert left[0] == pytest.approx(seconds, abs=0.5)


def test_midas_takes_a_creep(arena: Arena) -> None:
    slot = give(arena, "hand_of_midas")
    creep = arena.dummy(200, 0)
    gold, xp = arena.world.hero(0)["reliable"], arena.world.hero(0)["xp"]
    use(arena, slot, creep)
    midas = arena.data["items"]["items"]["item_hand_of_midas"]["specials"]
    body = arena.data["units"]["units"]["npc_dota_neutral_centaur_khan"]
    assert arena.world.hero(0)["reliable"] - gold == pytest.approx(midas["bonus_gold"]["v"][0])
    assert arena.world.hero(0)["xp"] - xp == pytest.approx(midas["xp_multiplier"]["v"][0] * body["xp"], rel=1e-3)
    assert not arena.world.units("neutral")


def test_urn_gathers_charges_and_releases_them(arena: Arena) -> None:
    slot = give(arena, "urn_of_shadows")
    assert not arena.world.ability(0, "item_urn_of_shadows")["castable"]
    arena.world.kill(arena.unit(5), arena.unit(0))
    assert arena.world.ability(0, "item_urn_of_shadows")["charges"] == 2
    mate = wounded(arena, 100, hero=1)
    use(arena, slot, mate)
    arena.seconds(8.2)
    assert arena.hp(mate) == pytest.approx(100 + 8 * 30, abs=2)
