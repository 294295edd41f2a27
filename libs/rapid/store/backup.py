"""Backup and restore of a run's state: every key of the run in Redis' own serialisation (DUMP, RESTORE).

It works with any Redis that clients can reach: embedded, in a pod, or managed. The file (`rapid.store.backup_file`)
has no parameters, which are in the blob store, and no logins.
"""

import json
import logging
import time
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import redis

from rapid.store import backup_file
from rapid.store.backup_file import NEVER, SECRET, Backup, SavedKey, kind_of
from rapid.store.errors import Corrupt
from rapid.store.events import WRITERS, event_fields
from rapid.store.head_version import HeadVersion
from rapid.store.keys import Keys
from rapid.store.leases import Leases, uptime_seconds
from rapid.store.state import IDENTITY, RunStatus, Status, new_identity

log = logging.getLogger(__name__)
_SCAN = 1000
_BATCH = 500  # keys per round trip of a restore
_BATCH_BYTES = 64 << 20


class ServicesRunning(RuntimeError):
    """Services of the run are running and would write during the restore."""


def save(state: redis.Redis, run: str, file: IO[bytes]) -> Backup:
    """Write the run's state to ``file``, which need not be seekable. The run may continue meanwhile.

    One transaction reads everything except series and logs, which only grow and are read after it. Heartbeats
    and logins are left out. Raises LookupError when there is no such run, redis.RedisError.
    """
    keys = Keys(run)
    if not state.exists(keys.status):
        raise LookupError(f"run {run!r} does not exist in this Redis")
    names = sorted(set(_names(state, keys)))
    moving = {keys.events, *map(keys.events_of, WRITERS)}  # the controller moves events between these
    streams = [n for n in names if state.type(n) == b"stream" and n.decode() not in moving]
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
    return backup_file.write(file, run, time.time(), newest,
                             [(name.decode(), value, ttl) for name, value, ttl in entries])


def _names(state: redis.Redis, keys: Keys) -> list[bytes]:
    """Return the run's keys that a backup contains. One server may store parameters beside the state."""
    found: Any = state.scan_iter(match=f"{keys.prefix}*", count=_SCAN)
    return [name for name in found if kind_of(name.decode(), keys) not in NEVER | SECRET]


def describe(file: IO[bytes]) -> Backup:
    """Return the contents of a file. Raise Corrupt for a damaged or incomplete backup."""
    return backup_file.read(file)[0]


def load(state: redis.Redis, file: IO[bytes], who: str, replace: bool = False, lease_seconds: float = 0.0) -> Backup:
    """Restore the run of ``file`` (seekable) as stopped: services wait until it is resumed.

    ``replace`` removes an existing run first. The restored run keeps its id, so it still owns its blobs; one from a
    backup without an id, of an earlier release, gets the replaced run's. A Redis that started less than
    ``lease_seconds`` ago is waited for: running services may not have renewed their leases in it yet. Raises ValueError
    for an existing run without ``replace``, ServicesRunning while services other than controllers are alive, Corrupt
    for a damaged file, redis.RedisError.
    """
    found, saved = backup_file.read(file)
    keys = Keys(found.run)
    _await_leases(state, lease_seconds)
    alive = sorted({i.kind for i in Leases(state, found.run).live()} - {"controller"})
    if alive:
        raise ServicesRunning(f"services of run {found.run!r} are running ({', '.join(alive)}): stop them first, or "
                              "they write during the restore")
    if state.exists(keys.status) and not replace:
        raise ValueError(f"run {found.run!r} exists already; --replace restores the backup over it")
    replaced: Any = state.hget(keys.documents, IDENTITY)
    _remove(state, _names(state, keys))  # without a status too: an interrupted restore leaves keys that this one lacks
    _verify_values(state)
    with zipfile.ZipFile(file) as archive:
        for batch in _batches([key for key in saved if key.name != keys.status]):
            pipeline: Any = state.pipeline(transaction=False)
            for key in batch:
                pipeline.restore(key.name, key.ttl, archive.read(key.entry), replace=True)
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


def _await_leases(state: redis.Redis, seconds: float) -> None:
    """Wait until this Redis is up for ``seconds``: a new one does not show the leases of running services at once."""
    missing = seconds - (uptime_seconds(state) or 0)  # without an uptime the whole time is waited
    if missing > 0:
        log.warning("this Redis has just started: waiting %.1f s for services that are running", missing)
        time.sleep(missing)


def _verify_values(state: redis.Redis) -> None:
    """Have Redis verify restored values, which it believes otherwise: a forged one would crash it when it is read."""
    try:
        state.config_set("sanitize-dump-payload", "clients")
    except redis.ResponseError as error:  # of a managed Redis, which has no CONFIG
        log.warning("this Redis may not verify the values of the backup: %s", error)


def _batches(saved: list[SavedKey]) -> Iterator[list[SavedKey]]:
    """Yield the keys in batches of one round trip."""
    batch: list[SavedKey] = []
    for key in saved:
        if batch and (len(batch) == _BATCH or sum(other.size for other in batch) + key.size > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(key)
    if batch:
        yield batch


def _remove(state: redis.Redis, names: list[bytes]) -> None:
    for start in range(0, len(names), _BATCH):
        state.delete(*names[start:start + _BATCH])
