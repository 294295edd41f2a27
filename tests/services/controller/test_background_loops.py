"""Background loops of the controller: a damaged document must not end the process."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.__main__ import keep_annealing
from rapid.store.state import RunState
from tests.services.live_controller import RUN


class Lifecycle:
    """Lifecycle that drains after a number of looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    @property
    def draining(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("document", [b"{", b'{"what": "is this"}'])
async def test_unreadable_anneal_does_not_end_the_loop(redis_client: redis.Redis, document: bytes) -> None:
    state, lifecycle = RunState(redis_client, RUN), Lifecycle(3)
    redis_client.set(state.keys.anneal, document)
    service: Any = SimpleNamespace(
        state=state, lifecycle=lifecycle, parameters=SimpleNamespace(head=lambda: 3),
        config=SimpleNamespace(services=SimpleNamespace(controller=SimpleNamespace(reconcile_seconds=0))))
    await asyncio.wait_for(keep_annealing(service), 10)
    assert lifecycle.left < 0
