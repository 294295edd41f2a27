"""Rules and bots do not favour a side: on a symmetric map both win equally often."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dota.vec_game import Winner
from five.evaluation.bot_games import play, quick_game_config
from tests.dota.mirrored_map import PATCH, counterpart, games_on_it, mirrored
from tests.dota.scenes.patches import read_data

GAMES = 1000


@pytest.fixture(scope="module")
def turned() -> dict[str, Any]:
    return mirrored(read_data(PATCH)["map"])


def grid(of: dict[str, Any], name: str) -> npt.NDArray[np.int64]:
    runs = of["grids"][name]
    return np.repeat(runs[0::2], runs[1::2]).reshape(of["world"]["h"], of["world"]["w"])


def test_buildings_lanes_and_spawns_are_images(turned: dict[str, Any]) -> None:
    places = {b["id"]: (b["x"], b["y"]) for b in turned["buildings"]}
    dire = [b for b in turned["buildings"] if b["team"] == "dire"]
    assert len(dire) == sum(b["team"] == "radiant" for b in turned["buildings"])
    for b in dire:
        x, y = places[counterpart(b["id"])]
        assert (b["x"], b["y"]) == (-x, -y)
    for lane, other in (("top", "bot"), ("mid", "mid"), ("bot", "top")):
        ours, theirs = turned["lanes"]["radiant"][lane]["waypoints"], turned["lanes"]["dire"][other]["waypoints"]
        assert theirs == [[-x, -y] for x, y in ours]
    assert turned["hero_spawn"]["dire"] == [-axis for axis in turned["hero_spawn"]["radiant"]]


def test_ground_is_the_same_turned_by_half_a_circle(turned: dict[str, Any]) -> None:
    """The original map is not symmetric."""
    real = read_data(PATCH)["map"]
    for name in turned["grids"]:
        if name != "encoding":
            cells = grid(turned, name)
            assert (cells == cells[::-1, ::-1]).all(), name
    blocked = grid(real, "blocked_at_start")
    assert (blocked != blocked[::-1, ::-1]).mean() > 0.05


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_neither_side_wins_more_often(tmp_path: Path) -> None:
    """A thousand quick games of the strongest bot against itself, few of them drawn: the share's standard deviation is
    1.6 %."""
    with games_on_it(tmp_path):
        games = play(quick_game_config(), "scripted-hard", "scripted-hard", GAMES, seed=1, concurrent=16, observe=False)
    radiant, dire = (sum(game.winner == side for game in games) for side in (Winner.RADIANT, Winner.DIRE))
    assert radiant + dire > 0.95 * GAMES
    assert 0.45 < radiant / (radiant + dire) < 0.55
