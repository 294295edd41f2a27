"""Backup and restore of a run's state: every key of the run in Redis' own serialisation (DUMP, RESTORE).

The file is a zip archive: ``manifest.json``, and one entry per key. It works with any Redis that clients can reach:
embedded, in a pod, or managed. It has no parameters, which are in the blob store.
"""

import json
import time
import zipfile
import zlib
from typing import IO, Any, NamedTuple

import redis

from rapid.store.errors import Corrupt
from rapid.store.events import event_fields
from rapid.store.head_version import HeadVersion
from rapid.store.keys import Keys
from rapid.store.leases import Leases
from rapid.store.state import IDENTITY, RunStatus, Status, new_identity

FORMAT = 1
_SCAN = 1000
_BATCH = 500  # keys per round trip of a restore


class Backup(NamedTuple):
    """Contents of a file: the run, its time (seconds since 1970), its newest version, and its size."""

    run: str
    at: float
    head: int | None
    keys: int
    bytes: int


class ServicesRunning(RuntimeError):
    """Services of the run are running and would write during the restore."""


def save(state: redis.Redis, run: str, file: IO[bytes]) -> Backup:
    """Write the run's state to ``file``, which need not be seekable. The run may continue meanwhile.

    One transaction reads everything except streams (events, series), which only grow and are read after it. Heartbeats
    are left out. Raises LookupError when there is no such run, redis.RedisError.
    """
    keys = Keys(run)
    if not state.exists(keys.status):
        raise LookupError(f"run {run!r} does not exist in this Redis")
    names = sorted(set(_names(state, keys)))
    streams = [n for n in names if state.type(n) == b"stream"]
    static = [n for n in names if n not in set(streams)]
    pipeline: Any = state.pipeline(transaction=True)
    pipeline.get(keys.head)
    for name in static:
        pipeline.dump(name)
        pipeline.pttl(name)
    head, *answers = pipeline.execute()
    entries = list(zip(static, answers[0::2], answers[1::2], strict=True))
    entries += [(name, state.dump(name), -1) for name in streams]
    entries = [entry for entry in entries if entry[1] is not None]  # it expired since the listing
    newest = None if head is None else HeadVersion.parse(head).version
    found = Backup(run, time.time(), newest, len(entries), sum(len(e[1]) for e in entries))
    listed = [[name.decode(), max(ttl, 0)] for name, _, ttl in entries]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": FORMAT, **found._asdict(), "names": listed}))
        for i, (_, payload, _) in enumerate(entries):
            archive.writestr(f"keys/{i:08d}", payload)
    return found


def _names(state: redis.Redis, keys: Keys) -> list[bytes]:
    """Return the run's keys without heartbeats and parameters (which one server may store beside the state)."""
    left_out = tuple(f"{keys.prefix}{part}:".encode()
                     for part in ("lease", "leases", "ordinals", "quiet", "quiet-names", "params"))
    found: Any = state.scan_iter(match=f"{keys.prefix}*", count=_SCAN)
    return [name for name in found if not name.startswith(left_out)]


def describe(file: IO[bytes]) -> Backup:
    """Return the contents of a file. Raise Corrupt for an incomplete backup."""
    return _manifest(file)[0]


def _manifest(file: IO[bytes]) -> tuple[Backup, list[tuple[str, int]]]:
    try:
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()
            row = json.loads(archive.read("manifest.json"))
            whole = len(archive.namelist()) == 1 + len(row["names"])
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError) as error:
        raise Corrupt(f"not a backup of a run: {error}") from None
    if damaged or not whole:
        raise Corrupt(f"the backup is damaged{f' at {damaged}' if damaged else ''}: use another backup")
    if row["format"] != FORMAT:
        raise Corrupt(f"the backup has format {row['format']}, this release reads {FORMAT}")
    return Backup(row["run"], row["at"], row["head"], row["keys"], row["bytes"]), [(n, t) for n, t in row["names"]]


def load(state: redis.Redis, file: IO[bytes], who: str, replace: bool = False) -> Backup:
    """Restore the run of ``file`` (seekable) as stopped: services wait until it is resumed.

    ``replace`` removes an existing run first. The restored run keeps its id, so it still owns its blobs; one from a
    backup without an id, of an earlier release, gets the replaced run's. Raises ValueError for an existing run without
    ``replace``, ServicesRunning while services other than controllers are alive, Corrupt for a damaged file,
    redis.RedisError.
    """
    found, names = _manifest(file)
    keys = Keys(found.run)
    alive = sorted({i.kind for i in Leases(state, found.run).live()} - {"controller"})
    if alive:
        raise ServicesRunning(f"services of run {found.run!r} are running ({', '.join(alive)}): stop them first, or "
                              "they write during the restore")
    replaced: Any = None
    if state.exists(keys.status):
        if not replace:
            raise ValueError(f"run {found.run!r} exists already; --replace restores the backup over it")
        replaced = state.hget(keys.documents, IDENTITY)
        _remove(state, _names(state, keys))
    with zipfile.ZipFile(file) as archive:
        for start in range(0, len(names), _BATCH):
            pipeline: Any = state.pipeline(transaction=False)
            for i, (name, ttl) in enumerate(names[start:start + _BATCH], start):
                if name != keys.status:
                    pipeline.restore(name, ttl, archive.read(f"keys/{i:08d}"), replace=True)
            try:
                pipeline.execute()
            except redis.ResponseError as error:
                raise Corrupt(f"this Redis refuses the backup ({error}): it must not be older than the Redis that "
                              "was saved") from None
    state.hsetnx(keys.documents, IDENTITY, replaced or json.dumps(new_identity()))
    # The status comes last, so no service joins an incomplete run.
    pipeline = state.pipeline(transaction=True)
    stopped = RunStatus(Status.STOPPING, time.time(), who, "restored from a backup")
    pipeline.set(keys.status, json.dumps(stopped._asdict()))
    pipeline.publish(keys.status_channel, Status.STOPPING)
    details = {"saved_at": found.at, "head": found.head}
    pipeline.xadd(keys.events, event_fields(who, "run.restored", details))
    pipeline.execute()
    return found


def _remove(state: redis.Redis, names: list[bytes]) -> None:
    for start in range(0, len(names), _BATCH):
        state.delete(*names[start:start + _BATCH])
