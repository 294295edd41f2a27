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
    """Recorder of the spectator's view of games, which uploads each to the blob store for the controller. ``folder``
    holds a recording during its game."""

    def __init__(self, cameras: Cameras, blobs: BlobStore, folder: Path) -> None:
        self._cameras = cameras
        self._blobs = blobs
        self._folder = folder

    def begin(self, slot: int) -> None:
        """Record the game that has just begun in a slot."""
        self._cameras.record_to(slot, self._temporary_path(slot))

    def keep(self, slot: int, name: str) -> None:
        """Store the recording of a slot's ended game under a name."""
        facts = self._cameras.facts(slot)
        if not self._cameras.ended(slot):
            return
        path = self._temporary_path(slot)
        try:
            self._blobs.put(path, f"{REPLAYS}{name}{SUFFIX}")
            self._blobs.put(json.dumps(facts).encode(), f"{REPLAYS}{name}.json")
        finally:
            path.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a recording."""
        for suffix in (SUFFIX, ".json"):
            self._blobs.remove_ref(f"{REPLAYS}{name}{suffix}")

    def _temporary_path(self, slot: int) -> Path:
        return self._folder / f".game-{os.getpid()}-{id(self._cameras):x}-{slot}{SUFFIX}"


def tidy(folder: Path, days: float, most_bytes: float, recordings: "SpectatorRecordings | None" = None) -> list[str]:
    """Remove recordings of requested matches older than ``days``, and the oldest of all above ``most_bytes``. Return
    the removed names."""
    found = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.replay"))
    total = sum(size for _, size, _ in found)
    gone = []
    for at, size, path in found[:-1]:  # the newest one has just been requested
        rated = path.stem.removeprefix("version-").isdigit()
        if total <= most_bytes and (rated or time.time() - at <= days * 86400):
            continue
        path.unlink(missing_ok=True)
        if recordings is not None:
            recordings.remove(path.stem)
        total -= size
        gone.append(path.stem)
    return gone


class ReplayRecorder:
    """Recorder of each version's first rated game into ``folder``, as PLAYER.replay, which keeps the newest ``keep``.

    ``record`` starts the recording of a slot's game, ``final_hash`` returns the hash of its final state. With
    ``recordings`` the spectator's view is stored as well. ``tidy`` is called after each recording.
    """

    def __init__(self, record: Callable[[int], Replay], final_hash: Callable[[int], int], folder: Path, keep: int,
                 recordings: "SpectatorRecordings | None" = None, tidy: Callable[[], object] = lambda: None) -> None:
        self._recordings = recordings
        self._tidy = tidy
        self._record = record
        self._final_hash = final_hash
        self._folder = folder
        self._keep = keep
        self._running: dict[int, tuple[str, Replay]] = {}  # by slot

    def began(self, slot: int, player: str) -> None:
        """Handle the start or restart of a player's rated game in a slot."""
        again = self._running.get(slot, ("", None))[0] == player
        others = any(name == player for name, _ in self._running.values())
        if again or not (others or self._path(player).exists()):
            self._running[slot] = (player, self._record(slot))
            if self._recordings is not None:
                self._recordings.begin(slot)

    def ended(self, slot: int) -> None:
        """Handle the end of a slot's game. If the folder is not writable, the recording is lost, not the rating."""
        if slot not in self._running:
            return
        player, replay = self._running.pop(slot)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replay.save(self._path(player), self._final_hash(slot))
            if self._recordings is not None:
                self._recordings.keep(slot, player)
            kept = sorted(self._folder.glob("version-*.replay"), key=lambda p: p.stat().st_mtime)
            for path in kept[:-self._keep]:
                if path.stem.removeprefix("version-").isdigit():  # requested matches have longer names and stay
                    path.unlink(missing_ok=True)
                    if self._recordings is not None:
                        self._recordings.remove(path.stem)
            self._tidy()
        except OSError as error:
            log.warning("the recording of a game of %s is not stored: %s", player, error)

    def drop(self) -> None:
        """Discard the recordings of lost games."""
        self._running.clear()

    def _path(self, player: str) -> Path:
        return self._folder / f"{player}.replay"
