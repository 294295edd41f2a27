"""Rendezvous of a process group in the state Redis: which nodes are in the next round, in which order.

No node is special: the group goes on without any of them, the first one included. Nodes that stop calling lose their
lease, on the server's clock.
"""

import json
import uuid
from typing import Any, NamedTuple

import redis

from rapid.store import functions
from rapid.store.keys import Keys

KEPT_MS = 24 * 3600 * 1000  # after the last call of any node


class Round(NamedTuple):
    """A complete round: its number, its nodes in the order of ranks, and the address that the first one reported."""

    number: int
    nodes: tuple[str, ...]
    host: str
    port: int


class Waiting(NamedTuple):
    """An incomplete round: how many nodes wait, and the nodes of the previous round that are still at work."""

    nodes: int
    working: tuple[str, ...]


class GroupRendezvous:
    """Client of one node for the rendezvous of ``group``.

    A round has ``minimum`` to ``maximum`` nodes. Fewer than the maximum begin after no node has come for
    ``patience_seconds``. A node without a call for ``lease_seconds`` is lost. Methods raise redis.RedisError.
    """

    def __init__(self, state: redis.Redis, run: str, group: str, node: str, minimum: int, maximum: int,
                 lease_seconds: float, patience_seconds: float) -> None:
        if not 1 <= minimum <= maximum:
            raise ValueError(f"nodes {minimum}:{maximum}: the minimum must be at least 1 and at most the maximum")
        self._redis: Any = state
        self._key = Keys(run).rendezvous(group)
        self._minimum, self._maximum = minimum, maximum
        self._lease_ms, self._patience_ms = int(lease_seconds * 1000), int(patience_seconds * 1000)
        self._token = ""
        self.node = node

    def begin(self) -> None:
        """Leave the present round. The calls of `join` after it are for the next one."""
        self._token = uuid.uuid4().hex

    def join(self, host: str, port: int) -> Round | Waiting:
        """Wait for the next round and return it once it is complete; call it again until then, within the lease.

        ``host`` and ``port`` are where this node's first process listens if the node is the first of the round.
        """
        answer = json.loads(self._call("join", host, port, self._minimum, self._maximum, self._patience_ms))
        if "round" in answer:
            return Round(int(answer["round"]), tuple(answer["order"]), answer["host"], int(answer["port"]))
        return Waiting(int(answer["waiting"]), tuple(answer["working"]))

    def beat(self) -> int:
        """Renew the lease; return how many nodes wait for the next round that this one should make way for.

        A node that is not in the present round, because its lease expired, counts itself.
        """
        found = int(self._call("beat", self._maximum))
        return 1 if found < 0 else found

    def leave(self) -> None:
        """Leave the round or the wait for one."""
        self._call("leave")

    def _call(self, command: str, *arguments: str | int) -> bytes:
        given = (command, self.node, self._token, self._lease_ms, KEPT_MS, *arguments)
        found: bytes = functions.call(self._redis, "rendezvous", [self._key], *map(str, given))
        return found
