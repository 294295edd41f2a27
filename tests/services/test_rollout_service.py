"""A rollout process ends within its grace period and sends what it can to its optimizers."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from five.clients.experience import ExperienceClient
from five.local.cluster import free_ports
from five.services.rollout import rollout_service
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.rollout_service import RolloutService, sending_seconds
from five.services.rollout.sender import Sender
from rapid.config import RpcConfig
from rapid.lifecycle import Lifecycle
from rapid.rpc.errors import CallFailed, StatusCode
from tests.services.counting import LAYOUT
from tests.services.test_epochs import made
from tests.services.test_rollout_sender import Optimizer, sender
from tests.waiting import eventually_async

GRACE_SECONDS = 60.0


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


async def run_service(lifecycle: Lifecycle, sender: Sender, group: _Group,
                      shown: list[list[GroupProgress]] | None = None, drain_seconds: float = 10.0) -> None:
    """Run a rollout service with one group until the process has drained. Append each update of the metrics to
    ``shown``."""
    updates = [] if shown is None else shown
    assignment: Any = SimpleNamespace(update=lambda: [0])
    rollout = SimpleNamespace(drain_seconds=drain_seconds, games=1, groups=1)
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
    control: Any = SimpleNamespace(is_stopping=False, poll=nothing.poll, wait_until_polled=nothing.wait_until_polled)
    meter: Any = SimpleNamespace(show=lambda progress, *_: updates.append(progress))
    await RolloutService(service, control, sender, assignment, matchmaker, nothing, [inference], nothing, meter,
                         nothing, [], make_group).run()


async def test_an_unreachable_optimizer_does_not_use_up_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending gets at most half of the grace period. The test shortens it to see that it ends."""
    codes: list[int] = []
    lifecycle = Lifecycle(10.0, exit_process=codes.append)
    s = Sender(lambda rank: ExperienceClient([f"127.0.0.1:{free_ports(1)[0]}"], RpcConfig(), LAYOUT.hash, "run",
                                             "rollout", epoch=1), 4)
    drain, given = s.drain, list[float]()

    async def hurry(seconds: float) -> int:
        given.append(seconds)
        return await asyncio.wait_for(drain(0.5), 9.0)

    monkeypatch.setattr(s, "drain", hurry)
    await run_service(lifecycle, s, _Group(lifecycle, s))
    assert codes == [] and lifecycle.draining
    assert len(given) == 1 and 0.0 < given[0] <= 5.0
    assert s.unsent == 1  # it is reported as lost, not as sent
    lifecycle.close()


