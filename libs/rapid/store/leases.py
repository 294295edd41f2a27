"""Who is alive in a run: each service instance holds a lease that it renews with its state."""

import json
import time
from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys

_SCAN = 500


class Instance(NamedTuple):
    """A service instance. Addresses are host:port ('' where it has none); ``stats`` are its own JSON values."""

    kind: str
    id: str
    address: str
    metrics_address: str
    started_at: float
    beaten_at: float
    stats: dict[str, Any]


class Lease:
    """The lease of one instance. It ends by itself when nobody renews it."""

    def __init__(self, state: redis.Redis, run: str, kind: str, identity: str, ttl_seconds: float,
                 address: str = "", metrics_address: str = "") -> None:
        self._redis = state
        self._key = Keys(run).lease(kind, identity)
        self._ttl_ms = max(int(ttl_seconds * 1000), 1)
        self.kind = kind
        self.id = identity
        self.address = address
        self.metrics_address = metrics_address
        self._started_at = time.time()

    def renew(self, stats: dict[str, Any] | None = None) -> None:
        """Says that the instance lives, and how it does."""
        instance = Instance(self.kind, self.id, self.address, self.metrics_address, self._started_at, time.time(),
                            stats or {})
        self._redis.set(self._key, json.dumps(instance._asdict(), allow_nan=False), px=self._ttl_ms)

    def release(self) -> None:
        """Ends the lease at once."""
        self._redis.delete(self._key)


class Leases:
    """The live instances of a run."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def live(self, kind: str | None = None) -> list[Instance]:
        """Instances whose lease is on, of one kind or of all, by kind and id."""
        pattern = self._keys.lease(kind or "*", "*")
        names: list[Any] = list(self._redis.scan_iter(match=pattern, count=_SCAN))
        texts: Any = self._redis.mget(names) if names else []
        found = [Instance(**json.loads(text)) for text in texts if text is not None]
        return sorted(found, key=lambda i: (i.kind, i.id))
