"""Ports of the server: one a game, open to clients without tokens, on this machine unless the configuration says so."""

import asyncio
import socket
import time

import grpc.aio
import pytest

from five.local.cluster import free_ports, is_free
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config import RunConfig
from five.services.dotaservice.server import MAX_REQUEST_MEBIBYTES, open_rpc, start_server
from rapid.config import RpcConfig
from tests.services.dotaservice_client import DIRE, RADIANT, Client, answer, game_config


def first_of_two_free_ports() -> int:
    return next(port for port in free_ports(100) if is_free("127.0.0.1", port + 1))


def config(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"services": {"dotaservice": settings}, "seed": 3})


async def test_games_have_consecutive_ports() -> None:
    first = first_of_two_free_ports()
    server = await start_server(config(port=first, games=2))
    try:
        assert server.ports == [first, first + 1]
        assert all(running.services == ("DotaService",) for running in server.servers)
    finally:
        await server.stop(0)


async def test_a_taken_port_is_refused_and_frees_the_others() -> None:
    first = first_of_two_free_ports()
    with socket.create_server(("127.0.0.1", first + 1)):
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{first + 1}"):
            await start_server(config(port=first, games=2))
    server = await start_server(config(port=first, games=2))
    await server.stop(0)


async def test_the_command_lines_port_replaces_the_first() -> None:
    server = await start_server(config(), port=0)
    assert server.ports != [13337] and server.ports[0] > 0
    await server.stop(0)


def test_clients_need_neither_token_nor_certificate() -> None:
    rpc = open_rpc(RpcConfig())
    assert not rpc.require_token and rpc.tls is None and rpc.max_message_mebibytes == MAX_REQUEST_MEBIBYTES
    assert RpcConfig().require_token, "other services keep theirs"


async def test_many_games_end_together() -> None:
    server = await start_server(config(port=0, games=8, lockstep_seconds=60.0))
    waiting = []
    async with Client(server.ports[0]) as client:
        await client.reset(game_config())
        for team in (RADIANT, DIRE):
            state = (await client.observe(team)).world_state
            await client.act(answer(state), team)
        await client.observe()
        waiting.append(asyncio.create_task(client.observe()))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await server.stop(0.5)
        assert time.monotonic() - began < 30.0, "less than the wait for the other side's action"
        await asyncio.wait(waiting, timeout=5)
        assert waiting[0].exception() is not None


async def test_the_default_address_is_this_machine_alone() -> None:
    assert config().services.dotaservice.host == "127.0.0.1"


async def test_the_same_seed_gives_the_same_games() -> None:
    async def seeds() -> list[int]:
        server = await start_server(config(port=0, games=2))
        found = []
        for port, session in zip(server.ports, server.sessions, strict=True):
            async with Client(port) as client:
                for _ in range(2):
                    await client.reset(game_config())
                    assert session._game is not None
                    found.append(session._game._game._vec.seed(0))
        await server.stop(0)
        return found

    first, again = await seeds(), await seeds()
    assert first == again and len(set(first)) == 4


async def test_health_is_served() -> None:
    server = await start_server(config(port=0))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.ports[0]}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes,
                                    response_deserializer=bytes)
        assert await check(b"", timeout=10) == b"\x08\x01"
        assert pb.Status.Name(pb.OK) == "OK"
    await server.stop(0)