async def test_drain_of_a_throttled_rollout_sends_every_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is full, as pacing keeps it, when SIGTERM arrives: games must not be cut off while they wait."""
    monkeypatch.setattr(rollout_service, "METRICS_SECONDS", 0.01)
    lifecycle = Lifecycle(GRACE_SECONDS, exit_process=lambda code: None)
    async with Optimizer() as optimizer:
        s = sender(optimizer)
        group = _ThrottledGroup(lifecycle, s)
        shown: list[list[GroupProgress]] = []
        running = asyncio.create_task(run_service(lifecycle, s, group, shown))
        # A window of 2, one waiting for the window, 3 in the queue.
        await eventually_async(lambda: s.unsent >= 6)
        await eventually_async(lambda: shown[-1] == [group.progress])
        lifecycle.drain("SIGTERM")
        await eventually_async(lambda: len(group.made) == 7, 4.0)  # games that wait are cut off after 5 s
        optimizer.learning.set()
        await running
        assert s.unsent == 0 and len(group.made) == 7
        assert {request.segment_id for request in optimizer.taken} == group.made
    lifecycle.close()


class _Parts:
    """A rollout service whose parts the test sets."""

    def __init__(self, epoch: int = 1) -> None:
        self.lifecycle = SimpleNamespace(active=True, draining=False, remaining_seconds=10.0)
        self.stopping = False
        self.polled = asyncio.Event()
        self.polled.set()
        self.served: list[Any] = []
        self.groups: list[Any] = []
        self.sender = SimpleNamespace(unsent=0)
        rollout = SimpleNamespace(drain_seconds=10.0, games=5, groups=2)
        service: Any = SimpleNamespace(lifecycle=self.lifecycle, epoch=epoch,
                                       config=SimpleNamespace(services=SimpleNamespace(rollout=rollout)))
        nothing: Any = _Nothing()
        parts = self

        class Control:
            @property
            def is_stopping(self) -> bool:
                return parts.stopping

            async def wait_until_polled(self) -> None:
                await parts.polled.wait()

        async def model() -> Any:
            answer = self.served.pop(0)
            if isinstance(answer, Exception):
                raise answer
            if not self.served:
                self.stopping = True
            return SimpleNamespace(newest_version=answer[0], epoch=answer[1])

        async def make_group(index: int, games: int) -> Any:
            async def play() -> None:
                self.played.append(index)
                self.begun_at.append(progress.newest_version)

            progress = GroupProgress()
            return SimpleNamespace(games=games, play=play, progress=progress)

        self.played: list[int] = []
        self.begun_at: list[int] = []
        control: Any = Control()
        inference: Any = SimpleNamespace(model=model)
        meter: Any = SimpleNamespace(recent=lambda progress, sender: {"groups": len(progress)})
        sender: Any = self.sender
        pools = [inference, nothing]  # of each group; the first is asked
        self.service = RolloutService(service, control, sender, nothing, nothing, nothing, pools, nothing, meter,
                                      nothing, self.groups, make_group)


def _group(steps: int = 0, idle: bool = True, server: str = "") -> Any:
    return SimpleNamespace(progress=GroupProgress(team_steps=steps, is_idle=idle), environment_server=server)


def test_rollout_is_ready_once_a_game_has_begun() -> None:
    parts = _Parts()
    assert parts.service.not_ready() == "inference has no version to play yet"
    parts.groups += [_group(), _group()]
    assert parts.service.not_ready() == "the first games have not begun"
    for group in parts.groups:
        group.progress.failure = "all 64 streams are in use"
    assert parts.service.not_ready() == "the first games have not begun; all 64 streams are in use"
    parts.lifecycle.active = False
    assert parts.service.not_ready() == ""  # a paused run begins no games
    parts.lifecycle.active = True
    parts.groups[1] = _group(steps=1)
    assert parts.service.not_ready() == ""


@pytest.mark.parametrize(("served", "says"), [
    ((-1, 1), "inference has no version to play yet"),
    (CallFailed(StatusCode.UNAVAILABLE, "inference:50051", "Model", "its certificate is not valid"),
     "inference does not respond: Model at inference:50051: its certificate is not valid (UNAVAILABLE)")],
    ids=["no version", "no answer"])
async def test_rollout_says_why_it_does_not_play_yet(served: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_service, "FIRST_VERSION_SECONDS", 0.0)
    unavailable = CallFailed(StatusCode.UNAVAILABLE, "inference:50051", "Model", "no server answers")
    parts = _Parts()
    parts.served = [unavailable, (-1, 1), unavailable, served]
    playing = asyncio.create_task(parts.service._play())
    await eventually_async(lambda: not parts.served)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    assert parts.service.not_ready() == says


def test_rollout_is_idle_when_paused_and_everything_is_acknowledged() -> None:
    parts = _Parts()
    parts.groups += [_group(), _group()]
    idle = {}
    for active in (False, True):
        for unsent in (0, 1):
            for group_idle in (True, False):
                parts.lifecycle.active, parts.sender.unsent = active, unsent
                parts.groups[1].progress.is_idle = group_idle
                idle[active, unsent, group_idle] = parts.service.is_idle()
    assert [case for case, is_idle in idle.items() if is_idle] == [(False, 0, True)]


def test_heartbeat_names_the_environment_servers_once() -> None:
    parts = _Parts()
    parts.groups += [_group(server="env-1:50051"), _group(server=""), _group(server="env-0:50051"),
                     _group(server="env-1:50051")]
    assert parts.service.stats() == {"groups": 4, "environments": ["env-0:50051", "env-1:50051"]}


@pytest.mark.parametrize(("served", "begins"), [
    ([(0, 1)], True), ([(5, 1)], True), ([(-1, 1)], False), ([(5, 2)], False), ([(-1, 2)], False)])
async def test_games_begin_with_a_version_of_this_epoch(served: list[Any], begins: bool,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_service, "FIRST_VERSION_SECONDS", 0.05)
    parts = _Parts()
    unavailable = CallFailed(StatusCode.UNAVAILABLE, "inference:50051", "Model", "no server answers")
    parts.served = [unavailable, (-1, 1), (3, 2), *served, (-1, 1)]
    if begins:
        parts.served += [(-1, 1)] * 3
    began = time.monotonic()
    await parts.service._play()
    assert (parts.played == [0, 1] and [group.games for group in parts.groups] == [3, 2]) == begins
    assert time.monotonic() - began >= 0.15  # it waits between two requests
    # Schedules and anneals of the first games are those of the served version.
    assert parts.begun_at == ([served[0][0]] * 2 if begins else [])


async def test_games_begin_after_the_schedules_are_read() -> None:
    parts = _Parts()
    parts.polled.clear()
    parts.served = [(3, 1), (-1, 1)]
    playing = asyncio.create_task(parts.service._play())
    await asyncio.sleep(0.05)
    assert parts.played == [] and parts.service.not_ready() == "the run's schedules are not read yet"
    parts.polled.set()
    await asyncio.wait_for(playing, 10)
    assert parts.played == [0, 1]


async def test_refusal_of_the_first_request_ends_the_process() -> None:
    parts = _Parts()
    parts.served = [CallFailed(StatusCode.UNAUTHENTICATED, "inference:50051", "Model", "wrong token")]
    with pytest.raises(CallFailed, match="wrong token"):
        await parts.service._play()


@pytest.mark.parametrize(("draining", "configured", "remaining", "seconds"), [
    (False, 10.0, 30.0, 0.0), (True, 10.0, 30.0, 10.0), (True, 10.0, 12.0, 6.0), (True, 10.0, 0.0, 0.0)])
def test_sending_leaves_half_of_the_remaining_time(draining: bool, configured: float, remaining: float,
                                                   seconds: float) -> None:
    lifecycle: Any = SimpleNamespace(draining=draining, remaining_seconds=remaining)
    assert sending_seconds(configured, lifecycle) == seconds


async def test_error_of_a_group_ends_the_process() -> None:
    lifecycle = Lifecycle(GRACE_SECONDS, exit_process=lambda code: None)

    class Failing(_Group):
        async def play(self) -> None:
            raise ValueError("the games are inconsistent")

    async with Optimizer() as optimizer:
        optimizer.learning.set()
        s = sender(optimizer)
        with pytest.raises(ValueError, match="the games are inconsistent"):
            await asyncio.wait_for(run_service(lifecycle, s, Failing(lifecycle, s)), 10)
    lifecycle.close()


async def test_group_that_does_not_end_is_cancelled_in_the_drain() -> None:
    lifecycle = Lifecycle(GRACE_SECONDS, exit_process=lambda code: None)
    ended: list[str] = []

    class Stuck(_Group):
        async def play(self) -> None:
            self._sender.put(made())
            lifecycle.drain("SIGTERM")
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("cancelled")

    async with Optimizer() as optimizer:
        optimizer.learning.set()
        s = sender(optimizer)
        began = time.monotonic()
        await asyncio.wait_for(run_service(lifecycle, s, Stuck(lifecycle, s), drain_seconds=2.0), 30)
        assert ended == ["cancelled"] and s.unsent == 0 and len(optimizer.taken) == 1
        assert time.monotonic() - began >= 0.9, "it has half of the time for sending"
    lifecycle.close()
