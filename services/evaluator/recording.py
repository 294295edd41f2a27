"""One recording of each version that is rated: its orders, and what is to be seen of it (dota.spectator)."""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from dota.replay import Replay
from dota.spectator.recording import SUFFIX
from five.services.evaluator.cameras import Cameras
from rapid.blobs import BlobStore

log = logging.getLogger(__name__)
REPLAYS = "replays/"  # in the blob store


class Films:
    """What is to be seen of games, on its way into the blob store, where the controller finds it. ``folder`` is where
    it lies while the game is played."""

    def __init__(self, cameras: Cameras, blobs: BlobStore, folder: Path) -> None:
        self._cameras = cameras
        self._blobs = blobs
        self._folder = folder

    def begin(self, place: int) -> None:
        """The game at a place, which has just begun, is recorded."""
        self._cameras.film(place, self._at(place))

    def keep(self, place: int, name: str) -> None:
        """The game at a place is over: its recording goes into the store under a name."""
        facts = self._cameras.facts(place)
        if not self._cameras.ended(place):
            return
        path = self._at(place)
        try:
            self._blobs.put(path, f"{REPLAYS}{name}{SUFFIX}")
            self._blobs.put(json.dumps(facts).encode(), f"{REPLAYS}{name}.json")
        finally:
            path.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Forgets a recording."""
        for suffix in (SUFFIX, ".json"):
            self._blobs.remove_ref(f"{REPLAYS}{name}{suffix}")

    def _at(self, place: int) -> Path:
        return self._folder / f".game-{os.getpid()}-{id(self._cameras):x}-{place}{SUFFIX}"


def tidy(folder: Path, days: float, most_bytes: float, films: "Films | None" = None) -> list[str]:
    """Removes recordings of matches on request that are older than ``days``, and the oldest of all while they take more
    than ``most_bytes``. Returns the names of those that went."""
    found = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.replay"))
    total = sum(size for _, size, _ in found)
    gone = []
    for at, size, path in found[:-1]:  # the newest has just been asked for
        rated = path.stem.removeprefix("version-").isdigit()
        if total <= most_bytes and (rated or time.time() - at <= days * 86400):
            continue
        path.unlink(missing_ok=True)
        if films is not None:
            films.remove(path.stem)
        total -= size
        gone.append(path.stem)
    return gone


class Recorder:
    """Records the first rated game of each version into ``folder``, as PLAYER.replay, and keeps the newest ``keep``.

    ``record`` begins the recording of the game at a place, ``final_hash`` is the state that it ended in. With
    ``films`` what is to be seen of a game goes into their store as well. ``tidy`` makes room, after each.
    """

    def __init__(self, record: Callable[[int], Replay], final_hash: Callable[[int], int], folder: Path, keep: int,
                 films: "Films | None" = None, tidy: Callable[[], object] = lambda: None) -> None:
        self._films = films
        self._tidy = tidy
        self._record = record
        self._hash = final_hash
        self._folder = folder
        self._keep = keep
        self._running: dict[int, tuple[str, Replay]] = {}  # by place

    def began(self, place: int, player: str) -> None:
        """A rated game of a player begins at a place, or begins again."""
        again = self._running.get(place, ("", None))[0] == player
        others = any(name == player for name, _ in self._running.values())
        if again or not (others or self._path(player).exists()):
            self._running[place] = (player, self._record(place))
            if self._films is not None:
                self._films.begin(place)

    def ended(self, place: int) -> None:
        """The game at a place has ended. A folder that cannot be written costs the recording, not the rating."""
        if place not in self._running:
            return
        player, replay = self._running.pop(place)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replay.save(self._path(player), self._hash(place))
            if self._films is not None:
                self._films.keep(place, player)
            kept = sorted(self._folder.glob("version-*.replay"), key=lambda p: p.stat().st_mtime)
            for path in kept[:-self._keep]:
                if path.stem.removeprefix("version-").isdigit():  # matches on request have longer names, and stay
                    path.unlink(missing_ok=True)
                    if self._films is not None:
                        self._films.remove(path.stem)
            self._tidy()
        except OSError as error:
            log.warning("a game of %s is not kept: %s", player, error)

    def drop(self) -> None:
        """The games under way are lost."""
        self._running.clear()

    def _path(self, player: str) -> Path:
        return self._folder / f"{player}.replay"
