"""Protection order, gold, signals, glyph, backdoor and shrines of buildings, and how a game ends."""

from typing import Any

import pytest

from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.units import set_health


def buildings(world: Any) -> dict[str, int]:
    return {u["building"]: u["index"] for u in world.units() if u["building"]}


def test_every_building_is_on_the_map(new_world: Any) -> None:
    world = new_world()
    kinds = [u["kind"] for u in world.units() if u["building"]]
    assert {k: kinds.count(k) for k in set(kinds)} == {
        "tower": 22, "barracks": 12, "fort": 2, "filler": 14, "fountain": 2, "shrine": 4}


def test_protection_order(new_world: Any) -> None:
    world = new_world()
    at = buildings(world)
    hero = world.hero(0)["unit"]

    def safe(name: str) -> bool:
        return bool(world.protected(at[name]))

    assert not safe("dota_badguys_tower1_mid")
    for name in ("dota_badguys_tower2_mid", "dota_badguys_tower3_mid", "bad_rax_melee_mid", "dota_badguys_tower4_top",
                 "dota_badguys_fort", "bad_filler_1", "bad_healer_6", "ent_dota_fountain_bad"):
        assert safe(name)
        assert world.damage(hero, at[name], 100, "pure") == 0
    world.kill(at["dota_badguys_tower1_mid"])
    assert not safe("dota_badguys_tower2_mid")
    assert safe("dota_badguys_tower2_top")
    assert safe("bad_healer_6")
    world.kill(at["dota_badguys_tower2_mid"])
    assert not safe("bad_healer_6")  # the shrines open with any second tower
    assert not safe("dota_badguys_tower3_mid")
    assert safe("bad_rax_melee_mid")
    world.kill(at["dota_badguys_tower3_mid"])
    assert not safe("bad_rax_melee_mid")
    assert not safe("bad_rax_range_mid")
    assert safe("bad_rax_melee_top")
    assert not safe("dota_badguys_tower4_top")
    assert not safe("bad_filler_1")
    world.kill(at["dota_badguys_tower4_top"])
    assert safe("dota_badguys_fort")
    world.kill(at["dota_badguys_tower4_bot"])
    assert not safe("dota_badguys_fort")
    assert safe("dota_goodguys_tower2_mid")


def test_no_building_can_be_hurt_before_the_horn(new_world: Any) -> None:
    """Nor attacked: without a glyph, which the team can have only later."""
    world = new_world(start_s=-1.0)
    tower, hero = buildings(world)["dota_badguys_tower1_mid"], world.hero(0)["unit"]
    at = world.unit(tower)
    world.set_unit(hero, x=at["x"] - 300, y=at["y"])
    world.step(1)
    assert world.protected(tower) and not world.can_attack(hero, tower)
    assert world.damage(hero, tower, 100, "pure") == 0
    world.step(8)
    assert world.time > 0 and not world.protected(tower) and world.can_attack(hero, tower)
    assert world.damage(hero, tower, 100, "pure") == 100


def test_the_fort_ends_the_game(new_world: Any) -> None:
    world = new_world()
    world.kill(buildings(world)["dota_badguys_fort"], world.hero(0)["unit"])
    assert world.winner == 1
    world.step()  # a finished game does not advance
    assert world.frame == 0


def test_the_win_is_signalled_once(new_world: Any) -> None:
    """A hero destroys the exposed Ancient; the winners get the signal in that step only."""
    world = new_world()
    at = buildings(world)
    for name in ("dota_goodguys_tower3_mid", "dota_goodguys_tower4_top", "dota_goodguys_tower4_bot"):
        world.kill(at[name])
    fort = world.unit(at["dota_goodguys_fort"])
    world.clear_signals()
    hero = world.hero(5)["unit"]
    world.clear_items(5)
    for _ in range(6):
        world.give_item(5, "relic")  # enough to pass the backdoor protection
    world.set_unit(hero, x=fort["x"] + 500, y=fort["y"] + 300)
    world.step()  # the hero sees the Ancient
    world.order(hero, "attack", fort["index"])
    for _ in range(200):
        world.set_unit(fort["index"], hp=5)
        world.step()
        if world.winner:
            break
    assert world.winner == 2
    assert world.hero(5)["signals"]["win"] == 1
    assert world.hero(0)["signals"]["win"] == 0
    world.step(3)
    assert world.hero(5)["signals"]["win"] == 1


@pytest.mark.parametrize(("name", "signal", "linear"), [
    ("dota_badguys_tower1_mid", "tower1", 2 / 3), ("bad_rax_melee_mid", "barracks", 2 / 3),
    ("bad_healer_6", "shrine", 2 / 3), ("dota_badguys_fort", "ancient_hp", 1.0)])
