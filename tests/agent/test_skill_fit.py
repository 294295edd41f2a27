import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from five.agent.config import RatingConfig
from five.agent.ratings import PINNED_SIGMA, RANDOM, Skill, win_probability
from five.agent.skill_fit import (
    FitError,
    GameResult,
    PairResults,
    _log_cdf,
    _pair_log_likelihood,
    draw_margin,
    fit_skills,
)

CONFIG = RatingConfig()


def simulate(skills: dict[str, float], games: int, draws: float, seed: int) -> list[GameResult]:
    """Return games of every pair, sampled from the model."""
    rng = np.random.default_rng(seed)
    margin = draw_margin(draws, CONFIG.beta)
    names = list(skills)
    out: list[GameResult] = []
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            gap = rng.normal(skills[first] - skills[second], math.sqrt(2) * CONFIG.beta, games)
            out += [(first, second, 0.5 if abs(d) < margin else float(d > 0)) for d in gap]
    return out


def test_known_strengths_and_draws_are_recovered() -> None:
    true = {RANDOM: 0.0, "easy": 6.0, "scripted": 11.0, "hard": 14.0}
    misses = []
    for seed in range(60):
        fit = fit_skills(simulate(true, 200, 0.3, seed), CONFIG)
        misses += [(fit.skills[n].mu - mu) / fit.skills[n].sigma for n, mu in true.items() if n != RANDOM]
        assert fit.draw_probability == pytest.approx(0.3, abs=0.06)
    assert np.mean(np.abs(misses) < 2) > 0.88  # 95 % expected; players of one seed are correlated
    assert 0.8 < np.std(misses) < 1.25  # the deviations are neither too wide nor too narrow


def test_fit_is_independent_of_order() -> None:
    games = simulate({RANDOM: 0.0, "a": 4.0, "b": 7.0}, 50, 0.1, seed=3)
    turned = [(b, a, 1.0 - r) for a, b, r in reversed(games)]
    one, two = fit_skills(games, CONFIG), fit_skills(turned, CONFIG)
    for name in one.skills:
        assert one.skills[name].mu == pytest.approx(two.skills[name].mu, abs=1e-6)
        assert one.skills[name].sigma == pytest.approx(two.skills[name].sigma, abs=1e-6)


def test_more_wins_do_not_raise_a_rating_without_bound() -> None:
    """A filter starting at 0 with σ 25/3 climbs with the number of games; a fit does not."""
    few, many = (fit_skills([("a", RANDOM, 1.0)] * n, CONFIG).skills["a"] for n in (20, 40))
    assert many.mu - few.mu < few.sigma / 2


def test_more_games_narrow_the_deviation() -> None:
    games = simulate({RANDOM: 0.0, "a": 3.0}, 400, 0.1, seed=1)
    wide, narrow = (fit_skills(games[:n], CONFIG, draw_probability=0.1).skills["a"].sigma for n in (25, 400))
    assert narrow == pytest.approx(wide / 4, rel=0.25)


def test_frozen_skills_stay_and_add_uncertainty() -> None:
    games = [("new", "old", r) for r in (1.0, 1.0, 0.0, 1.0)]
    sure = fit_skills(games, CONFIG, {"old": Skill(20.0, 0.01)})
    unsure = fit_skills(games, CONFIG, {"old": Skill(20.0, 8.0)})
    assert sure.skills["old"] == Skill(20.0, 0.01) and sure.skills["new"].mu > 20.0
    assert unsure.skills["new"].sigma > sure.skills["new"].sigma


LEVEL_GAMES = (1.0, 0.0) * 10
"""Twenty games of two equal players."""


@pytest.mark.parametrize("references", [("a", "b"), ("y", "z"), ("a", "z")])
def test_errors_of_references_add_up_on_both_sides_of_the_name(references: tuple[str, str]) -> None:
    """Pairs are sorted by name inside the fit, so the free player "m" is first in one pair and second in the other.

    Without drawn games each game between equals has the information 1 / (π β²), and the prior 1 / (4 · 25 / 3)². The
    errors of the references, σ = 5, count as fully correlated, in proportion to their games.
    """
    games: list[GameResult] = [("m", name, result) for name in references for result in LEVEL_GAMES]
    information, prior = len(games) / (math.pi * CONFIG.beta**2), 1 / (4 * CONFIG.sigma) ** 2
    for sigma in (0.0, 5.0):
        fit = fit_skills(games, CONFIG, dict.fromkeys(references, Skill(0.0, sigma)), draw_probability=0.0)
        expected = math.hypot(1 / math.sqrt(information + prior), sigma * information / (information + prior))
        assert fit.skills["m"].mu == pytest.approx(0.0, abs=1e-6)
        assert fit.skills["m"].sigma == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("player", ["a", "z"])
