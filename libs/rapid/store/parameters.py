"""Versions of a run's parameters.

A version is immutable: named arrays and JSON metadata. Publishing writes its chunks to the params Redis, then its
manifest, and sets the head pointer in the state Redis last. So a reader sees a complete version or the previous one.
Chunks of a dead publisher expire. The newest few versions stay in Redis; archived ones are read from the blob store.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import redis

from rapid import tensorfile
from rapid.bfloat16 import from_bfloat16
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store import functions
from rapid.store.archive import Contents, VersionArchive, VersionRecord, parse_record
from rapid.store.archive_policy import ArchivePolicy
from rapid.store.errors import VersionConflict, VersionMissing
from rapid.store.fencing import FencingToken, fenced_out
from rapid.store.head_version import HeadVersion, HeadWatcher, StagedVersion
from rapid.store.keys import Keys
from rapid.store.prepared_version import PreparedVersion, prepare_version
from rapid.store.recent_versions import RecentVersions
from rapid.store.redis_contents import RedisContents

log = logging.getLogger(__name__)

T = TypeVar("T")
Array = npt.NDArray[Any]

PAGE = 500  # records per round trip


class ParameterStore:
    """Publisher and reader of one run's versions. Blocking. Safe for several threads, one of which may publish."""

    def __init__(self, params: redis.Redis, state: redis.Redis, run: str, config: StoreConfig,
                 blobs: BlobStore | None = None) -> None:
        self._params = params
        self._state = state
        self._keys = Keys(run)
        self._contents = RedisContents(params, self._keys, config)
        self._config = config
        self._blobs = blobs
        self._watcher = HeadWatcher(state, self._keys)
        self._recent = RecentVersions()
        self._archive = None if blobs is None else VersionArchive(state, run, config, blobs)

    def without_retries(self) -> "ParameterStore":
        """Return the same store without waiting for an unreachable Redis, for callers that retry themselves."""
        return ParameterStore(self._params, self._state, self._keys.run,
                              self._config.model_copy(update={"reconnect_seconds": 0.0}), self._blobs)

    # Publishing.

    def publish(self, version: int, tensors: Mapping[str, Array], meta: Mapping[str, Any],
                bfloat16: Collection[str] = (), fencing_token: FencingToken | None = None) -> None:
        """Store a version and make it the head, unless a newer one is, under a valid fencing token.

        ``tensors`` are arrays of any stored dtype; those named in ``bfloat16`` are uint16 that carries bfloat16. With
        ``store.publish_dtype`` bfloat16, float32 arrays of two or more dimensions are converted. ``meta`` is JSON; its
        "warming" goes into the version's record. Publishing the same contents again changes nothing.

        Raises VersionConflict for a version that exists with other contents, FencedOut when the epoch or the lease is
        lost, ValueError for contents that cannot be stored, redis.RedisError when Redis fails. The head then stays.
        """
        ready = prepare_version(version, (tensors, meta, bfloat16), self._config)

        def attempt() -> VersionRecord:
            self._upload_version(ready)
            self._flip(version, ready.digest, ready.record(), fencing_token)
            if self._contents.manifest(version, ready.digest) is None:
                raise redis.ConnectionError(
                    f"Redis lost the contents of version {version} before its record was written: it failed over")
            for lost in self._recent.lost(version, self.records_of):
                self._flip(*lost, fencing_token)  # writes the record; the head stays
                if self._archive is not None:
                    self._archive.mark_temporary(lost.version)
            self._retire(version, ready.contents)
            record = self.record(version)
            if record is None:
                raise redis.ConnectionError(f"Redis lost version {version} while it was published: it failed over")
            return record

        # Each step is idempotent over attempts.
        self._recent.add(ready, self._retry_on_disconnect(attempt, f"publishing version {version}"))

    def stage(self, version: int, tensors: Mapping[str, Array], meta: Mapping[str, Any],
              bfloat16: Collection[str] = ()) -> StagedVersion:
        """Store a version in Redis and in the blob store, if there is one, without making it the head.

        Readers see the version once ``RunState.cut_over`` has made it the head. A repeated call changes nothing. The
        next publish removes a staged version that never became the head.

        Arguments and errors are those of ``publish``; VersionConflict also for a version that is not behind the head.
        """
        ready = prepare_version(version, (tensors, meta, bfloat16), self._config)
        head = self.head()
        if head is not None and head >= version:
            raise self._conflict(version)

        def attempt() -> Ref | None:
            self._upload_version(ready)
            return None if self._archive is None else self._archive.stage(version, ready.contents)

        ref = self._retry_on_disconnect(attempt, f"staging version {version}")
        return StagedVersion(version, ready.digest, ready.record(ref))

    def _upload_version(self, ready: PreparedVersion) -> None:
        """Write the contents to Redis unless they are there. Raise VersionConflict."""
        known = self.record(ready.version)
        if known is not None and known.digest != ready.digest:
            raise self._conflict(ready.version)
        self._contents.upload(ready)

    def _retry_on_disconnect(self, attempt: Callable[[], T], what: str) -> T:
        """Return the result of ``attempt``, retried while Redis is unreachable, for ``store.reconnect_seconds`` at
        most."""
        end = time.monotonic() + self._config.reconnect_seconds
        pause = 0.05
        while True:
            try:
                return attempt()
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if time.monotonic() + pause >= end:
                    raise
                log.warning("waiting for Redis: %s: %s", what, error)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _flip(self, version: int, digest: str, record: str, fencing_token: FencingToken | None) -> None:
        right = ("", "", "") if fencing_token is None else fencing_token.arguments()
        keys = self._keys
        outcome: Any = functions.call(self._state, "publish_version",
                                      [keys.versions, keys.head, keys.record, keys.publisher], str(version), digest,
                                      record, keys.heads_channel, *right)
        if outcome in (b"head", b"below"):
            return
        known = self.record(version)
        if known is None or known.digest != digest:  # else the version exists, of an earlier attempt or the new holder
            self._contents.expire(version, digest, 0)
        if outcome == b"conflict" or fencing_token is None:
            raise self._conflict(version)
        raise fenced_out(self._keys.run, outcome.decode(), fencing_token, f"publishing version {version}")

    def _conflict(self, version: int) -> VersionConflict:
        return VersionConflict(
            f"version {version} of run {self._keys.run} exists with other contents; versions never change: publish "
            f"the next one (the head is {self.head()})")

    def _retire(self, published: int, contents: Contents) -> None:
        """Archive what is due, and expire versions beyond ``keep_versions`` and those that never became the head."""
        kept = []
        for version, digest, whole in self._stored_entries():
            if whole:
                kept.append((version, digest))
            else:
                self._contents.expire(version, digest, self._config.upload_seconds)
        for version, _ in kept:
            if self._archive_due(version):
                self.archive(version, contents if version == published else None)
        for version, digest in kept[:-self._config.keep_versions]:
            self._contents.expire(version, digest, self._config.grace_seconds)
        if self._archive is not None:
            self._archive.finalize_staged()
            self._archive.prune(published)

    def _archive_due(self, version: int) -> bool:
        if self._archive is None or self._config.archive_every == 0:
            return False
        record = self.record(version)
        return record is not None and record.blob is None

    def archive(self, version: int, contents: Contents | None = None) -> Ref:
        """Copy a version to the blob store. Raise ValueError without one, VersionMissing."""
        if self._archive is None:
            raise ValueError("no blob store to archive to: set blobs.url")
        if contents is None:
            found = self._from_redis(version, None)
            if found is None:
                raise VersionMissing(f"version {version} of run {self._keys.run} is no longer in Redis")
            contents = found[0], found[1].meta, found[1].bfloat16
        return self._archive.put(version, contents)

    def pin(self, version: int, why: str) -> None:
        """Keep an archived version permanently, whatever ``store.archive_every`` says (a rated reference, for example).

        Raises VersionMissing when it is not archived, or no longer.
        """
        if self._archive is None:
            raise VersionMissing("no blob store, so no version can be pinned: set blobs.url")
        self._archive.pin(version, why)

    def unpin(self, version: int) -> None:
        """Make a pinned version temporary again."""
        if self._archive is not None:
            self._archive.unpin(version)

    def pins(self) -> dict[int, str]:
        """Return pinned versions and their reasons."""
        return {} if self._archive is None else self._archive.pins()

    # Reading.

    def head(self) -> int | None:
        """Return the newest version; None before the first."""
        return None if (found := self.head_digest()) is None else found.version

    def head_digest(self) -> HeadVersion | None:
        """Return the newest version with the digest of its contents; None before the first."""
        return self._watcher.head()

    def record(self, version: int) -> VersionRecord | None:
        """Return the record of a version; None for one that was never published, or whose record was removed."""
        text: Any = self._state.hget(self._keys.versions, str(version))
        return None if text is None else parse_record(version, text)

    def records(self) -> list[VersionRecord]:
        """Return all version records, in order."""
        rows: Any = self._state.hgetall(self._keys.versions)
        return sorted((parse_record(int(v), text) for v, text in rows.items()), key=lambda r: r.version)

    def records_from(self, version: int) -> Iterator[VersionRecord]:
        """Yield the records of versions from that number on, in order, page by page."""
        head = self.head()
        while head is not None and version <= head:
            stop = min(version + PAGE, head + 1)
            yield from self.records_of(range(max(version, 0), stop))
            version = stop

    def newest_records(self, every: int = 1, most: int = 10 * PAGE) -> Iterator[VersionRecord]:
        """Yield the records of multiples of ``every``, newest first, page by page; at most ``most`` numbers."""
        head = self.head()
        if head is None:
            return
        numbers = range(head - head % every, -1, -every)[:most]
        for start in range(0, len(numbers), PAGE):
            yield from self.records_of(numbers[start:start + PAGE])

    def archived_records(self) -> list[VersionRecord]:
        """Return the records of archived versions, newest first: of the newest versions, pinned ones, and at most
        ``store.max_archived`` multiples of ``store.archive_every`` (5000 without a limit)."""
        head = self.head()
        if head is None:
            return []
        multiples = ArchivePolicy.of(self._config).multiples(head)[:None if self._config.max_archived else 10 * PAGE]
        newest = range(max(head + 1 - max(2 * self._config.keep_archived, PAGE), 0), head + 1)
        numbers = sorted({*newest, *multiples, *self.pins()}, reverse=True)
        found = (r for start in range(0, len(numbers), PAGE) for r in self.records_of(numbers[start:start + PAGE]))
        return [record for record in found if record.blob is not None]

    def records_of(self, versions: Sequence[int]) -> list[VersionRecord]:
        """Return the records of those versions, in their order, without those that have none."""
        if not versions:
            return []
        texts: Any = self._state.hmget(self._keys.versions, [str(v) for v in versions])
        return [parse_record(v, text) for v, text in zip(versions, texts, strict=True) if text is not None]

    def stored(self) -> list[int]:
        """Return the versions in Redis now, in order."""
        return [version for version, _, whole in self._stored_entries() if whole]

    def _stored_entries(self) -> list[tuple[int, str, bool]]:
        """Return version and digest of the contents in Redis, in order, and whether the run has that version with that
        digest."""
        entries = self._contents.versions()
        texts: Any = self._state.hmget(self._keys.versions, [str(v) for v, _ in entries]) if entries else []
        return [(version, digest, text is not None and parse_record(version, text).digest == digest)
                for (version, digest), text in zip(entries, texts, strict=True)]

    def fetch(self, version: int, keep_bfloat16: bool = False,
              buffer: npt.NDArray[np.uint8] | None = None) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and metadata of a version, from Redis or else from the blob store, with every byte verified.

        bfloat16 arrays are converted to float32. With ``keep_bfloat16`` they stay uint16, and the metadata's "bfloat16"
        names them. A ``buffer``, uint8 of at least the version's size, is used if given: the arrays are views of it
        until its next use. Raises VersionMissing, Corrupt, redis.RedisError.
        """
        if version < 0:
            raise ValueError(f"version {version}: versions count from 0")
        found = self._retry_on_disconnect(lambda: self._from_redis(version, buffer) or self._from_blobs(version),
                                          f"fetching version {version}")
        if found is None:
            raise self._version_missing(version)
        arrays, index = found
        meta = dict(index.meta)
        if keep_bfloat16:
            if index.bfloat16:
                meta["bfloat16"] = list(index.bfloat16)
            return arrays, meta
        for name in index.bfloat16:
            arrays[name] = from_bfloat16(arrays[name])
        return arrays, meta

    def _version_missing(self, version: int) -> VersionMissing:
        stored = ", ".join(map(str, self.stored())) or "none"
        return VersionMissing(f"version {version} of run {self._keys.run} is not in Redis (it has {stored}) and was "
                              "not archived")

    def fetch_meta(self, version: int) -> dict[str, Any]:
        """Return the metadata of a version without reading its arrays. Raise VersionMissing or Corrupt."""
        record = self.record(version)
        manifest = None if record is None else self._contents.manifest(version, record.digest)
        if manifest is not None:
            return tensorfile.parse_header(manifest["header"].encode(), manifest["bytes"]).meta
        meta = None if self._archive is None else self._archive.meta(version)
        if meta is None:
            raise self._version_missing(version)
        return meta

    def _from_redis(self, version: int, buffer: npt.NDArray[np.uint8] | None
                    ) -> tuple[dict[str, Array], tensorfile.TensorIndex] | None:
        record = self.record(version)
        return None if record is None else self._contents.read(version, record.digest, buffer)

    def _from_blobs(self, version: int) -> tuple[dict[str, Array], tensorfile.TensorIndex] | None:
        return None if self._archive is None else self._archive.get(version)

    # Following the head.

    def wait_newer(self, than: int | None, timeout: float) -> int | None:
        """Wait for a head newer than ``than``. Return None after ``timeout`` seconds. Blocks.

        Notifications only make it prompt; the pointer itself decides.
        """
        with self._watcher.listener() as listener:
            head = self._watcher.wait(listener, lambda head: than is None or head.version > than, timeout)
        return None if head is None else head.version

    async def watch(self, than: int | None = None, poll_seconds: float = 1.0) -> AsyncIterator[int]:
        """Yield each new head after ``than``, without end, also one of a known number with another digest.

        Heads in between may be left out. An unreachable Redis is waited for.
        """
        async for head in self._watcher.heads(than, poll_seconds):
            yield head.version
