"""Optimistic transactions on a run's state Redis, applied once.

A client repeats commands whose reply was lost with the connection. A transaction therefore also sets a key of its own,
``applied:*``, which expires. An attempt that finds the key changes nothing. Writes of `rapid.store.fencing` use the
same key inside their function.
"""

import secrets
import time
from collections.abc import Callable
from typing import Any

import redis

from rapid.store.keys import Keys

APPLIED_MS = 600_000  # expiry of the key of an applied attempt, above the timeout of all retries of an exchange
_TRIES = 100  # attempts of an optimistic transaction
_PAUSES = (0.05, 1.0)  # first and longest pause after a lost connection, seconds


def new_applied_key(keys: Keys) -> str:
    """Return the name of a key that marks one change as applied. Nobody can guess it."""
    return keys.applied(secrets.token_hex(16))


def transaction(state: redis.Redis, keys: Keys, change: Callable[[Any], Any], *watched: str) -> Any:
    """Run ``change`` (reads, then multi, then writes) until no watched key changes meanwhile. Return its result.

    A function as result is called with the replies of the writes, and returns the result. Writes whose replies were
    lost with the connection are not repeated: the function is called with None. The writes also set a key that expires,
    which tells the next attempt that they were applied. A full Redis refuses that key; removals are then applied
    without it. A lost connection is waited for as long as the client's timeout. Raises redis.RedisError while Redis is
    unreachable; whether the writes were applied is then unknown.
    """
    client: Any = state
    applied = new_applied_key(keys)
    results: dict[bytes, Any] = {}  # of the attempts that were sent, by the value that each sets
    result: Any = None
    replies: list[Any] | None = []
    full = False
    end = time.monotonic() + (client.connection_pool.connection_kwargs.get("socket_timeout") or float("inf"))
    pause = _PAUSES[0]
    with client.pipeline(transaction=True) as pipeline:
        for attempt in range(_TRIES):
            try:
                # Watched too, because the server may still execute an attempt of a connection that was lost.
                pipeline.watch(*watched, applied)
                found = pipeline.get(applied) if results else None
                if found is not None:
                    result, replies = results[found], None
                    break
                result = change(pipeline)
                if writes := len(pipeline):
                    results[str(attempt).encode()] = result
                    if not full:
                        pipeline.set(applied, attempt, px=APPLIED_MS)
                    replies = pipeline.execute()[:writes]
                break
            except redis.WatchError as error:
                # Also raised for a connection that is lost while keys are watched, without the client's pauses.
                lost = error.__context__
                if isinstance(lost, redis.ConnectionError | redis.TimeoutError):
                    if time.monotonic() + pause >= end:
                        raise lost from None
                    time.sleep(pause)
                    pause = min(2 * pause, _PAUSES[1])
            except redis.OutOfMemoryError:
                if full:
                    raise
                full = True
            finally:
                pipeline.reset()
        else:
            raise redis.RedisError(f"{', '.join(watched)}: {_TRIES} concurrent changes in a row")
    return result(replies) if callable(result) else result
