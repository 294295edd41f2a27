"""Ordinals of live instances: 0, 1, 2, ... without holes, for pods whose names have none."""

from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys

# Gives an instance the lowest free ordinal and keeps it. Ordinals of instances without a lease become free, and the
# instance with the highest one moves into the hole, so one instance moves for each that ends. The first branch is the
# usual one and independent of the number of instances. Keys: ordinals, names of live instances. Argument: name.
_CLAIM = """
local own = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or -1)
local count = redis.call('ZCARD', KEYS[1])
if own >= 0 and own < count and count <= redis.call('ZCARD', KEYS[2]) then
  return {own, count}
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if name ~= ARGV[1] and not redis.call('ZSCORE', KEYS[2], name) then
    redis.call('ZREM', KEYS[1], name)
  end
end
local held = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
count = #held / 2
if own < 0 then
  count = count + 1
end
if own < 0 or own >= count then
  own = 0
  while held[2 * own + 2] and tonumber(held[2 * own + 2]) == own do
    own = own + 1
  end
  redis.call('ZADD', KEYS[1], own, ARGV[1])
end
return {own, count}
"""


class Ordinal(NamedTuple):
    """An instance's ordinal and the number of instances that have one."""

    ordinal: int
    instances: int


class Ordinals:
    """Ordinals of the live instances of one kind."""

    def __init__(self, state: redis.Redis, run: str, kind: str) -> None:
        keys = Keys(run)
        self._redis: Any = state
        self._key = keys.ordinals(kind)
        self._leases = keys.leases(kind)

    def claim(self, identity: str) -> Ordinal:
        """Return the instance's ordinal, which is below the number of instances once all have called this again.

        Call it periodically: an instance may get a lower ordinal after others have ended. Raises redis.RedisError.
        """
        return Ordinal(*map(int, self._redis.eval(_CLAIM, 2, self._key, self._leases, identity)))
