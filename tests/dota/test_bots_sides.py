"""The two sides of the map are not alike: what of it the data say, and what the strongest bot makes of it."""

from collections import Counter

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.events import EventKind
from dota.vec_game import TEAMS, Controller, VecGame, Winner
from tests.dota.conftest import read_data

MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-30, max_game_seconds=900,
                 neutrals=False, roshan=False, runes=False, kills_to_win=0,
                 observation=ObservationConfig(neutral_creeps=0, buildings=3, wards=0, couriers=0))


def happened(games, seconds, seed):
    """Plays games of the strongest bot against itself; how often what happened by side, [(kind, what, side)]."""
    vec = VecGame(MID, games, seed=seed, observations=False)
    vec.controllers[:] = Controller.HARD
    told = Counter()
    while (running := np.flatnonzero((vec.winner == Winner.RUNNING) & (vec.game_time < seconds))).size:
        vec.step(which=running)
        for game in running:
            told.update((event.kind, event.what, event.hero // 5) for event in vec.events(int(game)) if event.hero >= 0)
    return told


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_the_dires_fountain_is_farther_from_the_middle(patch):
    """Of the map itself, and none of ours: from the point between both middle towers it is an eighth farther."""
    buildings = {b["id"]: np.array([b["x"], b["y"]]) for b in read_data(patch)["map"]["buildings"]}
    middle = (buildings["dota_goodguys_tower1_mid"] + buildings["dota_badguys_tower1_mid"]) / 2
    radiant, dire = (np.hypot(*(buildings[f"ent_dota_fountain_{team}"] - middle)) for team in ("good", "bad"))
    assert 1.12 < dire / radiant < 1.14


def test_tangos_are_eaten_on_both_sides():
    """The trees nearest to where the Dire's hero stands in lane are out of a tango's reach: it goes back to them. Of
    the three that either has in each of twelve games, two are eaten within three minutes."""
    told = happened(12, 180, seed=3)
    eaten = [sum(n for (kind, what, team), n in told.items()
                 if kind == EventKind.CAST and what.startswith("item_tango") and team == side) for side in range(TEAMS)]
    assert min(eaten) >= 2 * 12


def test_shrines_are_gone_to_on_both_sides():
    """Six games: they are ready from minute 5 on, nearer than home, and nearly as far for either side."""
    told = happened(6, 540, seed=4)
    used = [sum(n for (kind, _, team), n in told.items() if kind == EventKind.SHRINE and team == side)
            for side in range(TEAMS)]
    assert min(used) >= 4
