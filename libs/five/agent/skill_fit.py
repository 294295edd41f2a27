"""Maximum a posteriori fit of TrueSkill's model (Herbrich et al. 2006) to all games at once.

TrueSkill processes games one by one, so a rating depends on their order and on its starting value. This module fits
the same model to all games together. Performances are normal around the skills with deviation β, and a game is drawn
when they differ by less than a margin. The prior is Gaussian, and the deviations come from the curvature at the
maximum. The log-posterior is concave, so the result is unique and does not depend on the order of the games.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import trueskill

from five.agent.config import RatingConfig
from five.agent.ratings import PINNED_SIGMA, RANDOM, Skill
from five.agent.standings import GameResult

_MAX_NEWTON_STEPS = 100  # ten are typical
_GRADIENT_TOLERANCE = 1e-9
_DRAW_PROBABILITY_RANGE = (1e-3, 0.95)  # searched when the draw probability is estimated
_MAX_SKILL = 1e6  # of a frozen player, in β; far beyond any game, within floating point
_MIN_DRAW_WIDTH = 1e-6  # of the drawn interval, in standard deviations: its probability is never 0
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class PairResults(NamedTuple):
    """Games of a pair of players, counted from the first player's view."""

    won: int
    drawn: int
    lost: int


@dataclass(frozen=True)
class SkillFit:
    """Fitted ``skills`` by player, frozen players included, and the ``draw_probability`` between equal players."""

    skills: dict[str, Skill]
    draw_probability: float


class FitError(ValueError):
    """The games and frozen skills have no finite fit."""


def fit_skills(games: Iterable[GameResult], config: RatingConfig, frozen: Mapping[str, Skill] | None = None,
               draw_probability: float | None = None) -> SkillFit:
    """Return the most probable skills of all players of ``games``, in points of TrueSkill's scale.

    ``frozen`` skills do not change. Without any, random play is fixed at 0 (Berner et al. 2019, appendix J). An error
    of a frozen skill shifts every player measured against it, and more games do not reduce that. So each fitted σ
    includes the frozen σ in proportion to their influence. Frozen errors count as fully correlated, because each
    reference was measured against earlier ones. ``draw_probability`` is estimated from the games if it is None.

    Raise ValueError for an invalid result or for a player against itself. Raise FitError if no frozen player has a
    game, or if a frozen skill or the fit is not finite.
    """
    tallies = _tallies(games)
    players = sorted({name for pair in tallies for name in pair})
    fixed = dict(frozen) if frozen else {RANDOM: Skill(0.0, PINNED_SIGMA)}
    if players and not any(name in fixed for name in players):
        raise FitError(f"no game involves {', '.join(fixed)}, so the scale has no fixed point")
    for name in players:
        if name in fixed and not (abs(fixed[name].mu) <= _MAX_SKILL * config.beta and fixed[name].sigma >= 0):
            raise FitError(f"frozen rating of {name}: {fixed[name]} is out of range")
    if draw_probability is None:
        draw_probability = _estimate_draw_probability(tallies, players, fixed, config)
    posterior = _Posterior(tallies, players, fixed, config, draw_margin(draw_probability, config.beta))
    return SkillFit({**fixed, **posterior.skills(posterior.maximum())}, draw_probability)


def draw_margin(draw_probability: float, beta: float) -> float:
    """Return the difference of performances below which a game is drawn.

    ``draw_probability`` is the probability of a draw between equal players.
    """
    if not 0 <= draw_probability < 1:
        raise ValueError(f"draw_probability {draw_probability}: at least 0 and below 1 is allowed")
    return float(trueskill.calc_draw_margin(draw_probability, 2, trueskill.TrueSkill(beta=beta)))


def _tallies(games: Iterable[GameResult]) -> dict[tuple[str, str], PairResults]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for first, second, result in games:
        if result not in (0.0, 0.5, 1.0):
            raise ValueError(f"result {result} of {first} against {second}: 1, 0.5 or 0 is allowed")
        if first == second:
            raise ValueError(f"{first} played against itself, which gives no rating")
        if first > second:
            first, second, result = second, first, 1.0 - result
        counts[first, second][{1.0: 0, 0.5: 1, 0.0: 2}[result]] += 1
    return {pair: PairResults(*row) for pair, row in sorted(counts.items())}


