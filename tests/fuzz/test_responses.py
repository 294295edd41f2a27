"""Responses of servers that do not follow the protocol: clients report a failed call, which their callers handle."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from five.clients.environment import EnvironmentClient
from five.clients.inference import RESET, InferenceClient
from five.protos.v1 import env_pb2, env_pb2_grpc, inference_pb2, inference_pb2_grpc
from five.services.rollout.environment import RemoteEnvironment
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.server import serve
from tests.fuzz.message_targets import GAME, LAYOUT, RPC, act_response, play_response
from tests.services.inference_server import QUICK

GAMES = 2
Change = Callable[[Any], object]


class Games(env_pb2_grpc.EnvServiceServicer):
    """Server that answers the creation of games correctly, and later requests with a changed response."""

    def __init__(self, change: Change) -> None:
        self._change = change

    async def Play(self, request_iterator: Any, context: Any  # type: ignore[override]
                   ) -> AsyncIterator[env_pb2.PlayResponse]:
        async for request in request_iterator:
            response = env_pb2.PlayResponse.FromString(play_response())
            if request.WhichOneof("kind") != "create":
                self._change(response)
            yield response


def _other_shape(response: env_pb2.PlayResponse) -> None:
    # One game instead of two would be copied into both.
    tensor = response.observations.tensors[0]
    tensor.data = tensor.data[:len(tensor.data) // 2]
    tensor.shape[0] = 1


def _one_game(response: env_pb2.PlayResponse) -> None:
    response.winners = bytes(1)
    for field in ("signals", "statistics", "game_time", "lineups"):
        data = getattr(response, field)
        setattr(response, field, data[:len(data) // 2])


@pytest.mark.parametrize("change", [
    lambda r: r.observations.tensors.pop(), _other_shape, _one_game, lambda r: r.observations.ClearField("tensors"),
    lambda r: setattr(r.observations.tensors[0], "name", "other"), lambda r: setattr(r, "signals", b"123"),
    lambda r: setattr(r, "game_time", b""), lambda r: setattr(r.observations, "layout_hash", "other")])
async def test_malformed_games_are_lost_games(change: Change) -> None:
    server = await serve("127.0.0.1:0", [(env_pb2_grpc.add_EnvServiceServicer_to_server, Games(change))], RPC)
    out = {name: np.zeros((GAMES, 2, *shape), dtype) for name, (shape, dtype) in LAYOUT.array_specs().items()}
    remote = RemoteEnvironment(lambda: EnvironmentClient(f"127.0.0.1:{server.port}", RPC, 1, LAYOUT.hash, epoch=1),
                               GAMES, 1, GAME.model_dump_json(), 1)
    try:
        with pytest.raises(ConnectionError, match="response is malformed"):
            await remote.reset(np.arange(GAMES, dtype=np.int32), np.zeros((GAMES, 2), np.uint8), out)
    finally:
        await remote.close()
        await server.stop(0)


class Policy(inference_pb2_grpc.InferenceServiceServicer):
    """Server with a changed response to every request."""

    def __init__(self, change: Change) -> None:
        self._change = change

    async def Act(self, request_iterator: Any, context: Any  # type: ignore[override]
                  ) -> AsyncIterator[inference_pb2.ActResponse]:
        async for request in request_iterator:
            response = inference_pb2.ActResponse.FromString(act_response())
            response.request_id = request.request_id
            self._change(response)
            yield response


@pytest.mark.parametrize("change", [
    lambda r: setattr(r, "actions", b"123"), lambda r: setattr(r, "versions", b""),
    lambda r: setattr(r, "unknown_sessions", b"123"), lambda r: setattr(r.states.tensors[0], "dtype", "object")])
async def test_malformed_actions_are_a_failed_call(change: Change) -> None:
    server = await serve("127.0.0.1:0", [(inference_pb2_grpc.add_InferenceServiceServicer_to_server, Policy(change))],
                         RPC)
    try:
        async with InferenceClient([f"127.0.0.1:{server.port}"], QUICK, "layout", epoch=1) as client:
            with pytest.raises(CallFailed, match="its response is malformed") as failure:
                await client.act(np.arange(2), np.full(2, -1), np.full(2, RESET, np.uint8), {})
            assert failure.value.code is StatusCode.INTERNAL
    finally:
        await server.stop(0)
