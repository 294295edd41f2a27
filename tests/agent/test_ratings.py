import math
from statistics import NormalDist

import pytest

from five.agent.config import RatingConfig
from five.agent.ratings import Skill, pairs_interval, wilson_interval, win_probability
from five.agent.skill_fit import draw_margin

PAPER = RatingConfig()


def test_win_probabilities() -> None:
    same = Skill(3.0, 1.0)
    assert win_probability(same, same, PAPER) == 0.5
    # The library's own example; with both σ 0 the spread is √2 β.
    assert win_probability(Skill(8.3, 0.0), Skill(0.0, 0.0), PAPER) == pytest.approx(0.92, abs=0.005)


@pytest.mark.parametrize("draws", [0.0, 0.02, 0.5])
def test_draw_margin_gives_the_draw_probability(draws: float) -> None:
    performances = NormalDist(0.0, math.sqrt(2) * PAPER.beta)
    margin = draw_margin(draws, PAPER.beta)
    assert performances.cdf(margin) - performances.cdf(-margin) == pytest.approx(draws, abs=1e-5)


@pytest.mark.parametrize(("wins", "games", "low", "high"), [
    (95, 100, 0.8882, 0.9785), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)])
def test_wilson_interval(wins: int, games: int, low: float, high: float) -> None:
    assert wilson_interval(wins, games) == pytest.approx((low, high), abs=1e-4)


def test_wilson_interval_limits() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 wins of 2"):
        wilson_interval(3, 2)


def test_correlated_pairs_widen_the_interval() -> None:
    level, luck = pairs_interval([0.5] * 50), pairs_interval([0.0, 1.0] * 25)
    assert level[1] - level[0] < 0.1 < 0.25 < luck[1] - luck[0]
    assert pairs_interval([]) == (0.0, 1.0) and pairs_interval([1.0] * 20)[0] < 0.9
