"""Asymmetry of the map: the sides' data, and the strongest bot's behaviour on both."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.events import EventKind
from dota.vec_game import TEAMS, Controller, VecGame, Winner
from tests.dota.scenes.patches import read_data
from tests.dota.watching import hero_unit, place

MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-30, max_game_seconds=900,
                 neutrals=False, roshan=False, runes=False, kills_to_win=0,
                 observation=ObservationConfig(neutral_creeps=0, buildings=3, wards=0, couriers=0))


def count_events(games, seconds, seed):
    """Play games of the strongest bot against itself; return counts of events by side, [(kind, what, side)]."""
    vec = VecGame(MID, games, seed=seed, observations=False)
    vec.controllers[:] = Controller.HARD
    counts = Counter()
    while (running := np.flatnonzero((vec.winner == Winner.RUNNING) & (vec.game_time < seconds))).size:
        vec.step(which=running)
        for game in running:
            counts.update((event.kind, event.what, event.hero // 5) for event in vec.events(int(game))
                          if event.hero >= 0)
    return counts


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_the_dires_fountain_is_farther_from_the_middle(patch):
    """A property of the original map: from the midpoint between the middle towers it is an eighth farther."""
    buildings = {b["id"]: np.array([b["x"], b["y"]]) for b in read_data(patch)["map"]["buildings"]}
    middle = (buildings["dota_goodguys_tower1_mid"] + buildings["dota_badguys_tower1_mid"]) / 2
    radiant, dire = (np.hypot(*(buildings[f"ent_dota_fountain_{team}"] - middle)) for team in ("good", "bad"))
    assert 1.12 < dire / radiant < 1.14


def test_tangos_are_eaten_on_both_sides():
    """The trees next to the Dire's lane position are out of a tango's range, so it walks back to them. In twelve games
    of three minutes both sides eat at least a tango a game; some two of the three are usual."""
    counts = count_events(12, 180, seed=3)
    eaten = [sum(n for (kind, what, team), n in counts.items()
                 if kind == EventKind.CAST and what.startswith("item_tango") and team == side) for side in range(TEAMS)]
    assert min(eaten) >= 12


def test_shrines_are_gone_to_on_both_sides():
    """Six games: shrines are ready from minute 5, nearer than home, and about equally far for both sides."""
    counts = count_events(6, 540, seed=4)
    used = [sum(n for (kind, _, team), n in counts.items() if kind == EventKind.SHRINE and team == side)
            for side in range(TEAMS)]
    assert min(used) >= 4


def lane_place(team: int) -> np.ndarray:
    """Return the position in mid 700 units behind the midpoint between the towers."""
    buildings = {b["id"]: np.array([b["x"], b["y"]]) for b in read_data("7.21d")["map"]["buildings"]}
    towers = [buildings[f"dota_{name}guys_tower1_mid"] for name in ("good", "bad")]
    middle = (towers[0] + towers[1]) / 2
    back: np.ndarray = middle + (towers[team] - middle) * 700 / np.hypot(*(towers[team] - middle))
    return back


def shrines(team: int) -> list[tuple[float, float]]:
    return [(b["x"], b["y"]) for b in read_data("7.21d")["map"]["buildings"]
            if b["kind"] == "shrine" and b["team"] == ("radiant", "dire")[team]]


@pytest.mark.parametrize("team", range(TEAMS))
def test_the_shrine_nearer_to_walk_is_gone_to(core: Any, tables: Any, team: int) -> None:
    """The Dire's shrine that is nearer in a straight line is farther on foot; the Radiant's is not."""
    at = lane_place(team)

    def frames_to(shrine: tuple[float, float]) -> int:
        ground = core.Ground(tables)
        hero = ground.add("npc_dota_hero_nevermore", team, tuple(at))
        frames: int = ground.walk([(hero, *shrine)], 250.0, 1500)
        return frames

    walked = {shrine: frames_to(shrine) for shrine in shrines(team)}
    nearer = min(walked, key=walked.__getitem__)
    assert all(frames > 0 for frames in walked.values())
    assert (math.dist(at, nearer) > min(math.dist(at, shrine) for shrine in walked)) == (team == 1)
    game = VecGame(MID.model_copy(update={"start_seconds": 300.0}), 1, seed=1, observations=False)
    hero, enemy = hero_unit(game, team), hero_unit(game, 1 - team)
    place(game, hero, *at)
    place(game, enemy, *lane_place(1 - team) * 8)  # far away
    game.controllers[0, team] = Controller.HARD
    game._core.observe(0)
    for _ in range(250):
        game._core.set_hp(0, hero["slot"], 0.2 * hero["max_hp"])
        game.step()
        used = [event for event in game.events(0) if event.kind == EventKind.SHRINE]
        if used:
            break
    there = hero_unit(game, team)
    assert used and math.dist((there["x"], there["y"]), nearer) < 800