def test_building_signals_sum_to_one(new_world: Any, name: str, signal: str, linear: float) -> None:
    """Two thirds with the health lost, one third at the destruction, for the attacking team."""
    world = new_world()
    index = buildings(world)[name]
    world.step()
    world.clear_signals()
    world.set_unit(index, hp=world.unit(index)["max_hp"] / 2)
    world.step()
    share = 1 - world.unit(index)["hp"] / world.unit(index)["max_hp"]
    assert world.hero(0)["signals"][signal] == pytest.approx(linear * share, rel=1e-4)
    world.kill(index, world.hero(0)["unit"])
    assert world.hero(0)["signals"][signal] == pytest.approx(1, rel=1e-5)
    assert world.hero(5)["signals"][signal] == 0


def test_tower_gold(new_world: Any) -> None:
    """A first tower gives 100 to each hero of the team and 200 for the last hit; nothing when it is denied."""
    world = new_world(radiant=("nevermore", "sniper"))
    at = buildings(world)
    world.clear_signals()
    world.kill(at["dota_badguys_tower1_mid"], world.hero(0)["unit"])
    assert world.hero(0)["signals"]["gold"] == pytest.approx(300)
    assert world.hero(1)["signals"]["gold"] == pytest.approx(100)
    world.clear_signals()
    world.kill(at["dota_badguys_tower1_top"], world.hero(5)["unit"])
    assert world.hero(0)["signals"]["gold"] == 0


@pytest.mark.parametrize("struck", [False, True])
def test_a_tower_that_creeps_took_alone_pays_the_team(new_world: Any, struck: bool) -> None:
    """The 200 gold of the last hit are shared if no hero ever struck it, and nobody's otherwise (public wikis)."""
    world = new_world(radiant=("nevermore", "sniper"))
    tower = buildings(world)["dota_badguys_tower1_mid"]
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, 0, 0)
    if struck:
        world.damage(world.hero(1)["unit"], tower, 10.0)
    world.clear_signals()
    world.kill(tower, creep)
    assert [world.hero(i)["signals"]["gold"] for i in (0, 1)] == pytest.approx([100 if struck else 200] * 2)


def test_glyph(new_world: Any) -> None:
    """Ready at 180 s, six seconds long, again after 300 s, and at once when a first tower falls."""
    world = new_world()
    at = buildings(world)
    hero = world.hero(0)["unit"]
    tower = at["dota_badguys_tower1_mid"]
    assert not world.glyph(1)
    world.set_time(180)
    assert world.glyph(1)
    assert world.damage(hero, tower, 100, "pure") == 0
    assert not world.glyph(1)
    assert world.team(1)["glyph_ready"] == pytest.approx(480)
    world.set_time(187)
    assert world.damage(hero, tower, 100, "pure") == pytest.approx(100)
    world.kill(tower)
    assert world.glyph(1)


def test_backdoor_protection(new_world: Any) -> None:
    """A second tower takes 40 % less damage and regains 90 hp/s while no enemy lane creep was within 900."""
    world = new_world()
    at = buildings(world)
    hero = world.hero(0)["unit"]
    world.kill(at["dota_badguys_tower1_mid"])
    tower = at["dota_badguys_tower2_mid"]
    world.step(8)
    assert world.damage(hero, tower, 500, "pure") == pytest.approx(300)
    before = world.unit(tower)["hp"]
    world.step(8)
    assert world.unit(tower)["hp"] - before == pytest.approx(90 * 32 / 30, rel=0.02)
    x, y = world.unit(tower)["x"], world.unit(tower)["y"]
    creep = world.spawn("npc_dota_goodguys_siege", 0, x - 850, y)
    world.set_unit(creep, extra_armor=500)
    world.step(8)
    hp = world.unit(tower)["hp"]
    assert world.damage(hero, tower, 100, "pure") == pytest.approx(100)
    world.step(4)
    assert world.unit(tower)["hp"] <= hp


def test_first_towers_have_no_backdoor_protection(new_world: Any) -> None:
    world = new_world()
    tower = buildings(world)["dota_badguys_tower1_mid"]
    world.step(8)
    assert world.damage(world.hero(0)["unit"], tower, 100, "pure") == pytest.approx(100)
    before = world.unit(tower)["hp"]
    world.step(8)
    assert world.unit(tower)["hp"] == pytest.approx(before)


def test_tower_prefers_creeps_then_attackers_of_heroes(new_world: Any) -> None:
    world = new_world()
    at = buildings(world)
    tower = at["dota_badguys_tower1_mid"]
    x, y = world.unit(tower)["x"], world.unit(tower)["y"]
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    world.set_unit(a, x=x - 350, y=y - 350)
    creep = world.spawn("npc_dota_goodguys_siege", 0, x - 450, y - 400)
    world.set_unit(creep, extra_armor=500)
    world.set_unit(b, x=x + 100, y=y + 250)
    world.step(3)
    assert world.unit(tower)["attack_target"] == creep
    world.order(a, "attack", b)
    world.step(1)
    assert world.unit(tower)["attack_target"] == a


