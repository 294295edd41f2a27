"""TrueSkill of versions against frozen references (Berner et al. 2019, appendix J).

Players have names ("random", "scripted", "version-120"). A reference's rating never changes once it is one; random play
is pinned at 0. The player under test plays references near its own rating, in turn and from both sides of the map, and
only its own rating moves. A version that has left all references behind becomes one, so that there is always someone
near.
"""

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
import trueskill

from five.config import RatingConfig

FORMAT = 1
RANDOM = "random"
PINNED_SIGMA = 1e-3  # of random play, whose rating is known; TrueSkill wants it above 0


@dataclass(frozen=True)
class Skill:
    """A rating: mean and uncertainty."""

    mu: float
    sigma: float


@dataclass
class Rating:
    """A player's rating and the games that it comes from: by reference, then by side, [won, drawn, lost]."""

    player: str
    skill: Skill
    games: int = 0
    results: dict[str, list[list[int]]] = field(default_factory=dict)

    def score(self, reference: str) -> tuple[int, int, int]:
        """Games (won, drawn, lost) against a reference, both sides together."""
        sides = self.results.get(reference, [[0, 0, 0], [0, 0, 0]])
        won, drawn, lost = (sum(counts) for counts in zip(*sides, strict=True))
        return won, drawn, lost


@dataclass(frozen=True)
class Pairing:
    """A game to be played: the player under test takes ``side`` 0 or 1."""

    player: str
    reference: str
    side: int


class RatingTable:
    """Ratings of a run. Not thread-safe: one service owns it."""

    def __init__(self, config: RatingConfig) -> None:
        self.config = config
        self.references: dict[str, Skill] = {RANDOM: Skill(0.0, PINNED_SIGMA)}
        self.finished: list[Rating] = []
        self.current: Rating | None = None
        self._assigned: dict[str, list[int]] = {}
        self._reported: dict[str, None] = {}
        self._environment = trueskill.TrueSkill(
            mu=0.0, sigma=config.sigma, beta=config.beta, tau=config.tau, draw_probability=config.draw_probability)

    def start(self, player: str, mu: float | None = None) -> Rating:
        """Begins to rate a player: at ``mu``, by default the last finished version's, with the full uncertainty.

        What was played for an unfinished rating is dropped.
        """
        if mu is None:
            mu = self.finished[-1].skill.mu if self.finished else 0.0
        self.current = Rating(player, Skill(mu, self.config.sigma))
        self._assigned = {}
        return self.current

    def nearby(self) -> list[str]:
        """References within ``nearby`` points of the current rating; the nearest one when there is none."""
        mu = self._now().skill.mu
        within = [name for name, skill in self.references.items() if abs(skill.mu - mu) <= self.config.nearby]
        return within or [min(self.references, key=lambda name: abs(self.references[name].mu - mu))]

    def pair(self, rng: np.random.Generator) -> Pairing:
        """The next game: the reference and side met least so far, among those near; ties are drawn."""
        now = self._now()
        open_ = [(name, side) for name in self.nearby() for side in (0, 1)]
        least = min(self._assigned.get(name, [0, 0])[side] for name, side in open_)
        open_ = [(name, side) for name, side in open_ if self._assigned.get(name, [0, 0])[side] == least]
        name, side = open_[int(rng.integers(len(open_)))]
        self._assigned.setdefault(name, [0, 0])[side] += 1
        return Pairing(now.player, name, side)

    def report(self, game_id: str, pairing: Pairing, result: float) -> bool:
        """A game ended: ``result`` 1 won by the player under test, 0 lost, 0.5 drawn.

        Returns whether it counted: a game told of before, or one of a player that is no longer under test, does not.
        Raises ValueError for another result, KeyError for an unknown reference.
        """
        if result not in (0.0, 0.5, 1.0):
            raise ValueError(f"a result is 1, 0.5 or 0, not {result}")
        reference = self.references[pairing.reference]
        if self.current is None or pairing.player != self.current.player or game_id in self._reported:
            return False
        self._reported[game_id] = None
        while len(self._reported) > 4 * self.config.games_per_rating:
            del self._reported[next(iter(self._reported))]
        now = self.current
        now.skill = self.updated(now.skill, reference, result)
        now.games += 1
        sides = now.results.setdefault(pairing.reference, [[0, 0, 0], [0, 0, 0]])
        sides[pairing.side][{1.0: 0, 0.5: 1, 0.0: 2}[result]] += 1
        return True

    def updated(self, player: Skill, reference: Skill, result: float) -> Skill:
        """The player's skill after one game against a reference."""
        ours = self._environment.create_rating(player.mu, player.sigma)
        theirs = self._environment.create_rating(reference.mu, reference.sigma)
        if result == 0.0:
            _, new = self._environment.rate([(theirs,), (ours,)], ranks=[0, 1])
        else:
            new, _ = self._environment.rate([(ours,), (theirs,)], ranks=[0, 0 if result == 0.5 else 1])
        return Skill(float(new[0].mu), float(new[0].sigma))

    @property
    def complete(self) -> bool:
        """Whether the current rating has its ``games_per_rating`` games."""
        return self.current is not None and self.current.games >= self.config.games_per_rating

    def finish(self) -> Rating:
        """Ends the current rating and keeps it; makes the player a reference when it stands ``reference_spacing``
        above all of them."""
        rating = self._now()
        self.finished.append(rating)
        self.current = None
        top = max(skill.mu for skill in self.references.values())
        if rating.player not in self.references and rating.skill.mu >= top + self.config.reference_spacing:
            self.references[rating.player] = rating.skill
        return rating

    def add_reference(self, player: str, skill: Skill) -> None:
        """Makes a player a reference, for good. Raises ValueError when it is one already."""
        if player in self.references:
            raise ValueError(f"{player} is a reference already, rated {self.references[player].mu:.1f}: references "
                             "do not change")
        self.references[player] = skill

    def forget(self, players: Collection[str]) -> None:
        """Players that nobody is to be rated against any more, and none of whom goes on being rated. What was found
        of them stays."""
        for player in players:
            self.references.pop(player, None)
            self._assigned.pop(player, None)
        if self.current is not None and self.current.player in players:
            self.current = None

    def dump(self) -> dict[str, Any]:
        """The table as JSON values, the unfinished rating included."""
        return {
            "format": FORMAT, "references": {name: [s.mu, s.sigma] for name, s in self.references.items()},
            "finished": [asdict(r) for r in self.finished], "current": asdict(self.current) if self.current else None,
            "assigned": self._assigned, "reported": list(self._reported)}

    @classmethod
    def load(cls, config: RatingConfig, state: dict[str, Any]) -> "RatingTable":
        """From `dump`. Raises ValueError when the state is not one."""
        if state.get("format") != FORMAT:
            raise ValueError(f"a rating table has format {FORMAT}, not {state.get('format')!r}")
        table = cls(config)
        table.references = {name: Skill(float(mu), float(sigma)) for name, (mu, sigma) in state["references"].items()}
        table.finished = [_rating(r) for r in state["finished"]]
        table.current = _rating(state["current"]) if state["current"] else None
        table._assigned = {name: [int(a), int(b)] for name, (a, b) in state["assigned"].items()}
        table._reported = dict.fromkeys(state["reported"])
        return table

    def _now(self) -> Rating:
        if self.current is None:
            raise ValueError("no player is under test: call start() first")
        return self.current


