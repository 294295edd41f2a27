"""Archive of a run's versions: safetensors files in the blob store.

Versions that are multiples of ``store.archive_every`` stay permanently, and so do pinned ones. The others are removed
once they are no longer among the newest ``store.keep_archived``. Beyond ``store.max_archived`` multiples the older ones
are thinned (`rapid.store.archive_policy`). The record of a version stays while the version is
archived or among the newest `KEPT_RECORDS`.
"""

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import redis

from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store import functions
from rapid.store.archive_policy import ArchivePolicy
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.keys import Keys
from rapid.store.rows import decode_row
from rapid.store.transaction import transaction

Array = npt.NDArray[Any]
log = logging.getLogger(__name__)
Contents = tuple[Mapping[str, Array], Mapping[str, Any], Collection[str]]  # arrays, metadata, names of bfloat16 arrays

KEPT_RECORDS = 10_000  # of the newest versions: 2 MB; a publisher restores the newest 64 (rapid.store.recent_versions)
PAGE = 500  # records per round trip
PAGES = 20  # at most that a publish examines
THINNED = 8  # versions at most that a publish thins: more than it adds, and few requests to a bucket
_BEFORE_ALL = -1  # position of thinned versions in the order in which temporary ones are removed


@dataclass(frozen=True)
class VersionRecord:
    """Record of a version. ``blob`` is set once it is archived.

    ``warming`` marks a version of the warm-up after a surgery, a clone of the previous one. It plays, but joins no
    opponent pool and is not rated.
    """

    version: int
    digest: str
    bytes: int
    created_at: float
    blob: Ref | None
    warming: bool = False


def parse_record(version: int, text: bytes) -> VersionRecord:
    """Parse a version's JSON record. Raise Corrupt for a damaged one."""
    return decode_row(text, f"the record of version {version}", lambda row: _record_of(version, row))


def _record_of(version: int, row: Any) -> VersionRecord:
    blob = Ref.parse(row["blob"], row["blob_bytes"]) if row.get("blob") else None
    return VersionRecord(version, str(row["digest"]), int(row["bytes"]), float(row["created_at"]), blob,
                         bool(row.get("warming", False)))


def _is_archived(version: int, text: bytes) -> bool:
    """Return whether a record names a blob, also for a damaged one: its readers report it."""
    try:
        return parse_record(version, text).blob is not None
    except Corrupt:
        return True


