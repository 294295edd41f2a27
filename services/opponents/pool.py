"""The league in Redis: every change is one atomic step, and a reported game counts once.

The pool is kept in memory, so that a call costs what has changed since the last one and not the size of the pool.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from five.config import LeagueConfig
from five.league import FORMAT, League, Match, Opponent
from rapid.store.followed import FollowedTable
from rapid.store.state import RunState

TABLE = "league"
LAST_ADDED = "last_added"
ASSIGNMENTS = 65536
_VERSION = "version:"


def _row(opponent: Opponent) -> dict[str, Any]:
    return {f"{_VERSION}{opponent.version}": [opponent.quality, opponent.games, opponent.wins]}


def _league(config: LeagueConfig, rows: Mapping[str, Any]) -> League:
    opponents = sorted([int(name.removeprefix(_VERSION)), *row] for name, row in rows.items()
                       if name.startswith(_VERSION))
    return League.load(config, {"format": FORMAT, "last_added": rows.get(LAST_ADDED), "reported": [],
                                "opponents": opponents})


class Pool:
    """The pool of past versions of one run. All of its state is in Redis, but for which game was given whom.

    Safe to share between threads; any number of processes may keep the same pool.
    """

    def __init__(self, state: RunState, config: LeagueConfig, seed: int) -> None:
        self._table = FollowedTable(state, TABLE, self._take)
        self._config = config
        self._seed = seed
        self._league = League(config)
        self._assigned: OrderedDict[str, Match] = OrderedDict()
        self._lock = threading.Lock()

    def league(self) -> League:
        """A copy of the pool as it is now."""
        with self._lock:
            self._table.refresh()
            return League.load(self._config, self._league.dump())

    def on_version(self, version: int) -> bool:
        """A version was published. Returns whether it joined the pool."""
        def change() -> dict[str, Any] | None:
            newcomer = self._league.joining(version)
            return None if newcomer is None else {**_row(newcomer), LAST_ADDED: version}

        with self._lock:
            return self._table.update(change, event=("opponents", "league.added", {"version": version}))

    def keep(self, ours: Callable[[int], bool]) -> list[int]:
        """Takes out what is none of ours: versions that the run has gone back behind, which may have another model.
        They stay in the archive. Returns them in order; again there are none."""
        gone: list[int] = []

        def change() -> dict[str, Any] | None:
            gone[:] = sorted(o.version for o in self._league.opponents if not ours(o.version))
            return {f"{_VERSION}{version}": None for version in gone}

        with self._lock:
            left = self._table.update(change, event=("opponents", "league.left", {"versions": gone}))
        return gone if left else []

    def assign(self, game_id: str) -> Match:
        """The match of a game. The draw depends on the game's id and the pool alone; asked again, the same is given."""
        with self._lock:
            if game_id not in self._assigned:
                self._table.refresh()
                digest = blake2b(f"{self._seed}/{game_id}".encode(), digest_size=8).digest()
                rng = np.random.default_rng(int.from_bytes(digest, "little"))
                self._assigned[game_id] = self._league.choose(rng)
                if len(self._assigned) > ASSIGNMENTS:
                    self._assigned.popitem(last=False)
            return self._assigned[game_id]

    def report(self, game_id: str, version: int, won: bool) -> bool:
        """A game against a past version has ended. Returns whether it counted; a second report does not."""
        def change() -> dict[str, Any] | None:
            after = self._league.after(version, won)
            return None if after is None else _row(after)

        with self._lock:
            return self._table.update(change, once=game_id)

    def _take(self, rows: Mapping[str, Any], whole: bool) -> None:
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
                    self._league.put(Opponent(version, *row))
