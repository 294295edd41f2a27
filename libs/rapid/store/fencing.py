"""Fencing of writes to a run: epoch and publisher's lease are checked inside Redis by the function that writes.

One group of optimizers holds the lease. Every acquisition gets the next fence number. A write carries its writer's
fence and epoch, and the function compares them first. So a writer that was replaced changes nothing, however long it
slept (M. Kleppmann, "How to do distributed locking", fencing tokens).
"""

import json
import logging
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import redis

from rapid.process_identity import ProcessIdentity
from rapid.store import functions
from rapid.store.errors import FencedOut, LeaseHeld
from rapid.store.idempotency import MAX_KEYS
from rapid.store.keys import Keys
from rapid.store.rows import decode_row
from rapid.store.transaction import APPLIED_MS, new_applied_key
from rapid.telemetry.metrics import counter

log = logging.getLogger(__name__)
REFUSED = counter("state", "refused_writes", "Writes to the run refused inside Redis, by reason: epoch (the run is in "
                  "a later one), lease (another process publishes), moved (the state that the write was based on has "
                  "changed).", ("reason",))
REASONS = ("epoch", "lease", "moved")
for _reason in REASONS:
    REFUSED.labels(_reason)

Command = Sequence[str]
# Required text of each key; None: the key must not exist.
Expected = Mapping[str, str | None]



@dataclass(frozen=True)
class FencingToken:
    """The right to write to a run: holder, epoch and fence.

    ``fence`` None is the right of a process that decided in ``epoch`` without the publisher's lease.
    """

    holder: str
    epoch: int
    fence: int | None

    def arguments(self) -> tuple[str, str, str]:
        """Return the arguments of a fenced function: epoch, fence, holder."""
        return str(self.epoch), "" if self.fence is None else str(self.fence), self.holder


def fenced_out(run: str, reason: str, fencing_token: FencingToken, what: str) -> FencedOut:
    """Return the error for a refused write, and count it."""
    REFUSED.labels(reason).inc()
    why = {"epoch": f"the run has left epoch {fencing_token.epoch}",
           "lease": f"{_display_name(fencing_token.holder)} no longer holds the publisher's lease",
           "moved": "the state that it was based on has changed meanwhile"}[reason]
    return FencedOut(reason, f"run {run!r}: {what} is refused: {why}")


def fenced_write(state: redis.Redis, keys: Keys, fencing_token: FencingToken, commands: Sequence[Command], what: str,
                 expected: Expected | None = None) -> None:
    """Run Redis commands in one step if the token is valid and every expected key has the given text.

    Commands are HDEL, HSET, PUBLISH, SET and XADD. One that begins with ONCE, idempotency keys and a key runs unless
    that key is recorded (`rapid.store.idempotency`), so the call may be repeated. Within a call, commands whose reply
    was lost with the connection run once. Errors contain ``what``. Raises FencedOut (having changed nothing),
    redis.RedisError.
    """
    applied = new_applied_key(keys)
    pairs = [[key] if text is None else [key, text] for key, text in (expected or {}).items()]
    outcome: Any = functions.call(state, "fenced_write", [*_written_keys(commands), applied],
                                  *fencing_token.arguments(), json.dumps(pairs),
                                  json.dumps([list(command) for command in commands]), keys.record, keys.publisher,
                                  str(MAX_KEYS), applied, str(APPLIED_MS))
    if outcome != b"written":
        raise fenced_out(keys.run, outcome.decode(), fencing_token, what)


def _written_keys(commands: Sequence[Command]) -> list[str]:
    """Return the keys that the commands write."""
    found: dict[str, None] = {}
    for command in commands:
        if command[0] == "ONCE":
            found |= {command[1]: None, command[4]: None}
        elif command[0] != "PUBLISH":
            found[command[1]] = None
    return list(found)


class PublisherLease:
    """The publisher's lease of a run, as one process requests it. ``who`` is shown to people."""

    def __init__(self, state: redis.Redis, run: str, who: str, ttl_seconds: float) -> None:
        self._redis = state
        self._keys = Keys(run)
        self._ttl = str(max(ttl_seconds, 0.001))
        self._process = ProcessIdentity.own()
        # The part behind '#' makes this holder unique among processes of that name.
        self.holder = f"{who} on {socket.gethostname()}, process {self._process.pid}#{secrets.token_hex(6)}"

    def acquire(self) -> FencingToken:
        """Acquire the lease; a repeated call returns the same one.

        A holder that is a dead process of this machine is replaced at once, one elsewhere when its lease has expired.
        Raises LeaseHeld naming the holder, LookupError when there is no run, redis.RedisError.
        """
        dead = ""
        while True:
            answer, first, second = self._request(dead)
            if answer == "acquired":
                return FencingToken(self.holder, int(second), int(first))
            if answer == "no run":
                raise LookupError(f"run {self._keys.run!r} does not exist")
            lease = decode_row(first, self._keys.publisher, _Lease.of)
            if dead or not lease.process.is_dead():
                raise LeaseHeld(self._keys.run, _display_name(lease.holder), lease.since, float(second))
            dead = lease.holder
            log.info("publisher's lease taken over from a dead process: %s", _display_name(dead))

    def _request(self, dead: str) -> tuple[str, str, str]:
        answer: Any = functions.call(self._redis, "acquire_publisher", [self._keys.publisher, self._keys.record],
                                     self.holder, json.dumps(self._process), self._ttl, dead)
        first, second, third = (part.decode() for part in answer)
        return first, second, third

    def renew(self, fencing_token: FencingToken) -> None:
        """Renew the lease, also when a killed Redis has forgotten it. Raise FencedOut when the lease or the epoch is
        lost."""
        answer: Any = functions.call(self._redis, "renew_publisher", [self._keys.publisher, self._keys.record],
                                     *fencing_token.arguments(), self._ttl, json.dumps(self._process))
        if answer != b"renewed":
            raise fenced_out(self._keys.run, answer.decode(), fencing_token, "renewing the publisher's lease")

    def release(self) -> None:
        """Release the lease if it is held. Later writes under it are refused."""
        functions.call(self._redis, "release_publisher", [self._keys.publisher], self.holder)


MAX_TIME = 1 << 36  # seconds since 1970 of the year 4147


class _Lease(NamedTuple):
    """The stored lease: its holder, the holder's process, the time of the acquisition, and whether it was released."""

    holder: str
    process: ProcessIdentity
    since: float
    released: bool

    @classmethod
    def of(cls, row: Any) -> "_Lease":
        since = float(row["since"])
        if not 0 <= since < MAX_TIME:
            raise ValueError(f"time {since}: 0 to {MAX_TIME} is possible")
        return cls(str(row["holder"]), ProcessIdentity(*json.loads(row["process"])), since, bool(row["released"]))


def publisher_name(state: redis.Redis, run: str) -> str | None:
    """Return the holder of the publisher's lease, for people; None without one."""
    text: Any = state.get(Keys(run).publisher)
    lease = None if text is None else decode_row(text, Keys(run).publisher, _Lease.of)
    return None if lease is None or lease.released else _display_name(lease.holder)


def _display_name(name: str) -> str:
    return name.partition("#")[0]
