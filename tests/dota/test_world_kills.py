"""Bounties of a hero's death, computed by hand from 7.21d's rules.json (gold.hero_kill_*, experience.hero_kill)."""

from collections.abc import Sequence
from typing import Any

import pytest

RADIANT = ("nevermore", "sniper", "lion", "sven", "viper")
DIRE = ("axe", "lich", "razor", "riki", "slark")
MID = (-500.0, -400.0)
VICTIM, KILLER = 5, 0
STEPS_A_SECOND = 7.5


def stage(new_world: Any, near: int, gold: Sequence[float], victim_gold: float,
          mates_gold: Sequence[float] = ()) -> Any:
    """Five against five without items: the first ``near`` Radiant heroes are next to the Dire's first, the others at
    home. Net worth is gold only."""
    world = new_world(RADIANT, DIRE)
    for hero in range(10):
        world.clear_items(hero)
    for hero, amount in enumerate(gold):
        world.set_gold(hero, amount)
    for hero, amount in enumerate((victim_gold, *mates_gold, 0, 0, 0, 0)[:5], start=5):
        world.set_gold(hero, amount)
    for hero in range(near):
        world.set_unit(unit(world, hero), x=MID[0] + 200 * hero, y=MID[1])
    world.set_unit(unit(world, VICTIM), x=MID[0], y=MID[1] + 300)
    world.clear_signals()
    return world


def unit(world: Any, hero: int) -> int:
    index: int = world.hero(hero)["unit"]
    return index


def creep(world: Any) -> int:
    """Return a Radiant creep, whose kills pay only the heroes nearby."""
    index: int = world.spawn("npc_dota_creep_goodguys_melee", 0, MID[0], MID[1])
    return index


def paid(world: Any) -> list[float]:
    return [world.hero(i)["signals"]["gold"] for i in range(5)]


def put_on_a_streak(world: Any, kills: int) -> None:
    """Let the Dire's first hero kill heroes at their fountain, too far away to gain a level."""
    for n in range(kills):
        if n and n % 5 == 0:
            world.step(60)  # 8 s: they are back
        world.kill(unit(world, n % 5), unit(world, VICTIM))
    world.step(60)
    assert world.hero(VICTIM)["streak"] == kills and world.hero(VICTIM)["level"] == 1


@pytest.mark.parametrize(("near", "each"), [
    (1, [156.6]),  # 1.2 * (126 + 4.5)
    (2, [103.896, 55.944]),  # 1.2 * (63 + 3.6) = 79.92, times 1.3 and 0.7
    (3, [53.352, 41.04, 28.728]),  # 1.2 * (31.5 + 2.7) = 41.04, times 1.3, 1, 0.7
    (4, [37.908, 32.076, 26.244, 20.412]),  # 1.2 * (22.5 + 1.8) = 29.16, times 1.3, 1.1, 0.9, 0.7
    (5, [29.484, 26.082, 22.68, 19.278, 15.876])])  # 1.2 * (18 + 0.9) = 22.68, times 1.3, 1.15, 1, 0.85, 0.7
def test_those_near_are_paid_by_how_many_and_how_rich_they_are(new_world: Any, near: int, each: list[float]) -> None:
    """The poorest gets most. The victim, of level 1, is the richest of its team; the killers' team is richer."""
    world = stage(new_world, near, gold=(100, 200, 300, 400, 500), victim_gold=50)
    world.kill(unit(world, VICTIM), creep(world))
    assert paid(world) == pytest.approx(each + [0] * (5 - near), abs=1e-3)
    assert world.team(0)["kills"] == 1 and world.hero(KILLER)["kills"] == 0


@pytest.mark.parametrize(("richer", "gold"), [(0, 156.6), (1, 137.025), (2, 117.45), (3, 97.875), (4, 78.3)])
def test_a_poor_victim_is_worth_less(new_world: Any, richer: int, gold: float) -> None:
    """130.5 times 1.2, 1.05, 0.9, 0.75 or 0.6, by the number of richer teammates."""
    mates = [200.0] * richer + [10.0] * (4 - richer)
    world = stage(new_world, 1, gold=(5000, 0, 0, 0, 0), victim_gold=100, mates_gold=mates)
    world.kill(unit(world, VICTIM), creep(world))
    assert paid(world)[0] == pytest.approx(gold, abs=1e-3)


@pytest.mark.parametrize(("near", "each"), [
    (1, [321.72]),  # comeback 0.026 * 2600 + 70 = 137.6; (130.5 + 137.6) * 1.2
    (2, [211.224, 113.736]),  # 68.8 each; (66.6 + 68.8) * 1.2 = 162.48, times 1.3 and 0.7
    (5, [72.4152, 64.0596, 55.704, 47.3484, 38.9928])])  # 27.52 each; (18.9 + 27.52) * 1.2 = 55.704
def test_the_team_that_is_behind_gets_more(new_world: Any, near: int, each: list[float]) -> None:
    world = stage(new_world, near, gold=(100, 200, 300, 400, 500), victim_gold=2600)
    world.kill(unit(world, VICTIM), creep(world))
    assert paid(world)[:near] == pytest.approx(each, abs=1e-3)


