"""Marks that something was done under a name, so that it is done once: the newest of a bounded number.

A change whose answer was lost is asked for again within seconds or minutes. The marks of a table are one sorted set, in
the order in which they were made, by no clock: beyond ``MAX_KEYS`` the oldest go, so that they cost as much after a year
as after a day.
"""

from typing import Any

import redis

MAX_KEYS = 100_000  # 17 results a second, the most that a run of the paper's size makes, fill them in more than an hour

# Prepended to scripts. Marks a name as the newest one; whether it was not marked yet.
RECORD_KEY_LUA = """
local function mark(marks, name, most)
  local newest = redis.call('ZRANGE', marks, -1, -1, 'WITHSCORES')[2] or 0
  if redis.call('ZADD', marks, 'NX', newest + 1, name) == 0 then return false end
  redis.call('ZREMRANGEBYRANK', marks, 0, -1 - tonumber(most))
  return true
end
"""
_MARK_ONE = RECORD_KEY_LUA + "return mark(KEYS[1], ARGV[1], ARGV[2])"
# Runs each command whose mark is new. Keys: marks. Arguments: how many marks stay, then JSON: [[name, command]...]
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
    """Whether it was done."""
    return client.zscore(key, identity) is not None


def record_key(pipeline: Any, key: str, identity: str) -> None:
    """Marks it, as part of the transaction that does it."""
    pipeline.eval(_MARK_ONE, 1, key, identity, str(MAX_KEYS))


def apply_once(state: redis.Redis, key: str, texts: str) -> int:
    """Runs commands, each unless its name is marked, as one step that may be sent again: ``texts`` is JSON,
    [[name, command], ...]. Returns how many were run now."""
    done: Any = state.eval(_APPLY_ONCE, 1, key, str(MAX_KEYS), texts)
    return int(done)
