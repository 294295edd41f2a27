"""Boots and what moves: speed that does not add up, phasing, pushes, teleports."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.units import lane_creep, without_armor


@pytest.mark.parametrize(("other", "most"), [("item_phase_boots", 50), ("item_travel_boots", 100),
                                             ("item_guardian_greaves", 55), ("item_tranquil_boots", 90)])
def test_of_flat_speeds_of_boots_the_greatest_counts(core: Any, other: str, most: float) -> None:
    """Tooltips of 7.19: flat bonuses of several pairs do not stack."""
    arena = item_duel(core, "7.19")
    before = arena.world.unit(arena.unit(0))["move_speed"]
    for item in ("item_boots", other):
        assert arena.world.give_item(0, item)
    arena.seconds(0.4)
    agility = arena.world.unit(arena.unit(0))["agi"] * 0.0005  # the share by agility is of the whole speed
    assert arena.world.unit(arena.unit(0))["move_speed"] - before == pytest.approx(most, abs=most * agility + 1.5)


def test_a_second_wind_lace_gives_nothing(core: Any, patch: str) -> None:
    """Tooltip: bonuses from multiple Wind Laces do not stack; 20 speed and nothing else."""
    arena = item_duel(core, patch)
    seen = []
    for _ in range(3):
        u = arena.world.unit(arena.unit(0))
        seen.append((u["move_speed"], u["attack_speed"]))
        assert arena.world.give_item(0, "item_wind_lace")
        arena.seconds(0.2)
    assert seen[1][0] - seen[0][0] == pytest.approx(20, abs=0.5)
    assert seen[2] == pytest.approx(seen[1])
    assert seen[1][1] == seen[0][1]


@pytest.mark.parametrize(("patch", "by_creeps"), [("7.21d", False), ("7.19", True)])
def test_tranquil_boots_and_attacks_on_creeps(core: Any, patch: str, by_creeps: bool) -> None:
    """Patch 7.20: no longer disabled by attacking creeps."""
    arena = item_duel(core, patch)
    assert arena.world.give_item(0, "item_tranquil_boots")
    arena.seconds(0.3)
    whole = arena.world.unit(arena.unit(0))
    attack_once(arena, arena.unit(0), without_armor(arena, lane_creep(arena, 1, 120, 0)))
    arena.seconds(0.3)
    after = arena.world.unit(arena.unit(0))
    assert (after["hp_regen"] < whole["hp_regen"] - 5) == by_creeps
    assert (after["move_speed"] < whole["move_speed"] - 5) == by_creeps
    arena.world.order(arena.unit(0), "hold")
    arena.seconds(13.2)
    assert arena.world.unit(arena.unit(0))["move_speed"] == pytest.approx(whole["move_speed"])


@pytest.mark.parametrize(("hero", "rate"), [("sven", 1.0), ("sniper", None)])
def test_phase_boots_turn_melee_heroes_at_once(core: Any, hero: str, rate: float | None) -> None:
    """Patches 7.14 and 7.19b: a turn rate of 1 while phased, for melee heroes only."""
    arena = item_duel(core, hero=hero, enemy="axe")
    own = arena.world.unit(arena.unit(0))["turn_rate"]
    use(arena, give(arena, "phase_boots"))
    assert arena.world.unit(arena.unit(0))["turn_rate"] == pytest.approx(rate or own)
    arena.seconds(3)
    assert arena.world.unit(arena.unit(0))["turn_rate"] == pytest.approx(own)


@pytest.mark.parametrize("item", ["force_staff", "hurricane_pike"])
def test_a_push_takes_half_a_second(core: Any, item: str) -> None:
    """Patch 7.08: 600 units in 0.5 s, so 480 after 0.4 s."""
    arena = item_duel(core, away=1500)
    a, slot = arena.unit(0), give(arena, item)
    arena.place(a, 0, 0, math.radians(210))
    arena.world.order(a, "cast_unit", target=a, slot=slot)
    while not arena.modifiers(a, "item_" + item + "#"):
        arena.world.run_frames(1)
    at = arena.world.unit(a)
    seen = []
    for _ in range(6):
        arena.world.run_frames(3)
        u = arena.world.unit(a)
        seen.append(math.dist((u["x"], u["y"]), (at["x"], at["y"])))
    assert seen[3] == pytest.approx(480, abs=41) and seen[3] < 530
    assert seen[4] == pytest.approx(600, abs=35) and seen[5] == seen[4]


def test_a_pike_reaches_enemies_within_400_and_allies_within_800(core: Any) -> None:
    """Tooltip: two cast ranges; the hero walks up to an enemy that is too far."""
    arena = item_duel(core, hero="sniper", enemy="axe", away=700)
    a, slot = arena.unit(0), give(arena, "hurricane_pike")
    arena.place(arena.unit(1), -700, 0)
    arena.world.order(a, "cast_unit", target=arena.unit(1), slot=slot)
    arena.seconds(1)
    assert arena.world.ability(0, "item_hurricane_pike")["ready"] > arena.world.time
    assert abs(arena.world.unit(a)["x"] - CENTRE[0]) < 30
    arena.world.set_unit(a, mana=500)
    arena.seconds(23)
    arena.place(arena.unit(5), 700, 0, math.pi)
    arena.world.order(a, "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(0.4)
    assert arena.world.ability(0, "item_hurricane_pike")["ready"] < arena.world.time
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.world.ability(0, "item_hurricane_pike")["ready"] > arena.world.time:
            break
    u, enemy = arena.world.unit(a), arena.world.unit(arena.unit(5))
    between = math.dist((u["x"], u["y"]), (enemy["x"], enemy["y"])) - u["radius"] - enemy["radius"]
    assert between == pytest.approx(400, abs=35)


@pytest.mark.parametrize(("item", "ends"), [("shivas_guard", False), ("invis_sword", False), ("blade_mail", True),
                                            ("magic_wand", True)])
def test_which_items_a_channel_survives(core: Any, item: str, ends: bool) -> None:
    """The files: behavior `ignore_channel`; other instant items interrupt their user's channel (public wikis)."""
    arena = item_duel(core, away=2400)
    a = arena.unit(0)
    assert arena.world.give_item(0, "item_tpscroll", 1)
    slot = give(arena, item, charges=5)
    scroll = arena.world.ability(0, "item_tpscroll")["slot"]
    tower = next(u for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 1 and u["lane"] == 1)
    arena.world.order(a, "cast_point", x=tower["x"], y=tower["y"], slot=scroll)
    arena.seconds(1)
    assert arena.world.unit(a)["act"] == "channel"
    arena.world.order(a, "cast", slot=slot)
    arena.world.run_frames(1)
    assert (arena.world.unit(a)["act"] != "channel") == ends
    arena.seconds(2.5)
    there = math.dist((arena.world.unit(a)["x"], arena.world.unit(a)["y"]), (tower["x"], tower["y"])) < 700
    assert there != ends


def test_blink_beyond_its_range(core: Any) -> None:
    """The files: aimed farther than 1,200 units, the jump is 960 units long."""
    arena = item_duel(core, away=2400)
    a, slot = arena.unit(0), give(arena, "blink")
    arena.place(a, 0, 0, math.radians(210))
    x, y = (1500 * f(math.radians(210)) for f in (math.cos, math.sin))
    arena.world.order(a, "cast_point", x=CENTRE[0] + x, y=CENTRE[1] + y, slot=slot)
    arena.seconds(0.3)
    u = arena.world.unit(a)
    assert math.dist((u["x"], u["y"]), CENTRE) == pytest.approx(960, abs=60)


@pytest.mark.parametrize(("hero", "more"), [("sven", 0), ("sniper", 140)])
def test_reach_is_for_ranged_heroes(core: Any, hero: str, more: float) -> None:
    """Tooltips of Dragon Lance and Hurricane Pike."""
    for item in ("dragon_lance", "hurricane_pike"):
        arena = item_duel(core, hero=hero, enemy="axe")
        reach = arena.world.unit(arena.unit(0))["attack_range"]
        give(arena, item)
        assert arena.world.unit(arena.unit(0))["attack_range"] - reach == pytest.approx(more)
