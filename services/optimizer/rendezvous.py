"""Rendezvous of torch's elastic agents through the state Redis, so that no pod of a group is special."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import redis
from torch._C._distributed_c10d import HashStore
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousInfo, RendezvousStoreInfo

from rapid.store.rendezvous import GroupRendezvous, Round, Waiting

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25  # between two calls of a node that waits for the round
LOG_SECONDS = 60.0


class RedisRendezvous(RendezvousHandler):
    """Rendezvous handler of one node's agent.

    Each node offers the address of a store for the ranks; that of the round's first node is used. A thread renews the
    node's lease every ``beat_seconds``. While Redis is unavailable ranks continue, and a round that is due waits.

    ``waiting`` is a file that exists while the node waits for a round and says what for; the pod's probes read it.
    With ``hides_first_wait`` it does not exist before the node's first round. A rolling update replaces that node last,
    so it is the one whose pod shows whether the group has started.
    """

    def __init__(self, group: GroupRendezvous, name: str, host: str, free_port: Callable[[], int], beat_seconds: float,
                 waiting: Path | None, hides_first_wait: bool) -> None:
        self._group = group
        self._name = name
        self._host = host
        self._free_port = free_port
        self._beat_seconds = beat_seconds
        self._waiting = waiting
        self._hides_wait = hides_first_wait
        self._nodes_waiting = 0
        self._in_round = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="rendezvous-lease", daemon=True).start()

    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for the next round, however long, and return this node's rank in it."""
        self._in_round = threading.Event()  # the answer to a renewal under way is about the previous round
        self._group.begin()
        port, began, reported, shown = self._free_port(), time.monotonic(), 0.0, ""
        while True:
            try:
                found = self._group.join(self._host, port)
                if isinstance(found, Round):
                    break
                reason = self._describe(found)
            except redis.RedisError as error:
                reason = f"the state Redis does not respond: {error}"
            if reason != shown and self._waiting is not None and not self._hides_wait:
                self._waiting.write_text(f"{reason}\n", encoding="utf-8")
            if reason != shown or time.monotonic() - reported > LOG_SECONDS:
                log.info("waiting for the group's next round: %s", reason)
                shown, reported = reason, time.monotonic()
            time.sleep(POLL_SECONDS)
        self._nodes_waiting = 0
        self._in_round.set()
        self._hides_wait = False
        if self._waiting is not None:
            self._waiting.unlink(missing_ok=True)
        log.info("round complete round=%d nodes=%s seconds=%.1f", found.number, ",".join(found.nodes),
                 time.monotonic() - began)
        # The agent's store is not shared: with TORCH_ELASTIC_WORKER_IDENTICAL agents exchange nothing through it.
        return RendezvousInfo(HashStore(), found.nodes.index(self._group.node), len(found.nodes),
                              RendezvousStoreInfo(found.host, found.port))

    @staticmethod
    def _describe(found: Waiting) -> str:
        return f"{found.nodes} nodes wait" + (f"; still at work: {', '.join(found.working)}" if found.working else "")

    def _beat(self) -> None:
        failing = False
        while not self._ended.wait(self._beat_seconds):
            in_round = self._in_round
            if not in_round.is_set():
                continue
            try:
                waiting = self._group.beat()
            except redis.RedisError as error:
                if not failing:
                    log.warning("rendezvous lease not renewed: %s", error)
                failing = True
                continue
            failing = False
            if in_round is self._in_round:
                self._nodes_waiting = waiting

    def num_nodes_waiting(self) -> int:
        """Return how many nodes wait for the next round, as of the last renewal of the lease."""
        return self._nodes_waiting

    def shutdown(self) -> bool:
        """Leave the group, so that the others do not wait for this node's lease to expire."""
        self._ended.set()
        self._in_round.clear()
        try:
            self._group.leave()
        except redis.RedisError:
            return False  # the lease expires
        return True

    def get_backend(self) -> str:
        """Return the name of this kind of rendezvous."""
        return "redis"

    def get_run_id(self) -> str:
        """Return the group's name."""
        return self._name

    def is_closed(self) -> bool:
        """Return False: a group may always form another round."""
        return False

    def set_closed(self) -> None:
        """Do nothing: a group may always form another round."""
