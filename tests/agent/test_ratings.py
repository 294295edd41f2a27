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


@pytest.mark.parametrize(("first", "second", "probability"), [
    # The spread is √(2 β² + σ₁² + σ₂²) with β = 25/6: √(34.72 + 9 + 16) = 7.728.
    (Skill(10.0, 3.0), Skill(2.2722, 4.0), 0.8413), (Skill(2.2722, 4.0), Skill(10.0, 3.0), 0.1587),
    (Skill(5.8926, 0.0), Skill(0.0, 0.0), 0.8413)])
def test_win_probability_by_hand(first: Skill, second: Skill, probability: float) -> None:
    assert win_probability(first, second, PAPER) == pytest.approx(probability, abs=1e-4)


@pytest.mark.parametrize(("confidence", "low", "high"), [(0.95, 0.4038, 0.5962), (0.68, 0.4505, 0.5495),
                                                         (0.99, 0.3753, 0.6247)])
def test_confidence_widens_the_wilson_interval(confidence: float, low: float, high: float) -> None:
    """Fifty wins of a hundred games; z is 1.960, 0.994 and 2.576."""
    assert wilson_interval(50, 100, confidence) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("wins", "games"), [(-1, 5), (5.5, 5), (1, 0), (0, -1)])
def test_impossible_wins_are_rejected(wins: float, games: int) -> None:
    with pytest.raises(ValueError, match="0 to"):
        wilson_interval(wins, games)
    assert 0 <= wilson_interval(0, 5)[0] < 1e-9 and wilson_interval(5, 5)[1] == 1.0


@pytest.mark.parametrize(("scores", "confidence", "low", "high"), [
    # z² = 3.841 pseudo-pairs of mean 1/2 and variance 1/4: n = 13.841, mean (8 + 1.921) / n, variance
    # (10 · 0.16 + 0.960) / n.
    ([1.0] * 8 + [0.0] * 2, 0.95, 0.4902, 0.9434), ([0.5] * 10, 0.95, 0.3613, 0.6387),
    ([1.0] * 10, 0.95, 0.7225, 1.0), ([0.0] * 10, 0.95, 0.0, 0.2775), ([0.5] * 10, 0.68, 0.4550, 0.5450)])
def test_interval_of_pairs_by_hand(scores: list[float], confidence: float, low: float, high: float) -> None:
    assert pairs_interval(scores, confidence) == pytest.approx((low, high), abs=1e-4)


def test_intervals_stay_within_0_and_1() -> None:
    """Rounding puts the ends of some sure results, such as 9 wins of 9, beyond 0 and 1 before they are bounded."""
    for games in range(1, 200):
        for rate in (0, 1):
            for low, high in (wilson_interval(rate * games, games), pairs_interval([float(rate)] * games)):
                assert 0 <= low < high <= 1


def test_correlated_pairs_widen_the_interval() -> None:
    level, luck = pairs_interval([0.5] * 50), pairs_interval([0.0, 1.0] * 25)
    assert level[1] - level[0] < 0.1 < 0.25 < luck[1] - luck[0]
    assert pairs_interval([]) == (0.0, 1.0) and pairs_interval([1.0] * 20)[0] < 0.9