def test_more_references_share_their_influence(player: str) -> None:
    """The error counts by 3 / 4 if 30 of 40 games are against a reference with σ = 4 and 10 against one with σ = 0."""
    games: list[GameResult] = [(player, "k", result) for result in LEVEL_GAMES + LEVEL_GAMES[:10]]
    games += [(player, "l", result) for result in LEVEL_GAMES[:10]]
    sure, unsure = (fit_skills(games, CONFIG, {"k": Skill(0.0, sigma), "l": Skill(0.0, 0.0)}, 0.0).skills[player].sigma
                    for sigma in (0.0, 4.0))
    assert math.sqrt(unsure**2 - sure**2) == pytest.approx(4.0 * 0.75, rel=0.05)


def test_errors_of_references_reach_players_behind_others() -> None:
    """"a" played the reference, "b" only "a". Both have the whole error of the reference."""
    games: list[GameResult] = [pair for result in LEVEL_GAMES for pair in (("a", "k", result), ("b", "a", result))]
    sure, unsure = (fit_skills(games, CONFIG, {"k": Skill(0.0, sigma)}, 0.0).skills for sigma in (0.0, 4.0))
    for name in "ab":
        assert math.sqrt(unsure[name].sigma**2 - sure[name].sigma**2) == pytest.approx(4.0, rel=0.1)


def test_prior_keeps_a_player_that_never_lost_at_a_known_distance() -> None:
    """At the maximum the pull of the prior, μ / (4 σ₀)², equals that of the wins, n φ(x) / Φ(x) / (√2 β)."""
    for wins in (1, 20):
        mu = fit_skills([("a", RANDOM, 1.0)] * wins, CONFIG, draw_probability=0.0).skills["a"].mu
        spread = math.sqrt(2) * CONFIG.beta
        density = math.exp(-0.5 * (mu / spread) ** 2) / math.sqrt(2 * math.pi)
        below = 0.5 * (1 + math.erf(mu / spread / math.sqrt(2)))
        assert mu / (4 * CONFIG.sigma) ** 2 == pytest.approx(wins * density / below / spread, rel=1e-4)


def test_random_play_is_the_origin_without_frozen_players() -> None:
    fit = fit_skills([("a", RANDOM, result) for result in LEVEL_GAMES], CONFIG)
    assert fit.skills[RANDOM] == Skill(0.0, PINNED_SIGMA) and fit.skills["a"].mu == pytest.approx(0.0, abs=1e-6)
    assert 0 < PINNED_SIGMA < 0.01, "random play is rated 0 by definition, so its uncertainty is next to none"
    assert fit.draw_probability == CONFIG.draw_probability, "no game was drawn, so the configured value holds"


@pytest.mark.parametrize("draws", [0.05, 0.5, 0.9])
def test_draw_probability_is_that_of_equal_players(draws: float) -> None:
    drawn = round(400 * draws)
    games: list[GameResult] = [("a", RANDOM, 0.5)] * drawn
    games += [("a", RANDOM, float(i % 2)) for i in range(400 - drawn)]
    assert fit_skills(games, CONFIG).draw_probability == pytest.approx(draws, abs=2e-3)


def test_frozen_rating_limits() -> None:
    limit = 1e6 * CONFIG.beta
    games: list[GameResult] = [("a", "k", 1.0), ("a", "k", 0.0)]
    assert fit_skills(games, CONFIG, {"k": Skill(limit, 0.0)}).skills["a"].mu > 1000 * CONFIG.beta
    for wrong in (Skill(limit * 1.01, 0.0), Skill(-limit * 1.01, 0.0), Skill(0.0, -0.1)):
        with pytest.raises(FitError, match="out of range"):
            fit_skills(games, CONFIG, {"k": wrong})
    # A frozen player without a game does not count.
    assert fit_skills(games, CONFIG, {"k": Skill(0.0, 0.0), "other": Skill(math.inf, 0.0)}).skills["a"].sigma > 0


@pytest.mark.parametrize("draw_probability", [-0.01, 1.0, 1.5])
def test_draw_probability_out_of_range_is_rejected(draw_probability: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        draw_margin(draw_probability, CONFIG.beta)
    assert draw_margin(0.0, CONFIG.beta) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("x", "log_p"), [
    (0.0, math.log(0.5)), (1.0, math.log(0.8413447460685429)), (-1.0, math.log(0.15865525393145707)),
    (-7.9, -34.20622817), (-8.1, -35.83050289), (-20.0, -203.9171554), (-40.0, -804.6084420)])
