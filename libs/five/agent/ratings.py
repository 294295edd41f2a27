"""Ratings in points of TrueSkill's scale (Herbrich et al. 2006), random play at 0, and confidence intervals of win
rates.

`five.agent.skill_fit` computes ratings from games, and `five.agent.ladder` schedules the games.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from five.agent.config import RatingConfig

RANDOM = "random"
PINNED_SIGMA = 1e-3  # of random play, whose rating is fixed


@dataclass(frozen=True)
class Skill:
    """A rating: its mean, and its uncertainty as one standard deviation."""

    mu: float
    sigma: float


def win_probability(first: Skill, second: Skill, config: RatingConfig) -> float:
    """Return the probability that ``first`` beats ``second`` in TrueSkill's model without drawn games."""
    spread = math.sqrt(2 * config.beta**2 + first.sigma**2 + second.sigma**2)
    return NormalDist().cdf((first.mu - second.mu) / spread)


def wilson_interval(wins: float, games: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a win rate (Wilson 1927).

    Drawn games may count as half wins. Without games it is (0, 1).
    """
    if not 0 <= wins <= games:
        raise ValueError(f"{wins} wins of {games} games: 0 to {games} is allowed")
    if games == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = wins / games
    centre = (rate + z * z / (2 * games)) / (1 + z * z / games)
    half = z * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    return max(0.0, centre - half), min(1.0, centre + half)


def pairs_interval(scores: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a mean score from the mean scores of pairs of games.

    The two games of a pair have the same seed and swapped sides, so they are not independent. Without pairs it is
    (0, 1).
    """
    if not len(scores):
        return 0.0, 1.0
    means = np.asarray(scores, np.float64)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    # Adding pseudo-observations keeps the interval open at 0 and 1, where the sample variance is 0.
    n = len(means) + z * z
    centre = float(means.sum() + z * z / 2) / n
    spread = float(means.var() * len(means) + z * z / 4) / n
    half = z * math.sqrt(spread / n)
    return max(0.0, centre - half), min(1.0, centre + half)
