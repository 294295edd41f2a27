"""A rollout process ends within its grace period, whatever became of its optimizers."""

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


async def test_an_unreachable_optimizer_does_not_use_up_the_grace_period() -> None:
    codes: list[int] = []
    lifecycle = Lifecycle(GRACE_SECONDS, exit_process=codes.append)
    sender = Sender(lambda rank: ExperienceClient([f"127.0.0.1:{free_ports(1)[0]}"], RpcConfig(), LAYOUT.hash, "run",
                                                  "rollout", epoch=1), 4)
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
        return _Group(lifecycle, sender)

    inference: Any = SimpleNamespace(model=model, close=nothing.close)
    control: Any = SimpleNamespace(is_stopping=False, poll=nothing.poll)
    meter: Any = SimpleNamespace(show=lambda *_: None)
    began = time.monotonic()
    await RolloutService(service, control, sender, assignment, matchmaker, nothing, [inference], nothing, meter,
                         nothing, [], make_group).run()
    assert codes == [] and lifecycle.draining
    assert time.monotonic() - began < GRACE_SECONDS
    assert sender.unsent == 1  # it is reported as lost, not as sent
    lifecycle.close()
