"""Cache of versions in a folder that the processes of one node share: one reads from Redis, the others read its file.

At the size of the paper's cluster the readers of a version saturate Redis (docs/scale.md); with eight readers per node
an eighth of them remain. Nothing depends on the folder: its contents are verified as those from Redis are, and after
any error a process reads for itself.
"""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rapid.atomic_file import PARTIAL, replacing

log = logging.getLogger(__name__)

KEEP = 2  # files per run: the newest version's, and the previous one's for its last readers
WAIT_SECONDS = 120.0  # wait for the process that reads the version


class NodeCache:
    """Version files of one run in ``folder``. Safe for several threads and processes.

    A file is written beside its target and renamed, so it is always complete. The process that reads from Redis holds a
    file lock, which ends with the process.
    """

    def __init__(self, folder: Path, run: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._folder = folder
        self._prefix = f"{run}."
        self._wait = wait_seconds
        with suppress(OSError):  # reported by the first write
            folder.mkdir(parents=True, exist_ok=True)

    def fill(self, name: str, data: memoryview, read: Callable[[], bool], whole: Callable[[], bool]) -> bool:
        """Fill ``data`` with the contents called ``name`` (letters, digits, - and _).

        The contents come from the file if ``whole`` then accepts them. Otherwise ``read`` fills ``data`` and returns
        whether it could; its exceptions reach the caller. The reading process writes the file for the others.
        """
        path = self._folder / (self._prefix + name)
        if self._from_file(path, data, whole):
            return True
        with self._lock(path):
            if self._from_file(path, data, whole):
                return True
            if not read():
                return False
            self._write(path, data)
            return True

    def _from_file(self, path: Path, data: memoryview, whole: Callable[[], bool]) -> bool:
        try:
            with path.open("rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size != data.nbytes:
                    return False
                done = 0
                while done < data.nbytes and (got := file.readinto(data[done:])):
                    done += got
        except FileNotFoundError:
            return False
        except OSError as error:
            log.warning("%s cannot be read (%s): the version is read from Redis", path, error)
            return False
        if done == data.nbytes and whole():
            return True
        log.warning("%s is damaged: the version is read from Redis", path)
        return False

    @contextmanager
    def _lock(self, path: Path) -> Iterator[None]:
        """Hold the file's lock; continue without it after ``wait_seconds``, or where none is available."""
        try:
            lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            log.warning("%s cannot be locked (%s): the version is read from Redis", path, error)
            yield
            return
        try:
            end = time.monotonic() + self._wait
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() >= end:
                        log.warning("%s is still being written after %g s: the version is read from Redis", path,
                                    self._wait)
                        break
                time.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def _write(self, path: Path, data: memoryview) -> None:
        try:
            with replacing(path, 0o644) as file:
                file.write(data)
            self._forget()
        except OSError as error:
            log.warning("%s cannot be written (%s): every process of this node reads from Redis", path, error)

    def _forget(self) -> None:
        """Remove files of older versions, and partial files of killed processes."""
        found: list[tuple[float, Path]] = []
        for path in (*self._folder.glob(f"{self._prefix}*"), *self._folder.glob(f".{self._prefix}*")):
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime, path))
        files = sorted(((t, p) for t, p in found if p.suffix not in (".lock", PARTIAL)), reverse=True)
        kept = {p.name for _, p in files[:KEEP]}
        now = time.time()
        for at, path in found:
            if path.suffix in (".lock", PARTIAL):
                stale = now - at > 10 * self._wait
            else:
                stale = path.name not in kept
            if stale:
                with suppress(OSError):
                    path.unlink()
