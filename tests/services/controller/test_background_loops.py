"""Background loops of the controller: a damaged document must not end the process."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.__main__ import keep_annealing, keep_reconciling
from rapid.store.state import RunState, Status
from tests.services.controller.anneal.stored_anneals import stored
from tests.services.live_controller import RUN


class Lifecycle:
    """Lifecycle that drains after a number of looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    @property
    def draining(self) -> bool:
        self.left -= 1
        return self.left < 0


async def anneal(state: RunState, head: Callable[[], int] = lambda: 3) -> None:
    """Run three passes of the loop."""
    lifecycle = Lifecycle(3)
    service: Any = SimpleNamespace(
        state=state, lifecycle=lifecycle, parameters=SimpleNamespace(head=head),
        config=SimpleNamespace(services=SimpleNamespace(controller=SimpleNamespace(reconcile_seconds=0))))
    await asyncio.wait_for(keep_annealing(service), 10)
    assert lifecycle.left < 0


@pytest.mark.parametrize("document", [b"{", b'{"what": "is this"}'])
async def test_unreadable_anneal_does_not_end_the_loop(redis_client: redis.Redis, document: bytes) -> None:
    state = RunState(redis_client, RUN)
    redis_client.set(state.keys.anneal, document)
    await anneal(state)


async def test_anneal_is_read_outside_of_the_event_loop(redis_client: redis.Redis) -> None:
    """A store that does not respond would stop the REST API meanwhile."""
    state = RunState(redis_client, RUN)
    callers: list[threading.Thread] = []
    stored(state)

    def head() -> int:
        callers.append(threading.current_thread())
        return 12

    await anneal(state, head)
    assert callers and threading.current_thread() not in callers


@pytest.mark.parametrize("damage", [
    lambda state: state.redis.set(state.keys.quiet("rollout", "0"), b"{"),
    lambda state: state.redis.zadd(state.keys.quiet_names("rollout"), {b"\xff": 1.0}),
    lambda state: state.redis.zadd(state.keys.leases("rollout"), {b"\xff": 1.0})])
async def test_what_a_service_has_damaged_does_not_end_the_loop(redis_client: redis.Redis,
                                                                damage: Callable[[RunState], object]) -> None:
    state, lifecycle = RunState(redis_client, RUN), Lifecycle(3)
    state.create({}, "test")
    state.transition(Status.RUNNING, "test")
    state.lease("rollout", "0", 60.0).renew()
    state.transition(Status.PAUSING, "test")
    damage(state)
    service: Any = SimpleNamespace(
        state=state, lifecycle=lifecycle, parameters=SimpleNamespace(head=lambda: 3), config=SimpleNamespace(
            name=RUN, lifecycle=SimpleNamespace(pause_timeout_seconds=60.0, lease_seconds=10.0),
            services=SimpleNamespace(controller=SimpleNamespace(reconcile_seconds=0))))
    await asyncio.wait_for(keep_reconciling(service), 10)
    assert lifecycle.left < 0 and (now := state.status()) is not None and now.status is Status.PAUSING
