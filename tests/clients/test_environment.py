"""The environment client against real loopback servers."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

import numpy as np
import pytest

from five.clients import wire
from five.clients.environment import EnvironmentClient
from five.protos.v1 import env_pb2, env_pb2_grpc
from rapid.config import RpcConfig
from rapid.packed_array import PackedArray
from rapid.rpc.errors import CallFailed, LayoutMismatch, StatusCode
from tests.clients.tensor_sets import encode_set
from tests.rapid.conftest import SECRET, at

LAYOUT = "0011223344556677"
H = 2


class CountingGames(env_pb2_grpc.EnvServiceServicer):
    """Games that count their steps and return the count as observation."""

    def __init__(self, sparse: Collection[str] = ()) -> None:
        self._sparse = sparse

    async def Play(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        counts, epoch = np.zeros(0, np.float32), 0
        async for request in request_iterator:
            kind = request.WhichOneof("kind")
            if kind == "create":
                if request.create.layout_hash != LAYOUT:
                    raise LayoutMismatch(request.create.layout_hash, LAYOUT)
                counts = np.zeros(request.create.games, np.float32)
                epoch = request.create.epoch
                games = np.arange(request.create.games)
            else:
                games = np.frombuffer(getattr(request, kind).games, np.int32)
                if games.size and games.max() >= counts.size:
                    raise ValueError(f"there is no game {games.max()}")
                counts[games] = counts[games] + 1 if kind == "step" else 0
            k = games.size
            shown = np.repeat(counts[games][:, None], 2, 1).astype(np.float16)
            yield env_pb2.PlayResponse(
                observations=encode_set({"count": shown}, LAYOUT, self._sparse),
                signals=np.zeros((k, 2, H, 3), np.float32).tobytes(), winners=np.zeros(k, np.uint8).tobytes(),
                game_time=counts[games].tobytes(), statistics=np.ones((k, 2, H, 2), np.float32).tobytes(),
                statistic_names=["last_hits", "denies"], step_us=3, epoch=epoch)


ADD_ENV = env_pb2_grpc.add_EnvServiceServicer_to_server


def actions(k: int) -> np.ndarray:
    return np.zeros((k, 2, H, 6), np.int16)


async def test_games_are_stepped_and_reset(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    async with EnvironmentClient(at(server), rpc_config, H, LAYOUT, SECRET, epoch=1) as games:
        shown = await games.open(4, seed=1)
        assert shown.observations["count"].shape == (4, 2) and games.games == 4
        some, others = np.array([0, 2], np.int32), np.array([1, 3], np.int32)
        first, second = await asyncio.gather(games.step(some, actions(2)), games.step(others, actions(2)))
        assert first.game_time.tolist() == [1, 1] == second.game_time.tolist()
        assert first.signals.shape == (2, 2, H, 3) and first.winners.tolist() == [0, 0]
        assert first.statistics.shape == (2, 2, H, 2) and first.statistic_names == ("last_hits", "denies")
        assert (await games.step(some, actions(2))).observations["count"][0, 0] == 2
        reset = await games.reset(some[:1], np.zeros((1, 2), np.uint8))
        assert reset.game_time.tolist() == [0]
        with pytest.raises(ValueError, match=r"actions have shape \[1, 2, 2, 6\], expected \[2, 2, 2, 6\]"):
            await games.step(some, actions(1))
        with pytest.raises(CallFailed, match="there is no game 9") as caught:
            await games.step(np.array([9], np.int32), actions(1))
        assert caught.value.code is StatusCode.INVALID_ARGUMENT
        with pytest.raises(CallFailed):
            await games.step(some, actions(2))


async def test_observations_stay_packed_on_request(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames(sparse=("count",)))
    for packed in (False, True):
        async with EnvironmentClient(at(server), rpc_config, H, LAYOUT, SECRET, epoch=1, packed=packed) as games:
            await games.open(3, seed=1)
            shown = (await games.step(np.array([0, 2], np.int32), actions(2))).observations["count"]
            assert shown.shape == (2, 2) and isinstance(shown, PackedArray) == packed
            assert (wire.unpack(shown) if isinstance(shown, PackedArray) else shown).tolist() == [[1, 1], [1, 1]]


async def test_lost_server_fails_every_call(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    games = EnvironmentClient(at(server), rpc_config, H, LAYOUT, SECRET, epoch=1)
    with pytest.raises(ValueError, match="call open first"):
        await games.step(np.zeros(1, np.int32), actions(1))
    await games.open(1, seed=1)
    await server.stop(0)
    with pytest.raises(CallFailed) as caught:
        await games.step(np.zeros(1, np.int32), actions(1))
    assert caught.value.may_retry
    await games.close()
    quick = rpc_config.model_copy(update={"deadline_seconds": 0.2})
    other = EnvironmentClient("127.0.0.1:1", quick, H, LAYOUT, epoch=1)
    with pytest.raises(CallFailed, match="no server responds at 127.0.0.1:1"):
        await other.open(1, seed=1)
    await other.close()


async def test_another_layout_is_refused(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    async with EnvironmentClient(at(server), rpc_config, H, "f" * 16, SECRET, epoch=1) as games:
        with pytest.raises(CallFailed, match=f"ffffffffffffffff.*{LAYOUT}"):
            await games.open(1, seed=1)
