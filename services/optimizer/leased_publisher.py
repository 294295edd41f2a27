"""The first rank's right to write: the publisher's lease, held from before the first version to the end."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import redis

from rapid.critical_tasks import CriticalTasks
from rapid.store.errors import FencedOut, LeaseHeld
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.parameters import ParameterStore

log = logging.getLogger(__name__)


class LeasedPublisher:
    """services.optimizer.neighbours.Publisher under the publisher's lease. ``lost`` is called once, from another
    thread, when the lease has gone to somebody else: nothing can be published any more. Holding it is one of the
    process's ``critical_tasks`` parts."""

    def __init__(self, store: ParameterStore, lease: PublisherLease, epoch: int, lost: Callable[[str], None],
                 critical_tasks: CriticalTasks | None = None) -> None:
        self._store = store
        self._lease = lease
        self._epoch = epoch
        self._lost = lost
        self._critical_tasks = critical_tasks
        self._authority: FencingToken | None = None
        self._ended = threading.Event()

    @property
    def authority(self) -> FencingToken | None:
        """The right to write; None before the lease is held and after it is lost."""
        return self._authority

    def acquire(self, wait: Callable[[str], bool], seconds: float) -> bool:
        """Takes the lease as soon as nobody else has it, and holds it, renewed every ``seconds``.

        ``wait`` is told why it has to wait, waits, and returns whether to give up. Returns whether it is held. Raises
        FencedOut when the run has left the epoch that this process was started in.
        """
        while True:
            try:
                found = self._lease.acquire()
            except (LeaseHeld, redis.RedisError) as error:
                if wait(str(error)):
                    return False
                continue
            if found.epoch != self._epoch:
                raise FencedOut("epoch", f"the run is in epoch {found.epoch}, this optimizer began in {self._epoch}")
            self._authority = found
            self._begin(found, seconds)
            return True

    def _begin(self, authority: FencingToken, seconds: float) -> None:
        def hold() -> None:
            self._hold(authority, seconds)

        if self._critical_tasks is None:
            threading.Thread(target=hold, name="publisher-lease", daemon=True).start()
        else:
            self._critical_tasks.thread("holding the publisher's lease", hold, may_end=True).start()

    def _hold(self, authority: FencingToken, seconds: float) -> None:
        """Renews the lease; a Redis that has forgotten it (killed before it wrote it down) gets it back with that."""
        while not self._ended.wait(seconds):
            try:
                self._lease.renew(authority)
            except FencedOut as error:
                if error.reason == "lease":
                    self._authority = None
                    self._lost(str(error))
                # Else the run has moved on: the process is about to renew itself, and what it writes is refused.
                return
            except redis.RedisError as error:
                log.warning("the publisher's lease could not be renewed: %s", error)

    def release(self) -> None:
        """Gives the lease back; for a process that ends as it should."""
        self._ended.set()
        self._authority = None
        try:
            self._lease.release()
        except redis.RedisError:
            pass  # it runs out by itself

    def head(self) -> int | None:
        """The newest version; None before the first."""
        return self._store.head()

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Publishes under the lease. Raises FencedOut when it is another's, or the run is in another epoch."""
        authority = self._authority
        if authority is None:
            raise FencedOut("lease", f"version {version} is not published: this optimizer has lost the publisher's "
                            "lease")
        try:
            self._store.publish(version, tensors, meta, authority=authority)
        except FencedOut as error:
            if error.reason != "lease":
                raise
            self._lease.renew(authority)  # raises unless it was only forgotten
            self._store.publish(version, tensors, meta, authority=authority)
