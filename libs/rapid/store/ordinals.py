"""Ordinals of live instances: 0, 1, 2, ... without holes, for pods whose names have none."""

from typing import Any, NamedTuple

import redis

from rapid.store import functions
from rapid.store.keys import Keys


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
        return Ordinal(*map(int, functions.call(self._redis, "claim_ordinal", [self._key, self._leases],
                                                identity)))
