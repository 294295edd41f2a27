"""Recordings of people's games: the whole game from the spectators' view.

They are stored in a folder, limited in number and bytes, and survive a restart of the service. Users can save them.
"""

import json
import logging
import math
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dota.config import GameConfig
from dota.spectator.camera import ChunkEntry, game_time
from dota.spectator.chunks import CHUNK_STEPS, pack_chunk, pack_events
from dota.spectator.header import pack_header
from dota.spectator.recording import SUFFIX, RecordingIndex
from dota.spectator.schema import game_schema
from five.services.play import metrics as page
from five.services.play.players import NewGame
from five.services.play.views import View, header_by_timestep
from rapid.atomic_file import PARTIAL, replacing
from rapid.malformed import MALFORMED
from rapid.rpc.errors import Unavailable

log = logging.getLogger(__name__)
FACTS = ".json"  # suffix of the file that describes a recording
MAX_FACTS = 64 << 10
GAME = re.compile(r"[0-9a-f]{32}")


class GameRecorder:
    """Recorder of one game during play, from the steps that a view encodes for spectators.

    At ``most`` bytes it stops: the recording then holds only the beginning of the game.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: list[tuple[bytes, ChunkEntry]] = []
        self._parts: list[bytes] = []
        self._facts: ChunkEntry | None = None
        self._schema = game_schema(policy_debug=True)
        self._columns = [self._schema.table("clock").column(f"{side}_kills") for side in ("radiant", "dire")]
        self._time = 0.0
        self._kills = [0, 0]
        self.size = 0  # bytes of the finished chunks

    def add(self, view: View) -> None:
        """Add a timestep. The view must be one of the whole game."""
        clock = view.frame["clock"][0]
        self._time, self._kills = game_time(clock), [int(clock[column]) for column in self._columns]
        if self.size >= self._most:
            return
        if self._facts is None:
            self._facts = ChunkEntry(view.engine_frame, self._time)
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

    def recorded(self, begin: NewGame, about: Mapping[str, Any], people: list[str], winner: int) -> "GameRecording":
        """Return the recording of the ended game. ``about``: header entries, including ``players``."""
        data = self._pack(begin.config, {**about, "seed": str(begin.seed)})
        return GameRecording(begin.game, list(about["players"]), people, self._time, time.time(), winner, self._kills,
                             len(data), data)

    def _pack(self, config: GameConfig, about: Mapping[str, Any]) -> bytes:
        self._end_chunk()
        pieces, index = [pack_header(header_by_timestep(config, about))], RecordingIndex()
        at = len(pieces[0])
        for chunk, facts in self._chunks:
            index.add(at, facts)
            pieces.append(chunk)
            at += len(chunk)
        return b"".join([*pieces, index.packed(at)])


@dataclass(frozen=True)
class GameRecording:
    """Recording of an ended game: players of each side, people, seconds since the horn, end time, winner (0 none, 1
    Radiant, 2 Dire, 3 a draw), kills of each side, size in bytes, and the data if it is in memory."""

    game: str
    players: list[str]
    people: list[str]
    seconds: float
    at: float
    winner: int
    kills: list[int]
    size: int
    data: bytes = b""

    def facts(self) -> dict[str, Any]:
        """Return the description as JSON values, which `recorded_of` reads."""
        return {"game": self.game, "players": self.players, "people": self.people, "seconds": self.seconds,
                "at": self.at, "winner": self.winner, "kills": self.kills}


def recorded_of(facts: Any, size: int) -> GameRecording:
    """Parse the description of a recording of ``size`` bytes. Raises ValueError."""
    try:
        found = GameRecording(str(facts["game"]), [str(name) for name in facts["players"]],
                              [str(name) for name in facts["people"]], float(facts["seconds"]), float(facts["at"]),
                              int(facts["winner"]), [int(kills) for kills in facts["kills"]], size)
    except MALFORMED as error:
        raise ValueError(f"invalid description: {type(error).__name__}: {error}") from None
    if (not GAME.fullmatch(found.game) or not 0 <= found.winner <= 3 or min(found.kills, default=0) < 0
            or not math.isfinite(found.seconds + found.at)):
        raise ValueError("the description has a value out of range")
    return found


class RecordingStore:
    """Store of the newest recordings, at most ``games`` with ``most`` bytes; the oldest are removed first.

    They are files in ``folder``, where existing recordings are found again. Without a folder, or if it is not writable,
    they stay in memory. Thread-safe; only ``all`` never waits for the disk.
    """

    def __init__(self, games: int, most: int, folder: Path | None = None) -> None:
        self._games = games
        self._most = most
        self._folder = folder
        self._lock = threading.Lock()  # not held while the disk is used: the games' event loop lists the recordings
        self._stored: dict[str, GameRecording] = {}  # oldest first
        if folder is not None and games and folder.is_dir():
            for recorded in sorted(self._find_recordings(folder), key=lambda r: r.at):
                self._stored[recorded.game] = recorded
            self._remove_oldest()

    def store(self, recorded: GameRecording) -> None:
        """Store a recording."""
        if self._folder is not None:
            try:
                self._write(self._folder, recorded)
                recorded = replace(recorded, data=b"")
            except OSError as error:
                log.warning("the recording of game %s is stored in memory only: %s", recorded.game, error)
        with self._lock:
            self._stored[recorded.game] = recorded
        self._remove_oldest()

    def all(self) -> list[GameRecording]:
        """Return all recordings, newest first."""
        with self._lock:
            return list(reversed(self._stored.values()))

    def piece(self, game: str, offset: int, most: int) -> tuple[bytes, int] | None:
        """Return up to ``most`` bytes of a recording from an offset, and its size; None if it is not stored. Raises
        Unavailable if its file cannot be read now."""
        with self._lock:
            recorded = self._stored.get(game)
        if recorded is None:
            return None
        if recorded.data or self._folder is None:
            return recorded.data[offset:offset + most], recorded.size
        try:
            with (self._folder / f"{game}{SUFFIX}").open("rb") as file:
                file.seek(offset)
                return file.read(most), recorded.size
        except FileNotFoundError:
            with self._lock:
                known = self._stored.pop(game, None) is not None
            if known:
                log.warning("the recording of game %s was removed by somebody else", game)
                self._remove_files(game)
            return None
        except OSError as error:  # the volume may come back
            raise Unavailable(f"the recording of game {game} cannot be read: {error}") from None

    def _write(self, folder: Path, recorded: GameRecording) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # The description comes first: once the recording has its final name, both files exist.
        for suffix, data in ((FACTS, json.dumps(recorded.facts()).encode()), (SUFFIX, recorded.data)):
            with replacing(folder / f"{recorded.game}{suffix}") as file:
                file.write(data)

    @staticmethod
    def _find_recordings(folder: Path) -> list[GameRecording]:
        found = []
        for path in [*folder.glob(f".*{PARTIAL}"), *folder.glob(f"*{FACTS}")]:
            if not GAME.match(path.name.removeprefix(".")):
                continue  # another program's: services.play.recordings_folder may be shared
            if path.suffix == PARTIAL or not path.with_suffix(SUFFIX).exists():
                try:
                    path.unlink(missing_ok=True)  # left by a process that ended during a write
                except OSError as error:
                    log.warning("%s is not removed: %s", path, error)
        for path in folder.glob(f"*{SUFFIX}"):
            facts = path.with_suffix(FACTS)
            try:
                if facts.stat().st_size > MAX_FACTS:
                    raise ValueError(f"the description is larger than {MAX_FACTS} bytes")
                recorded = recorded_of(json.loads(facts.read_bytes()), path.stat().st_size)
                if recorded.game != path.stem:
                    raise ValueError(f"the description names game {recorded.game}")
                found.append(recorded)
            except (OSError, ValueError, RecursionError) as error:
                log.warning("%s is ignored, because it is not a recording of this service: %s", path, error)
        return found

    def _remove_oldest(self) -> None:
        removed = []
        with self._lock:
            while len(self._stored) > self._games or (len(self._stored) > 1 and self._bytes() > self._most):
                removed.append(next(iter(self._stored)))
                del self._stored[removed[-1]]
            page.RECORDED.set(self._bytes())
        for game in removed:
            self._remove_files(game)

    def _remove_files(self, game: str) -> None:
        if self._folder is None:
            return
        try:
            for suffix in (SUFFIX, FACTS):
                (self._folder / f"{game}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            log.warning("the recording of game %s cannot be removed: %s", game, error)

    def _bytes(self) -> int:
        return sum(recorded.size for recorded in self._stored.values())
