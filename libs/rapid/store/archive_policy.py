"""Choice of the multiples of ``store.archive_every`` that stay in the archive of a long run, by their numbers alone.

The newest half of ``store.max_archived`` versions are dense. Older ones are thinned to multiples of archive_every * 2^k
with the smallest k at which they fit into the other half, so their spacing doubles as the run grows.
"""

from typing import NamedTuple

from rapid.config import StoreConfig

NEWEST = 100  # versions that always stay: more than a publisher restores after a failover (rapid.store.recent_versions)


class ArchivePolicy(NamedTuple):
    """Archived multiples of ``every``, of which ``limit`` stay (0: all). The ``newest`` numbers always stay."""

    every: int
    limit: int
    newest: int

    @classmethod
    def of(cls, config: StoreConfig) -> "ArchivePolicy":
        """Return the policy of a configuration."""
        return cls(config.archive_every, config.max_archived if config.archive_every else 0,
                   max(config.keep_archived, NEWEST))

    @property
    def _older(self) -> int:
        """Number of thinned versions."""
        return max(self.limit // 2, 1)

    def last_thinned(self, head: int) -> int:
        """Return the newest version number that is not dense; negative for none."""
        return head - max((self.limit - self._older) * self.every, self.newest) if self.limit else -1

    def spacing(self, head: int) -> int:
        """Return the spacing of thinned versions."""
        spacing, last = self.every, self.last_thinned(head)
        while last // spacing >= self._older:  # last // spacing + 1 multiples, with 0
            spacing *= 2
        return spacing

    def stays(self, version: int, head: int) -> bool:
        """Return whether a permanently archived version stays when ``head`` is the newest one."""
        return version > self.last_thinned(head) or version % self.spacing(head) == 0

    def multiples(self, head: int) -> list[int]:
        """Return the numbers of the multiples that stay, newest first."""
        if not self.every:
            return []
        last = self.last_thinned(head)
        dense = range(head - head % self.every, max(last, -1), -self.every)
        spacing = self.spacing(head)
        return [*dense, *(range(last - last % spacing, -1, -spacing) if last >= 0 else ())]
