"""Persisted games of a requested match, so that a repeated request continues it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dota.vec_game import STATS
from five.services.evaluator.matches import Pairing, PairingResult
from rapid.malformed import MALFORMED

log = logging.getLogger(__name__)

TABLE = "match_games"
MATCHES = 4  # matches whose games are stored; the controller requests one at a time


class ProgressTable(Protocol):
    """Interface of rapid.store.tables.Table that match progress uses."""

    def all(self) -> dict[str, Any]: ...

    def set(self, field: str, value: Any) -> None: ...


@dataclass(frozen=True)
class MatchProgress:
    """Progress of a match: its ``version``, None before the first game has ended; results by the game's number, from 0;
    the ``replay`` of one of them, '' without."""

    version: int | None
    results: dict[int, PairingResult]
    replay: str


class _GameRow(NamedTuple):
    version: int
    score: float
    seconds: float
    at: float
    replay: str
    agent: npt.NDArray[np.float32]
    opponent: npt.NDArray[np.float32]

    @classmethod
    def of(cls, row: Any) -> "_GameRow":
        """Return a stored row. Raise ValueError, TypeError or LookupError for a damaged one."""
        statistics = [np.array(row[who], np.float32) for who in ("agent", "opponent")]
        if any(array.shape != (len(STATS),) for array in statistics):
            raise ValueError(f"a game has the statistics {', '.join(STATS)}")
        return cls(int(row["version"]), float(row["score"]), float(row["seconds"]), float(row["at"]),
                   str(row["replay"]), *statistics)


def load(table: ProgressTable, match: str, pairings: Sequence[Pairing]) -> MatchProgress:
    """Return a match's progress, and remove other matches from the table except for the newest. A damaged game is
    left out. Blocking; raises redis.RedisError."""
    rows: dict[str, dict[int, _GameRow]] = {}
    begun: dict[str, float] = {}
    for field, row in table.all().items():
        identity, _, number = field.rpartition(":")
        try:
            game, parsed = int(number), _GameRow.of(row)
        except MALFORMED as error:
            log.warning("game %s is damaged and will be played again: %s", field, error)
            continue
        rows.setdefault(identity, {})[game] = parsed
        begun[identity] = max(begun.get(identity, 0.0), parsed.at)
    others = sorted(rows.keys() - {match}, key=begun.__getitem__)
    for identity in others[:max(len(others) - MATCHES + 1, 0)]:
        for game in rows[identity]:
            table.set(f"{identity}:{game}", None)
    mine = {game: row for game, row in rows.get(match, {}).items() if game < len(pairings)}
    results = {game: PairingResult(pairings[game], row.score, row.seconds, row.agent, row.opponent, -1)
               for game, row in mine.items()}
    return MatchProgress(next((row.version for row in mine.values()), None), results,
                         next((row.replay for row in mine.values() if row.replay), ""))


def store(table: ProgressTable, match: str, version: int, number: int, result: PairingResult, replay: str,
          at: float) -> None:
    """Persist a game that ended at wall time ``at``; idempotent. Blocking; raises redis.RedisError."""
    row = {"version": version, "score": result.score, "seconds": result.game_seconds, "at": at, "replay": replay,
           "agent": result.agent_statistics.tolist(), "opponent": result.opponent_statistics.tolist()}
    table.set(f"{match}:{number}", row)
