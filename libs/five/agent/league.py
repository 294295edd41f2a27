"""Past selves as opponents (Berner et al. 2019, appendix N).

Most games are played against the newest version; the rest against one of a pool of past versions, drawn by the softmax
of their qualities. A quality falls when its opponent is beaten, so that those who are still hard to beat are met more.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from five.agent.config import LeagueConfig
from five.agent.weighted_draw import SoftmaxDraw

FORMAT = 1


@dataclass(frozen=True)
class PoolOpponent:
    """A past version in the pool. ``wins`` are the current agent's against it. Only differences of qualities count."""

    version: int
    quality: float
    games: int = 0
    wins: int = 0


@dataclass(frozen=True)
class OpponentChoice:
    """Whom the current agent plays: ``past`` None is the newest version; ``side`` 0 or 1 is the current agent's."""

    past: int | None
    side: int
    probability: float = 1.0


class League:
    """The pool and its qualities. Not thread-safe: one service owns it.

    What may happen to it is asked for (`joining`, `after`), and then put in: a pool that others keep as well is changed
    once the change is agreed with them.
    """

    def __init__(self, config: LeagueConfig) -> None:
        self.config = config
        self.last_added: int | None = None
        self._opponents: dict[int, PoolOpponent] = {}
        self._draw = SoftmaxDraw()
        self._reported: dict[str, None] = {}  # game ids, oldest first

    @property
    def opponents(self) -> list[PoolOpponent]:
        """The pool, in order of addition; the highest quality is 0."""
        top = max((o.quality for o in self._opponents.values()), default=0.0)
        return [replace(o, quality=o.quality - top) for o in self._opponents.values()]

    def put(self, opponent: PoolOpponent) -> None:
        """Adds an opponent, or replaces what is known of its version. Raises ValueError for an invalid quality."""
        if not math.isfinite(opponent.quality):
            raise ValueError(f"the quality of version {opponent.version} is {opponent.quality}")
        before = self._opponents.get(opponent.version)
        self._opponents[opponent.version] = opponent
        if before is None or before.quality != opponent.quality:
            self._draw.put(opponent.version, opponent.quality)

    def remove(self, version: int) -> None:
        """Takes a version out of the pool: one that can no longer be loaded."""
        self._opponents.pop(version, None)
        self._draw.remove(version)

    def joining(self, version: int) -> PoolOpponent | None:
        """As what a published version joins the pool: with its highest quality. None when it is not the turn of it.

        Versions may be skipped or told of twice; every ``add_every_versions`` one joins.
        """
        if self.last_added is not None and version < self.last_added + self.config.add_every_versions:
            return None
        return self._newcomer(version)

    def on_version(self, version: int) -> bool:
        """A version was published: it joins the pool when it is the turn. Returns whether it did."""
        joins = self.joining(version) is not None
        if joins:
            self.add(version)
        return joins

    def add(self, version: int) -> None:
        """Adds a version with the highest quality of the pool. Adding one that is there changes nothing."""
        newcomer = self._newcomer(version)
        if version in self._opponents:
            return
        self.put(newcomer)
        self.last_added = max(version, self.last_added if self.last_added is not None else version)

    def _newcomer(self, version: int) -> PoolOpponent:
        if version < 0:
            raise ValueError(f"a version is not negative: {version}")
        return PoolOpponent(version, max((o.quality for o in self._opponents.values()), default=0.0))

    def probabilities(self) -> dict[int, float]:
        """Chance of each opponent when a past one is drawn: the softmax of the qualities. Sums to 1."""
        if not self._opponents:
            return {}
        q = np.array([o.quality for o in self._opponents.values()])
        p = np.exp(q - q.max())
        return dict(zip(self._opponents, (p / p.sum()).tolist(), strict=True))

    def choose(self, rng: np.random.Generator) -> OpponentChoice:
        """Draws an opponent and a side. Without a pool the opponent is the newest version."""
        side = int(rng.integers(2))
        if not self._opponents or rng.random() >= self.config.past_opponent_share:
            return OpponentChoice(None, side)
        version = self.draw(rng.random())
        return OpponentChoice(version, side, self.chance(version))

    def draw(self, share: float) -> int:
        """The past version at a ``share``, 0 to 1, of all chances. Raises ValueError without a pool."""
        return self._draw.draw(share)

    def has(self, version: int) -> bool:
        """Whether a version is in the pool."""
        return version in self._opponents

    def chance(self, version: int) -> float:
        """Of a past version to be drawn."""
        return self._draw.chance(version)

    def after(self, version: int, won: bool) -> PoolOpponent | None:
        """What a game of the current agent against ``version`` makes of it; ``won`` False: lost or drawn.

        A win takes η / (N p) from the opponent's quality, at most ``max_quality_drop`` (equation 14). None for a
        version that has left the pool.
        """
        opponent = self._opponents.get(version)
        if opponent is None:
            return None
        if not won:
            return replace(opponent, games=opponent.games + 1)
        p = self._draw.chance(version)
        drop = self.config.quality_learning_rate / max(len(self._opponents) * p, 1e-300)
        return PoolOpponent(version, opponent.quality - min(drop, self.config.max_quality_drop), opponent.games + 1,
                        opponent.wins + 1)

    def report(self, game_id: str, version: int, won: bool) -> bool:
        """The current agent finished a game against ``version``. Returns whether the report counted: a game told of
        before, or one against a version that has left the pool, changes nothing."""
        if game_id in self._reported:
            return False
        self._reported[game_id] = None
        while len(self._reported) > self.config.remembered_games:
            del self._reported[next(iter(self._reported))]
        after = self.after(version, won)
        if after is not None:
            self.put(after)
        return after is not None

    def dump(self) -> dict[str, Any]:
        """The league's state as JSON values."""
        return {
            "format": FORMAT, "last_added": self.last_added, "reported": list(self._reported),
            "opponents": [[o.version, o.quality, o.games, o.wins] for o in self._opponents.values()]}

    @classmethod
    def load(cls, config: LeagueConfig, state: dict[str, Any]) -> "League":
        """From `dump`. Raises ValueError when the state is not one."""
        if state.get("format") != FORMAT:
            raise ValueError(f"a league's state has format {FORMAT}, not {state.get('format')!r}")
        league = cls(config)
        for version, quality, games, wins in state["opponents"]:
            league._opponents[int(version)] = PoolOpponent(int(version), float(quality), int(games), int(wins))
        for opponent in league._opponents.values():
            if not math.isfinite(opponent.quality):
                raise ValueError(f"the quality of version {opponent.version} is {opponent.quality}")
        league._draw = SoftmaxDraw((o.version, o.quality) for o in league._opponents.values())
        league.last_added = None if state["last_added"] is None else int(state["last_added"])
        league._remember(state["reported"])
        return league

    def _remember(self, game_ids: Iterable[str]) -> None:
        self._reported = dict.fromkeys(game_ids)
