"""The league in Redis: every change is one atomic step, and a reported game counts once."""

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import numpy as np

from five.config import LeagueConfig
from five.league import FORMAT, League, Match
from rapid.store.state import RunState

TABLE = "league"
LAST_ADDED = "last_added"
ASSIGNMENTS = 65536


def _rows(league: League) -> dict[str, Any]:
    state = league.dump()
    rows: dict[str, Any] = {f"version:{v}": [q, games, wins] for v, q, games, wins in state["opponents"]}
    return {**rows, LAST_ADDED: state["last_added"]}


def _league(config: LeagueConfig, rows: dict[str, Any]) -> League:
    opponents = sorted([int(name.removeprefix("version:")), *row] for name, row in rows.items()
                       if name.startswith("version:"))
    return League.load(config, {"format": FORMAT, "last_added": rows.get(LAST_ADDED), "reported": [],
                                "opponents": opponents})


class Pool:
    """The pool of past versions of one run. All of its state is in Redis, but for which game was given whom."""

    def __init__(self, state: RunState, config: LeagueConfig, seed: int) -> None:
        self._table = state.table(TABLE)
        self._state = state
        self._config = config
        self._seed = seed
        self._assigned: OrderedDict[str, Match] = OrderedDict()

    def league(self) -> League:
        """The pool as it is now."""
        return _league(self._config, self._table.all())

    def on_version(self, version: int) -> bool:
        """A version was published. Returns whether it joined the pool."""
        joined = False

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal joined
            league = _league(self._config, rows)
            joined = league.on_version(version)
            return _rows(league) if joined else None

        self._table.update(change)
        if joined:
            self._state.events.append("opponents", "league.added", {"version": version})
        return joined

    def assign(self, game_id: str) -> Match:
        """The match of a game. The draw depends on the game's id and the pool alone; asked again, the same is given."""
        if game_id not in self._assigned:
            digest = blake2b(f"{self._seed}/{game_id}".encode(), digest_size=8).digest()
            self._assigned[game_id] = self.league().choose(np.random.default_rng(int.from_bytes(digest, "little")))
            if len(self._assigned) > ASSIGNMENTS:
                self._assigned.popitem(last=False)
        return self._assigned[game_id]

    def report(self, game_id: str, version: int, won: bool) -> bool:
        """A game against a past version has ended. Returns whether it counted; a second report does not."""
        counted = False

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal counted
            league = _league(self._config, rows)
            counted = league.report(game_id, version, won)
            return _rows(league) if counted else None

        return self._table.update(change, once=game_id) and counted
