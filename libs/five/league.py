"""Past selves as opponents (Berner et al. 2019, appendix N).

Most games are played against the newest version; the rest against one of a pool of past versions, drawn by the softmax
of their qualities. A quality falls when its opponent is beaten, so that those who are still hard to beat are met more.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from five.config import LeagueConfig

FORMAT = 1


@dataclass
class Opponent:
    """A past version in the pool. ``wins`` are the current agent's against it."""

    version: int
    quality: float
    games: int = 0
    wins: int = 0


@dataclass(frozen=True)
class Match:
    """Whom the current agent plays: ``past`` None is the newest version; ``side`` 0 or 1 is the current agent's."""

    past: int | None
    side: int
    probability: float = 1.0


class League:
    """The pool and its qualities. Not thread-safe: one service owns it."""

    def __init__(self, config: LeagueConfig) -> None:
        self.config = config
        self._opponents: dict[int, Opponent] = {}
        self._last_added: int | None = None
        self._reported: dict[str, None] = {}  # game ids, oldest first

    @property
    def opponents(self) -> list[Opponent]:
        """The pool, in order of addition."""
        return list(self._opponents.values())

    def on_version(self, version: int) -> bool:
        """A version was published: it joins the pool when it is the turn. Returns whether it did.

        Versions may be skipped or told of twice; every ``add_every_versions`` one joins.
        """
        if self._last_added is not None and version < self._last_added + self.config.add_every_versions:
            return False
        self.add(version)
        return True

    def add(self, version: int) -> None:
        """Adds a version with the highest quality of the pool. Adding one that is there changes nothing."""
        if version < 0:
            raise ValueError(f"a version is not negative: {version}")
        if version in self._opponents:
            return
        quality = max((o.quality for o in self._opponents.values()), default=0.0)
        self._opponents[version] = Opponent(version, quality)
        self._last_added = max(version, self._last_added if self._last_added is not None else version)

    def remove(self, version: int) -> None:
        """Takes a version out of the pool: one that can no longer be loaded."""
        self._opponents.pop(version, None)
        self._centre()

    def probabilities(self) -> dict[int, float]:
        """Chance of each opponent when a past one is drawn: the softmax of the qualities. Sums to 1."""
        if not self._opponents:
            return {}
        q = np.array([o.quality for o in self._opponents.values()])
        p = np.exp(q - q.max())
        return dict(zip(self._opponents, (p / p.sum()).tolist(), strict=True))

    def choose(self, rng: np.random.Generator) -> Match:
        """Draws an opponent and a side. Without a pool the opponent is the newest version."""
        side = int(rng.integers(2))
        if not self._opponents or rng.random() >= self.config.past_opponent_share:
            return Match(None, side)
        p = self.probabilities()
        version = int(rng.choice(list(p), p=list(p.values())))
        return Match(version, side, p[version])

    def report(self, game_id: str, version: int, won: bool) -> bool:
        """The current agent finished a game against ``version``; ``won`` False: lost or drawn.

        A win takes η / (N p) from the opponent's quality, at most ``max_quality_drop`` (equation 14). Returns whether
        the report counted: a game told of before, or one against a version that has left the pool, changes nothing.
        """
        if game_id in self._reported:
            return False
        self._reported[game_id] = None
        while len(self._reported) > self.config.remembered_games:
            del self._reported[next(iter(self._reported))]
        opponent = self._opponents.get(version)
        if opponent is None:
            return False
        opponent.games += 1
        if won:
            opponent.wins += 1
            p = self.probabilities()[version]
            drop = self.config.quality_learning_rate / max(len(self._opponents) * p, 1e-300)
            opponent.quality -= min(drop, self.config.max_quality_drop)
            self._centre()
        return True

    def dump(self) -> dict[str, Any]:
        """The league's state as JSON values."""
        return {
            "format": FORMAT, "last_added": self._last_added, "reported": list(self._reported),
            "opponents": [[o.version, o.quality, o.games, o.wins] for o in self._opponents.values()]}

    @classmethod
    def load(cls, config: LeagueConfig, state: dict[str, Any]) -> "League":
        """From `dump`. Raises ValueError when the state is not one."""
        if state.get("format") != FORMAT:
            raise ValueError(f"a league's state has format {FORMAT}, not {state.get('format')!r}")
        league = cls(config)
        for version, quality, games, wins in state["opponents"]:
            if not math.isfinite(quality):
                raise ValueError(f"the quality of version {version} is {quality}")
            league._opponents[int(version)] = Opponent(int(version), float(quality), int(games), int(wins))
        league._last_added = None if state["last_added"] is None else int(state["last_added"])
        league._remember(state["reported"])
        return league

    def _remember(self, game_ids: Iterable[str]) -> None:
        self._reported = dict.fromkeys(game_ids)

    def _centre(self) -> None:
        # Only differences count; qualities only fall, and would drift away.
        top = max((o.quality for o in self._opponents.values()), default=0.0)
        for opponent in self._opponents.values():
            opponent.quality -= top