def rate_references(games: list[tuple[str, str, float]], config: RatingConfig,
                    pinned: str = RANDOM) -> dict[str, Skill]:
    """Ratings of a set of players from games among themselves, shifted so that ``pinned`` is at 0.

    ``games``: (player, player, result of the first: 1, 0.5 or 0), in the order in which they were played. Raises
    ValueError when the pinned player is not among them.
    """
    environment = trueskill.TrueSkill(mu=0.0, sigma=config.sigma, beta=config.beta, tau=config.tau,
                                      draw_probability=config.draw_probability)
    ratings: dict[str, Any] = {}
    for first, second, result in games:
        a, b = (ratings.get(name, environment.create_rating()) for name in (first, second))
        if result == 0.0:
            b, a = trueskill.rate_1vs1(b, a, env=environment)
        else:
            a, b = trueskill.rate_1vs1(a, b, drawn=result == 0.5, env=environment)
        ratings[first], ratings[second] = a, b
    if pinned not in ratings:
        raise ValueError(f"{pinned} played none of the games, so nothing fixes the scale")
    origin = ratings[pinned].mu
    return {name: Skill(0.0, PINNED_SIGMA) if name == pinned else Skill(float(r.mu - origin), float(r.sigma))
            for name, r in ratings.items()}


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


def _rating(state: dict[str, Any]) -> Rating:
    skill = Skill(float(state["skill"]["mu"]), float(state["skill"]["sigma"]))
    return Rating(state["player"], skill, int(state["games"]), state["results"])
