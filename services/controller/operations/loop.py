"""Loop that advances the active operation until the controller drains."""

import asyncio
import logging
from collections.abc import Callable

import redis

from five.services.controller.operations.backend import OperationBackend
from five.services.controller.operations.engine import advance
from five.services.controller.operations.store import OperationStore

log = logging.getLogger(__name__)
MAX_CHANGES_PER_PASS = 50


def advance_once(store: OperationStore, backend: OperationBackend) -> bool:
    """Advance the active operation until it has to wait. Return whether anything changed."""
    changed = False
    for _ in range(MAX_CHANGES_PER_PASS):
        operation = store.active()
        if operation is None:
            break
        after = advance(operation, backend)
        if after == operation:
            break
        changed = store.save(operation, after) or changed
        if after.is_over:
            log.info("operation %s is %s: %s", after.id, after.state.value, after.outcome)
    return changed


async def run_operation_loop(store: OperationStore, backend: OperationBackend, seconds: float,
                             draining: Callable[[], bool]) -> None:
    """Advance the active operation every ``seconds``. While a store is unavailable, retry."""
    while not draining():
        try:
            await asyncio.to_thread(advance_once, store, backend)
        except (redis.RedisError, OSError) as error:
            log.warning("active operation cannot be advanced: %s", error)
        except Exception:
            # An invalid document must not stop the controller.
            log.exception("active operation cannot be advanced")
        await asyncio.sleep(seconds)
