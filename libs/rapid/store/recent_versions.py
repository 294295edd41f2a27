"""The versions that a publisher made last, to restore their records after a failover of Redis.

A failover loses the writes of its last moments, which Redis had confirmed. A version whose record is lost cannot be
read, although its contents are archived.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rapid.store.archive import VersionRecord
from rapid.store.prepared_version import PreparedVersion

KEPT = 8  # a failover loses seconds; versions are seconds apart


class PublishedVersion(NamedTuple):
    """A version that was published: its number, its digest and the JSON of its record."""

    version: int
    digest: str
    record: str


class RecentVersions:
    """The newest versions of one publisher, oldest first."""

    def __init__(self) -> None:
        self._versions: deque[PublishedVersion] = deque(maxlen=KEPT)

    def add(self, ready: PreparedVersion, record: VersionRecord | None) -> None:
        """Remember a published version and the address of its archived copy."""
        blob = None if record is None else record.blob
        self._versions.append(PublishedVersion(ready.version, ready.digest, ready.record(blob)))

    def lost(self, records_of: Callable[[list[int]], list[VersionRecord]]) -> Iterator[PublishedVersion]:
        """Yield the versions that have no record any more. ``records_of`` returns the records that exist."""
        known = {record.version for record in records_of([published.version for published in self._versions])}
        yield from (published for published in self._versions if published.version not in known)
