"""Format of backup files: what is refused before anything of it is used, and the limits."""

import io
import json
import zipfile
from typing import Any

import pytest
import redis

from rapid.store import backup_file
from rapid.store.backup_file import Backup, SavedKey
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys

KEYS = Keys("r")
ENTRIES = [(KEYS.head, b"head", -1), (KEYS.status, b"the status", 0), (KEYS.pause, b"", 500)]


def written(entries: list[tuple[str, bytes, int]] = ENTRIES) -> dict[str, bytes]:
    """Return the parts of a backup."""
    file = io.BytesIO()
    backup_file.write(file, "r", 7.5, 3, entries)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, **changes: Any) -> io.BytesIO:
    """Return a backup of these parts with a changed manifest."""
    file = io.BytesIO()
    manifest = {**json.loads(parts["manifest.json"]), **changes}
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return file


def refused(file: io.BytesIO, match: str) -> None:
    with pytest.raises(Corrupt, match=match):
        backup_file.read(file)


def test_backup_is_read_as_it_was_written() -> None:
    file = io.BytesIO()
    made = backup_file.write(file, "r", 7.5, 3, ENTRIES)
    assert made == Backup("r", 7.5, 3, 3, 14)
    assert backup_file.read(file) == (made, [SavedKey(KEYS.head, 0, "keys/00000000", 4),
                                             SavedKey(KEYS.status, 0, "keys/00000001", 10),
                                             SavedKey(KEYS.pause, 500, "keys/00000002", 0)])
    with zipfile.ZipFile(file) as archive:
        assert [archive.read(f"keys/0000000{i}") for i in range(3)] == [value for _, value, _ in ENTRIES]


def test_run_without_version_or_keys() -> None:
    file = io.BytesIO()
    made = backup_file.write(file, "r", 7.5, None, [])
    assert backup_file.read(file) == (made, []) and made == Backup("r", 7.5, None, 0, 0)


@pytest.mark.parametrize("changes", [
    {"keys": 2}, {"keys": 4}, {"bytes": 13}, {"bytes": 15}, {"names": [[KEYS.head, 0]]},
    {"names": [[KEYS.head, 0], [KEYS.status, 0]]}, {"names": [[KEYS.head, 0], [KEYS.status, 0]], "keys": 2},
    {"names": [[f"{KEYS.prefix}{i}", 0] for i in range(4)]}])
def test_manifest_of_other_entries_is_refused(changes: dict[str, Any]) -> None:
    refused(packed(written(), **changes), "backup")


def test_entry_that_the_manifest_lacks_is_refused() -> None:
    refused(packed({**written(), "keys/00000003": b""}), "its entries are not those of its manifest")
    refused(packed({**written(), "other": b""}), "its entries are not those of its manifest")


def test_entry_that_is_there_twice_is_refused() -> None:
    """Readers of zip archives differ in which of the two they read."""
    file = packed(written())
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("keys/00000000", b"head")
    refused(file, "entries twice")


def test_every_damaged_byte_of_an_entry_is_found_in_it() -> None:
    """A changed byte breaks the compressed stream or only the checksum. The last two bytes only end the stream."""
    file = io.BytesIO()
    backup_file.write(file, "r", 7.5, 3, [(KEYS.head, b"".join(b"%d, " % (i * i) for i in range(99)), -1)])
    with zipfile.ZipFile(file) as archive:
        info = archive.getinfo("keys/00000000")
    start = info.header_offset + 30 + len(info.filename)
    content = file.getvalue()
    for place in range(start, start + info.compress_size - 2):
        broken = content[:place] + bytes([content[place] ^ 255]) + content[place + 1:]
        refused(io.BytesIO(broken), "damaged at keys/00000000")


def test_other_compression_is_refused() -> None:
    """It could fill the memory while it is decompressed."""
    refused(packed(written(), zipfile.ZIP_BZIP2), "compressed by another method than deflate")
    assert backup_file.read(packed(written(), zipfile.ZIP_STORED))[0].keys == 3


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_file_that_is_no_backup_is_refused(content: bytes) -> None:
    refused(io.BytesIO(content), "not a backup of a run")


@pytest.mark.parametrize(("changes", "match"), [
    ({"format": 0}, "has format 0, this release reads 1"), ({"format": 2}, "has format 2, this release reads 1"),
    ({"run": "a/b"}, "not a backup of a run"), ({"head": "x"}, "not a backup of a run"),
    ({"at": None}, "not a backup of a run"), ({"bytes": float("inf")}, "not a backup of a run")])
def test_invalid_manifest_is_refused(changes: dict[str, Any], match: str) -> None:
    refused(packed(written(), **changes), match)


@pytest.mark.parametrize(("ttl", "valid"), [(0, True), (1, True), (-1, False), (315_360_000_000, True),
                                            (315_360_000_001, False)])
def test_key_lives_for_at_most_ten_years(ttl: int, valid: bool) -> None:
    file = packed(written([(KEYS.head, b"head", 0)]), names=[[KEYS.head, ttl]])
    if valid:
        assert [key.ttl for key in backup_file.read(file)[1]] == [ttl]
    else:
        refused(file, f"has a key that no backup contains: '{KEYS.head}', {ttl} ms")


@pytest.mark.parametrize("name", ["", "head", "five:r", "five:r:", "five:r::x", "five:rr:head", "five:other:head",
                                  "x:five:r:head", *(f"five:r:{kind}:x" for kind in sorted(backup_file.NEVER))])
def test_key_that_no_backup_contains_is_refused(name: str) -> None:
    refused(packed(written([(name, b"x", 0)])), "has a key that no backup contains")


@pytest.mark.parametrize("kind", sorted(backup_file.SECRET))
def test_logins_are_not_restored(kind: str) -> None:
    names = [f"five:r:{kind}", KEYS.head, f"five:r:{kind}:x"]
    made, saved = backup_file.read(packed(written([(name, b"x", 0) for name in names])))
    assert made.keys == 3 and [(key.name, key.entry) for key in saved] == [(KEYS.head, "keys/00000001")]


@pytest.mark.parametrize(("limit", "size"), [("MAX_MANIFEST_BYTES", "manifest"), ("MAX_KEY_BYTES", "largest"),
                                             ("MAX_BYTES", "all")])
def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch, limit: str, size: str) -> None:
    """A backup of exactly the limit is read, one with a byte more is not."""
    parts = written([(KEYS.head, b"h" * 300, 0), (KEYS.status, b"s" * 1000, 0)])
    sizes = {"manifest": len(parts["manifest.json"]), "largest": 1000, "all": sum(map(len, parts.values()))}
    monkeypatch.setattr(backup_file, limit, sizes[size])
    assert backup_file.read(packed(parts))[0].keys == 2
    monkeypatch.setattr(backup_file, limit, sizes[size] - 1)
    refused(packed(parts), "bytes")


def test_value_may_be_as_large_as_redis_allows(database: redis.Redis) -> None:
    found: Any = database.config_get("proto-max-bulk-len")
    assert int(found["proto-max-bulk-len"]) == backup_file.MAX_KEY_BYTES
