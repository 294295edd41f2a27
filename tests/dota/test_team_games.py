"""Games in which an agent commands a team: assignment of sides and opponents."""

import pytest

from dota.team_games import TeamGames, steps_of
from tests.dota.small_games import MID, MID_STEPS, TEAM


def games(count=2, **changes):
    arguments = {"preset": None, "config": TEAM, "game": None, "observation": "flat", "actions": "factored",
                 "opponent": "easy", "side": 0, "rewards": None, "team_spirit": None, "zero_sum": True, "threads": 1}
    return TeamGames(count, **{**arguments, **changes})


@pytest.mark.parametrize(("changes", "controllers", "rows"), [
    ({}, [[0, 2], [0, 2]], [(0, 0), (1, 0)]), ({"side": 1}, [[2, 0], [2, 0]], [(0, 1), (1, 1)]),
    ({"opponent": "self"}, [[0, 0], [0, 0]], [(0, 0), (0, 1), (1, 0), (1, 1)]),
])
def test_rows_and_controllers(changes, controllers, rows):
    made = games(**changes)
    assert made.games.controllers.tolist() == controllers
    assert list(zip(made.game_of.tolist(), made.team_of.tolist(), strict=True)) == rows
    assert made.rows == len(rows)


def test_changing_sides_takes_the_opponent_along():
    made = games(opponent="hard")
    made.set_side(1)
    assert made.games.controllers.tolist() == [[4, 0], [4, 0]]
    made.set_opponent("random", [1])
    assert made.games.controllers.tolist() == [[4, 0], [1, 0]]


def test_a_config_has_the_papers_rewards_and_a_preset_its_own():
    assert games().weighting.config.preset == "paper" and games().weighting.team_spirit == 0.3
    own = games(config=None, preset="laptop-1v1")
    assert own.weighting.config.preset == "gist" and own.weighting.team_spirit == 0.0
    assert games(config=None, preset="laptop-1v1", team_spirit=0.5, rewards="paper").weighting.config.preset == "paper"


def test_changes_of_a_section_keep_its_other_values():
    made = games(game={"observation": {"wards": 2}, "randomisation": {"gold": 0.1}, "max_game_seconds": 9.0}).config
    assert made.observation == TEAM.observation.model_copy(update={"wards": 2}) != TEAM.observation
    assert (made.randomisation.gold, made.max_game_seconds) == (0.1, 9.0)


def test_the_length_of_a_game():
    assert steps_of(MID) == MID_STEPS
    assert steps_of(MID.model_copy(update={"max_game_seconds": 10.01})) == MID_STEPS + 1
