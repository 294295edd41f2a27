"""Files of a blob store by key: the operations that a folder and an object store have in common.

A key is a relative path with '/' between its parts. Every write is atomic: readers see the whole file or none.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Protocol

from rapid.atomic_file import PARTIAL, replacing
from rapid.store.errors import Corrupt

Buffer = bytes | bytearray | memoryview
BLOCK_BYTES = 8 << 20


class BlobFiles(Protocol):
    """Files below one folder or prefix. A missing file raises FileNotFoundError when read."""

    def write(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Write or replace a file."""

    def create(self, key: str, data: bytes) -> bool:
        """Write a file unless it exists. Return False for an existing file, which stays unchanged."""

    def size(self, key: str) -> int | None:
        """Return the file's size in bytes; None for a missing file."""

    def read(self, key: str, most: int | None = None) -> bytes:
        """Return the file's contents, or its first ``most`` bytes."""

    def read_into(self, key: str, target: memoryview) -> Iterator[memoryview]:
        """Fill ``target`` from the file's beginning. Yield the filled parts in order; fewer when the file is
        shorter."""

    def names(self, prefix: str) -> list[str]:
        """Return the keys below a folder-like prefix."""

    def remove(self, key: str) -> None:
        """Remove a file. A missing file is ignored."""

    def remove_folder(self, prefix: str) -> None:
        """Remove an empty folder, where folders exist."""

    def remove_partial(self, prefix: str, seconds: float) -> int:
        """Remove files below a folder-like prefix whose writers died, unchanged for that time. Return their number."""


def _sync_folder(folder: Path) -> None:
    """Sync the folder's entries to disk where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _raise_unless_missing(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed, which is not an empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _link(path: Path) -> Corrupt:
    return Corrupt(f"{path} is a symbolic link, or below one or below a file: remove it")


class LocalFiles:
    """Files in a folder.

    Each file is written under a hidden name, synced and renamed, because a reported checkpoint must survive a power
    failure. Symbolic links below the folder are refused as Corrupt: other components write there too, and a link would
    show or change a file outside.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, key: str) -> Path:
        """Return the path of a file or folder, none of whose parents is a link."""
        path = self._root
        for part in PurePosixPath(key).parts:
            if path != self._root and path.is_symlink():
                raise _link(path)
            path /= part
        return path

    def _open(self, key: str) -> BufferedReader:
        """Open a regular file for reading without following links."""
        *folders, name = PurePosixPath(key).parts
        flags, at = os.O_RDONLY | os.O_CLOEXEC, os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                inner = os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _link(self._root / key) from None
            raise type(error)(error.errno, error.strerror, str(self._root / key)) from None
        finally:
            os.close(at)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a device or a pipe could block
            os.close(descriptor)
            raise Corrupt(f"{self._root / key} is not a regular file: remove it")
        return os.fdopen(descriptor, "rb")

    def write(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Implement BlobFiles."""
        self._write(self._path(key), pieces, exclusive=False)

    def create(self, key: str, data: bytes) -> bool:
        """Implement BlobFiles."""
        try:
            self._write(self._path(key), [data], exclusive=True)
        except FileExistsError:
            return False
        return True

    @staticmethod
    def _write(target: Path, pieces: Iterable[Buffer], exclusive: bool) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target, sync=True, exclusive=exclusive) as file:
            for piece in pieces:
                file.write(piece)
        _sync_folder(target.parent)

    def size(self, key: str) -> int | None:
        """Implement BlobFiles."""
        try:
            with self._open(key) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def read(self, key: str, most: int | None = None) -> bytes:
        """Implement BlobFiles."""
        with self._open(key) as file:
            return file.read() if most is None else file.read(most)

    def read_into(self, key: str, target: memoryview) -> Iterator[memoryview]:
        """Implement BlobFiles."""
        done = 0
        with self._open(key) as file:
            while done < len(target) and (count := file.readinto(target[done:done + BLOCK_BYTES])):
                yield target[done:done + count]
                done += count

    def names(self, prefix: str) -> list[str]:
        """Implement BlobFiles."""
        return [(Path(folder) / name).relative_to(self._root).as_posix()
                for folder, _, files in os.walk(self._path(f"{prefix}/file").parent, onerror=_raise_unless_missing)
                for name in files if not name.startswith(".")]

    def remove(self, key: str) -> None:
        """Implement BlobFiles."""
        self._path(key).unlink(missing_ok=True)

    def remove_folder(self, prefix: str) -> None:
        """Implement BlobFiles. A folder with an unfinished file stays."""
        try:
            self._path(prefix).rmdir()
        except OSError:
            pass

    def remove_partial(self, prefix: str, seconds: float) -> int:
        """Implement BlobFiles."""
        removed, oldest = 0, time.time() - seconds
        for folder, _, files in os.walk(self._path(f"{prefix}/file").parent, onerror=_raise_unless_missing):
            for name in files:
                path = Path(folder) / name
                try:
                    if name.startswith(".") and name.endswith(PARTIAL) and path.lstat().st_mtime < oldest:
                        path.unlink()
                        removed += 1
                except FileNotFoundError:  # its writer has just finished
                    pass
        return removed
