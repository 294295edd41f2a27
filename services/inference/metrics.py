"""Prometheus metrics of an inference server."""

import threading
import time
from typing import Any

from five.services.inference.batcher import BatchObserver
from five.services.inference.models import ResidentVersion
from rapid.telemetry.metrics import counter, gauge, histogram, set_unknown

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

QUEUE_SECONDS = histogram("inference", "queue", "seconds", "Time a request waited for its batch.")
FORWARD_SECONDS = histogram("inference", "forward", "seconds", "Time of the forward passes of one batch.")
BATCH_STEPS = histogram("inference", "batch", "steps", "Team-steps of a batch.", buckets=ROWS)
TEAM_STEPS = counter("inference", "team_steps", "Team-steps evaluated.")
SESSIONS = gauge("inference", "open", "sessions", "Sessions whose recurrent state is stored.")
EXPIRED = counter("inference", "expired_sessions", "Sessions closed because their lease expired.")
DROPPED = counter("inference", "dropped_requests", "Requests that were not evaluated, by reason: cancelled, error, "
                  "expired, refused, unknown_sessions, version.", ("reason",))
NEWEST = set_unknown(gauge("inference", "newest", "versions", "Newest loaded version."))
PAST_LOADS = counter("inference", "past_loads", "Past versions loaded from the store. If it grows faster than games "
                     "begin, services.inference.past_mebibytes is too small for the versions in play.")
RESIDENT = gauge("inference", "resident", "versions", "Versions in memory.")
PAST_BYTES = gauge("inference", "past", "bytes", "Memory of all versions except the newest.")
SWAPS = counter("inference", "swaps", "Newer versions swapped in.")
SWAP_SECONDS = histogram("inference", "swap", "seconds", "Time from detecting a newer version to serving it.")

for _reason in ("cancelled", "error", "expired", "refused", "unknown_sessions", "version"):
    DROPPED.labels(_reason)


class Meter:
    """Counters of a server's work, with a summary of the last seconds for its heartbeat."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._rows = self._batches = self._requests = 0
        self._forward = self._queued = 0.0
        self._open = 0
        self._totals = {"requests": 0, "team_steps": 0, "queued_seconds": 0.0, "forward_seconds": 0.0}

    @property
    def observer(self) -> BatchObserver:
        """Return the callbacks for the batcher."""
        return BatchObserver(self._batch, self._queue, self._drop, self._sessions)

    def swapped(self, served: ResidentVersion, seconds: float, resident: int, past_bytes: int) -> None:
        """Record that a newer version was swapped in."""
        PAST_BYTES.set(past_bytes)
        NEWEST.set(served.version)
        RESIDENT.set(resident)
        SWAPS.inc()
        SWAP_SECONDS.observe(seconds)

    def past_loaded(self, served: ResidentVersion, resident: int, past_bytes: int) -> None:
        """Record that a past version was loaded."""
        PAST_BYTES.set(past_bytes)
        PAST_LOADS.inc()
        RESIDENT.set(resident)

    def recent(self) -> dict[str, Any]:
        """Return rates and means since the last call, and totals since the start, as JSON values."""
        with self._lock:
            now = time.monotonic()
            seconds = max(now - self._since, 1e-3)
            stats = {
                "steps/s": round(self._rows / seconds, 1), "sessions": self._open,
                "batch": round(self._rows / max(self._batches, 1), 1), "busy": round(self._forward / seconds, 3),
                "queue_ms": round(1000 * self._queued / max(self._requests, 1), 2),
                **{name: round(value, 4) for name, value in self._totals.items()}}
            self._since, self._rows, self._batches, self._requests = now, 0, 0, 0
            self._forward = self._queued = 0.0
        return stats

    def _batch(self, rows: int, seconds: float) -> None:
        FORWARD_SECONDS.observe(seconds)
        BATCH_STEPS.observe(rows)
        TEAM_STEPS.inc(rows)
        with self._lock:
            self._rows += rows
            self._batches += 1
            self._forward += seconds
            self._totals["team_steps"] += rows
            self._totals["forward_seconds"] += seconds

    def _queue(self, seconds: float) -> None:
        QUEUE_SECONDS.observe(seconds)
        with self._lock:
            self._queued += seconds
            self._requests += 1
            self._totals["requests"] += 1
            self._totals["queued_seconds"] += seconds

    def _drop(self, reason: str, requests: int) -> None:
        DROPPED.labels(reason).inc(requests)

    def _sessions(self, open_sessions: int, expired: int) -> None:
        SESSIONS.set(open_sessions - expired)
        EXPIRED.inc(expired)
        with self._lock:
            self._open = open_sessions - expired
