"""Blobs: large immutable files in a folder or an object store, addressed by their contents.

Contents are at ``objects/<first two hex digits>/<sha256>``. Names are small files below ``refs/`` that hold a digest.
``uses/<sha256>/`` lists the names of one blob. A name may move to other contents; contents never change.
``owners/<run>`` says which run writes below that name (`rapid.store.blob_owner`).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from rapid.blob_files import BLOCK_BYTES, BlobFiles, Buffer, LocalFiles
from rapid.object_store import SCHEMES, BucketFiles
from rapid.redaction import redact
from rapid.store.errors import Corrupt

_DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_BYTES = 1 << 40  # of one blob; a checkpoint of the paper's model has 2.5 GB
PARTIAL_SECONDS = 86_400.0  # without a change, after which no writer can be alive
MAX_NAME_BYTES = 1 << 10  # of a name's file, which holds a reference


class BlobMissing(LookupError):
    """No blob has that digest, or no such name exists."""


class Ref(NamedTuple):
    """Target of a name: the SHA-256 of the contents in hex, and their size in bytes."""

    digest: str
    size: int

    @classmethod
    def parse(cls, digest: Any, size: Any) -> "Ref":
        """Return the reference in stored text, such as a row of Redis. Raise Corrupt for an invalid one."""
        try:
            if isinstance(size, bool) or int(size) != size:  # Redis' JSON may write an integer as 5e9
                raise ValueError(f"blob size {size!r}: must be an integer")
            found = cls(digest, int(size))
            _check_ref(found)
        except (TypeError, ValueError, OverflowError) as error:
            raise Corrupt(f"a stored reference to a blob is damaged: {error}") from None
        return found


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or any(part in ("..", ".") for part in path.parts) or str(path) != name:
        raise ValueError(f"blob name {name!r}: must be a relative path without '.' and '..'")


def _check_ref(ref: Ref) -> None:
    """Raise ValueError for an invalid reference. Its digest becomes a part of a path."""
    if not isinstance(ref.digest, str) or not _DIGEST.fullmatch(ref.digest):
        raise ValueError(f"blob digest {str(ref.digest)[:200]!r}: must be 64 hex digits in lower case")
    if not 0 <= ref.size <= MAX_BYTES:
        raise ValueError(f"blob size {ref.size}: must not be negative, or above {MAX_BYTES}")


def _read_pieces(data: "Buffer | Sequence[Buffer] | Path") -> Iterable[Buffer]:
    if isinstance(data, Path):
        with data.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    elif isinstance(data, (bytes, bytearray, memoryview)):
        yield data
    else:
        yield from data


def _open(url: str) -> BlobFiles:
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme in SCHEMES:
        return BucketFiles(url)
    if scheme == "file":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise ValueError("file:// is followed by an absolute path: file:///FOLDER")
        return LocalFiles(Path(unquote(parts.path)))
    if scheme:
        raise ValueError(f"{scheme}:// is not supported; allowed are a folder, "
                         f"{', '.join(f'{name}://BUCKET/PREFIX' for name in SCHEMES)}")
    return LocalFiles(Path(url).expanduser().absolute())


class BlobStore:
    """Blobs below ``url``: a folder, or a prefix in a bucket (s3://, gs://, az://)."""

    def __init__(self, url: str) -> None:
        if not url:
            raise ValueError("the blob store's URL is empty (blobs.url)")
        self.url = redact(url)
        try:
            self._files = _open(url)
        except ValueError as error:
            raise ValueError(f"blobs.url {self.url}: {error}") from None

    @staticmethod
    def _object(digest: str) -> str:
        return f"objects/{digest[:2]}/{digest}"

    @staticmethod
    def _ref(name: str) -> str:
        _check_name(name)
        return f"refs/{name}"

    def put(self, data: "Buffer | Sequence[Buffer] | Path", name: str | None = None) -> Ref:
        """Store bytes, pieces of bytes one after another, or a file. Equal contents are stored once.

        ``name`` points to them once they are complete.
        """
        sha, size = hashlib.sha256(), 0
        for piece in _read_pieces(data):
            sha.update(piece)
            size += len(piece)
        ref = Ref(sha.hexdigest(), size)
        key = self._object(ref.digest)
        if self._files.size(key) != size:
            self._files.write(key, _read_pieces(data))
        if name is not None:
            self.set_ref(name, ref)
        return ref

    @staticmethod
    def _use_key(digest: str, name: str = "") -> str:
        return f"uses/{digest}/{quote(name, safe='')}".rstrip("/")

    def set_ref(self, name: str, ref: Ref) -> None:
        """Point ``name`` to ``ref`` atomically. Contents that only this name pointed to are removed."""
        _check_ref(ref)
        try:
            before: Ref | None = self.ref(name)
        except BlobMissing:
            before = None
        # The use first: after a crash in between, contents stay too long and are never lost.
        self._files.write(self._use_key(ref.digest, name), [b""])
        self._files.write(self._ref(name), [json.dumps(ref._asdict()).encode()])
        if before is not None and before.digest != ref.digest:
            self._remove_use(before.digest, name)

    def _remove_use(self, digest: str, name: str) -> None:
        self._files.remove(self._use_key(digest, name))
        if not self._files.names(self._use_key(digest)):
            self._files.remove(self._object(digest))
            self._files.remove_folder(self._use_key(digest))

    def ref(self, name: str) -> Ref:
        """Return the target of ``name``. Raise BlobMissing, or Corrupt for a damaged name."""
        key = self._ref(name)
        try:
            row = json.loads(self._files.read(key, MAX_NAME_BYTES))
            return Ref.parse(row["digest"], row["size"])
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no {name!r}") from None
        except (KeyError, TypeError, ValueError, RecursionError, Corrupt) as error:
            raise Corrupt(f"{self.url}: name {name!r} is damaged: {error}") from None

    def refs(self, prefix: str = "") -> list[str]:
        """Return the names below a folder-like prefix, sorted."""
        if prefix:
            _check_name(prefix.removesuffix("/"))
        return sorted(key.removeprefix("refs/") for key in self._files.names(f"refs/{prefix}".rstrip("/")))

    def remove_ref(self, name: str) -> None:
        """Remove a name, and its contents when no other name points to them. A missing name is ignored."""
        try:
            ref = self.ref(name)
        except BlobMissing:
            return
        self._files.remove(self._ref(name))
        self._remove_use(ref.digest, name)

    def _resolve(self, what: "str | Ref") -> Ref:
        ref = what if isinstance(what, Ref) else self.ref(what)
        _check_ref(ref)
        return ref

    def get_array(self, what: "str | Ref") -> npt.NDArray[np.uint8]:
        """Return the contents of a name or ref as uint8 [size], writable and aligned.

        Raises BlobMissing, and Corrupt for damaged contents.
        """
        ref = self._resolve(what)
        key = self._object(ref.digest)
        stored = self._files.size(key)
        if stored is None:
            raise BlobMissing(f"{self.url} has no contents {ref.digest}")
        sha = hashlib.sha256()
        result = np.empty(ref.size if stored == ref.size else 0, np.uint8)
        try:
            for part in self._files.read_into(key, result.data):
                sha.update(part)
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no contents {ref.digest}") from None
        if stored != ref.size or sha.hexdigest() != ref.digest:
            raise Corrupt(f"{self.url}: contents {ref.digest} are damaged; restore them from a copy, or delete "
                          f"{key} there")
        return result

    def get_prefix(self, what: "str | Ref", size: int) -> bytes:
        """Return the first ``size`` bytes of the contents, or all when there are fewer.

        They are not verified, because the digest covers the whole. Raises BlobMissing.
        """
        ref = self._resolve(what)
        try:
            return self._files.read(self._object(ref.digest), min(size, ref.size))
        except FileNotFoundError:
            raise BlobMissing(f"{self.url} has no contents {ref.digest}") from None

    def get(self, what: "str | Ref") -> bytes:
        """Return the contents of a name or ref. Raise BlobMissing or Corrupt."""
        return self.get_array(what).tobytes()

    def remove_partial(self) -> int:
        """Remove the unfinished contents of writers that died over a day ago. Return their number. Raise OSError."""
        return self._files.remove_partial("objects", PARTIAL_SECONDS)

    # Owners: which run writes below a name.

    def create_owner(self, run: str, data: bytes) -> bool:
        """Write the owner record of a run unless there is one. Return False for an existing record."""
        return self._files.create(self._owner(run), data)

    def owner(self, run: str) -> bytes | None:
        """Return the owner record of a run; None without one."""
        try:
            return self._files.read(self._owner(run))
        except FileNotFoundError:
            return None

    def replace_owner(self, run: str, data: bytes) -> None:
        """Replace the owner record of a run."""
        self._files.write(self._owner(run), [data])

    @staticmethod
    def _owner(run: str) -> str:
        _check_name(run)
        return f"owners/{run}"
