"""Check that a training makes its first version in time, and the reason if it does not."""

import time

import redis

from five.local.cluster import LocalCluster
from five.local.readiness import first_version_seconds, why_not_ready
from five.services.controller.console.bottleneck import bottleneck
from rapid.store.state import PAUSE_HOLDS, Status

DIAGNOSIS_SECONDS = 10.0  # from one search for the reason of a missing version to the next


class FirstVersionCheck:
    """Whether a training has made a version after the record ``before``, and if it takes too long, why."""

    def __init__(self, cluster: LocalCluster, before: str) -> None:
        self._cluster = cluster
        self._before = before
        self._began = time.monotonic()
        self._limit = first_version_seconds(cluster.config)
        self._learned = False
        self._paused = False  # at any time; a paused run may end without a version
        self._reasons: list[str] = []
        self._next = self._began + self._limit

    def update(self, status: Status | None) -> list[str]:
        """Return what is wrong when no version is made within the expected time, as lines. Raises redis.RedisError."""
        self._paused = self._paused or status in PAUSE_HOLDS
        if not self._learned:
            last = self._cluster.series.last("versions")
            self._learned = last is not None and last.id != self._before
        now = time.monotonic()
        if self._learned or self._paused:
            self._reasons = []
        elif now >= self._next:
            self._next = now + DIAGNOSIS_SECONDS
            self._reasons = [f"no version within {self._limit:.0f} s", *self._explain_delay()]
        return self._reasons

    def why_unlearned(self) -> str:
        """Return why no version was made; '' if one was, or if the run was paused meanwhile."""
        try:
            self.update(None)
        except redis.RedisError:
            pass
        if self._learned or self._paused:
            return ""
        seconds = time.monotonic() - self._began
        return self._reasons[1] if len(self._reasons) > 1 else f"training ended after {seconds:.0f} s; the first one " \
            f"may take {self._limit:.0f} s"

    def _explain_delay(self) -> list[str]:
        cluster = self._cluster
        reasons = why_not_ready(cluster.supervisor, cluster.leases)
        return reasons or [f"{bottleneck(cluster.leases.live(), {})}; see {cluster.folder.path}/logs"]
