"""Format of a backup file: a zip archive of ``manifest.json`` and one entry per key, checked before anything is used.

A restore has an administrator's rights, so a file that is damaged or forged must neither write another run's keys nor
fill the memory.
"""

import json
import zipfile
import zlib
from typing import IO, Any, NamedTuple

from rapid.store.errors import Corrupt
from rapid.store.keys import Keys

FORMAT = 1
MAX_MANIFEST_BYTES = 1 << 28
MAX_KEY_BYTES = 1 << 29  # Redis' own limit of one value
MAX_BYTES = 1 << 36  # of all keys
CHUNK_BYTES = 1 << 20  # of an entry, read at once
MAX_TTL_MS = 10 * 365 * 24 * 3600 * 1000
# First parts of keys that no backup contains: heartbeats, parameters, and the key that signs checkpoints, which must
# not be in the blob store.
NEVER = frozenset({"lease", "leases", "ordinals", "quiet", "quiet-names", "params", "checkpoint-key"})
# Logins and stored responses: a restore would make them valid again. Backups of earlier releases contain them.
SECRET = frozenset({"session", "login", "idempotency", "idempotency-index"})


class Backup(NamedTuple):
    """Contents of a file: the run, its time (seconds since 1970), its newest version, and its size."""

    run: str
    at: float
    head: int | None
    keys: int
    bytes: int


class SavedKey(NamedTuple):
    """A key of a backup: its name, time to live in ms (0: none), and its entry in the archive with its size."""

    name: str
    ttl: int
    entry: str
    size: int


def kind_of(name: str, keys: Keys) -> str:
    """Return the first part of a key's name behind the run's prefix."""
    return name.removeprefix(keys.prefix).partition(":")[0]


def write(file: IO[bytes], run: str, at: float, head: int | None, entries: list[tuple[str, bytes, int]]) -> Backup:
    """Write keys (name, value as of DUMP, time to live in ms) to ``file``, which need not be seekable."""
    made = Backup(run, at, head, len(entries), sum(len(value) for _, value, _ in entries))
    names = [[name, max(ttl, 0)] for name, _, ttl in entries]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": FORMAT, **made._asdict(), "names": names}))
        for number, (_, value, _) in enumerate(entries):
            archive.writestr(_entry(number), value)
    return made


def read(file: IO[bytes]) -> tuple[Backup, list[SavedKey]]:
    """Return what a backup contains, without keys that are not restored. Raise Corrupt for a damaged file."""
    try:
        with zipfile.ZipFile(file) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            _check_sizes(sizes, len(archive.infolist()))
            if not {info.compress_type for info in archive.infolist()} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise Corrupt("not a backup of a run: its entries are compressed by another method than deflate")
            row = json.loads(archive.read("manifest.json"))
            damaged = _damaged_entry(archive)
        if damaged:
            raise Corrupt(f"the backup is damaged at {damaged}: use another backup")
        if row["format"] != FORMAT:
            raise Corrupt(f"the backup has format {row['format']}, this release reads {FORMAT}")
        return _parse(row, sizes)
    except (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, RecursionError, NotImplementedError,
            RuntimeError, EOFError, OverflowError) as error:
        if isinstance(error, Corrupt):
            raise
        raise Corrupt(f"not a backup of a run: {error}") from None


def _damaged_entry(archive: zipfile.ZipFile) -> str | None:
    """Return the first entry that cannot be read; `ZipFile.testzip` does not catch a stream that breaks off."""
    for name in archive.namelist():
        try:
            with archive.open(name) as entry:
                while entry.read(CHUNK_BYTES):
                    pass
        except (zipfile.BadZipFile, zlib.error, EOFError):
            return name
    return None


def _check_sizes(sizes: dict[str, int], entries: int) -> None:
    """Raise Corrupt for sizes that no backup has, before anything is decompressed."""
    if sizes.get("manifest.json", 0) > MAX_MANIFEST_BYTES:
        raise Corrupt(f"the backup's manifest has {sizes['manifest.json']} bytes: at most {MAX_MANIFEST_BYTES} are "
                      "allowed")
    if entries != len(sizes) or max(sizes.values(), default=0) > MAX_KEY_BYTES or sum(sizes.values()) > MAX_BYTES:
        raise Corrupt(f"the backup has entries twice, above {MAX_KEY_BYTES} bytes, or above {MAX_BYTES} together")


def _parse(row: dict[str, Any], sizes: dict[str, int]) -> tuple[Backup, list[SavedKey]]:
    keys = Keys(row["run"])
    head = None if row["head"] is None else int(row["head"])
    found = Backup(keys.run, float(row["at"]), head, int(row["keys"]), int(row["bytes"]))
    saved = [SavedKey(str(name), int(ttl), _entry(i), sizes[_entry(i)]) for i, (name, ttl) in enumerate(row["names"])]
    if len(saved) != found.keys or len(sizes) != 1 + found.keys or sum(key.size for key in saved) != found.bytes:
        raise Corrupt("the backup is damaged, its entries are not those of its manifest: use another backup")
    for key in saved:
        kind = kind_of(key.name, keys)
        if not key.name.startswith(keys.prefix) or not kind or kind in NEVER or not 0 <= key.ttl <= MAX_TTL_MS:
            raise Corrupt(f"the backup of run {keys.run!r} has a key that no backup contains: {key.name[:200]!r}, "
                          f"{key.ttl} ms")
    return found, [key for key in saved if kind_of(key.name, keys) not in SECRET]


def _entry(number: int) -> str:
    return f"keys/{number:08d}"
