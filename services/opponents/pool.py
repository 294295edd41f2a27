"""League stored in Redis: every change is one atomic step, and each reported game counts once.

The pool is replicated in memory, so the cost of a call depends on what has changed, not on the size of the pool.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np

from five.agent.config import LeagueConfig
from five.agent.league import FORMAT, ActiveVersion, ActiveVersions, League, OpponentChoice, PoolOpponent
from rapid.malformed import MALFORMED
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState

TABLE = "league"
LAST_ADDED = "last_added"
ASSIGNMENTS = 65536
_VERSION = "version:"


def _row(opponent: PoolOpponent) -> dict[str, Any]:
    return {f"{_VERSION}{opponent.version}": [opponent.quality, opponent.games, opponent.wins]}


def _league(config: LeagueConfig, rows: Mapping[str, Any]) -> League:
    """Return the league of a table's rows. Raise ValueError for damaged rows."""
    try:
        opponents = sorted([int(name.removeprefix(_VERSION)), *row] for name, row in rows.items()
                           if name.startswith(_VERSION))
        return League.load(config, {"format": FORMAT, "last_added": rows.get(LAST_ADDED), "opponents": opponents})
    except MALFORMED as error:
        raise ValueError(f"the table {TABLE} is damaged: {error}") from None


class OpponentPool:
    """Opponent pool of past versions of one run. All of its state except assigned games and slots is in Redis.

    Safe to share between threads. Any number of processes may serve the same pool. With ``active_past_versions`` only
    that many slots exist, each of which holds one past version for a while, and games get one of these. All processes
    sample the same version for the same turn of a slot.
    """

    def __init__(self, state: RunState, config: LeagueConfig, seed: int,
                 clock: Callable[[], float] = time.time) -> None:
        self._table = ReplicatedTable(state, TABLE, self._on_rows)
        self._config = config
        self._seed = seed
        self._league = League(config)
        self._clock = clock
        self._assigned: OrderedDict[str, OpponentChoice] = OrderedDict()
        self._active = ActiveVersions(config, lambda what: float(self._random(what).random()))
        self._lock = threading.Lock()

    def league(self) -> League:
        """Return a copy of the pool."""
        with self._lock:
            self._table.refresh()
            return League.load(self._config, self._league.dump())

    def probabilities(self) -> dict[int, float]:
        """Return the probability of each opponent when a past version is sampled. They sum to 1."""
        with self._lock:
            self._table.refresh()
            return self._league.probabilities()

    def on_version(self, version: int) -> bool:
        """Offer a published version to the pool. Return whether it joined."""
        def change() -> dict[str, Any] | None:
            newcomer = self._league.candidate(version)
            return None if newcomer is None else {**_row(newcomer), LAST_ADDED: version}

        with self._lock:
            return self._table.update(change, event=("opponents", "league.added", {"version": version}))

    def keep(self, ours: Callable[[int], bool]) -> list[int]:
        """Remove versions that ``ours`` rejects: reverted ones, which may have another model, or those that the archive
        no longer has.

        Returns them in order; a second call removes none.
        """
        removed: list[int] = []

        def change() -> dict[str, Any] | None:
            removed[:] = sorted(o.version for o in self._league.opponents if not ours(o.version))
            return {f"{_VERSION}{version}": None for version in removed}

        with self._lock:
            left = self._table.update(change, event=("opponents", "league.left", {"versions": removed}))
        return removed if left else []

    def assign(self, game_id: str) -> OpponentChoice:
        """Return the opponent of a game, the same for repeated calls. The sample depends on the game's id, the pool,
        and the slots."""
        with self._lock:
            if game_id not in self._assigned:
                self._table.refresh()
                rng = self._random(game_id)
                match = self._league.choose(rng)
                if match.past is not None and self._config.active_past_versions:
                    slot = int(rng.integers(self._config.active_past_versions))
                    active = self._active.at(slot, self._clock(), self._league)
                    match = replace(match, past=active.version, probability=active.probability, active=active)
                elif match.past is not None:  # the games of one draw are its turn
                    match = replace(match, active=ActiveVersion(match.past, match.probability, 0))
                self._assigned[game_id] = match
                if len(self._assigned) > ASSIGNMENTS:
                    self._assigned.popitem(last=False)
            return self._assigned[game_id]

    def _random(self, what: str) -> np.random.Generator:
        digest = blake2b(f"{self._seed}/{what}".encode(), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    def report(self, game_id: str, version: int, won: bool, drawn_game_id: str = "") -> bool:
        """Record the result of a game against a past version. Return whether it counted; a second report does not.

        ``drawn_game_id``: the game to which the version was assigned; empty: this one. A group plays a version in
        several games, and all of them count with the probability of that draw.
        """
        drop: float | None = None

        def change() -> dict[str, Any] | None:
            nonlocal drop
            if version not in self._league:
                return None
            drop = self._league.win_drop(version, choice) if won else None
            after = self._league.after_game(version, drop)
            return None if after is None else _row(after)

        with self._lock:
            choice = self._assigned_choice(drawn_game_id or game_id, version)
            counted = self._table.update(change, once=game_id)
            if counted and drop is not None and choice is not None and choice.active is not None:
                choice.active.dropped += drop
            return counted

    def _assigned_choice(self, game_id: str, version: int) -> OpponentChoice | None:
        """Return how a game against a version was assigned. If another process assigned it, its slot's turn is used."""
        choice = self._assigned.get(game_id)
        if choice is not None and choice.past == version:
            return choice
        active = self._active.holding(version)
        return None if active is None else OpponentChoice(version, 0, active.probability, active)

    def _on_rows(self, rows: Mapping[str, Any], whole: bool) -> None:
        if whole:
            self._league = _league(self._config, rows)
            return
        for name, row in rows.items():
            if name == LAST_ADDED:
                self._league.last_added = row
            elif name.startswith(_VERSION):
                version = int(name.removeprefix(_VERSION))
                if row is None:
                    self._league.remove(version)
                else:
                    self._league.set_opponent(PoolOpponent(version, *row))