class VersionArchive:
    """Versions of one run in a blob store, and their records in the run's state."""

    def __init__(self, state: redis.Redis, run: str, config: StoreConfig, blobs: BlobStore) -> None:
        self._state = state
        self._keys = Keys(run)
        self._config = config
        self._blobs = blobs
        self._policy = ArchivePolicy.of(config)
        self._examined = 0  # versions below it have no record that is not needed
        self._thinned = 0  # versions below it are thinned to multiples of _spacing
        self._spacing = 0

    def _name(self, version: int) -> str:
        return f"{self._keys.run}/versions/{version:010d}"

    def _record(self, version: int) -> VersionRecord | None:
        text: Any = self._state.hget(self._keys.versions, str(version))
        return None if text is None else parse_record(version, text)

    def put(self, version: int, contents: Contents) -> Ref:
        """Store a version and record its address."""
        name = self._name(version)
        self.mark_temporary(version)
        ref = self._blobs.put(tensorfile.file_pieces(*contents, label=name), name)
        self._record_blob(version, ref)
        return ref

    def mark_temporary(self, version: int) -> None:
        """Let a version be removed once it is no longer among the newest, unless it is a multiple of archive_every."""
        self._mark_temporary(self._state, version)

    def _mark_temporary(self, client: Any, version: int) -> None:
        if self._config.archive_every == 0 or version % self._config.archive_every:
            client.zadd(self._keys.temporary, {str(version): version})

    def stage(self, version: int, contents: Contents) -> Ref:
        """Store a version that the run does not know yet, under a separate name. It replaces the last staged version.

        The cut-over records the returned address.
        """
        ref = self._blobs.put(tensorfile.file_pieces(*contents, label=f"version {version}"), self._staged_name)
        self._state.set(self._keys.staged, json.dumps({"version": version, "digest": ref.digest, "bytes": ref.size}))
        return ref

    @property
    def _staged_name(self) -> str:
        return f"{self._keys.run}/staged"

    def finalize_staged(self) -> None:
        """Give the staged version its numbered name if the run has adopted it; remove it otherwise."""
        text: Any = self._state.get(self._keys.staged)
        if text is None:
            return
        version, ref = decode_row(text, self._keys.staged, lambda row: (
            int(row["version"]), Ref.parse(row["digest"], row["bytes"])))
        record = self._record(version)
        if record is not None and record.blob == ref:
            self.mark_temporary(version)
            self._blobs.set_ref(self._name(version), ref)
        self._blobs.remove_ref(self._staged_name)
        self._state.delete(self._keys.staged)

    def _record_blob(self, version: int, ref: Ref | None) -> None:
        functions.call(self._state, "record_blob", [self._keys.versions], str(version), ref.digest if ref else "",
                       str(ref.size if ref else 0))

    def _ref(self, version: int) -> Ref:
        """Return the blob that the version's record names. Its name in the blob store proves nothing: others write
        there too. Raises BlobMissing."""
        record = self._record(version)
        if record is None or record.blob is None:
            raise BlobMissing(f"version {version} of run {self._keys.run} is not archived")
        return record.blob

    def get(self, version: int) -> tuple[dict[str, Array], tensorfile.TensorIndex] | None:
        """Return arrays and index of a version; None when it is not archived. Raise Corrupt."""
        try:
            return tensorfile.parse(self._blobs.get_array(self._ref(version)))
        except BlobMissing:
            return None

    def meta(self, version: int) -> dict[str, Any] | None:
        """Return the metadata of a version; None when it is not archived.

        Reads only the file's header, so the contents are not verified. Raises Corrupt for an invalid header.
        """
        try:
            ref = self._ref(version)
            begin = tensorfile.header_bytes(self._blobs.get_prefix(ref, 8), ref.size)
            return tensorfile.parse_header(self._blobs.get_prefix(ref, begin)[8:], ref.size - begin).meta
        except BlobMissing:
            return None
        except ValueError as error:
            raise Corrupt(f"version {version} of run {self._keys.run} is damaged in the blob store: {error}") from None

    def prune(self, head: int) -> None:
        """Thin the multiples of ``archive_every``, delete temporary versions that are no longer among the newest, and
        remove records that are no longer needed."""
        self._thin(head)
        thinned: Any = self._state.zrangebyscore(self._keys.temporary, "-inf", _BEFORE_ALL)
        passed: Any = self._state.zrange(self._keys.temporary, 0, -1 - self._config.keep_archived)
        for version in map(int, dict.fromkeys([*thinned, *passed])):
            if not self._is_pinned(version):
                record: Any = self._state.hget(self._keys.versions, str(version))
                if version > head - KEPT_RECORDS:
                    self._record_blob(version, None)
                else:
                    self._state.hdel(self._keys.versions, str(version))
                if record is not None and self._is_pinned(version):  # meanwhile, by a process that saw the record
                    self._state.hset(self._keys.versions, str(version), record)
                    continue  # the next call looks at it again
                try:
                    self._blobs.remove_ref(self._name(version))
                except Corrupt as error:  # others write to the store too; its blob stays
                    log.warning("archived version=%d is not removed: %s", version, error)
            self._state.zrem(self._keys.temporary, str(version))
        self._remove_records(head)

    def _is_pinned(self, version: int) -> bool:
        return bool(self._state.hexists(self._keys.pins, str(version)))

    def _thin(self, head: int) -> None:
        """Make versions temporary that the policy does not keep, at most `THINNED`, so that they are deleted first.

        It is repeated from the oldest version whenever the spacing grows, and in each process.
        """
        spacing = self._policy.spacing(head) if self._policy.limit else 0
        if spacing != self._spacing:
            self._thinned, self._spacing = 0, spacing
        left = THINNED
        for versions, archived in self._pages(self._thinned, self._policy.last_thinned(head) + 1):
            passed = [version for version in versions if archived.get(version) and version % spacing]
            pins = self.pins() if passed else {}
            for version in passed:
                if version not in pins and not left:
                    self._thinned = version
                    return
                if version not in pins:
                    self._state.zadd(self._keys.temporary, {str(version): _BEFORE_ALL})
                    left -= 1
            self._thinned = versions.stop

    def _remove_records(self, head: int) -> None:
        """Remove the records of versions that are neither archived nor among the newest.

        The first calls of a process begin with the oldest versions.
        """
        for versions, archived in self._pages(self._examined, head + 1 - KEPT_RECORDS):
            if passed := [str(version) for version, has_blob in archived.items() if not has_blob]:
                self._state.hdel(self._keys.versions, *passed)
            self._examined = versions.stop

    def _pages(self, start: int, stop: int) -> Iterator[tuple[range, dict[int, bool]]]:
        """Yield version numbers, and whether those that have a record are archived; at most `PAGES` pages."""
        for begin in range(start, min(stop, start + PAGES * PAGE), PAGE):
            versions = range(begin, min(begin + PAGE, stop))
            texts: Any = self._state.hmget(self._keys.versions, [str(version) for version in versions])
            yield versions, {version: _is_archived(version, text)
                             for version, text in zip(versions, texts, strict=True) if text is not None}

    def pin(self, version: int, why: str) -> None:
        """Keep an archived version permanently. Raise VersionMissing when it is not archived."""
        # The pin first: a deletion in between is then detected.
        self._state.hset(self._keys.pins, str(version), why)
        record = self._record(version)
        if record is None or record.blob is None:
            self._state.hdel(self._keys.pins, str(version))
            raise VersionMissing(f"version {version} of run {self._keys.run} is not archived and cannot be pinned")

    def unpin(self, version: int) -> None:
        """Make a pinned version temporary again. A version without a pin is ignored."""
        def change(pipeline: Any) -> None:
            if pipeline.hexists(self._keys.pins, str(version)):
                pipeline.multi()
                pipeline.hdel(self._keys.pins, str(version))
                self._mark_temporary(pipeline, version)

        transaction(self._state, self._keys, change, self._keys.pins)

    def pins(self) -> dict[int, str]:
        """Return pinned versions and their reasons."""
        rows: Any = self._state.hgetall(self._keys.pins)
        return {int(version): why.decode() for version, why in sorted(rows.items(), key=lambda row: int(row[0]))}
