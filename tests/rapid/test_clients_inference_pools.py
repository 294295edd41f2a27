"""Two pools of inference servers behind one client."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from rapid.clients.inference import NEWEST, REPLAY, RESET, RESTORE, WANT_STATE, InferenceClient
from rapid.clients.inference_pools import InferencePools
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed
from tests.rapid.conftest import TOKEN, at
from tests.rapid.test_clients_inference import ADD_INFERENCE, LAYOUT, CountingInference

SESSIONS = np.array([11, 21, 12, 22], np.int64)
POLICIES = np.array([NEWEST, 3, NEWEST, 4], np.int64)


class Pools:
    def __init__(self, newest: CountingInference, past: CountingInference, client: InferencePools, server: Any) -> None:
        self.newest, self.past, self.client, self.past_server = newest, past, client, server

    async def act(self, flags: Any, **more: Any) -> Any:
        return await self.client.act(SESSIONS, POLICIES, np.broadcast_to(np.asarray(flags, np.uint8), 4),
                                     {"x": np.zeros((4, 3), np.float16)}, **more)


@pytest.fixture
async def pools(start_server: Any, rpc_config: RpcConfig) -> AsyncIterator[Pools]:
    newest, past = CountingInference(9), CountingInference(3)
    one, two = await start_server(ADD_INFERENCE, newest), await start_server(ADD_INFERENCE, past)
    config = rpc_config.model_copy(update={"reconnect_seconds": 0.5})
    async with InferencePools(InferenceClient([at(one)], config, LAYOUT, TOKEN, epoch=1),
                              InferenceClient([at(two)], config, LAYOUT, TOKEN, epoch=1)) as client:
        yield Pools(newest, past, client, two)


async def test_sessions_go_to_the_pool_of_their_version(pools: Pools) -> None:
    result = await pools.act(RESET)
    assert (sorted(pools.newest.counts), sorted(pools.past.counts)) == ([11, 12], [21, 22])
    assert result.versions.tolist() == [9, 3, 9, 3] and result.unknown_sessions.size == 0
    assert result.actions.shape == (4, 2, 6) and result.values[:, 0].tolist() == [1, 1, 1, 1]
    pools.past.counts[22] = 7
    result = await pools.act([0, WANT_STATE, WANT_STATE, WANT_STATE])
    assert result.values[:, 0].tolist() == [2, 2, 2, 8]
    assert result.states["count"].tolist() == [1, 1, 7]
    result = await pools.act([WANT_STATE, 0, 0, 0])
    assert result.states["count"].tolist() == [2]
    assert not any(len(rows) for rows in (await pools.act(0)).states.values())
    assert (await pools.client.model()).newest_version == 9


async def test_states_and_replayed_actions_follow_their_sessions(pools: Pools) -> None:
    replayed = np.arange(3 * 2 * 6, dtype=np.int16).reshape(3, 2, 6)
    result = await pools.act([RESTORE, RESTORE | REPLAY, RESET | REPLAY, RESTORE | REPLAY],
                             states={"count": np.array([10, 20, 40], np.float32)}, replayed_actions=replayed)
    assert result.values[:, 0].tolist() == [11, 21, 1, 41]
    assert pools.newest.requests[0].replayed_actions == replayed[1:2].tobytes()
    assert pools.past.requests[0].replayed_actions == replayed[[0, 2]].tobytes()


async def test_what_one_pool_has_stepped_is_unknown_when_the_other_is_lost(pools: Pools) -> None:
    await pools.act(RESET)
    pools.past.counts.pop(21)
    result = await pools.act([0, 0, RESET, 0])
    # 22 was not stepped, but 11 was; 12 started over and will again.
    assert sorted(result.unknown_sessions.tolist()) == [11, 21]
    assert result.actions.size == 0


async def test_a_request_for_one_pool_does_not_need_the_other(pools: Pools) -> None:
    await pools.act(RESET)
    await pools.past_server.stop(0)
    some = np.array([0, 2])
    result = await pools.client.act(SESSIONS[some], POLICIES[some], np.zeros(2, np.uint8),
                                    {"x": np.zeros((2, 3), np.float16)})
    assert result.values[:, 0].tolist() == [2, 2]
    with pytest.raises(CallFailed):
        await pools.act(RESET)