def _estimate_draw_probability(tallies: Mapping[tuple[str, str], PairResults], players: list[str],
                               fixed: Mapping[str, Skill], config: RatingConfig) -> float:
    """Return the draw probability that maximizes the posterior, by golden-section search."""
    if not any(t.drawn for t in tallies.values()):
        return config.draw_probability

    def cost(draw_probability: float) -> float:
        margin = draw_margin(draw_probability, config.beta)
        return _Posterior(tallies, players, fixed, config, margin).maximum().cost

    low, high = _DRAW_PROBABILITY_RANGE
    left, right = high - _GOLDEN_RATIO * (high - low), low + _GOLDEN_RATIO * (high - low)
    left_cost, right_cost = cost(left), cost(right)
    while high - low > 1e-3:
        if left_cost < right_cost:
            high, right, right_cost = right, left, left_cost
            left = high - _GOLDEN_RATIO * (high - low)
            left_cost = cost(left)
        else:
            low, left, left_cost = left, right, right_cost
            right = low + _GOLDEN_RATIO * (high - low)
            right_cost = cost(right)
    return (low + high) / 2


class _Evaluation(NamedTuple):
    """Negative log-posterior at a point, with its derivatives.

    ``frozen_shift`` is the change of the negative gradient if every frozen skill rises by its σ.
    """

    skills: Vector
    cost: float
    gradient: Vector
    curvature: Matrix
    frozen_shift: Vector


class _Posterior:
    """Posterior of the free players' skills."""

    def __init__(self, tallies: Mapping[tuple[str, str], PairResults], players: list[str], fixed: Mapping[str, Skill],
                 config: RatingConfig, margin: float) -> None:
        self._tallies = tallies
        self._index = {name: i for i, name in enumerate(n for n in players if n not in fixed)}
        self._fixed = fixed
        self._spread = math.sqrt(2) * config.beta
        # Wide: it only keeps a player that never lost at a finite distance.
        self._prior_precision = 1.0 / (4.0 * config.sigma) ** 2
        self._margin = margin

    def skills(self, maximum: _Evaluation) -> dict[str, Skill]:
        """Return the free players' skills; σ comes from the curvature and from the frozen players' errors."""
        covariance = np.linalg.inv(maximum.curvature)
        sigmas = np.sqrt(np.diag(covariance) + (covariance @ maximum.frozen_shift) ** 2)
        if not (np.isfinite(maximum.skills).all() and np.isfinite(sigmas).all()):
            raise FitError(f"ratings of {', '.join(self._index)}: the fit is not finite")
        return {name: Skill(float(maximum.skills[i]), float(sigmas[i])) for name, i in self._index.items()}

    def maximum(self) -> _Evaluation:
        """Return the maximum, by Newton's method with step halving."""
        best = self._evaluate(self._opponents_mean())
        for _ in range(_MAX_NEWTON_STEPS):
            if not self._index or float(np.abs(best.gradient).max()) < _GRADIENT_TOLERANCE:
                break
            step = np.linalg.solve(best.curvature, best.gradient)
            scale = 1.0
            while scale > 1e-6 and not (trial := self._evaluate(best.skills - scale * step)).cost <= best.cost:
                scale /= 2
            if scale <= 1e-6:
                break  # no lower point in floating point: this is the minimum
            best = trial
        return best

    def _opponents_mean(self) -> Vector:
        """Return a starting point: each free player at the mean of the opponents that are already placed.

        Newton's method from 0 would need many halved steps where all opponents are far from 0.
        """
        placed = {name: skill.mu for name, skill in self._fixed.items()}
        while True:
            opponents: dict[str, list[float]] = defaultdict(list)
            for pair in self._tallies:
                for name, other in (pair, pair[::-1]):
                    if name not in placed and other in placed:
                        opponents[name].append(placed[other])
            if not opponents:
                return np.array([placed.get(name, 0.0) for name in self._index])
            placed.update({name: sum(mus) / len(mus) for name, mus in opponents.items()})

    def _evaluate(self, skills: Vector) -> _Evaluation:
        cost = 0.5 * self._prior_precision * float(skills @ skills)
        gradient = self._prior_precision * skills
        curvature = self._prior_precision * np.eye(len(skills))
        frozen_shift = np.zeros(len(skills))
        for pair, tally in self._tallies.items():
            mu, other_mu = (self._fixed[n].mu if n in self._fixed else float(skills[self._index[n]]) for n in pair)
            log_p, first, second = _pair_log_likelihood(mu - other_mu, tally, self._margin, self._spread)
            cost -= log_p
            free = [(self._index[name], sign) for name, sign in zip(pair, (1.0, -1.0), strict=True)
                    if name in self._index]
            for i, sign in free:
                gradient[i] -= sign * first
                for j, other_sign in free:
                    curvature[i, j] -= sign * other_sign * second
            if len(free) == 1:
                frozen_sigma = next(self._fixed[name].sigma for name in pair if name in self._fixed)
                frozen_shift[free[0][0]] -= second * frozen_sigma
        return _Evaluation(skills, cost, gradient, curvature, frozen_shift)


