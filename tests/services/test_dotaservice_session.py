"""Lockstep: who waits for whom, what a reset and a cancelled call leave behind."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dota.config import GameConfig
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice import metrics
from five.services.dotaservice.game_plan import GamePlan, game_plan
from five.services.dotaservice.session import Session
from rapid.rpc.errors import Conflict
from tests.services.dotaservice_client import CONTROLLED, IDLE, State, game_config

RULES = GameConfig(start_seconds=0.0, max_game_seconds=600.0, neutrals=False, runes=False)


def plan(max_seconds: float = 600.0, **message: Any) -> GamePlan:
    rules = RULES.model_copy(update={"max_game_seconds": max_seconds})
    return game_plan(game_config(**message), rules, DotaServiceConfig())


def session_of(pool: ThreadPoolExecutor, **settings: Any) -> Session:
    seeds = iter(range(1, 1000))
    return Session(DotaServiceConfig(**({"lockstep_seconds": 0.2} | settings)), pool, lambda: next(seeds))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture
async def session(pool: ThreadPoolExecutor) -> AsyncIterator[Session]:
    started = session_of(pool)
    await started.reset(plan())
    yield started
    started.close()


async def time_of(session: Session, team: int = 0) -> float:
    """Return the game time of the side's next observation."""
    status, state = await session.observe(team)
    assert status == pb.OK
    return round(State.FromString(state).dota_time, 3)


def value(metric: Any, *labels: str) -> float:
    return float((metric.labels(*labels) if labels else metric)._value.get())


async def test_both_sides_see_the_same_moments(session: Session) -> None:
    for step in range(1, 5):
        for team in (0, 1):
            assert await time_of(session, team) == pytest.approx(step * 0.5, abs=0.01)
            await session.act(team, None, [])


async def test_one_side_alone_plays_on(session: Session) -> None:
    times = []
    for _ in range(4):
        times.append(await time_of(session, 1))
        await session.act(1, None, [])
    assert times == pytest.approx([0.5, 1.0, 1.5, 2.0], abs=0.01)
    assert await time_of(session, 0) == times[-1], "the other side may look at any time"


async def test_observing_without_acting_goes_on(session: Session) -> None:
    assert [await time_of(session) for _ in range(3)] == pytest.approx([0.5, 1.0, 1.5], abs=0.01)


async def test_acting_before_observing_counts(session: Session) -> None:
    await session.act(0, 0.0, [])
    await session.act(1, None, [])
    assert await time_of(session) == pytest.approx(0.5, abs=0.01)


async def test_a_side_waits_for_the_actions_of_the_other(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool, lockstep_seconds=30.0)
    await session.reset(plan())
    for team in (0, 1):
        await time_of(session, team)
        await session.act(team, None, [])
    assert await time_of(session, 0) == pytest.approx(1.0, abs=0.01)
    await session.act(0, None, [])
    next_one = asyncio.create_task(time_of(session, 0))
    await asyncio.sleep(0.1)
    assert not next_one.done(), "Dire has not acted"
    assert await time_of(session, 1) == pytest.approx(1.0, abs=0.01)
    await session.act(1, None, [])
    assert await asyncio.wait_for(next_one, 10) == pytest.approx(1.5, abs=0.01)


async def test_a_side_that_was_late_is_waited_for_again(pool: ThreadPoolExecutor) -> None:
    """Its late actions are stale. If they released the other side, the next ones would be stale as well."""
    session = session_of(pool, lockstep_seconds=30.0)
    await session.reset(plan())
    await time_of(session, 0)
    await session.act(0, None, [])
    await time_of(session, 0)
    await session.act(0, None, [])
    await session.act(1, 0.0, [])
    next_one = asyncio.create_task(time_of(session, 0))
    await asyncio.sleep(0.1)
    assert not next_one.done(), "Dire has not acted on the newest observation"
    await time_of(session, 1)
    await session.act(1, None, [])
    assert await asyncio.wait_for(next_one, 10) == pytest.approx(1.5, abs=0.01)


async def test_a_side_that_stopped_acting_is_waited_for_once(session: Session) -> None:
    for team in (0, 1):
        await time_of(session, team)
        await session.act(team, None, [])
    before = value(metrics.WAITS)
    for _ in range(4):
        await time_of(session, 0)
        await session.act(0, None, [])
    assert value(metrics.WAITS) - before == 1


