"""Rates one version after another, beside training."""

import logging
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from five.config import RatingConfig
from five.ratings import Pairing as RatedPairing
from five.ratings import RatingTable
from rapid.store.series import Series
from rapid.store.tables import Table
from services.evaluator.matches import Pairing, Player, Result

log = logging.getLogger(__name__)
STATE = "state"
RATES = "win_rates"
REMEMBERED = 60  # games against a bot that its win rate is taken over


def player_name(version: int) -> str:
    """What a version is called in the rating table."""
    return f"version-{version}"


@dataclass
class RatingLoop:
    """Gives out pairings and takes results in, until the rating of the version under test is final.

    Besides rated games, a share of the games is against bots, for win rates that mean something to a person.
    ``newest`` is the version to rate next; ``keep`` is told of a version that has become a reference. Versions that
    are none of ``ours``, as the run has gone back behind them, are references no more; their ratings stay.
    """

    config: RatingConfig
    table: Table
    series: Series
    bots: dict[str, Player]
    statistic_names: tuple[str, ...]
    share_bots: float
    newest: Callable[[], int | None]
    keep: Callable[[int], None]
    rng: np.random.Generator
    ours: Callable[[int], bool] = lambda version: True
    ratings: RatingTable = field(init=False)
    version: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        state = self.table.get(STATE)
        self.ratings = RatingTable.load(self.config, state) if state else RatingTable(self.config)
        known = {*self.ratings.references, *([self.ratings.current.player] if self.ratings.current else [])}
        self.ratings.forget([name for name in known if name.startswith("version-")
                             and not self.ours(int(name.removeprefix("version-")))])
        rates = self.table.get(RATES) or {}
        self._scores: dict[str, deque[float]] = {
            name: deque(rates.get(name, []), REMEMBERED) for name in self.bots}
        self._statistics: list[Any] = []
        self._rated: list[tuple[Pairing, RatedPairing]] = []  # under way
        if self.ratings.current is not None:
            self.version = int(self.ratings.current.player.removeprefix("version-"))

    def _begin(self) -> bool:
        newest = self.newest()
        if newest is None:
            return False
        last = self.ratings.finished[-1].player if self.ratings.finished else ""
        if last == player_name(newest):
            return False  # nothing new to rate
        self.version = newest
        self.ratings.start(player_name(newest))
        self._statistics = []
        return True

    def next_pairing(self) -> Pairing | None:
        """The next game of the version under test; of a new one when that is done. None when there is none."""
        if self.ratings.current is None and not self._begin():
            return None
        agent = Player(player_name(self.version), version=self.version)
        if self.bots and self.rng.random() < self.share_bots:
            bot = list(self.bots.values())[int(self.rng.integers(len(self.bots)))]
            return Pairing(agent, bot, int(self.rng.integers(2)))
        rated = self.ratings.pair(self.rng)
        pairing = Pairing(agent, self._player(rated.reference), rated.side)
        self._rated.append((pairing, rated))
        return pairing

    def _player(self, reference: str) -> Player:
        if reference in self.bots:
            return self.bots[reference]
        return Player(reference, version=int(reference.removeprefix("version-")))

    def drop(self) -> None:
        """The games under way are lost: they are not rated, and others are played for them."""
        self._rated.clear()

    def on_result(self, result: Result) -> None:
        """A game has ended."""
        opponent = result.pairing.opponent
        if opponent.name in self._scores:
            self._scores[opponent.name].append(result.score)
        if result.pairing.agent.version == self.version:
            self._statistics.append(np.append(result.agent_statistics, result.game_seconds))
        for i, (pairing, rated) in enumerate(self._rated):
            if pairing is result.pairing:
                self.ratings.report(secrets.token_hex(8), rated, result.score)
                del self._rated[i]
                break
        if self.ratings.complete:
            self._finish()
        self.table.set(STATE, self.ratings.dump())
        self.table.set(RATES, {name: list(scores) for name, scores in self._scores.items()})

    def _finish(self) -> None:
        rating = self.ratings.finish()
        if rating.player in self.ratings.references:
            self.keep(self.version)
        means = np.mean(self._statistics, axis=0) if self._statistics else None
        record: dict[str, Any] = {
            "version": self.version, "mu": rating.skill.mu, "sigma": rating.skill.sigma, "games": rating.games,
            "win_rates": {n: float(np.mean(s)) for n, s in self._scores.items() if s},
        }
        if means is not None:
            record["statistics"] = dict(zip(self.statistic_names, means[:-1].tolist(), strict=True))
            record["game_seconds"] = float(means[-1])
        self.series.append("ratings", record)
        log.info("version %d: TrueSkill %.1f ± %.1f after %d games", self.version, rating.skill.mu,
                 rating.skill.sigma, rating.games)