def _pair_log_likelihood(difference: float, tally: PairResults, margin: float, spread: float
                         ) -> tuple[float, float, float]:
    """Return a pair's log-likelihood and its first and second derivative by the ``difference`` of skills.

    ``margin``: difference of performances below which a game is drawn; ``spread``: deviation of that difference.
    """
    log_p = first = second = 0.0
    for count, sign in ((tally.won, 1.0), (tally.lost, -1.0)):
        if count:
            tail = _log_cdf((sign * difference - margin) / spread)
            log_p += count * tail.log_p
            first += count * sign * tail.ratio / spread
            second -= count * tail.ratio * tail.excess / spread**2
    if tally.drawn:
        draw_log_p, draw_first, draw_second = _log_interval(abs(difference) / spread, margin / spread)
        log_p += tally.drawn * draw_log_p
        first += tally.drawn * math.copysign(draw_first, -difference) / spread
        second += tally.drawn * draw_second / spread**2
    return log_p, first, second


class _LogCdf(NamedTuple):
    """log Φ(x), ``ratio`` φ(x) / Φ(x), and ``excess`` of the ratio over -x."""

    log_p: float
    ratio: float
    excess: float


def _log_cdf(x: float) -> _LogCdf:
    """Return log Φ(x) with its derivatives, without underflow or cancellation in the lower tail."""
    if x > -8:
        p = 0.5 * math.erfc(-x / math.sqrt(2))
        ratio = math.exp(-0.5 * x * x - _LOG_SQRT_2PI) / p
        return _LogCdf(math.log(p), ratio, x + ratio)
    # Laplace's continued fraction of Mills' ratio: -x + 1 / (-x + 2 / (-x + ...)).
    excess = 0.0
    for k in range(40, 0, -1):
        excess = k / (-x + excess)
    return _LogCdf(-0.5 * x * x - _LOG_SQRT_2PI - math.log(excess - x), excess - x, excess)


def _log_interval(distance: float, half_width: float) -> tuple[float, float, float]:
    """Return log(Φ(w - d) - Φ(-w - d)) for d = ``distance`` >= 0 and w = ``half_width``.

    The second value is the size of the first derivative by d, which is negative; the third is the second derivative.
    """
    half_width = max(half_width, _MIN_DRAW_WIDTH / 2)
    # Both ends are in the lower tail when d is large, where the difference of the logarithms does not cancel.
    upper, lower = half_width - distance, -half_width - distance
    high, low = _log_cdf(upper), _log_cdf(lower)
    log_share = math.log(-math.expm1(low.log_p - high.log_p))
    upper_ratio = high.ratio * math.exp(-log_share)
    lower_ratio = low.ratio * math.exp(low.log_p - high.log_p - log_share)
    first = upper_ratio - lower_ratio
    # The second derivative is the variance of a truncated unit normal minus 1.
    second = min(0.0, max(-1.0, lower * lower_ratio - upper * upper_ratio - first**2))
    return high.log_p + log_share, max(first, 0.0), second
