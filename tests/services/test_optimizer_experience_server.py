"""The optimizer's server accepts segments of the run's layout and shows its buffer until training ends."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from five.agent.learning.segments import Segment
from five.clients.experience import ACCEPTED, ExperienceClient
from five.run.config import RunConfig
from five.services.optimizer import experience_server
from five.services.optimizer.experience_server import serve_experience
from tests.services.optimizer_cases import GAME, LAYOUT, LEARNING, MODEL, UNROLL, intake, segment
from tests.services.test_epochs import RPC
from tests.services.test_optimizer_metrics import value
from tests.waiting import eventually_async


class Server:
    """A server at version 2 in epoch 4 of a run that is not active; it ends after ``training_ends``."""

    def __init__(self) -> None:
        self.training: Any = SimpleNamespace(intake=intake(), version=2)
        self.training.intake.version = 2
        self.training_ends = threading.Event()
        self.addresses: list[str] = []
        self.reasons: list[str] = []
        config = RunConfig(name="trial", game=GAME, model=MODEL, learning=LEARNING, rpc=RPC)
        self.service: Any = SimpleNamespace(
            config=config, epoch=4, lifecycle=SimpleNamespace(active=False), callers=None,
            listen_address=lambda port: f"127.0.0.1:{port}", announce=self.announce,
            report_with=lambda reason: self.reasons.append(reason()))

    def announce(self, port: int) -> str:
        self.addresses.append(f"127.0.0.1:{port}")
        return self.addresses[-1]

    async def run(self) -> None:
        thread = threading.Thread(target=self.training_ends.wait)
        thread.start()
        try:
            await serve_experience(self.service, self.training, LAYOUT, 0, thread)
        finally:
            self.training_ends.set()
            thread.join()


async def test_server_accepts_segments_until_training_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is paused, so that pacing delays no acknowledgement."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(experience_server, "asyncio", SimpleNamespace(sleep=sleep))
    server = Server()
    server.training.intake.may_admit = lambda: False
    serving = asyncio.create_task(server.run())
    await eventually_async(lambda: server.addresses or serving.done())
    async with ExperienceClient(server.addresses, RPC, LAYOUT.hash, "trial", "rollout", epoch=4) as client:
        await client.push(Segment(segment(version=1), 2, 1.0, 2.0, 2 * UNROLL, 1, 1))
        assert await client.flush(10) and client.verdicts[ACCEPTED] == 1
        await eventually_async(lambda: value("buffer_samples") == 2)
        assert value("buffer_age_versions", statistic="oldest") == 1.0
        assert server.reasons == [""] and not serving.done(), "it is ready, and serves while training runs"
    server.training_ends.set()
    await asyncio.wait_for(serving, 10)
    assert set(pauses) == {0.5}, "metrics are updated twice a second"
    host, _, port = server.addresses[0].rpartition(":")
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(host, int(port))
