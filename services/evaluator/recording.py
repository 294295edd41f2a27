"""Recording of one game of each rated version: its commands, and the spectator's view (dota.spectator)."""

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


class SpectatorRecordings:
    """Spectator recordings on their way to the blob store, where the controller finds them. ``folder`` holds them
    during the game."""

    def __init__(self, cameras: Cameras, blobs: BlobStore, folder: Path) -> None:
        self._cameras = cameras
        self._blobs = blobs
        self._folder = folder

    def begin(self, place: int) -> None:
        """Record the game that has just begun in a slot."""
        self._cameras.film(place, self._at(place))

    def keep(self, place: int, name: str) -> None:
        """Store the recording of a slot's ended game under a name."""
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
        """Remove a recording."""
        for suffix in (SUFFIX, ".json"):
            self._blobs.remove_ref(f"{REPLAYS}{name}{suffix}")

    def _at(self, place: int) -> Path:
        return self._folder / f".game-{os.getpid()}-{id(self._cameras):x}-{place}{SUFFIX}"


def tidy(folder: Path, days: float, most_bytes: float, films: "SpectatorRecordings | None" = None) -> list[str]:
    """Remove recordings of requested matches older than ``days``, and the oldest of all above ``most_bytes``. Return
    the removed names."""
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
    """Recorder of each version's first rated game into ``folder``, as PLAYER.replay, which keeps the newest ``keep``.

    ``record`` starts the recording of a slot's game, ``final_hash`` returns its final state. With ``films`` the
    spectator's view is stored as well. ``tidy`` runs after each.
    """

    def __init__(self, record: Callable[[int], Replay], final_hash: Callable[[int], int], folder: Path, keep: int,
                 films: "SpectatorRecordings | None" = None, tidy: Callable[[], object] = lambda: None) -> None:
        self._films = films
        self._tidy = tidy
        self._record = record
        self._hash = final_hash
        self._folder = folder
        self._keep = keep
        self._running: dict[int, tuple[str, Replay]] = {}  # by place

    def began(self, place: int, player: str) -> None:
        """Handle the start or restart of a player's rated game in a slot."""
        again = self._running.get(place, ("", None))[0] == player
        others = any(name == player for name, _ in self._running.values())
        if again or not (others or self._path(player).exists()):
            self._running[place] = (player, self._record(place))
            if self._films is not None:
                self._films.begin(place)

    def ended(self, place: int) -> None:
        """Handle the end of a slot's game. A folder that is not writable costs the recording, not the rating."""
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
        """Discard the recordings of lost games."""
        self._running.clear()

    def _path(self, player: str) -> Path:
        return self._folder / f"{player}.replay"
