"""Advances whatever operation is under way, until the controller drains."""

import asyncio
import logging
from collections.abc import Callable

import redis

from five.services.controller.operations.backend import World
from five.services.controller.operations.engine import advance
from five.services.controller.operations.store import OperationStore
from rapid.rpc.errors import Unavailable

log = logging.getLogger(__name__)
STEPS_AT_ONCE = 50


def advance_once(store: OperationStore, world: World) -> bool:
    """Advances the operation under way until it waits for somebody. Returns whether anything changed."""
    changed = False
    for _ in range(STEPS_AT_ONCE):
        operation = store.going()
        if operation is None:
            break
        after = advance(operation, world)
        if after == operation:
            break
        changed = store.save(operation, after) or changed
        if after.over:
            log.info("operation %s is %s: %s", after.id, after.state.value, after.outcome)
    return changed


async def keep_advancing(store: OperationStore, world: World, seconds: float, draining: Callable[[], bool]) -> None:
    """Looks every ``seconds``. A store that is away is waited for: the documents tell where to go on."""
    while not draining():
        try:
            await asyncio.to_thread(advance_once, store, world)
        except (redis.RedisError, Unavailable, OSError) as error:
            log.warning("the operation under way cannot be advanced: %s", error)
        except Exception:
            # Whatever is wrong with one document, the controller goes on.
            log.exception("the operation under way cannot be advanced")
        await asyncio.sleep(seconds)
