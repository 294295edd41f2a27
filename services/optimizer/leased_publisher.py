"""Publishing of versions under the publisher's lease, which rank 0 holds from before the first version to its end."""

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
    """Publisher (services.optimizer.interfaces) that needs the publisher's lease.

    ``lost`` is called once, from another thread, when another process has taken the lease; nothing can be published any
    more. The thread that renews the lease is one of the process's ``critical_tasks``.
    """

    def __init__(self, store: ParameterStore, lease: PublisherLease, epoch: int, lost: Callable[[str], None],
                 critical_tasks: CriticalTasks | None = None) -> None:
        self._store = store
        self._lease = lease
        self._epoch = epoch
        self._lost = lost
        self._critical_tasks = critical_tasks
        self._fencing_token: FencingToken | None = None
        self._ended = threading.Event()

    @property
    def fencing_token(self) -> FencingToken | None:
        """The fencing token of the lease; None before it is acquired and after it is lost."""
        return self._fencing_token

    def acquire(self, wait: Callable[[str], bool], seconds: float) -> bool:
        """Acquire the lease as soon as it is free and renew it every ``seconds``; return whether it is held.

        ``wait`` receives the reason for waiting, waits, and returns whether to give up. Raises FencedOut when the run
        is not in this process's epoch.
        """
        while True:
            try:
                found = self._lease.acquire()
            except (LeaseHeld, redis.RedisError) as error:
                if wait(str(error)):
                    return False
                continue
            if found.epoch != self._epoch:
                raise FencedOut("epoch", f"the run is in epoch {found.epoch}, this optimizer in epoch {self._epoch}")
            self._fencing_token = found
            self._start_renewing(found, seconds)
            return True

    def _start_renewing(self, fencing_token: FencingToken, seconds: float) -> None:
        def renew() -> None:
            self._renew_loop(fencing_token, seconds)

        if self._critical_tasks is None:
            threading.Thread(target=renew, name="publisher-lease", daemon=True).start()
        else:
            self._critical_tasks.thread("publisher-lease", renew, may_end=True).start()

    def _renew_loop(self, fencing_token: FencingToken, seconds: float) -> None:
        """Renew the lease. Renewing also restores a lease that Redis lost in a crash."""
        while not self._ended.wait(seconds):
            try:
                self._lease.renew(fencing_token)
            except FencedOut as error:
                if error.reason == "lease":
                    self._fencing_token = None
                    self._lost(str(error))
                # Otherwise the run is in another epoch: this process is about to restart, and its writes are refused.
                return
            except redis.RedisError as error:
                log.warning("publisher's lease not renewed: %s", error)

    def release(self) -> None:
        """Release the lease at a normal end of the process."""
        self._ended.set()
        self._fencing_token = None
        try:
            self._lease.release()
        except redis.RedisError:
            pass  # the lease expires by itself

    def head(self) -> int | None:
        """Return the newest version; None before the first."""
        return self._store.head()

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Publish a version. Raises FencedOut when another process holds the lease or the run is in another epoch."""
        fencing_token = self._fencing_token
        if fencing_token is None:
            raise FencedOut("lease", f"version {version} is not published: this optimizer has lost the publisher's "
                            "lease")
        try:
            self._store.publish(version, tensors, meta, fencing_token=fencing_token)
        except FencedOut as error:
            if error.reason != "lease":
                raise
            self._lease.renew(fencing_token)  # raises unless Redis only lost the lease
            self._store.publish(version, tensors, meta, fencing_token=fencing_token)