def test_tower_hits_a_creep_with_its_damage(new_world: Any) -> None:
    """100 to 120, siege against basic x 1, less the creep's armor of 2."""
    world = new_world()
    tower = buildings(world)["dota_badguys_tower1_mid"]
    x, y = world.unit(tower)["x"], world.unit(tower)["y"]
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, x - 500, y - 300)
    hp = world.unit(creep)["hp"]
    for _ in range(20):
        world.step()
        lost = hp - world.unit(creep)["hp"]
        if lost > 10:
            break
    factor = physical_share(2)
    assert 100 * factor - 1 <= lost <= 120 * factor + 1


def test_towers_give_armor(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    tower = buildings(world)["dota_goodguys_tower1_mid"]
    x, y = world.unit(tower)["x"], world.unit(tower)["y"]
    hero = world.hero(0)["unit"]
    world.step(8)
    assert world.unit(hero)["armor"] == pytest.approx(3.2)
    world.set_unit(hero, x=x - 500, y=y - 300)
    world.step(8)
    assert world.unit(hero)["armor"] == pytest.approx(3.2 + 2)


def test_fountain_heals(new_world: Any) -> None:
    """6 % of both a second and 14 mana, with 3 s more after leaving."""
    world = new_world()
    world.clear_items(0)
    hero = world.hero(0)["unit"]
    world.step(1)
    world.set_unit(hero, hp=100, mana=0)
    world.step(15)  # 2 s
    u = world.unit(hero)
    assert u["hp"] - 100 == pytest.approx(2 * (580 * 0.06 + u["hp_regen"]), rel=0.03)
    assert u["mana"] == pytest.approx(2 * (291 * 0.06 + 14 + u["mana_regen"]), rel=0.03)


def test_fountain_kills_intruders(new_world: Any) -> None:
    world = new_world()
    fountain = buildings(world)["ent_dota_fountain_bad"]
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=world.unit(fountain)["x"] - 400, y=world.unit(fountain)["y"] - 300)
    world.step(20)
    assert not world.unit(hero)["alive"]


@pytest.mark.parametrize(("patch", "share"), [("7.21d", 0.25), ("7.19", 0)])
def test_a_fountain_has_its_accuracy(core: Any, patch: str, share: float) -> None:
    """Patch 7.20: 25 %. Of 1,110 attacks on a hero who evades every attack that many land (four deviations: 5.2 %)."""
    evades_all = (("item_butterfly", "evasion_pct", 100), ("item_butterfly", "bonus_evasion", 100))
    hits = []
    for item in ("item_blades_of_attack", "item_butterfly"):
        arena = item_duel(core, patch, changes=evades_all, max_game_s=1e5)
        world, hero = arena.world, arena.unit(0)
        assert world.give_item(0, item)
        fountain = next(u for u in world.units("fountain") if u["team"] == 1)
        hits.append(0)
        for _ in range(5000):  # an attack each four and a half frames
            set_health(arena, hero, hp=1000, max_hp=2000)
            world.set_unit(hero, x=fountain["x"] - 400, y=fountain["y"] - 300)
            world.run_frames(1)
            hits[-1] += world.unit(hero)["hp"] < 950
    assert hits[0] == pytest.approx(1110, abs=3)
    assert hits[1] / hits[0] == pytest.approx(share, abs=0.052 if share else 0)


def test_shrine_heals_once_in_five_minutes(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    shrine = buildings(world)["good_healer_6"]
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=world.unit(shrine)["x"] + 250, y=world.unit(shrine)["y"] + 100)
    world.step(1)
    assert not world.shrine(0)  # not before 300 s
    world.set_time(301)
    world.set_unit(hero, hp=50)
    assert world.shrine(0)
    assert not world.shrine(0)
    world.step(15)
    u = world.unit(hero)
    assert u["hp"] - 50 == pytest.approx(2 * (90 + 580 * 0.02 + u["hp_regen"]), rel=0.05)


def test_1v1_ends_with_two_deaths_or_the_tower(new_world: Any) -> None:
    world = new_world(mode_1v1_mid=True, kills_to_win=2)
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    world.kill(b, a)
    world.step()
    assert world.winner == 0
    world.step(60)
    world.kill(b, a)
    world.step()
    assert world.winner == 1
    assert world.hero(0)["signals"]["win"] == 1
    assert world.hero(5)["signals"]["win"] == 0
    world = new_world(mode_1v1_mid=True, kills_to_win=2)
    world.kill(buildings(world)["dota_goodguys_tower1_top"])
    assert world.winner == 0
    world.kill(buildings(world)["dota_goodguys_tower1_mid"])
    assert world.winner == 2


def test_1v1_in_which_both_die_last_in_one_frame_is_a_draw(new_world: Any) -> None:
    world = new_world(mode_1v1_mid=True, kills_to_win=1)
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    world.kill(b, a)
    world.kill(a, b)
    world.step()
    assert world.winner == 3
    assert world.hero(0)["signals"]["win"] == world.hero(5)["signals"]["win"] == 0


def test_time_out_is_a_draw(new_world: Any) -> None:
    world = new_world(max_game_s=1.0)
    world.step(20)
    assert world.winner == 3
    assert world.time == pytest.approx(1.0, abs=0.04)
