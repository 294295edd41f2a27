"""Marks that something was done under a name, so that it is done once: the newest of a bounded number.

A change whose answer was lost is asked for again within seconds or minutes. The marks of a table are one sorted set, by
when they were made; beyond ``MARKS`` the oldest go, so that they cost as much after a year as after a day.
"""

import time
from typing import Any

import redis

MARKS = 100_000  # 17 results a second, the most that a run of the paper's size makes, fill them in more than an hour


def is_marked(client: Any, key: str, identity: str) -> bool:
    """Whether it was done."""
    return client.zscore(key, identity) is not None


def mark(pipeline: Any, key: str, identity: str) -> None:
    """Marks it, as part of the transaction that does it."""
    pipeline.zadd(key, {identity: time.time()})
    pipeline.zremrangebyrank(key, 0, -1 - MARKS)


# Runs each command whose mark is new. Keys: marks. Arguments: now, how many marks stay, then JSON: [[name, command]...]
APPLY_ONCE = """
local done = 0
for _, pair in ipairs(cjson.decode(ARGV[3])) do
  if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], pair[1]) == 1 then
    redis.call(unpack(pair[2]))
    done = done + 1
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
return done
"""


def apply_once(state: redis.Redis, key: str, texts: str) -> int:
    """Runs commands, each unless its name is marked, as one step that may be sent again: ``texts`` is JSON,
    [[name, command], ...]. Returns how many were run now."""
    done: Any = state.eval(APPLY_ONCE, 1, key, repr(time.time()), str(MARKS), texts)
    return int(done)
