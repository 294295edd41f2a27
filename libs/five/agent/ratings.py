"""Ratings: points of TrueSkill's scale (Herbrich et al. 2006), random play at 0, and intervals of win rates.

How ratings are made of games is in `five.agent.skill_fit`, who plays whom in `five.agent.ladder`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from five.agent.config import RatingConfig

RANDOM = "random"
PINNED_SIGMA = 1e-3  # of random play, whose rating is known


@dataclass(frozen=True)
class Skill:
    """A rating: mean and uncertainty, one standard deviation."""

    mu: float
    sigma: float


def win_probability(first: Skill, second: Skill, config: RatingConfig) -> float:
    """Chance that the first player beats the second, after TrueSkill's model, draws aside."""
    spread = math.sqrt(2 * config.beta**2 + first.sigma**2 + second.sigma**2)
    return NormalDist().cdf((first.mu - second.mu) / spread)


def wilson_interval(wins: float, games: int, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of a win rate (Wilson 1927); draws may count as half wins. (0, 1) without games."""
    if not 0 <= wins <= games:
        raise ValueError(f"{wins} wins of {games} games")
    if games == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = wins / games
    centre = (rate + z * z / (2 * games)) / (1 + z * z / games)
    half = z * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    return max(0.0, centre - half), min(1.0, centre + half)


def pairs_interval(scores: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of a mean score from the means of pairs of games with sides swapped, whose two games are not
    independent of each other. (0, 1) without any."""
    if not len(scores):
        return 0.0, 1.0
    means = np.asarray(scores, np.float64)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    # Add-two-of-each keeps the interval from closing at 0 or 1, where the sample's own variance is 0.
    n = len(means) + z * z
    centre = float(means.sum() + z * z / 2) / n
    spread = float(means.var() * len(means) + z * z / 4) / n
    half = z * math.sqrt(spread / n)
    return max(0.0, centre - half), min(1.0, centre + half)
