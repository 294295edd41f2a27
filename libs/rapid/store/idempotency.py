"""Idempotency keys: a bounded set of names of applied changes, so that each change is applied once.

A change whose response was lost is repeated within seconds or minutes. The keys of a table are one sorted set in order
of insertion, without a clock. The oldest beyond ``MAX_KEYS`` are removed.
"""

from typing import Any

import redis

MAX_KEYS = 100_000  # more than an hour at 17 results per second, the maximum of a run of the paper's size

# Prepended to scripts. Records a key as the newest one. Returns whether it is new.
RECORD_KEY_LUA = """
local function mark(marks, name, most)
  local newest = redis.call('ZRANGE', marks, -1, -1, 'WITHSCORES')[2] or 0
  if redis.call('ZADD', marks, 'NX', newest + 1, name) == 0 then return false end
  redis.call('ZREMRANGEBYRANK', marks, 0, -1 - tonumber(most))
  return true
end
"""
_RECORD_ONE = RECORD_KEY_LUA + "return mark(KEYS[1], ARGV[1], ARGV[2])"
# Runs each command whose key is new. Keys: idempotency keys. Arguments: their maximum, JSON [[key, command], ...].
_APPLY_ONCE = RECORD_KEY_LUA + """
local done = 0
for _, pair in ipairs(cjson.decode(ARGV[2])) do
  if mark(KEYS[1], pair[1], ARGV[1]) then
    redis.call(unpack(pair[2]))
    done = done + 1
  end
end
return done
"""


def is_recorded(client: Any, key: str, identity: str) -> bool:
    """Return whether the change was applied."""
    return client.zscore(key, identity) is not None


def record_key(pipeline: Any, key: str, identity: str) -> None:
    """Record the key within the transaction that applies its change."""
    pipeline.eval(_RECORD_ONE, 1, key, identity, str(MAX_KEYS))


def apply_once(state: redis.Redis, key: str, texts: str) -> int:
    """Run commands in one repeatable step, each unless its key is recorded. Return how many ran now.

    ``texts`` is JSON, [[key, command], ...].
    """
    done: Any = state.eval(_APPLY_ONCE, 1, key, str(MAX_KEYS), texts)
    return int(done)