def test_higher_level_victims_give_more_gold(new_world: Any) -> None:
    """Level 6: 110 + 8 * 6 and 150 for first blood for the last hit, 1.2 * (126 + 4.5 * 6) for being near."""
    world = stage(new_world, 1, gold=(5000, 0, 0, 0, 0), victim_gold=100)
    world.give_xp(VICTIM, 2300)
    world.kill(unit(world, VICTIM), unit(world, KILLER))
    assert paid(world)[0] == pytest.approx(158 + 150 + 183.6, abs=1e-3)


@pytest.mark.parametrize(("kills", "gold", "xp"), [
    (2, 0, 0), (3, 60, 200), (4, 120, 350), (5, 180, 500), (6, 240, 650), (7, 300, 800), (8, 360, 950), (9, 420, 1100),
    (10, 480, 1250), (11, 480, 1250)])
def test_the_end_of_a_streak_is_worth_more(new_world: Any, kills: int, gold: float, xp: float) -> None:
    """60 gold for each kill from the third to the tenth; 200 to 1,250 experience, 150 a kill. In addition: 110 + 8, the
    area bounty, and 40 experience."""
    world = stage(new_world, 0, gold=(0,) * 5, victim_gold=0)
    put_on_a_streak(world, kills)
    for hero in range(10):
        world.clear_items(hero)
        world.set_gold(hero, 5000 if hero == KILLER else 10 if hero == VICTIM else 0)
    world.set_unit(unit(world, KILLER), x=MID[0], y=MID[1])
    world.clear_signals()
    before = world.hero(KILLER)["xp"]
    world.kill(unit(world, VICTIM), unit(world, KILLER))
    assert paid(world)[0] == pytest.approx(118 + gold + 156.6, abs=1e-3)
    assert world.hero(KILLER)["xp"] - before == pytest.approx(40 + xp, abs=1e-2)
    assert world.hero(VICTIM)["streak"] == 0


@pytest.mark.parametrize("near", [1, 2, 3, 4, 5])
def test_experience_of_a_kill_is_shared(new_world: Any, near: int) -> None:
    """(40 + 0.14 * 1000) in equal parts among those within 1,500 units; the killer is far away and gets none."""
    world = stage(new_world, near, gold=(0,) * 5, victim_gold=0)
    world.give_xp(VICTIM, 1000)
    if near < 5:
        world.kill(unit(world, VICTIM), unit(world, 4))
    else:
        world.kill(unit(world, VICTIM), creep(world))
    assert [world.hero(i)["xp"] for i in range(5)] == pytest.approx([180 / near] * near + [0] * (5 - near), abs=1e-3)


def test_first_blood_is_paid_once(new_world: Any) -> None:
    world = stage(new_world, 1, gold=(5000, 0, 0, 0, 0), victim_gold=100)
    world.kill(unit(world, VICTIM), unit(world, KILLER))
    first = paid(world)[0]
    world.set_gold(6, 100)
    world.set_gold(VICTIM, 0)
    world.clear_signals()
    world.kill(unit(world, 6), unit(world, KILLER))
    assert first - paid(world)[0] == pytest.approx(150, abs=1e-3)


@pytest.mark.parametrize(("seconds", "counts"), [(0, True), (19, True), (21, False)])
def test_an_assist_is_a_blow_of_the_last_twenty_seconds(new_world: Any, seconds: float, counts: bool) -> None:
    world = stage(new_world, 0, gold=(0,) * 5, victim_gold=0)
    world.damage(unit(world, 1), unit(world, VICTIM), 20)
    world.step(int(seconds * STEPS_A_SECOND))
    world.kill(unit(world, VICTIM), unit(world, KILLER))
    assert [world.hero(i)["assists"] for i in range(5)] == [0, int(counts), 0, 0, 0]
    assert world.hero(KILLER)["kills"] == 1


@pytest.mark.parametrize(("seconds", "counts"), [(1, True), (21, False)])
def test_the_last_to_have_hurt_him_gets_a_creeps_kill(new_world: Any, seconds: float, counts: bool) -> None:
    world = stage(new_world, 0, gold=(0,) * 5, victim_gold=0)
    for hero in (2, 1):
        world.damage(unit(world, hero), unit(world, VICTIM), 20)
        world.step(3)
    world.step(int(seconds * STEPS_A_SECOND))
    world.kill(unit(world, VICTIM), creep(world))
    assert [world.hero(i)["kills"] for i in range(5)] == [0, int(counts), 0, 0, 0]
    assert [world.hero(i)["assists"] for i in range(5)] == [0, 0, int(counts), 0, 0]


@pytest.mark.parametrize("denier", [VICTIM, 6])
def test_a_denied_hero_gives_no_bounty_and_no_assist(new_world: Any, denier: int) -> None:
    """Denied by a teammate or by himself (7.19's Bloodstone), shortly after two enemies hit him."""
    world = stage(new_world, 2, gold=(0,) * 5, victim_gold=0)
    for hero in (0, 1):
        world.damage(unit(world, hero), unit(world, VICTIM), 20)
    world.kill(unit(world, VICTIM), unit(world, denier))
    heroes = [world.hero(i) for i in range(5)]
    assert [(h["kills"], h["assists"], h["xp"], h["signals"]["gold"]) for h in heroes] == [(0, 0, 0.0, 0.0)] * 5
    assert world.hero(VICTIM)["deaths"] == 1 and world.team(0)["kills"] == 0
