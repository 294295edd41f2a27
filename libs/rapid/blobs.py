"""Blobs: large immutable files in a folder or an object store (fsspec), addressed by their contents.

Contents are at ``objects/<first two hex digits>/<sha256>``. Names are small files below ``refs/`` that hold a digest.
``uses/<sha256>/`` lists the names of one blob. A name may move to other contents; contents never change.
"""

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import fsspec
import numpy as np
import numpy.typing as npt

from rapid.store.errors import Corrupt

Buffer = bytes | bytearray | memoryview
_READ_BYTES = 8 << 20


class BlobMissing(LookupError):
    """No blob has that digest, or no such name exists."""


class Ref(NamedTuple):
    """Target of a name: the SHA-256 of the contents in hex, and their size in bytes."""

    digest: str
    size: int


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or any(part in ("..", ".") for part in path.parts) or str(path) != name:
        raise ValueError(f"blob name {name!r}: must be a relative path without '.' and '..'")


def _pieces(data: "Buffer | Sequence[Buffer] | Path") -> Iterable[Buffer]:
    if isinstance(data, Path):
        with data.open("rb") as file:
            while block := file.read(_READ_BYTES):
                yield block
    elif isinstance(data, (bytes, bytearray, memoryview)):
        yield data
    else:
        yield from data


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


class BlobStore:
    """Blobs below ``url``: a folder, or any fsspec URL (s3://bucket/prefix needs its extra installed)."""

    def __init__(self, url: str) -> None:
        if not url:
            raise ValueError("the blob store's URL is empty (blobs.url)")
        try:
            fs, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ValueError(f"blobs.url {url}: {error}") from None
        self._fs: Any = fs
        self._root = root.rstrip("/")
        self._local = "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,))
        self.url = url

    def _object(self, digest: str) -> str:
        return f"{self._root}/objects/{digest[:2]}/{digest}"

    def _ref(self, name: str) -> str:
        _check_name(name)
        return f"{self._root}/refs/{name}"

    def _write(self, path: str, pieces: Iterable[Buffer]) -> None:
        """Write a file atomically.

        In a folder the file is written beside its target, synced and renamed, because a reported checkpoint must
        survive a power failure. An object store shows only complete objects.
        """
        if not self._local:
            with self._fs.open(path, "wb") as file:
                for piece in pieces:
                    file.write(piece)
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with beside.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
            _sync_folder(target.parent)
        finally:
            beside.unlink(missing_ok=True)

    def put(self, data: "Buffer | Sequence[Buffer] | Path", name: str | None = None) -> Ref:
        """Store bytes, pieces of bytes one after another, or a file. Equal contents are stored once.

        ``name`` points to them once they are complete.
        """
        sha, size = hashlib.sha256(), 0
        for piece in _pieces(data):
            sha.update(piece)
            size += len(piece)
        ref = Ref(sha.hexdigest(), size)
        path = self._object(ref.digest)
        if not self._fs.exists(path) or self._fs.size(path) != size:
            self._write(path, _pieces(data))
        if name is not None:
            self.set_ref(name, ref)
        return ref

    def _use(self, digest: str, name: str = "") -> str:
        return f"{self._root}/uses/{digest}/{quote(name, safe='')}".rstrip("/")

    def set_ref(self, name: str, ref: Ref) -> None:
        """Point ``name`` to ``ref`` atomically. Contents that only this name pointed to are removed."""
        try:
            before: Ref | None = self.ref(name)
        except BlobMissing:
            before = None
        # The use first: after a crash in between, contents stay too long and are never lost.
        self._write(self._use(ref.digest, name), [b""])
        self._write(self._ref(name), [json.dumps(ref._asdict()).encode()])
        if before is not None and before.digest != ref.digest:
            self._unuse(before.digest, name)

    def _unuse(self, digest: str, name: str) -> None:
        path = self._use(digest, name)
        if self._fs.exists(path):
            self._fs.rm_file(path)
        folder = self._use(digest)
        self._fs.invalidate_cache()
        if not (self._fs.exists(folder) and self._fs.find(folder)):
            if self._fs.exists(self._object(digest)):
                self._fs.rm_file(self._object(digest))
            if self._fs.exists(folder):
                self._fs.rmdir(folder)

    def ref(self, name: str) -> Ref:
        """Return the target of ``name``. Raise BlobMissing."""
        try:
            row = json.loads(self._fs.cat_file(self._ref(name)))
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no {name!r}") from None
        return Ref(str(row["digest"]), int(row["size"]))

    def refs(self, prefix: str = "") -> list[str]:
        """Return the names below a folder-like prefix, sorted."""
        base = f"{self._root}/refs/"
        found = self._fs.find(base + prefix) if self._fs.exists(base + prefix) else []
        root = self._root.lstrip("/")
        names = [path.lstrip("/").removeprefix(f"{root}/refs/") for path in found]
        return sorted(n for n in names if not PurePosixPath(n).name.startswith("."))

    def remove_ref(self, name: str) -> None:
        """Remove a name, and its contents when no other name points to them. A missing name is ignored."""
        try:
            ref = self.ref(name)
        except BlobMissing:
            return
        self._fs.rm_file(self._ref(name))
        self._unuse(ref.digest, name)

    def _resolve(self, what: "str | Ref") -> Ref:
        return what if isinstance(what, Ref) else self.ref(what)

    def get_array(self, what: "str | Ref") -> npt.NDArray[np.uint8]:
        """Return the contents of a name or ref as uint8 [size], writable and aligned.

        Raises BlobMissing, and Corrupt for damaged contents.
        """
        ref = self._resolve(what)
        result = np.empty(ref.size, np.uint8)
        view, done, sha = result.data, 0, hashlib.sha256()
        try:
            with self._fs.open(self._object(ref.digest), "rb") as file:
                while done < ref.size:
                    count = file.readinto(view[done:done + _READ_BYTES])
                    if not count:
                        break
                    sha.update(view[done:done + count])
                    done += count
                longer = bool(file.read(1))
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no contents {ref.digest}") from None
        if done != ref.size or longer or sha.hexdigest() != ref.digest:
            raise Corrupt(f"{self.url}: contents {ref.digest} are damaged; restore them from a copy or delete "
                          f"{self._object(ref.digest)}")
        return result

    def get_prefix(self, what: "str | Ref", size: int) -> bytes:
        """Return the first ``size`` bytes of the contents, or all when there are fewer.

        They are not verified, because the digest covers the whole. Raises BlobMissing.
        """
        ref = self._resolve(what)
        try:
            return bytes(self._fs.cat_file(self._object(ref.digest), start=0, end=min(size, ref.size)))
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no contents {ref.digest}") from None

    def get(self, what: "str | Ref") -> bytes:
        """Return the contents of a name or ref. Raise BlobMissing or Corrupt."""
        return self.get_array(what).tobytes()
