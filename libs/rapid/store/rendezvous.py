"""Rendezvous of a process group in the state Redis: which nodes are in the next round, in which order.

No node is special: the group goes on without any of them, the first one included. Nodes that stop calling lose their
lease, on the server's clock.
"""

import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys

KEPT_MS = 24 * 3600 * 1000  # after the last call of any node

# The group is one JSON document: its round, the members of that round, and the nodes that wait for the next one. A
# member that came back to wait has left its round. The next round forms when no member of the present one is still at
# work, and either all nodes wait, or at least the minimum does and no other has come for the time of ``patience``.
# Key: the document. Arguments: command, node, token of this join, lease in ms, expiry of the document in ms; of "join":
# host, port, minimum, maximum, patience in ms.
_SCRIPT = """
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local text = redis.call('GET', KEYS[1])
local group = text and cjson.decode(text) or {round = 0, order = {}, members = {}, waiting = {}, changed = now}
local command, node, token, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local member = group.members[node]
local own = member and member.token == token

local function store()
  redis.call('SET', KEYS[1], cjson.encode(group), 'PX', ARGV[5])
end

if command == 'leave' then
  if own then group.members[node] = nil end
  local waiter = group.waiting[node]
  if waiter and waiter.token == token then group.waiting[node] = nil end
  store()
  return ''
end

if command == 'beat' then
  if not own then return '-1' end
  member.beat = now
  store()
  local members, waiting, returned = 0, 0, 0
  for _ in pairs(group.members) do members = members + 1 end
  for other, waiter in pairs(group.waiting) do
    if waiter.beat + lease > now then
      waiting = waiting + 1
      if group.members[other] then returned = returned + 1 end
    end
  end
  -- A full group needs no further node.
  if members >= tonumber(ARGV[6]) and returned == 0 then return '0' end
  return tostring(waiting)
end

if own then return cjson.encode({order = group.order, round = group.round, host = group.host, port = group.port}) end
for other, waiter in pairs(group.waiting) do
  if waiter.beat + lease <= now then
    group.waiting[other] = nil
    group.changed = now
  end
end
local waiter = group.waiting[node]
if not waiter or waiter.token ~= token then
  group.waiting[node] = {token = token, host = ARGV[6], port = tonumber(ARGV[7])}
  group.changed = now
end
group.waiting[node].beat = now
local working, order = {}, {}
for other, one in pairs(group.members) do
  if not group.waiting[other] and one.beat + lease > now then table.insert(working, other) end
end
for other in pairs(group.waiting) do table.insert(order, other) end
-- Shorter names first: the order of ordinals at their end.
table.sort(order, function(a, b) if #a ~= #b then return #a < #b end return a < b end)
local minimum, maximum = tonumber(ARGV[8]), tonumber(ARGV[9])
if #working > 0 or #order < minimum or (#order < maximum and group.changed + tonumber(ARGV[10]) > now) then
  store()
  return cjson.encode({waiting = #order, working = working})
end
group.members, group.order = {}, {}
for i = 1, math.min(#order, maximum) do
  local other = order[i]
  group.members[other] = {token = group.waiting[other].token, beat = now}
  if i == 1 then group.host, group.port = group.waiting[other].host, group.waiting[other].port end
  group.waiting[other] = nil
  table.insert(group.order, other)
end
group.round, group.changed = group.round + 1, now
store()
if not group.members[node] then return cjson.encode({waiting = #order - maximum, working = group.order}) end
return cjson.encode({order = group.order, round = group.round, host = group.host, port = group.port})
"""


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
        given: Sequence[str | int] = (command, self.node, self._token, self._lease_ms, KEPT_MS, *arguments)
        found: bytes = self._redis.eval(_SCRIPT, 1, self._key, *given)
        return found
