"""Exclusive locks of a run's folder and of files in it.

A lock is an flock of a file. The kernel releases it when the last process that has the file open ends, however it ends.
The file ``lock`` is the folder's. The run's Redis servers inherit it, so that no second server opens their files while
one of them still writes.

On NFS, Linux turns an flock into a lock of the server, which excludes other machines. A mount with ``nolock`` or
``local_lock`` excludes processes of this machine only. On a filesystem without locks the text in the file decides: it
names the holder, and is empty after a normal end.
"""

import errno
import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

FILE = "lock"
LADDER_FILE = "ladder.lock"
RELEASE_SECONDS = 10.0  # time for the Redis servers of a holder that was killed to end
_UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class RunInUse(RuntimeError):
    """The run's folder or ladder is locked by another process. The message names the process and says what to do."""


@dataclass(frozen=True)
class Holder:
    """Process that holds a lock. ``started_at``: when it took the lock, seconds since 1970."""

    pid: int
    host: str
    started_at: float

    @classmethod
    def current(cls) -> "Holder":
        """Return this process."""
        return cls(os.getpid(), socket.gethostname(), time.time())

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to have ended; False for a process of another machine."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started_at))
        return f"process {self.pid} on {self.host} since {since}"


class FileLock:
    """Lock of a file, as a context that releases it. ``fd`` is the open file, for processes that share the lock.

    Errors say that ``subject`` is in use by the holder, and the ``advice``. Raises RunInUse if another process has the
    lock, and OSError if the file cannot be written.
    """

    def __init__(self, path: Path, subject: str, advice: str, wait_seconds: float = RELEASE_SECONDS) -> None:
        self._path, self._subject, self._advice = path, subject, advice
        path.parent.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire(wait_seconds)
            self._write(json.dumps(asdict(Holder.current())))
        except BaseException:
            os.close(self.fd)
            raise

    def _acquire(self, wait_seconds: float) -> None:
        end = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = self._holder()
                if holder is None or not holder.is_dead:
                    raise self._refusal(holder) from None
                if time.monotonic() >= end:
                    raise RunInUse(f"{self._subject} is in use: {holder} has died, and a process that it started, such "
                                   "as a Redis server, still runs; end that process") from None
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                holder = self._holder()
                if holder is None or holder.is_dead:
                    return
                raise self._refusal(holder, f". This filesystem has no locks: if that process has ended, remove "
                                            f"{self._path}") from None
            time.sleep(0.1)

    def _refusal(self, holder: Holder | None, more: str = "") -> RunInUse:
        return RunInUse(f"{self._subject} is in use by {holder or 'another process'}: {self._advice}{more}")

    def _holder(self) -> Holder | None:
        try:
            return Holder(**json.loads(os.pread(self.fd, 4096, 0)))
        except (OSError, ValueError, TypeError):
            return None  # it is being written

    def _write(self, text: str) -> None:
        try:
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, text.encode(), 0)
        except OSError:
            pass  # on a full disk only the name of the holder is missing

    def release(self) -> None:
        """Release the lock. It stays locked while a process that shares it runs."""
        if self.fd >= 0:
            self._write("")
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.release()


class RunLock(FileLock):
    """Lock of the folder of one run."""

    def __init__(self, folder: Path, wait_seconds: float = RELEASE_SECONDS) -> None:
        super().__init__(folder / FILE, str(folder), f"end that run first (`five stop --run {folder.name}`), or start "
                         "another one under a --name of its own", wait_seconds)


class LadderLock(FileLock):
    """Lock of the rating games that `five ladder --games` plays for the run in ``folder``, which may be running."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / LADDER_FILE, f"the ladder of {folder}", "wait until that `five ladder --games` has "
                         "ended, or end it; its games are kept")