def test_lower_tail_of_the_normal_distribution(x: float, log_p: float) -> None:
    """Reference values of log Φ by numerical integration, also where the continued fraction takes over."""
    found = _log_cdf(x)
    assert found.log_p == pytest.approx(log_p, rel=1e-8)
    density = -0.5 * x * x - 0.5 * math.log(2 * math.pi)
    assert math.log(found.ratio) == pytest.approx(density - log_p, abs=1e-4)
    assert found.excess == pytest.approx(x + found.ratio, abs=1e-9)


def test_fit_predicts_the_observed_win_rate() -> None:
    games: list[GameResult] = [("a", RANDOM, 1.0)] * 300 + [("a", RANDOM, 0.0)] * 100
    fit = fit_skills(games, CONFIG, draw_probability=0.0)
    a = Skill(fit.skills["a"].mu, 0.0)
    assert win_probability(a, Skill(0.0, 0.0), CONFIG) == pytest.approx(0.75, abs=0.01)


counts = st.tuples(*[st.integers(0, 20)] * 3).filter(any)
opponents = st.lists(st.tuples(st.floats(-500, 500), st.floats(0, 10), counts), min_size=1, max_size=3)


@given(opponents=opponents, draw_probability=st.one_of(st.none(), st.sampled_from([0.0, 1e-4, 0.02, 0.5, 0.95])))
@settings(max_examples=150, deadline=None)
def test_fit_is_finite_and_independent_of_names(
        opponents: list[tuple[float, float, tuple[int, int, int]]], draw_probability: float | None) -> None:
    """Opponents up to 1000 points apart, draws only and wins only included. Pairs are sorted by name inside the fit."""
    frozen = {f"k{i}": Skill(mu, sigma) for i, (mu, sigma, _) in enumerate(opponents)}

    def fitted(player: str) -> Skill:
        games = [(player, f"k{i}", score) for i, (_, _, tally) in enumerate(opponents)
                 for score, count in zip((1.0, 0.5, 0.0), tally, strict=True) for _ in range(count)]
        return fit_skills(games, CONFIG, frozen, draw_probability).skills[player]

    first, second = fitted("a"), fitted("z")
    assert math.isfinite(first.mu) and math.isfinite(first.sigma)
    assert second.mu == pytest.approx(first.mu, abs=1e-4) and second.sigma == pytest.approx(first.sigma, rel=1e-4)
    mus = [0.0, *(skill.mu for skill in frozen.values())]
    assert min(mus) - 60 < first.mu < max(mus) + 60 and first.sigma > 0.1


@pytest.mark.parametrize("mu", [0.0, 200.0, 500.0])
def test_draws_alone_place_a_player_at_its_opponent(mu: float) -> None:
    skill = fit_skills([("a", "k", 0.5)] * 20, CONFIG, {"k": Skill(mu, 0.0)}, 0.02).skills["a"]
    assert skill.mu == pytest.approx(mu, rel=0.01) and skill.sigma == pytest.approx(
        math.sqrt(2) * CONFIG.beta / math.sqrt(20), rel=0.01)


@pytest.mark.parametrize("tally",
                         [PairResults(1, 0, 0), PairResults(0, 1, 0), PairResults(0, 0, 1), PairResults(3, 2, 1)])
@pytest.mark.parametrize("margin", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("difference", [-500.0, -50.0, -7.0, 0.0, 3.0, 40.0, 300.0])
def test_likelihood_derivatives_match_differences(tally: PairResults, margin: float, difference: float) -> None:
    (below, slope_below, _), (_, slope, bend), (above, slope_above, _) = (
        _pair_log_likelihood(difference + step, tally, margin, spread=6.0) for step in (-1e-3, 0.0, 1e-3))
    assert slope == pytest.approx((above - below) / 2e-3, rel=1e-5, abs=1e-7)
    assert bend == pytest.approx((slope_above - slope_below) / 2e-3, rel=1e-5, abs=1e-7)


def test_invalid_games_are_rejected() -> None:
    with pytest.raises(FitError, match="no fixed point"):
        fit_skills([("a", "b", 1.0)], CONFIG)
    for wrong in (Skill(math.nan, 1.0), Skill(math.inf, 1.0), Skill(1e12, 1.0), Skill(0.0, math.nan)):
        with pytest.raises(FitError, match="out of range"):
            fit_skills([("a", "k", 1.0)], CONFIG, {"k": wrong})
    with pytest.raises(ValueError, match=r"1, 0.5 or 0"):
        fit_skills([("a", RANDOM, 0.7)], CONFIG)
    with pytest.raises(ValueError, match="against itself"):
        fit_skills([("a", "a", 1.0)], CONFIG)
    assert fit_skills([], CONFIG).skills == {RANDOM: Skill(0.0, 1e-3)}
