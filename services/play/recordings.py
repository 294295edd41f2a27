"""Games that people have played, to be watched again: the whole game, as spectators have seen it.

They are kept in this process' memory, bounded in number and bytes, and nowhere else: the service writes to no store.
Whoever wants one for good takes the file.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dota.config import GameConfig
from dota.spectator.camera import ChunkFacts, game_time
from dota.spectator.chunks import CHUNK_STEPS, pack_chunk, pack_events
from dota.spectator.header import pack_header
from dota.spectator.recording import Index
from dota.spectator.schema import game_schema
from five.services.play import metrics as page
from five.services.play.players import Begin
from five.services.play.views import View, header_by_timestep


class Recorder:
    """Makes a recording of one game while it is played, of the steps that a view has encoded for spectators anyway.

    Beyond ``most`` bytes nothing is added: such a game is kept from its beginning on, as far as that goes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: list[tuple[bytes, ChunkFacts]] = []
        self._parts: list[bytes] = []
        self._facts: ChunkFacts | None = None
        self._schema = game_schema(thoughts=True)
        self._columns = [self._schema.table("clock").column(f"{side}_kills") for side in ("radiant", "dire")]
        self._time = 0.0
        self._kills = [0, 0]
        self.size = 0  # of what is packed

    def add(self, view: View) -> None:
        """The game after a timestep; the view is one of the whole game."""
        clock = view.frame["clock"][0]
        self._time, self._kills = game_time(clock), [int(clock[column]) for column in self._columns]
        if self.size >= self._most:
            return
        if self._facts is None:
            self._facts = ChunkFacts(view.engine_frame, self._time)
        self._parts += [view.changes() if self._parts else view.keyframe(), pack_events(view.events)]
        self._facts.add(view.frame, view.events)
        if self._facts.steps == CHUNK_STEPS:
            self._end_chunk()

    def _end_chunk(self) -> None:
        if self._facts is not None:
            chunk = pack_chunk(self._schema, self._facts.frame, self._facts.steps, self._parts)
            self._chunks.append((chunk, self._facts))
            self.size += len(chunk)
        self._parts, self._facts = [], None

    def recorded(self, begin: Begin, about: Mapping[str, Any], people: list[str], winner: int) -> "Recorded":
        """The recording of the game, which is over. ``about``: what its header says of it, ``players`` among it."""
        time_of_last, kills = self._time, self._kills
        data = self._packed(begin.config, {**about, "seed": str(begin.seed)})
        return Recorded(begin.game, list(about["players"]), people, time_of_last, time.time(), winner, kills, data)

    def _packed(self, config: GameConfig, about: Mapping[str, Any]) -> bytes:
        self._end_chunk()
        pieces, index = [pack_header(header_by_timestep(config, about))], Index()
        at = len(pieces[0])
        for chunk, facts in self._chunks:
            index.add(at, facts)
            pieces.append(chunk)
            at += len(chunk)
        return b"".join([*pieces, index.packed(at)])


@dataclass(frozen=True)
class Recorded:
    """A game that is over: who played each side, the people in it, seconds since the horn, when it ended, who won (0
    nobody, 1 Radiant, 2 Dire, 3 a draw), kills of each side, and the recording."""

    game: str
    players: list[str]
    people: list[str]
    seconds: float
    at: float
    winner: int
    kills: list[int]
    data: bytes


class Recordings:
    """The newest games, at most ``games`` of them and ``most`` bytes; the oldest make room."""

    def __init__(self, games: int, most: int) -> None:
        self._games = games
        self._most = most
        self._kept: dict[str, Recorded] = {}  # the oldest first

    def keep(self, recorded: Recorded) -> None:
        """Takes one in."""
        self._kept[recorded.game] = recorded
        while len(self._kept) > self._games or (len(self._kept) > 1 and self._bytes() > self._most):
            del self._kept[next(iter(self._kept))]
        page.RECORDED.set(self._bytes())

    def all(self) -> list[Recorded]:
        """The newest first."""
        return list(reversed(self._kept.values()))

    def find(self, game: str) -> Recorded | None:
        """One of them; None where it is not kept."""
        return self._kept.get(game)

    def _bytes(self) -> int:
        return sum(len(recorded.data) for recorded in self._kept.values())
