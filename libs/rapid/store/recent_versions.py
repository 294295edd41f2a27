"""The versions that a publisher made last, to restore their records after a failover of Redis.

A failover loses the writes of its last moments, which Redis had confirmed. A version whose record is lost cannot be
read, although its contents are archived.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rapid.store.archive import VersionRecord
from rapid.store.prepared_version import PreparedVersion

KEPT = 64  # versions may be a second apart, and a primary without its replica writes until it is demoted


class PublishedVersion(NamedTuple):
    """A version that was published: its number, its digest and the JSON of its record."""

    version: int
    digest: str
    record: str


class RecentVersions:
    """The newest versions of one publisher, by number."""

    def __init__(self) -> None:
        self._versions: dict[int, PublishedVersion] = {}

    def add(self, ready: PreparedVersion, record: VersionRecord) -> None:
        """Remember a published version and the address of its archived copy."""
        self._versions[ready.version] = PublishedVersion(ready.version, ready.digest, ready.record(record.blob))
        while len(self._versions) > KEPT:
            del self._versions[min(self._versions)]

    def lost(self, below: int, records_of: Callable[[list[int]], list[VersionRecord]]) -> Iterator[PublishedVersion]:
        """Yield the versions below that number that have no record any more. ``records_of`` returns those that exist.
        """
        numbers = sorted(version for version in self._versions if version < below)
        known = {record.version for record in records_of(numbers)}
        yield from (self._versions[version] for version in numbers if version not in known)
