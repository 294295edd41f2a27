"""Fencing of writes to a run: epoch and publisher's lease are checked inside Redis by the script that writes.

One group of optimizers holds the lease. Every acquisition gets the next fence number. A write carries its writer's
fence and epoch, and the script compares them first. So a writer that was replaced changes nothing, however long it
slept (M. Kleppmann, "How to do distributed locking", fencing tokens).
"""

import json
import logging
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from rapid.process_identity import ProcessIdentity
from rapid.store.errors import FencedOut, LeaseHeld
from rapid.store.idempotency import MAX_KEYS, RECORD_KEY_LUA
from rapid.store.keys import Keys
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

# Prepended to scripts. Returns why a write under this token is refused, or nil.
CHECK = """
local function refused(record, publisher, epoch, fence, holder)
  local run = redis.call('GET', record)
  if not run or cjson.decode(run)['epoch'] ~= tonumber(epoch) then return 'epoch' end
  if fence == '' then return nil end
  local lease = redis.call('GET', publisher)
  if not lease then return 'lease' end
  lease = cjson.decode(lease)
  if lease['released'] or lease['fence'] ~= tonumber(fence) or lease['holder'] ~= holder then return 'lease' end
  return nil
end
"""
_WRITE = CHECK + RECORD_KEY_LUA + """
local why = refused(ARGV[6], ARGV[7], ARGV[1], ARGV[2], ARGV[3])
if why then return why end
for _, pair in ipairs(cjson.decode(ARGV[4])) do
  if redis.call('GET', pair[1]) ~= (pair[2] or false) then return 'moved' end
end
for _, command in ipairs(cjson.decode(ARGV[5])) do
  if command[1] ~= 'ONCE' then
    redis.call(unpack(command))
  elseif mark(command[2], command[3], ARGV[8]) then
    redis.call(unpack(command, 4))
  end
end
return 'written'
"""
# Uses the server's clock. A lease is free when it is missing, released or expired, or when the caller knows that its
# holder is dead.
_ACQUIRE = """
local run = redis.call('GET', KEYS[2])
if not run then return {'no run', '', ''} end
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1e6
local text = redis.call('GET', KEYS[1])
local lease = text and cjson.decode(text)
local fence = lease and lease['fence'] or 0
local mine = lease and lease['holder'] == ARGV[1] and not lease['released']
if lease and not mine and not lease['released'] and now < lease['until'] and lease['holder'] ~= ARGV[4] then
  return {'held', text, tostring(lease['until'] - now)}
end
if not mine then fence = fence + 1 end
redis.call('SET', KEYS[1], cjson.encode({
  holder = ARGV[1], process = ARGV[2], fence = fence, released = false, ['until'] = now + tonumber(ARGV[3]),
  since = mine and lease['since'] or now}))
return {'acquired', string.format('%d', fence), string.format('%d', cjson.decode(run)['epoch'])}
"""
# A lease with a lower fence means that the server lost its last writes, so the caller's lease is restored.
_RENEW = CHECK + """
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1e6
local text = redis.call('GET', KEYS[1])
local lease = text and cjson.decode(text)
if not lease or lease['fence'] < tonumber(ARGV[2]) then
  lease = {holder = ARGV[3], process = ARGV[5], fence = tonumber(ARGV[2]), released = false, since = now}
  redis.call('SET', KEYS[1], cjson.encode(lease))
end
local why = refused(KEYS[2], KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if why then return why end
lease['until'] = now + tonumber(ARGV[4])
redis.call('SET', KEYS[1], cjson.encode(lease))
return 'renewed'
"""
_RELEASE = """
local lease = redis.call('GET', KEYS[1])
if not lease then return 0 end
lease = cjson.decode(lease)
if lease['holder'] ~= ARGV[1] then return 0 end
lease['released'] = true
redis.call('SET', KEYS[1], cjson.encode(lease))
return 1
"""


@dataclass(frozen=True)
class FencingToken:
    """The right to write to a run: holder, epoch and fence.

    ``fence`` None is the right of a process that decided in ``epoch`` without the publisher's lease.
    """

    holder: str
    epoch: int
    fence: int | None

    def arguments(self) -> tuple[str, str, str]:
        """Return the arguments of ``CHECK``'s function: epoch, fence, holder."""
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

    A command that begins with ONCE, idempotency keys and a key runs unless that key is recorded
    (`rapid.store.idempotency`), so the step may be repeated. Errors contain ``what``. Raises FencedOut (having changed
    nothing), redis.RedisError.
    """
    pairs = [[key] if text is None else [key, text] for key, text in (expected or {}).items()]
    # The script declares no keys, because some are only compared and the ACL requires write access to declared keys.
    outcome: Any = state.eval(_WRITE, 0, *fencing_token.arguments(), json.dumps(pairs),
                              json.dumps([list(command) for command in commands]), keys.record, keys.publisher,
                              str(MAX_KEYS))
    if outcome != b"written":
        raise fenced_out(keys.run, outcome.decode(), fencing_token, what)


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
            lease = json.loads(first)
            if dead or not ProcessIdentity(*json.loads(lease["process"])).is_dead():
                raise LeaseHeld(self._keys.run, _display_name(lease["holder"]), lease["since"], float(second))
            dead = lease["holder"]
            log.info("publisher's lease taken over from a dead process: %s", _display_name(dead))

    def _request(self, dead: str) -> tuple[str, str, str]:
        answer: Any = self._redis.eval(_ACQUIRE, 2, self._keys.publisher, self._keys.record, self.holder,
                                       json.dumps(self._process), self._ttl, dead)
        first, second, third = (part.decode() for part in answer)
        return first, second, third

    def renew(self, fencing_token: FencingToken) -> None:
        """Renew the lease, also when a killed Redis has forgotten it. Raise FencedOut when the lease or the epoch is
        lost."""
        answer: Any = self._redis.eval(_RENEW, 2, self._keys.publisher, self._keys.record, *fencing_token.arguments(),
                                       self._ttl, json.dumps(self._process))
        if answer != b"renewed":
            raise fenced_out(self._keys.run, answer.decode(), fencing_token, "renewing the publisher's lease")

    def release(self) -> None:
        """Release the lease if it is held. Later writes under it are refused."""
        self._redis.eval(_RELEASE, 1, self._keys.publisher, self.holder)


def publisher_name(state: redis.Redis, run: str) -> str | None:
    """Return the holder of the publisher's lease, for people; None without one."""
    text: Any = state.get(Keys(run).publisher)
    lease = None if text is None else json.loads(text)
    return None if lease is None or lease["released"] else _display_name(lease["holder"])


def _display_name(name: str) -> str:
    return name.partition("#")[0]
