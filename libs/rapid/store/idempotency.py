"""Idempotency keys: a bounded set of names of applied changes, so that each change is applied once.

A change whose response was lost is repeated within seconds or minutes. The keys of a table are one sorted set in order
of insertion, without a clock. The oldest beyond ``MAX_KEYS`` are removed.
"""

from typing import Any

from rapid.store import functions

MAX_KEYS = 100_000  # more than an hour at 17 results per second, the maximum of a run of the paper's size


def is_recorded(client: Any, key: str, identity: str) -> bool:
    """Return whether the change was applied."""
    return client.zscore(key, identity) is not None


def next_position(client: Any, key: str, identity: str) -> int | None:
    """Return the position at which to record the key, None if it is recorded.

    A transaction calls it before MULTI.
    """
    position: int | None = functions.call(client, "next_position", [key], identity)
    return position


def record_key(pipeline: Any, key: str, identity: str, position: int) -> None:
    """Record the key at its position, within the transaction that applies its change."""
    pipeline.zadd(key, {identity: position}, nx=True)
    pipeline.zremrangebyrank(key, 0, -1 - MAX_KEYS)
