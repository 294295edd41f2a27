"""Recording of a game of each rated version and requested match: its commands, and the spectator's view
(dota.spectator)."""

import itertools
import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dota.replay import Replay
from dota.spectator.recording import SUFFIX
from dota.vec_game import VecGame
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.matches import Pairing
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)
FACTS = ".json"
MAX_FACTS = 16 << 10
UNNAMED_FOLDER = "replays/"  # where earlier releases stored the recordings of all runs
_TEMPORARY = ".game-"


class StoredRecordings:
    """The recordings of one run in the blob store, below ``<run>/replays/``. Blocking and thread-safe.

    The stored names are read once, because only the run's evaluator writes them.
    """

    def __init__(self, blobs: BlobStore, run: str) -> None:
        self._blobs = blobs
        self._run = run
        self._folder = f"{run}/replays/"
        self._rows: dict[str, tuple[float, int]] = {}
        self._is_read = False

    def all(self) -> dict[str, tuple[float, int]]:
        """Return when each recorded game ended (seconds since 1970; 0: unknown), and its recording's bytes, by name.
        Raise OSError."""
        if not self._is_read:
            self._rename_old()
            for path in self._blobs.refs(self._folder):
                name = path.removeprefix(self._folder).removesuffix(SUFFIX)
                if path.endswith(SUFFIX) and name not in self._rows:
                    self._read_row(name)
            self._is_read = True
        return dict(self._rows)

    def put(self, name: str, view: Path, facts: dict[str, Any]) -> None:
        """Store a recording and the facts of its game. Raise OSError."""
        ref = self._blobs.put(view, f"{self._folder}{name}{SUFFIX}")
        self._blobs.put(json.dumps(facts).encode(), f"{self._folder}{name}{FACTS}")
        self._rows[name] = (facts["at"], ref.size)

    def remove(self, name: str) -> None:
        """Remove a recording; a missing one is ignored. Raise OSError."""
        for suffix in (FACTS, SUFFIX):
            try:
                self._blobs.remove_ref(f"{self._folder}{name}{suffix}")
            except Corrupt as error:
                log.warning("the recording %s is not removed: %s", name, error)
        self._rows.pop(name, None)

    def _read_row(self, name: str) -> None:
        try:
            size = self._blobs.ref(f"{self._folder}{name}{SUFFIX}").size
        except (BlobMissing, Corrupt, ValueError) as error:
            log.warning("the recording %s is ignored: %s", name, error)
            return
        at = self._facts(f"{self._folder}{name}{FACTS}").get("at")
        self._rows[name] = (min(at, time.time()) if isinstance(at, int | float) and at >= 0 else 0.0, size)

    def _facts(self, path: str) -> dict[str, Any]:
        try:
            facts = json.loads(self._blobs.get_prefix(path, MAX_FACTS))
        except (BlobMissing, Corrupt, ValueError, RecursionError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def _rename_old(self) -> None:
        """Put the run's name before the recordings of an earlier release whose facts name this run."""
        found = set(self._blobs.refs(self._folder))
        for facts in self._blobs.refs(UNNAMED_FOLDER):
            if not facts.endswith(FACTS) or self._facts(facts).get("run") != self._run:
                continue
            for old in (facts.removesuffix(FACTS) + SUFFIX, facts):  # the facts last: they say whose recording it is
                new = self._folder + old.removeprefix(UNNAMED_FOLDER)
                try:
                    if new not in found:
                        self._blobs.set_ref(new, self._blobs.ref(old))
                    self._blobs.remove_ref(old)
                except (BlobMissing, Corrupt, ValueError) as error:
                    log.warning("%s keeps its name: %s", old, error)


@dataclass(frozen=True)
class RecordingUpload:
    """Upload of a finished recording ``path`` under a name, with the ``facts`` of its game."""

    name: str
    path: Path
    facts: dict[str, Any]
    stored: StoredRecordings

    def run(self) -> None:
        """Upload the recording. Block while the blob store is slow, and log a failure."""
        try:
            try:
                self.stored.put(self.name, self.path, self.facts)
            finally:
                self.path.unlink(missing_ok=True)
        except (OSError, Corrupt) as error:
            log.warning("the recording %s is not stored: %s", self.name, error)

    def discard(self) -> None:
        """Remove the recording without an upload. Log a failure."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the recording %s is not removed: %s", self.path, error)


class SpectatorRecordings:
    """Recorder of the spectator's view of games, which uploads each to the blob store for the controller. ``folder``
    holds a recording until it is uploaded."""

    def __init__(self, cameras: Cameras, stored: StoredRecordings, folder: Path) -> None:
        self._cameras = cameras
        self._stored = stored
        self._folder = folder
        self._uploads = itertools.count()

    def begin(self, slot: int) -> None:
        """Record the game that has just begun in a slot. Its file replaces that of a game which was lost there."""
        self._cameras.record_to(slot, self._temporary_path(str(slot)))

    def finish(self, slot: int, name: str) -> RecordingUpload | None:
        """End the recording of a slot's ended game. Return its upload under a name, or None if it is incomplete."""
        facts = self._cameras.facts(slot)
        if not self._cameras.ended(slot):
            return None
        # The slot's next recording must not overwrite one that is still being uploaded.
        path = self._temporary_path(f"upload-{next(self._uploads)}")
        try:
            self._temporary_path(str(slot)).replace(path)
        except OSError as error:
            log.warning("the recording %s is not stored: %s", name, error)
            return None
        return RecordingUpload(name, path, facts, self._stored)

    def _temporary_path(self, name: str) -> Path:
        return self._folder / f"{_TEMPORARY}{os.getpid()}-{id(self._cameras):x}-{name}{SUFFIX}"


def remove_unfinished(folder: Path) -> None:
    """Remove recordings that an evaluator left when it died during a game. A folder belongs to one evaluator."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("an unfinished recording is not removed: %s", error)


def tidy(folder: Path, stored: StoredRecordings, keep: int, days: float, most_bytes: float) -> list[str]:
    """Remove recordings of rated versions other than the newest ``keep`` versions, of requested matches older than
    ``days``, and the oldest of all above ``most_bytes``. Return the removed names. Raise OSError.

    A recording is a replay in ``folder``, the spectator's view in ``stored``, or both.
    """
    found = stored.all()
    for path in folder.glob("*.replay"):
        status = path.stat()
        at, size = found.get(path.stem, (0.0, 0))
        found[path.stem] = max(at, status.st_mtime), size + status.st_size
    versions = {name: version for name in found if (version := _version(name)) is not None}
    kept = set(sorted(versions, key=versions.__getitem__)[-keep:])
    total = sum(size for _, size in found.values())
    gone = []
    for name, (at, size) in sorted(found.items(), key=lambda entry: entry[1])[:-1]:  # the newest was just recorded
        outdated = name not in kept if name in versions else time.time() - at > days * 86400
        if total <= most_bytes and not outdated:
            continue
        (folder / f"{name}.replay").unlink(missing_ok=True)
        stored.remove(name)
        total -= size
        gone.append(name)
    return gone


def _version(name: str) -> int | None:
    """Return the version of a rated game's recording, ``version-N``; None for a requested match."""
    number = name.removeprefix("version-")
    return int(number) if number != name and number.isdecimal() and len(number) <= 15 else None


class ReplayRecorder:
    """Recorder of each version's first rated game into ``folder``, as PLAYER.replay.

    ``record`` starts the recording of a slot's game, ``final_hash`` returns the hash of its final state. With
    ``recordings`` the spectator's view is stored as well. ``tidy`` is called after each recording. ``submit`` calls its
    first argument, which uploads and tidies and blocks while the blob store is slow, by default at once; or its second,
    which discards the recording.
    """

    def __init__(self, record: Callable[[int], Replay], final_hash: Callable[[int], int], folder: Path,
                 recordings: SpectatorRecordings | None = None, tidy: Callable[[], object] = lambda: None,
                 submit: Callable[[Callable[[], None], Callable[[], None]], object] = lambda run, discard: run()
                 ) -> None:
        self._recordings = recordings
        self._tidy = tidy
        self._submit = submit
        self._record = record
        self._final_hash = final_hash
        self._folder = folder
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
        upload = None if self._recordings is None else self._recordings.finish(slot, player)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replay.save(self._path(player), self._final_hash(slot))
        except OSError as error:
            log.warning("the replay of a game of %s is not stored: %s", player, error)
            if upload is not None:
                upload.discard()
            return
        self._submit(partial(self._upload_and_tidy, upload), (lambda: None) if upload is None else upload.discard)

    def _upload_and_tidy(self, upload: RecordingUpload | None) -> None:
        try:
            if upload is not None:
                upload.run()
            self._tidy()
        except Exception as error:  # an error costs the recording, not the rating
            log.warning("old recordings are not removed: %s", error,
                        exc_info=not isinstance(error, (OSError, Corrupt)))

    def drop(self) -> None:
        """Discard the recordings of lost games."""
        self._running.clear()

    def _path(self, player: str) -> Path:
        return self._folder / f"{player}.replay"


class MatchRecorder:
    """Recorder of the first game of a requested match as ``target``, PLAYER-OPPONENT-SEED.replay.

    With ``recordings`` the spectator's view is stored as well. ``path`` is that of the stored replay; '' until then.
    """

    def __init__(self, games: VecGame, cameras: Cameras, target: Path, recordings: SpectatorRecordings | None,
                 path: str = "") -> None:
        self._games = games
        self._cameras = cameras
        self._target = target
        self._recordings = recordings
        self._running: dict[int, Replay] = {}  # by slot
        self.path = path

    def began(self, slot: int, pairing: Pairing) -> None:
        """Handle the start or restart of a game in a slot. A restarted game, whose sessions inference has lost, is
        recorded again."""
        if self.path or (self._running and slot not in self._running):
            return
        self._running[slot] = self._games.record(slot)
        if self._recordings is not None:
            self._cameras.began(slot, pairing, "")
            self._recordings.begin(slot)

    def ended(self, slot: int) -> RecordingUpload | None:
        """Store the replay of a slot's ended game, if it was recorded. Return the upload of the spectator's view, or
        None without one. A failure is logged, and costs the recording, not the match."""
        if self.path or slot not in self._running:
            return None
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._running[slot].save(self._target, self._games.hash(slot))
        except OSError as error:
            log.warning("the replay %s is not stored: %s", self._target.name, error)
            return None
        self.path = str(self._target)
        return None if self._recordings is None else self._recordings.finish(slot, self._target.stem)