async def test_a_side_without_controlled_heroes_is_not_waited_for(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool, lockstep_seconds=30.0)
    await session.reset(plan(controls=[CONTROLLED, *[IDLE] * 9]))
    await session.act(1, None, [])
    for step in range(1, 4):
        assert await asyncio.wait_for(time_of(session, 0), 10) == pytest.approx(step * 0.5, abs=0.01)
        await session.act(0, None, [])


async def test_nothing_works_before_a_reset(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool)
    with pytest.raises(Conflict, match="call reset first"):
        await session.observe(0)
    with pytest.raises(Conflict, match="call reset first"):
        await session.act(0, None, [])


async def test_a_reset_replaces_the_game_and_ends_waits(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool, lockstep_seconds=30.0)
    await session.reset(plan())
    for team in (0, 1):
        await time_of(session, team)
        await session.act(team, None, [])
    await time_of(session, 0)
    before = value(metrics.ENDED, "reset")
    waiting = asyncio.create_task(session.observe(0))
    await asyncio.sleep(0.1)
    first, _ = await session.reset(plan())
    assert State.FromString(first).dota_time == pytest.approx(0.0, abs=0.01)
    assert await asyncio.wait_for(waiting, 10) == (pb.RESOURCE_EXHAUSTED, b"")
    assert value(metrics.ENDED, "reset") - before == 1
    assert await time_of(session, 0) == pytest.approx(0.5, abs=0.01)


async def test_the_end_has_a_status_and_no_state(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool)
    before = value(metrics.ENDED, "draw"), value(metrics.GAMES)
    await session.reset(plan(max_seconds=1.2))
    statuses = [(await session.observe(0))[0] for _ in range(5)]
    assert statuses[:2] == [pb.OK, pb.OK] and set(statuses[3:]) == {pb.RESOURCE_EXHAUSTED}
    assert await session.observe(1) == (pb.RESOURCE_EXHAUSTED, b"")
    await session.act(1, None, [])
    assert value(metrics.ENDED, "draw") - before[0] == 1 and value(metrics.GAMES) == before[1]
    await session.reset(plan())
    assert await time_of(session) == pytest.approx(0.5, abs=0.01) and value(metrics.GAMES) == before[1] + 1
    session.close()
    assert value(metrics.GAMES) == before[1]


async def test_a_cancelled_call_leaves_a_usable_game(session: Session) -> None:
    for _ in range(5):
        call = asyncio.create_task(session.observe(0))
        await asyncio.sleep(0.001)
        call.cancel()
        await asyncio.wait([call])
    first = await time_of(session, 0)
    assert 0.4 < first < 3.1
    assert await time_of(session, 0) == pytest.approx(first + 0.5, abs=0.01)


async def test_a_lost_answer_is_given_again(session: Session) -> None:
    """A client whose call was cancelled while the game advanced sees that moment and not the one after it."""
    await time_of(session, 0)
    call = asyncio.create_task(session.observe(0))
    while session._game is not None and session._game.tick < 2:
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    if call.cancelled():
        assert await time_of(session, 0) == pytest.approx(1.0, abs=0.01)


async def test_cancelled_call_wakes_the_side_that_waits(pool: ThreadPoolExecutor) -> None:
    session = session_of(pool, lockstep_seconds=3600.0)
    await session.reset(plan())
    for team in (0, 1):
        await time_of(session, team)
        await session.act(team, None, [])
    await time_of(session, 0)
    await time_of(session, 1)
    await session.act(1, None, [])
    waiting = asyncio.create_task(time_of(session, 1))  # for Radiant's actions
    await asyncio.sleep(0.1)
    call = asyncio.create_task(session.observe(0))  # instead of acting
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled() and await asyncio.wait_for(waiting, 10) == pytest.approx(1.5, abs=0.01)


async def test_simultaneous_calls_advance_once(session: Session) -> None:
    first = await asyncio.gather(time_of(session, 0), time_of(session, 1))
    assert first == pytest.approx([0.5, 0.5], abs=0.01)
