import math

import numpy as np
import pytest

from five.agent.config import RatingConfig
from five.agent.ratings import RANDOM, Skill, win_probability
from five.agent.skill import GameResult, draw_margin, fit_skills

CONFIG = RatingConfig()


def simulate(skills: dict[str, float], games: int, draws: float, seed: int) -> list[GameResult]:
    """Games of every pair, drawn from the model."""
    rng = np.random.default_rng(seed)
    margin = draw_margin(draws, CONFIG.beta)
    names = list(skills)
    out: list[GameResult] = []
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            gap = rng.normal(skills[first] - skills[second], math.sqrt(2) * CONFIG.beta, games)
            out += [(first, second, 0.5 if abs(d) < margin else float(d > 0)) for d in gap]
    return out


def test_known_strengths_and_draws_are_recovered_within_their_deviation() -> None:
    true = {RANDOM: 0.0, "easy": 6.0, "scripted": 11.0, "hard": 14.0}
    misses = []
    for seed in range(60):
        fit = fit_skills(simulate(true, 200, 0.3, seed), CONFIG)
        misses += [(fit.skills[n].mu - mu) / fit.skills[n].sigma for n, mu in true.items() if n != RANDOM]
        assert fit.draw_probability == pytest.approx(0.3, abs=0.06)
    assert np.mean(np.abs(misses) < 2) > 0.88  # 95 % expected; the three of a seed share their luck
    assert 0.8 < np.std(misses) < 1.25  # the deviations are neither too wide nor too narrow


def test_the_order_of_games_and_of_players_makes_no_difference() -> None:
    games = simulate({RANDOM: 0.0, "a": 4.0, "b": 7.0}, 50, 0.1, seed=3)
    turned = [(b, a, 1.0 - r) for a, b, r in reversed(games)]
    one, two = fit_skills(games, CONFIG), fit_skills(turned, CONFIG)
    for name in one.skills:
        assert one.skills[name].mu == pytest.approx(two.skills[name].mu, abs=1e-6)
        assert one.skills[name].sigma == pytest.approx(two.skills[name].sigma, abs=1e-6)


def test_winning_ever_more_games_does_not_lift_a_rating_without_bound() -> None:
    """A filter that begins at 0 with σ 25/3 climbs with the number of games; a fit knows that the prior is no game."""
    few, many = (fit_skills([("a", RANDOM, 1.0)] * n, CONFIG).skills["a"] for n in (20, 40))
    assert many.mu - few.mu < few.sigma / 2


def test_more_games_narrow_the_deviation() -> None:
    games = simulate({RANDOM: 0.0, "a": 3.0}, 400, 0.1, seed=1)
    wide, narrow = (fit_skills(games[:n], CONFIG, draw_probability=0.1).skills["a"].sigma for n in (25, 400))
    assert narrow == pytest.approx(wide / 4, rel=0.25)


def test_frozen_players_stay_and_their_uncertainty_counts() -> None:
    games = [("new", "old", r) for r in (1.0, 1.0, 0.0, 1.0)]
    sure = fit_skills(games, CONFIG, {"old": Skill(20.0, 0.01)})
    unsure = fit_skills(games, CONFIG, {"old": Skill(20.0, 8.0)})
    assert sure.skills["old"] == Skill(20.0, 0.01) and sure.skills["new"].mu > 20.0
    assert unsure.skills["new"].sigma > sure.skills["new"].sigma


def test_the_fit_agrees_with_the_win_rate_that_it_was_made_of() -> None:
    games: list[GameResult] = [("a", RANDOM, 1.0)] * 300 + [("a", RANDOM, 0.0)] * 100
    fit = fit_skills(games, CONFIG, draw_probability=0.0)
    a = Skill(fit.skills["a"].mu, 0.0)
    assert win_probability(a, Skill(0.0, 0.0), CONFIG) == pytest.approx(0.75, abs=0.01)


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing fixes the scale"):
        fit_skills([("a", "b", 1.0)], CONFIG)
    with pytest.raises(ValueError, match=r"1, 0.5 or 0"):
        fit_skills([("a", RANDOM, 0.7)], CONFIG)
    with pytest.raises(ValueError, match="against itself"):
        fit_skills([("a", "a", 1.0)], CONFIG)
    assert fit_skills([], CONFIG).skills == {RANDOM: Skill(0.0, 1e-3)}
