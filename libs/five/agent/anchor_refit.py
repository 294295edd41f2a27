"""How far the bots are from random play, measured once, by the versions between.

A bot that wins every game against random play is some distance above it, and no number of such games says which: what
the anchors' own games leave open is the prior's. Versions that lose some games to random play or to its like, others
that take some from the bots, and those between measure it. When they have, the anchors are fitted once more, with all
versions rated until then and all of their games.
"""

from collections.abc import Mapping
from dataclasses import replace

from five.agent.config import RatingConfig
from five.agent.ratings import RANDOM
from five.agent.skill_fit import FitError, fit_skills
from five.agent.standings import GameResult, Standing, list_games

REQUIRED_NARROWING = 0.6  # of the anchors' σ before: what versions have to bring it to


def anchors_are_measured(anchors: Mapping[str, Standing], config: RatingConfig) -> bool:
    """Whether the anchors' own games tell how far they are from random play: their σ is no larger than that of a
    version which has played some twenty games against players nearby."""
    return all(standing.sigma <= config.nearby / 4 for standing in anchors.values())


def refit_standings(standings: Mapping[str, Standing], config: RatingConfig) -> dict[str, Standing] | None:
    """Every standing fitted again, to all of their games at once and with random play alone at its place; None where
    the anchors are not known much better by that, as no version reaches from random play to them yet."""
    try:
        fit = fit_skills(_list_games(standings, config), config)
    except FitError:
        return None
    skills = fit.skills
    for name in config.anchors:
        if name not in skills or (name != RANDOM and skills[name].sigma > REQUIRED_NARROWING * standings[name].sigma):
            return None
    return {name: replace(standing, mu=skills[name].mu, sigma=skills[name].sigma,
                          draw_probability=fit.draw_probability)
            for name, standing in standings.items() if name in skills and name != RANDOM}


def _list_games(standings: Mapping[str, Standing], config: RatingConfig) -> list[GameResult]:
    """Each game once: those of two anchors stand with both."""
    return [game for name, standing in standings.items() for game in list_games(standing)
            if name not in config.anchors or game[0] < game[1]]
