"""Selection of past versions as opponents (Berner et al. 2019, appendix N).

Most games are played against the newest version, the rest against a past version from a pool. It is sampled by the
softmax of qualities. A quality falls when its opponent is beaten, so opponents that are hard to beat are met more.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.config import LeagueConfig

FORMAT = 1


@dataclass(frozen=True)
class PoolOpponent:
    """A past version in the pool. ``wins`` counts the current agent's. Only differences of qualities matter."""

    version: int
    quality: float
    games: int = 0
    wins: int = 0


@dataclass
class ActiveVersion:
    """A past version that holds a slot for one turn, or that several games of a group play. It was sampled with
    ``probability``; ``dropped`` sums what their wins have taken from its quality."""

    version: int
    probability: float
    turn: int
    dropped: float = 0.0


@dataclass(frozen=True)
class OpponentChoice:
    """Opponent of a game: ``past`` is a version, or None for the newest; ``side`` 0 or 1 is the current agent's.

    ``past`` was sampled with ``probability``. ``active`` is the turn to which the game belongs: the slot's with
    ``active_past_versions``, otherwise that of all games that play this choice.
    """

    past: int | None
    side: int
    probability: float = 1.0
    active: ActiveVersion | None = None


class League:
    """Pool of past versions with their qualities. Not thread-safe.

    `candidate` and `after_game` return what a change would be and change nothing. `set_opponent` applies it. A pool
    that several processes share is changed once the shared store has accepted the change.
    """

    def __init__(self, config: LeagueConfig) -> None:
        self.config = config
        self.last_added: int | None = None
        self._opponents: dict[int, PoolOpponent] = {}
        # Pools hold thousands of versions, so qualities are also kept as an array, in the order of _opponents.
        self._index: dict[int, int] = {}
        self._qualities = np.zeros(64)
        self._softmax: npt.NDArray[np.float64] | None = None  # None after a change

    def __contains__(self, version: int) -> bool:
        return version in self._opponents

    @property
    def opponents(self) -> list[PoolOpponent]:
        """The pool in order of addition, shifted so that the highest quality is 0."""
        top = max((o.quality for o in self._opponents.values()), default=0.0)
        return [replace(o, quality=o.quality - top) for o in self._opponents.values()]

    def set_opponent(self, opponent: PoolOpponent) -> None:
        """Add an opponent, or replace the one of its version. Raise ValueError for a quality that is not finite."""
        if not math.isfinite(opponent.quality):
            raise ValueError(f"quality {opponent.quality} of version {opponent.version}: it must be finite")
        previous = self._opponents.get(opponent.version)
        if previous is None or previous.quality != opponent.quality:
            self._softmax = None
        self._opponents[opponent.version] = opponent
        index = self._index.setdefault(opponent.version, len(self._index))
        if index == len(self._qualities):
            self._qualities = np.concatenate((self._qualities, np.zeros(index + 64)))
        self._qualities[index] = opponent.quality

    def remove(self, version: int) -> None:
        """Remove a version from the pool, if it is there."""
        if self._opponents.pop(version, None) is None:
            return
        self._qualities = np.delete(self._qualities, self._index[version])
        self._index = {opponent: i for i, opponent in enumerate(self._opponents)}
        self._softmax = None

    def candidate(self, version: int) -> PoolOpponent | None:
        """Return a published version as a new opponent with the highest quality, or None if it does not join.

        A version joins if it is at least ``add_every_versions`` newer than the last one added.
        """
        if self.last_added is not None and version < self.last_added + self.config.add_every_versions:
            return None
        if version < 0:
            raise ValueError(f"version {version}: at least 0 is required")
        return PoolOpponent(version, max((o.quality for o in self._opponents.values()), default=0.0))

    def probabilities(self) -> dict[int, float]:
        """Return the probability of each opponent when a past version is sampled. They sum to 1."""
        return dict(zip(self._opponents, self._probabilities().tolist(), strict=True))

    def probability(self, version: int) -> float:
        """Return the probability of an opponent of the pool. Raise KeyError for another version."""
        return float(self._probabilities()[self._index[version]])

    def choose(self, rng: np.random.Generator) -> OpponentChoice:
        """Sample an opponent and a side. With an empty pool the opponent is the newest version."""
        side = int(rng.integers(2))
        if not self._opponents or rng.random() >= self.config.past_opponent_share:
            return OpponentChoice(None, side)
        version = self.sample(rng.random())
        return OpponentChoice(version, side, self.probability(version))

    def sample(self, uniform: float) -> int:
        """Return the past version at ``uniform``, from 0 to 1, of the cumulative probabilities.

        Raise LookupError for an empty pool.
        """
        if not self._opponents:
            raise LookupError("the pool is empty")
        probabilities = self._probabilities()
        index = int(np.searchsorted(np.cumsum(probabilities), uniform, side="right"))
        if index == len(probabilities):  # rounding left the sum below 1
            index = int(np.flatnonzero(probabilities)[-1])
        return next(itertools.islice(self._opponents, index, None))

    def win_drop(self, version: int, choice: OpponentChoice | None = None) -> float:
        """Return what a win takes from the quality of an opponent of the pool: η / (N p) of equation 14.

        ``choice`` is how the game was assigned. Its probability counts, because it makes the expected drop of all
        opponents equal; the present one has already fallen by the games since. None: the present one is used. A win
        takes at most ``max_quality_drop``, and so do all wins of one turn of an active version.
        """
        p = self.probability(version) if choice is None else choice.probability
        drop = min(self.config.quality_learning_rate / max(len(self._opponents) * p, 1e-300),
                   self.config.max_quality_drop)
        active = None if choice is None else choice.active
        return drop if active is None else max(min(drop, self.config.max_quality_drop - active.dropped), 0.0)

    def after_game(self, version: int, drop: float | None) -> PoolOpponent | None:
        """Return an opponent as a game against it leaves it, or None if the pool does not have it.

        ``drop`` is that of a win. A lost or drawn game (None) changes no quality.
        """
        opponent = self._opponents.get(version)
        if opponent is None:
            return None
        if drop is None:
            return replace(opponent, games=opponent.games + 1)
        return PoolOpponent(version, opponent.quality - drop, opponent.games + 1, opponent.wins + 1)

    def _probabilities(self) -> npt.NDArray[np.float64]:
        if self._softmax is None:
            qualities = self._qualities[:len(self._index)]
            weights = np.exp(qualities - qualities.max(initial=-np.inf))
            self._softmax = weights / weights.sum()
        return self._softmax

    def dump(self) -> dict[str, Any]:
        """Return the league's state as JSON values."""
        return {"format": FORMAT, "last_added": self.last_added,
                "opponents": [[o.version, o.quality, o.games, o.wins] for o in self._opponents.values()]}

    @classmethod
    def load(cls, config: LeagueConfig, state: dict[str, Any]) -> "League":
        """Read the result of `dump`. Raise ValueError for another format or a quality that is not finite."""
        if state.get("format") != FORMAT:
            raise ValueError(f"league state of format {state.get('format')!r}: this release reads format {FORMAT}")
        league = cls(config)
        for version, quality, games, wins in state["opponents"]:
            league.set_opponent(PoolOpponent(int(version), float(quality), int(games), int(wins)))
        league.last_added = None if state["last_added"] is None else int(state["last_added"])
        return league


class ActiveVersions:
    """Slots that hold one past version each for ``active_minutes``. They are sampled again in turn, so few versions
    change at once. Not thread-safe.

    ``uniform(what)`` returns a number from 0 to 1 that depends on the text only.
    """

    def __init__(self, config: LeagueConfig, uniform: Callable[[str], float]) -> None:
        self._config = config
        self._uniform = uniform
        self._slots: dict[int, ActiveVersion] = {}

    def at(self, slot: int, seconds: float, league: League) -> ActiveVersion:
        """Return the past version in a slot at a time. Raise LookupError for an empty pool."""
        config = self._config
        turn = int(seconds / (60 * config.active_minutes) + slot / config.active_past_versions)
        held = self._slots.get(slot)
        if held is None or held.turn != turn or held.version not in league:
            version = league.sample(self._uniform(f"place {slot} turn {turn}"))
            held = self._slots[slot] = ActiveVersion(version, league.probability(version), turn)
        return held

    def holding(self, version: int) -> ActiveVersion | None:
        """Return the newest turn of a version that holds a slot; None if it holds no slot."""
        return max((held for held in self._slots.values() if held.version == version), key=lambda held: held.turn,
                   default=None)
