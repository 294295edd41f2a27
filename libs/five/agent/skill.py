"""Skills from all games at once: TrueSkill's model (Herbrich et al. 2006), fitted instead of filtered.

TrueSkill takes games in one by one, so a rating depends on their order, and on what it began with. Here the same model
of a game (performances normal about the skills with deviation β, a draw when they differ by less than a margin) is
fitted to all games of a set of players together: a Gaussian prior, the most probable skills, and their deviations from
the curvature there. The log-likelihood is concave, so there is one answer, whatever the order of the games.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import trueskill

from five.agent.config import RatingConfig
from five.agent.ratings import PINNED_SIGMA, RANDOM, Skill
from five.agent.standings import GameResult

_NORMAL = NormalDist()
_STEPS = 100  # of Newton's method; it takes about ten
_TOLERANCE = 1e-9
_DRAWS = (1e-3, 0.95)  # between these the share of draws between equals is looked for
_GOLDEN = (math.sqrt(5) - 1) / 2


class Tally(NamedTuple):
    """Games between two players: won by the first, drawn, lost."""

    won: int
    drawn: int
    lost: int


@dataclass(frozen=True)
class SkillFit:
    """``skills`` by player, frozen ones included; ``draw_probability`` of a game between equals, as fitted."""

    skills: dict[str, Skill]
    draw_probability: float


def fit_skills(games: Iterable[GameResult], config: RatingConfig, frozen: Mapping[str, Skill] | None = None,
               draw_probability: float | None = None) -> SkillFit:
    """The most probable skills of all players of ``games``, points of TrueSkill's scale.

    ``frozen`` skills stay as they are; without any, random play is pinned at 0 (Berner et al. 2019, appendix J). What
    a frozen skill is wrong by shifts everybody who was measured against it, however many the games: its σ is added to
    theirs by the share that it has in them, all frozen ones taken to be wrong in the same direction (each was measured
    against those before it). ``draw_probability`` is estimated from the games where it is not given.

    Raises ValueError for an invalid result, a player against itself, or when nothing fixes the scale.
    """
    tallies = _tallies(games)
    players = sorted({name for pair in tallies for name in pair})
    fixed = dict(frozen) if frozen else {RANDOM: Skill(0.0, PINNED_SIGMA)}
    if players and not any(name in fixed for name in players):
        raise ValueError(f"none of {', '.join(fixed)} played any of the games, so nothing fixes the scale")
    if draw_probability is None:
        draw_probability = _fitted_draws(tallies, players, fixed, config)
    model = _Model(tallies, players, fixed, config, draw_margin(draw_probability, config.beta))
    return SkillFit({**fixed, **model.solve()}, draw_probability)


def draw_margin(draw_probability: float, beta: float) -> float:
    """The difference of performances below which a game is drawn, for that share of draws between equals."""
    if not 0 <= draw_probability < 1:
        raise ValueError(f"a draw probability is at least 0 and below 1, not {draw_probability}")
    return float(trueskill.calc_draw_margin(draw_probability, 2, trueskill.TrueSkill(beta=beta)))


def _tallies(games: Iterable[GameResult]) -> dict[tuple[str, str], Tally]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for first, second, result in games:
        if result not in (0.0, 0.5, 1.0):
            raise ValueError(f"a result is 1, 0.5 or 0, not {result}")
        if first == second:
            raise ValueError(f"{first} cannot be rated by games against itself")
        if first > second:
            first, second, result = second, first, 1.0 - result
        counts[first, second][{1.0: 0, 0.5: 1, 0.0: 2}[result]] += 1
    return {pair: Tally(*row) for pair, row in sorted(counts.items())}


def _fitted_draws(tallies: Mapping[tuple[str, str], Tally], players: list[str], fixed: Mapping[str, Skill],
                  config: RatingConfig) -> float:
    """The share of draws between equals under which the games are most probable, by golden section."""
    if not any(t.drawn for t in tallies.values()):
        return config.draw_probability

    def cost(draws: float) -> float:
        model = _Model(tallies, players, fixed, config, draw_margin(draws, config.beta))
        model.solve()
        return model.cost

    low, high = _DRAWS
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = cost(inner), cost(outer)
    while high - low > 1e-3:
        if at_inner < at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = cost(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = cost(outer)
    return (low + high) / 2


class _Model:
    """Negative log-posterior of the free players' skills, and its minimum."""

    def __init__(self, tallies: Mapping[tuple[str, str], Tally], players: list[str], fixed: Mapping[str, Skill],
                 config: RatingConfig, margin: float) -> None:
        self._tallies = tallies
        self._free = [name for name in players if name not in fixed]
        self._index = {name: i for i, name in enumerate(self._free)}
        self._fixed = fixed
        self._spread = math.sqrt(2) * config.beta
        # Wide: it only keeps a player that never lost at a finite distance.
        self._prior_precision = 1.0 / (4.0 * config.sigma) ** 2
        self._margin = margin
        self.cost = 0.0

    def solve(self) -> dict[str, Skill]:
        """Newton's method with halved steps; skills and deviations of the free players."""
        skills = np.zeros(len(self._free))
        self.cost, gradient, curvature = self._at(skills)
        for _ in range(_STEPS):
            if not self._free or float(np.abs(gradient).max()) < _TOLERANCE:
                break
            step = np.linalg.solve(curvature, gradient)
            scale = 1.0
            while scale > 1e-6:
                cost, new_gradient, new_curvature = self._at(skills - scale * step)
                if cost <= self.cost:
                    break
                scale /= 2
            else:
                break  # no lower point in floating point: this is the minimum
            skills = skills - scale * step
            self.cost, gradient, curvature = cost, new_gradient, new_curvature
        if not self._free:
            return {}
        covariance = np.linalg.inv(curvature)
        shift = covariance @ self._pull(skills)
        deviations = np.sqrt(np.diag(covariance) + shift**2)
        return {name: Skill(float(skills[i]), float(deviations[i])) for name, i in self._index.items()}

    def _pull(self, skills: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How much the gradient of each free player moves when all frozen skills are wrong by their σ."""
        pull = np.zeros(len(self._free))
        for pair, tally in self._tallies.items():
            free = [name for name in pair if name in self._index]
            if len(free) != 1:
                continue
            other = self._fixed[pair[0] if free[0] == pair[1] else pair[1]]
            sign = 1.0 if free[0] == pair[0] else -1.0
            gap = sign * (float(skills[self._index[free[0]]]) - other.mu)
            pull[self._index[free[0]]] -= _pair(gap, tally, self._margin, self._spread)[2] * other.sigma
        return pull

    def _at(self, skills: npt.NDArray[np.float64]
            ) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        cost = 0.5 * self._prior_precision * float(skills @ skills)
        gradient = self._prior_precision * skills
        curvature = self._prior_precision * np.eye(len(skills))
        for (first, second), tally in self._tallies.items():
            one, two = (self._fixed.get(name) for name in (first, second))
            a = one.mu if one else float(skills[self._index[first]])
            b = two.mu if two else float(skills[self._index[second]])
            value, slope, bend = _pair(a - b, tally, self._margin, self._spread)
            cost -= value
            signs = [(self._index[name], sign) for name, sign in ((first, 1.0), (second, -1.0))
                     if name in self._index]
            for i, sign in signs:
                gradient[i] -= sign * slope
                for j, other in signs:
                    curvature[i, j] -= sign * other * bend
        return cost, gradient, curvature


def _pair(difference: float, tally: Tally, margin: float, spread: float) -> tuple[float, float, float]:
    """Log-likelihood of a pair's games at a difference of skills, its slope and its second derivative."""
    value = slope = bend = 0.0
    for count, sign in ((tally.won, 1.0), (tally.lost, -1.0)):
        if count:
            x = (sign * difference - margin) / spread
            log_p, ratio = _log_cdf(x)
            value += count * log_p
            slope += count * sign * ratio / spread
            bend -= count * ratio * (x + ratio) / spread**2
    if tally.drawn:
        high, low = (margin - difference) / spread, (-margin - difference) / spread
        p = max(_cdf(high) - _cdf(low), 1e-300)
        first = (_density(low) - _density(high)) / p
        second = (low * _density(low) - high * _density(high)) / p
        value += tally.drawn * math.log(p)
        slope += tally.drawn * first / spread
        bend += tally.drawn * (second - first**2) / spread**2
    return value, slope, bend


def _cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _log_cdf(x: float) -> tuple[float, float]:
    """log Φ(x) and φ(x) / Φ(x); by its asymptotic form where Φ underflows."""
    if x < -30:
        return -0.5 * x * x - math.log(-x * math.sqrt(2 * math.pi)), -x
    p = _cdf(x)
    return math.log(p), _density(x) / p
