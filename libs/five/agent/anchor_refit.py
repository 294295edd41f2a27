"""One-time refit of the anchors' distance from random play.

A bot that wins every game against random play is stronger by an unknown distance, so the anchors' own games leave it to
the prior. Versions in between measure it: some lose games to random play or its like, others win games against bots.
Then the anchors are fitted once more, with all versions rated so far and all of their games.
"""

from collections.abc import Mapping
from dataclasses import replace

from five.agent.config import RatingConfig
from five.agent.ratings import RANDOM
from five.agent.skill_fit import FitError, fit_skills
from five.agent.standings import GameResult, Standing, list_games, player_version

REQUIRED_NARROWING = 0.6  # largest new σ of an anchor, as a share of the present one


def anchors_are_measured(anchors: Mapping[str, Standing], config: RatingConfig) -> bool:
    """Whether the anchors' own games determine their distance from random play.

    Their σ must be at most that of a version with some twenty games against players nearby.
    """
    return all(standing.sigma <= config.max_reference_distance / 4 for standing in anchors.values())


def refit_standings(standings: Mapping[str, Standing], config: RatingConfig) -> dict[str, Standing] | None:
    """Return all standings fitted to all games at once, with only random play fixed.

    Return None if that does not narrow the anchors' σ enough, because no version connects random play to them yet.
    """
    try:
        fit = fit_skills(_list_games(standings), config)
    except FitError:
        return None
    skills = fit.skills
    for name in config.anchors:
        if name not in skills or (name != RANDOM and skills[name].sigma > REQUIRED_NARROWING * standings[name].sigma):
            return None
    return {name: replace(standing, mu=skills[name].mu, sigma=skills[name].sigma,
                          draw_probability=fit.draw_probability)
            for name, standing in standings.items() if name in skills and name != RANDOM}


def _list_games(standings: Mapping[str, Standing]) -> list[GameResult]:
    """Return each game once; games of two bots are stored with both."""
    return [game for name, standing in standings.items() for game in list_games(standing)
            if player_version(name) is not None or game[0] < game[1]]
