"""Run control of a rollout: when games may be played, and the schedules and anneal that they follow."""

import asyncio
import math
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from dota.config import GameConfig
from five.agent.config import RampConfig, ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.services.rollout.run_control import RunControl
from five.services.rollout.segment_builder import ScheduleValues
from rapid.store.anneal import AnnealStore
from rapid.store.errors import Corrupt
from rapid.store.series import Series
from rapid.store.state import RunState
from tests.waiting import eventually_async

CONFIGURED = SchedulesConfig(team_spirit=ScheduleConfig(
    initial=0.25, ramps=(RampConfig(start=0, length=10, from_=0.25, to=0.75),)))
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"])


class Lifecycle:
    """Status of the run and the process."""

    def __init__(self) -> None:
        self.active = True
        self.draining = False
        self.waits = 0

    async def wait_active(self) -> bool:
        self.waits += 1
        return True


class Run:
    """Run control of a run in real Redis, polled every 10 ms."""

    def __init__(self, client: redis.Redis, poll_seconds: float = 0.01) -> None:
        self.lifecycle = Lifecycle()
        self.state = RunState(client, "trial")
        rollout = SimpleNamespace(schedule_poll_seconds=poll_seconds)
        config = SimpleNamespace(schedules=CONFIGURED, game=GAME, services=SimpleNamespace(rollout=rollout))
        service: Any = SimpleNamespace(lifecycle=self.lifecycle, state=self.state, config=config)
        self.control = RunControl(service)

    def spirit(self, version: int = 0) -> float:
        return self.control.schedule_values(version, 1.0).team_spirit


@pytest.fixture
async def run(redis_client: redis.Redis) -> AsyncIterator[Run]:
    run = Run(redis_client)
    task = asyncio.create_task(run.control.poll())
    yield run
    task.cancel()


def test_games_pause_with_the_run_and_stop_with_the_process(redis_client: redis.Redis) -> None:
    run = Run(redis_client)
    states = {}
    for active in (True, False):
        for draining in (True, False):
            run.lifecycle.active, run.lifecycle.draining = active, draining
            states[active, draining] = run.control.is_paused, run.control.is_stopping
    # A draining process is not paused, so that it sends its segments and ends.
    assert states == {(True, False): (False, False), (False, False): (True, False), (True, True): (False, True),
                      (False, True): (False, True)}


async def test_wait_is_that_of_the_lifecycle(run: Run) -> None:
    await run.control.wait_until_active()
    assert run.lifecycle.waits == 1


def test_scheduled_values_are_those_of_the_version(redis_client: redis.Redis) -> None:
    control = Run(redis_client).control
    horizon = CONFIGURED.gae_horizon_seconds.initial
    assert control.schedule_values(5, 2.0) == ScheduleValues(0.5, horizon, 2.0)
    assert control.schedule_values(100, 2.0).team_spirit == 0.75
    assert control.schedule_values(-1, 0.0) == ScheduleValues(0.25, horizon, 1e-6)  # before the first version


async def test_changed_schedules_are_followed(run: Run) -> None:
    assert run.spirit() == 0.25
    changed = SchedulesConfig(team_spirit=ScheduleConfig(initial=0.9))
    run.state.set_document("schedules", dump_schedules(changed), "ada")
    await eventually_async(lambda: run.spirit() == 0.9)
    run.state.set_document("schedules", {"team_spirit": "high"}, "ada")
    await asyncio.sleep(0.05)
    assert run.spirit() == 0.9  # an invalid document changes nothing
    run.state.set_document("schedules", dump_schedules(CONFIGURED), "ada")
    await eventually_async(lambda: run.spirit() == 0.25)


@pytest.mark.parametrize("failure", [redis.ConnectionError("the store is down"), Corrupt("schedules are damaged")])
async def test_poll_goes_on_after_a_failure(run: Run, failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    read, failures = run.state.schedules, [failure] * 2

    def failing() -> Any:
        if failures:
            raise failures.pop()
        return read()

    run.state.schedules = failing  # type: ignore[method-assign]
    run.state.set_document("schedules", dump_schedules(SchedulesConfig(
        team_spirit=ScheduleConfig(initial=0.9))), "ada")
    await eventually_async(lambda: not failures)
    await eventually_async(lambda: run.spirit() == 0.9)
    messages = [m for m in caplog.messages if "cannot read schedules or anneal" in m]
    assert len(messages) == 2 and str(failure) in messages[0]


async def test_first_games_wait_for_the_first_poll(redis_client: redis.Redis) -> None:
    run = Run(redis_client)
    run.state.set_document("schedules", dump_schedules(SchedulesConfig(
        team_spirit=ScheduleConfig(initial=0.9))), "ada")
    waiting = asyncio.create_task(run.control.wait_until_polled())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    task = asyncio.create_task(run.control.poll())
    await asyncio.wait_for(waiting, 30)
    assert run.spirit() == 0.9
    await run.control.wait_until_polled()  # later calls return at once
    task.cancel()


async def test_failed_first_poll_delays_no_game(redis_client: redis.Redis) -> None:
    run = Run(redis_client, poll_seconds=600.0)
    run.state.set_document("schedules", {"team_spirit": "high"}, "ada")
    task = asyncio.create_task(run.control.poll())
    await asyncio.wait_for(run.control.wait_until_polled(), 30)
    task.cancel()


async def test_anneal_is_followed_and_ends(run: Run) -> None:
    seen: list[Any] = []
    run.control.anneal.update = seen.append  # type: ignore[method-assign]
    await eventually_async(lambda: seen == [None] * len(seen) != [])
    AnnealStore(run.state).change(lambda document: ({"id": "patch-1"}, "anneal.began", {}), "ada")
    await eventually_async(lambda: seen[-1] == {"id": "patch-1"})


async def test_run_is_read_at_the_configured_interval(redis_client: redis.Redis) -> None:
    run = Run(redis_client, poll_seconds=600.0)
    reads: list[Any] = []
    run.control.anneal.update = reads.append  # type: ignore[method-assign]
    task = asyncio.create_task(run.control.poll())
    await eventually_async(lambda: reads)
    await asyncio.sleep(0.1)
    assert len(reads) == 1
    task.cancel()


async def test_hero_steps_are_those_of_the_newest_record(run: Run) -> None:
    ramp = RampConfig(start=1000, length=1000, from_=0.2, to=0.4)
    changed = SchedulesConfig(team_spirit=ScheduleConfig(initial=0.2, ramps=(ramp,), unit="hero_steps"))
    run.state.set_document("schedules", dump_schedules(changed), "ada")
    await eventually_async(lambda: run.spirit(10**6) == 0.2)  # nothing is recorded yet
    Series(run.state.redis, "trial").extend("versions", [{"version": 1, "hero_steps": 900},
                                                         {"version": 2, "hero_steps": 1500}])
    await eventually_async(lambda: run.spirit(2) == pytest.approx(0.3))


def test_limit_of_games_is_infinite_from_the_games_own_on(redis_client: redis.Redis) -> None:
    run = Run(redis_client)
    limits = []
    for seconds in (GAME.max_game_seconds - 1, GAME.max_game_seconds):
        run.control._schedules = SchedulesConfig(game_seconds=ScheduleConfig(initial=seconds))
        limits.append(run.control.hyperparameters(0).game_seconds)
    assert limits == [GAME.max_game_seconds - 1, math.inf]
