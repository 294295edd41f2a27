"""Redis functions of a run: the Lua library that is loaded into the state Redis, and calls of its functions.

Services call functions (FCALL) and cannot run Lua of their own (EVAL). Only the controller, and a client without ACL
rules, may load the library. Its name contains a hash of its source, so two releases use one Redis at the same time.
Redis persists and replicates libraries.

A call whose function is missing changes nothing. A transaction would apply its other commands, so functions are only
called outside of transactions or before their MULTI.
"""

import logging
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

import redis
from redis.exceptions import NoPermissionError, ResponseError

from rapid.store import acl
from rapid.store.errors import FunctionsMissing
from rapid.store.keys import Keys

log = logging.getLogger(__name__)
_FOLDER = Path(__file__).parent / "lua"
# Files in the order of loading: later ones use helpers of earlier ones.
FILES = ("prelude", "archive", "idempotency", "fencing", "events", "idle", "leases", "ordinals", "parameters",
         "rendezvous")
KEPT_LIBRARIES = 4  # of the run's releases; the controller deletes older ones
_BACKOFF = (0.05, 1.0)  # first and longest pause between attempts, seconds

_refused_loads: "WeakSet[Any]" = WeakSet()  # connection pools whose user may not load functions


def _library() -> tuple[str, str]:
    """Return the library's name and source."""
    body = "\n".join((_FOLDER / f"{name}.lua").read_text(encoding="utf-8") for name in FILES)
    name = f"five_{sha256(body.encode()).hexdigest()[:12]}"
    return name, f"#!lua name={name}\nlocal LIBRARY = '{name}'\n{body}"


LIBRARY, SOURCE = _library()


def call(client: redis.Redis, function: str, keys: Sequence[str], *arguments: str) -> Any:
    """Call a function of the library, and return its reply.

    Keys to which the user lacks write access belong to the arguments. If the library is missing, it is loaded, or
    waited for as long as the client's timeout when this user may not load it. Raises FunctionsMissing after that, and
    redis.RedisError.
    """
    timeout = client.connection_pool.connection_kwargs.get("socket_timeout") or 0.0
    end, pause = time.monotonic() + timeout, _BACKOFF[0]
    while True:
        try:
            return client.fcall(f"{LIBRARY}_{function}", len(keys), *keys, *arguments)
        except ResponseError as error:
            if not str(error).startswith("Function not found"):
                raise
        try:
            load(client)
        except FunctionsMissing:
            if time.monotonic() + pause >= end:
                raise
            time.sleep(pause)
            pause = min(2 * pause, _BACKOFF[1])


def load(client: redis.Redis) -> None:
    """Load the library unless it is loaded. Raise FunctionsMissing when this user may not load functions."""
    if client.connection_pool in _refused_loads or not _may_load(client):
        raise FunctionsMissing(_reason())
    try:
        client.function_load(SOURCE)
        log.info("Redis functions loaded library=%s", LIBRARY)
    except NoPermissionError:
        _refused_loads.add(client.connection_pool)  # every further attempt would fill the server's ACL log
        raise FunctionsMissing(_reason()) from None
    except ResponseError as error:
        if "already exists" not in str(error):
            raise


def _may_load(client: redis.Redis) -> bool:
    """Return whether the client's user may load functions, or is none of the run's users.

    An attempt of another service would be an entry of the server's ACL log, in which operators look for attacks.
    """
    options = client.connection_pool.connection_kwargs
    user = options.get("username") or getattr(options.get("credential_provider"), "user", None)
    return user not in acl.SERVICES or "function|load" in acl.commands(user, "state")


def require(client: redis.Redis) -> None:
    """Raise FunctionsMissing unless functions of the library can be called, after an attempt to load it.

    Raises redis.RedisError.
    """
    try:
        client.fcall(f"{LIBRARY}_probe", 0)
    except NoPermissionError as error:
        raise FunctionsMissing(f"the state Redis has ACL rules of an earlier release: {error}") from None
    except ResponseError as error:
        if str(error).startswith("unknown command"):
            raise FunctionsMissing(f"the state Redis must be version 7 or newer: {error}") from None
        if not str(error).startswith("Function not found"):
            raise
        load(client)


def delete_old_libraries(client: redis.Redis, keys: Keys) -> None:
    """Record this release's library as the run's newest one, and delete all but the newest `KEPT_LIBRARIES`.

    A deleted library that another run of this Redis still uses is loaded again by that run's controller.
    """
    client.zadd(keys.libraries, {LIBRARY: time.time()})
    old: Any = client.zrange(keys.libraries, 0, -1 - KEPT_LIBRARIES)
    for name in old:
        try:
            client.function_delete(name.decode())
        except ResponseError as error:
            if "not found" not in str(error):
                raise
        client.zrem(keys.libraries, name)


def _reason() -> str:
    return f"the state Redis lacks this release's functions ({LIBRARY}); the controller loads them"
