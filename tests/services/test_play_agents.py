"""Agents of a played game on a real inference server: one recurrent state for the whole game, through failures."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from five.clients.inference import WANT_STATE, ActResult, InferenceClient
from five.services.play.agents import STATE_EVERY, Agents, AgentsLost, Answer
from rapid.rpc.errors import CallFailed, StatusCode
from tests.services.counting import HEROES, LAYOUT, Versions, observations
from tests.services.inference_server import QUICK, RPC, InferenceServer


@pytest.fixture
async def server() -> AsyncIterator[InferenceServer]:
    async with InferenceServer(Versions(0, 7)) as s:
        yield s


def client(*servers: InferenceServer, quick: bool = False) -> InferenceClient:
    return InferenceClient([s.address for s in servers], QUICK if quick else RPC, LAYOUT.hash,
                           sparse=("shared", "private"), epoch=1)


def seen(step: int) -> dict[str, Any]:
    return observations(float(step), float(step) + 0.5)


async def answered(agents: Agents, step: int) -> Answer:
    agents.request(step, seen(step))
    assert agents._pending is not None
    await asyncio.wait({agents._pending})
    found = agents.take_answer(step)
    assert found is not None
    return found


def chosen(answer: Answer) -> list[int]:
    return [int(answer.actions[side, 0, 0]) for side in range(2)]


async def test_sessions_cover_the_whole_game(server: InferenceServer) -> None:
    async with client(server) as c:
        agents = Agents(c, {0: 7, 1: 0}, HEROES)
        for step in range(40):
            answer = await answered(agents, step)
            assert answer.actions.shape == (2, HEROES, 6)
            assert chosen(answer) == [(step + 1) % 7] * 2  # the counting policy returns its number of steps
        assert agents.late == 0 and agents.seconds > 0
        await agents.close(seen(40))


async def test_bot_side_has_no_session_and_no_actions(server: InferenceServer) -> None:
    async with client(server) as c:
        agents = Agents(c, {1: 0}, HEROES)
        answer = await answered(agents, 0)
        assert chosen(answer) == [0, 1]
        nobody = Agents(c, {}, HEROES)
        nobody.request(0, seen(0))
        assert nobody.take_answer(0) is None and nobody.late == 0 and not nobody.any


async def test_late_answer_applies_on_arrival_and_is_counted(
        server: InferenceServer) -> None:
    async with client(server) as c:
        agents = Agents(c, {0: 0, 1: 0}, HEROES)
        await answered(agents, 0)
        agents.request(1, seen(1))
        assert agents.take_answer(1) is None and agents.late == 1  # the game does not wait for it
        task = agents._pending
        assert task is not None
        agents.request(2, seen(2))  # ignored while a request is pending
        assert agents._pending is task
        await asyncio.wait({task})
        late = agents.take_answer(2)
        assert late is not None and late.timestep == 1 and chosen(late) == [2, 2] and agents.late == 2
        assert agents.take_answer(2) is None and agents.late == 3  # once
        assert chosen(await answered(agents, 3)) == [3, 3]  # seen: 0, 1 and 3


async def test_request_copies_the_observation(server: InferenceServer) -> None:
    async with client(server) as c:
        agents = Agents(c, {0: 0, 1: 0}, HEROES)
        arrays = seen(5)
        agents.request(0, arrays)
        for array in arrays.values():
            array[...] = 0
        assert agents._pending is not None
        await asyncio.wait({agents._pending})
        assert agents.take_answer(0) is not None
        found = await trace(c, agents)
        assert found[:, 0, 0].tolist() == [5.0, 5.5]


@pytest.mark.parametrize("steps", [1, STATE_EVERY - 1, STATE_EVERY, STATE_EVERY + 5, 3 * STATE_EVERY])
async def test_game_continues_on_another_server_with_its_state(steps: int) -> None:
    async with InferenceServer(Versions(0)) as first, InferenceServer(Versions(0)) as second, \
            client(first, second, quick=True) as c:
        agents = Agents(c, {0: 0, 1: 0}, HEROES)
        for step in range(steps):
            await answered(agents, step)
        await first.stop()
        for step in range(steps, steps + 3):
            assert chosen(await answered(agents, step)) == [(step + 1) % 7] * 2
        # The trace of everything that was seen and done is that of a game in which nothing was lost.
        async with InferenceServer(Versions(0)) as third, client(third) as d:
            whole = Agents(d, {0: 0, 1: 0}, HEROES)
            for step in range(steps + 3):
                await answered(whole, step)
            np.testing.assert_allclose(await trace(c, agents), await trace(d, whole), rtol=1e-6)


async def trace(c: InferenceClient, agents: Agents) -> Any:
    answer = await c.act(agents._sessions, agents._policies, np.full(2, WANT_STATE, np.uint8), seen(0))
    return answer.states["trace"]


async def test_repeated_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A game has seven timesteps a second."""
    fails = True

    class Flaky:
        async def act(self, *arguments: Any) -> ActResult:
            if fails:
                raise CallFailed(StatusCode.INTERNAL, "inference:7003", "Act", "refused by the test")
            return ActResult(np.zeros(0, np.int64), np.zeros((2, HEROES, 6), np.int16))

    inference: Any = Flaky()
    agents: Any = Agents(inference, {0: 7, 1: 7}, HEROES)
    for step, fails in enumerate((True, True, True, False, True, True)):
        agents.request(step, seen(step))
        await asyncio.wait({agents._pending})
        assert (agents.take_answer(step) is None) == fails
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2 and agents.late == 5


async def test_unavailable_version_ends_the_game(server: InferenceServer) -> None:
    async with client(server) as c:
        agents = Agents(c, {0: 99, 1: 0}, HEROES)
        agents.request(0, seen(0))
        assert agents._pending is not None
        await asyncio.wait({agents._pending})
        with pytest.raises(AgentsLost, match="99"):
            agents.take_answer(0)
