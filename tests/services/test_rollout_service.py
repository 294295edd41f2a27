"""A rollout process ends within its grace period and sends what it can to its optimizers."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from five.clients.experience import ExperienceClient
from five.local.cluster import free_ports
from five.services.rollout.game_group import GroupProgress
from five.services.rollout.rollout_service import RolloutService
from five.services.rollout.sender import Sender
from rapid.config import RpcConfig
from rapid.lifecycle import Lifecycle
from tests.services.counting import LAYOUT
from tests.services.test_epochs import made
from tests.services.test_rollout_sender import Optimizer, sender

GRACE_SECONDS = 2.0


class _Nothing:
    """A part without work: every coroutine method returns at once, ``run`` and ``poll`` wait."""

    def __getattr__(self, name: str) -> Any:
        async def coroutine(*_: object) -> None:
            await asyncio.sleep(3600 if name in ("run", "poll") else 0)

        return coroutine


class _Group:
    """A group that queues one segment and drains the process, like one whose run moves to the next epoch."""

    environment_server = ""

    def __init__(self, lifecycle: Lifecycle, sender: Sender) -> None:
        self.progress = GroupProgress()
        self._lifecycle = lifecycle
        self._sender = sender

    async def play(self) -> None:
        self._sender.put(made())
        await asyncio.sleep(0.05)
        self._lifecycle.drain("restarting")

    async def close(self) -> None: ...


class _ThrottledGroup(_Group):
    """A group whose optimizer accepts nothing until the process drains. At its end it queues its complete samples."""

    def __init__(self, lifecycle: Lifecycle, sender: Sender) -> None:
        super().__init__(lifecycle, sender)
        self.made: set[str] = set()

    async def play(self) -> None:
        while not self._lifecycle.draining:
            self._put()
            await self._sender.wait_for_capacity()
        self._put()

    def _put(self) -> None:
        segment = made()
        self.made.add(segment.segment_id)
        self._sender.put(segment)


async def run_service(lifecycle: Lifecycle, sender: Sender, group: _Group) -> None:
    """Run a rollout service with one group until the process has drained."""
    assignment: Any = SimpleNamespace(update=lambda: [0])
    rollout = SimpleNamespace(drain_seconds=10.0, games=1, groups=1)
    service: Any = SimpleNamespace(lifecycle=lifecycle, critical_tasks=lifecycle.critical_tasks, epoch=1,
                                   report_with=lambda not_ready, stats, is_idle: None,
                                   config=SimpleNamespace(services=SimpleNamespace(rollout=rollout)))
    nothing: Any = _Nothing()
    matchmaker: Any = SimpleNamespace(start=lambda tasks: None, close=nothing.close, unassigned=0)

    async def model() -> Any:
        return SimpleNamespace(newest_version=0, epoch=1)

    async def make_group(index: int, games: int) -> Any:
        return group

    inference: Any = SimpleNamespace(model=model, close=nothing.close)
    control: Any = SimpleNamespace(is_stopping=False, poll=nothing.poll)
    meter: Any = SimpleNamespace(show=lambda *_: None)
    await RolloutService(service, control, sender, assignment, matchmaker, nothing, [inference], nothing, meter,
                         nothing, [], make_group).run()


async def test_an_unreachable_optimizer_does_not_use_up_the_grace_period() -> None:
    codes: list[int] = []
    lifecycle = Lifecycle(GRACE_SECONDS, exit_process=codes.append)
    s = Sender(lambda rank: ExperienceClient([f"127.0.0.1:{free_ports(1)[0]}"], RpcConfig(), LAYOUT.hash, "run",
                                             "rollout", epoch=1), 4)
    began = time.monotonic()
    await run_service(lifecycle, s, _Group(lifecycle, s))
    assert codes == [] and lifecycle.draining
    assert time.monotonic() - began < GRACE_SECONDS
    assert s.unsent == 1  # it is reported as lost, not as sent
    lifecycle.close()


async def test_drain_of_a_throttled_rollout_sends_every_segment() -> None:
    """The queue is full, as pacing keeps it, when SIGTERM arrives: games must not be cut off while they wait."""
    lifecycle = Lifecycle(2 * GRACE_SECONDS, exit_process=lambda code: None)
    async with Optimizer() as optimizer:
        s = sender(optimizer)
        group = _ThrottledGroup(lifecycle, s)
        running = asyncio.create_task(run_service(lifecycle, s, group))
        while s.unsent < 6:  # a window of 2, one waiting for the window, 3 in the queue
            await asyncio.sleep(0.01)
        lifecycle.drain("SIGTERM")
        await asyncio.sleep(0.6 * GRACE_SECONDS)
        optimizer.learning.set()
        await running
        assert s.unsent == 0 and len(group.made) == 7
        assert {request.segment_id for request in optimizer.taken} == group.made
    lifecycle.close()
