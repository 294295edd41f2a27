"""Liveness of a run's service instances: each holds a lease that it renews with its state."""

import json
import logging
import time
from functools import partial
from typing import Any, NamedTuple

import redis

from rapid.process_identity import ProcessIdentity
from rapid.store import functions
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.rows import decode_row

log = logging.getLogger(__name__)
ANSWER_MS = 30 * 24 * 3600 * 1000  # expiry of a pause's acknowledgements, longer than any pause
# Kinds of services with leases, in the order of listings.
KINDS = ("controller", "evaluator", "inference", "opponents", "optimizer", "play", "rollout")


class Instance(NamedTuple):
    """A service instance. Addresses are host:port ('' without one); ``stats`` are its own JSON values.

    ``epoch`` and ``revision`` are those of the run record that it works under (0: none yet). ``quiet`` is the number of
    the pause for which it is idle (0: it is not). ``life`` distinguishes it from other instances of the same name.
    """

    kind: str
    id: str
    address: str
    metrics_address: str
    started_at: float
    beaten_at: float
    stats: dict[str, Any]
    epoch: int = 0
    revision: int = 0
    quiet: int = 0
    life: str = ""


class Lease:
    """The lease of one instance. It expires unless renewed."""

    def __init__(self, state: redis.Redis, run: str, kind: str, identity: str, ttl_seconds: float,
                 address: str = "", metrics_address: str = "") -> None:
        self._redis = state
        self._keys = Keys(run)
        self._written = (self._keys.lease(kind, identity), self._keys.leases(kind), self._keys.quiet(kind, identity),
                         self._keys.quiet_names(kind))
        self._ttl_ms = max(int(ttl_seconds * 1000), 1)
        self.kind = kind
        self.id = identity
        self.address = address
        self.metrics_address = metrics_address
        self._started_at = time.time()
        self._acknowledgement: dict[str, Any] = {}  # last acknowledgement, and its time
        self._acknowledged_at = self._started_at
        self._life = ProcessIdentity.own().life

    def renew(self, stats: dict[str, Any] | None = None, epoch: int = 0, revision: int = 0, pause: int = 0,
              quiet: bool = False) -> None:
        """Renew the lease with the instance's stats and run revision.

        ``quiet`` is whether the instance is idle in the pause of number ``pause`` (0: no pause holds the run).
        """
        now = time.time()
        instance = Instance(self.kind, self.id, self.address, self.metrics_address, self._started_at, now,
                            stats or {}, epoch, revision, pause if quiet else 0, self._life)
        acknowledgement = {"pause": pause, "epoch": epoch, "quiet": quiet, "life": self._life}
        if acknowledgement != self._acknowledgement:
            self._acknowledgement, self._acknowledged_at = acknowledgement, now
        # Sent every time, because a killed Redis may have lost it.
        answer = json.dumps({**acknowledgement, "at": self._acknowledged_at}) if pause else ""
        functions.call(self._redis, "renew_lease", self._written, self.id,
                       json.dumps(instance._asdict(), allow_nan=False), str(self._ttl_ms), answer, str(ANSWER_MS))

    def release(self, restarting: bool = False) -> None:
        """End the lease, which acknowledges a pause unless the instance is ``restarting``."""
        functions.call(self._redis, "end_lease", self._written, repr(time.time()), str(int(restarting)),
                       self._keys.status, self.id, str(ANSWER_MS))


class Leases:
    """The live instances of a run."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def live(self, kind: str | None = None) -> list[Instance]:
        """Return instances with a lease, of one kind or of all `KINDS`, by kind and id. A damaged lease is
        ignored."""
        kinds = KINDS if kind is None else (kind,)
        pipeline: Any = self._redis.pipeline(transaction=False)
        for one in kinds:
            pipeline.zrange(self._keys.leases(one), 0, -1)
        names = [(one, name.decode(errors="replace")) for one, found in zip(kinds, pipeline.execute(), strict=True)
                 for name in found]
        # Leases expire on the server's clock; a name without a lease, such as a damaged one, is ignored.
        texts: Any = self._redis.mget([self._keys.lease(*name) for name in names]) if names else []
        live = []
        for name, text in zip(names, texts, strict=True):
            if text is not None:
                try:
                    live.append(decode_row(text, self._keys.lease(*name), partial(_instance, *name)))
                except Corrupt as error:
                    log.warning("instance not listed: %s", error)
        return sorted(live, key=lambda i: (i.kind, i.id))


def uptime_seconds(state: redis.Redis) -> int | None:
    """Return how long this Redis is up, in whole seconds rounded down; None if it does not report that.

    One that was down for longer than a lease shows no lease of a running service until the service renews it.
    """
    answer: Any = state.info("server")
    found = answer.get("uptime_in_seconds")
    return None if found is None else int(found)


def _instance(kind: str, identity: str, row: Any) -> Instance:
    """Return the instance of a lease. Raise ValueError or TypeError for a malformed one, or another's."""
    found = Instance(**row)
    if (found.kind, found.id) != (kind, identity):
        raise ValueError(f"it is of {found.kind!r} {found.id!r}")
    texts = (found.address, found.metrics_address, found.life)
    if not all(isinstance(text, str) for text in texts) or not isinstance(found.stats, dict):
        raise TypeError("a value has another type")
    return found._replace(started_at=float(found.started_at), beaten_at=float(found.beaten_at), epoch=int(found.epoch),
                          revision=int(found.revision), quiet=int(found.quiet))
