"""The client of the play service: whole requests, recordings in pieces, and a person's connection to a game."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from five.clients.play import GameConnection, PlayClient
from five.protos.v1 import play_pb2, play_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, StatusCode, Unavailable
from tests.rapid.conftest import SECRET, at

RECORDING = bytes(range(256)) * 3


class Play(play_pb2_grpc.PlayServiceServicer):
    """Service that records requests; ``failures`` are raised first. A joined game echoes ``frames`` states."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.failures: list[Exception] = []
        self.piece = 100
        self.frames = 3
        self.silent = False
        self.refusal: Exception | None = None
        self.joined: list[Any] = []

    def _record(self, request: Any) -> None:
        self.requests.append(request)
        if self.failures:
            raise self.failures.pop(0)

    async def Offer(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.OfferResponse()

    async def Open(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.OpenResponse()

    async def List(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.ListGamesResponse(games=[play_pb2.GameState(), play_pb2.GameState()])

    async def Recordings(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.RecordingsResponse(recordings=[play_pb2.RecordedGame()])

    async def Recording(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.RecordingResponse(data=RECORDING[request.offset:request.offset + self.piece],
                                          size=len(RECORDING))

    async def Close(self, request: Any, context: Any) -> Any:
        self._record(request)
        return play_pb2.CloseResponse()

    async def Join(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        self.joined.append(await anext(request_iterator))
        if self.refusal is not None:
            raise self.refusal
        if self.silent:
            await asyncio.sleep(60)
        yield play_pb2.JoinResponse()
        for _ in range(self.frames):
            self.joined.append(await anext(request_iterator))
            yield play_pb2.JoinResponse()


@pytest.fixture
def service() -> Play:
    return Play()


@pytest.fixture
async def client(service: Play, start_server: Callable[..., Any], rpc_config: RpcConfig) -> AsyncIterator[PlayClient]:
    server = await start_server(play_pb2_grpc.add_PlayServiceServicer_to_server, service)
    made = PlayClient(at(server), rpc_config, "r", SECRET)
    yield made
    await made.close()


async def read(connection: GameConnection) -> list[Any]:
    return [response async for response in connection]


async def test_opened_game_has_all_that_was_requested(service: Play, client: PlayClient) -> None:
    await client.open("ada", 1, [0, 2], [["axe", "lion"], ["sven", "viper"]], "scripted", "3", seed=0)
    await client.open("bob", 0, [1])
    full, short = service.requests
    assert (full.run, full.who, full.team, list(full.heroes), full.mates, full.against) == (
        "r", "ada", 1, [0, 2], "scripted", "3")
    assert [list(team.heroes) for team in full.lineup] == [["axe", "lion"], ["sven", "viper"]]
    assert full.HasField("seed") and full.seed == 0
    assert (short.mates, short.against, list(short.lineup), short.HasField("seed")) == ("agent", "newest", [], False)


async def test_game_is_opened_once(service: Play, client: PlayClient) -> None:
    """A repeated request would open a second game."""
    service.failures = [Unavailable("starting")]
    with pytest.raises(CallFailed, match="starting"):
        await client.open("ada", 0, [0])
    assert len(service.requests) == 1


async def test_reading_calls_are_repeated(service: Play, client: PlayClient) -> None:
    calls = (client.offer, client.games, client.recordings, lambda: client.close_game("g", "ada"))
    for call in calls:
        service.failures, service.requests = [Unavailable("starting")], []
        await call()
        assert len(service.requests) == 2 and {request.run for request in service.requests} == {"r"}
    assert (service.requests[0].game, service.requests[0].who) == ("g", "ada")
    assert len(await client.games()) == 2 and len(await client.recordings()) == 1


@pytest.mark.parametrize(("piece", "offsets"), [
    (100, [0, 100, 200, 300, 400, 500, 600, 700]), (768, [0]), (384, [0, 384])])
async def test_recording_is_read_in_pieces(service: Play, client: PlayClient, piece: int, offsets: list[int]) -> None:
    service.piece = piece
    assert await client.recording("g") == RECORDING
    assert [request.offset for request in service.requests] == offsets
    assert {request.game for request in service.requests} == {"g"}


async def test_recording_that_became_shorter_ends(service: Play, client: PlayClient) -> None:
    service.piece = 0
    assert await client.recording("g") == b""


async def test_join_is_sent_first_and_once(service: Play, client: PlayClient) -> None:
    connection = client.join("g", "ada", spectate=True, heroes=[1])
    assert service.joined == []
    command = play_pb2.JoinRequest()
    await connection.send(command)
    reading = asyncio.create_task(read(connection))
    for _ in range(2):
        await connection.send(command)
    assert len(await asyncio.wait_for(reading, 30)) == 1 + service.frames
    first, *others = service.joined
    assert (first.join.run, first.join.game, first.join.who, first.join.spectate, list(first.join.heroes)) == (
        "r", "g", "ada", True, [1])
    assert len(others) == 3 and not any(request.HasField("join") for request in others)
    with pytest.raises(CallFailed, match="the connection to the game is lost") as lost:
        await connection.send(command)
    assert lost.value.code is StatusCode.UNAVAILABLE


async def test_reading_alone_joins(service: Play, client: PlayClient) -> None:
    service.frames = 0
    assert len(await asyncio.wait_for(read(client.join("g", "ada")), 30)) == 1
    assert len(service.joined) == 1 and not service.joined[0].join.spectate


async def test_refused_join_names_the_reason(service: Play, client: PlayClient) -> None:
    service.refusal = ValueError("there is no game 'g'")
    with pytest.raises(CallFailed, match="there is no game 'g'") as refused:
        await asyncio.wait_for(read(client.join("g", "ada")), 30)
    assert refused.value.code is StatusCode.INVALID_ARGUMENT and refused.value.method == "five.v1.PlayService/Join"


async def test_join_that_failed_before_it_is_read_names_the_reason(rpc_config: RpcConfig) -> None:
    client = PlayClient("127.0.0.1:1", rpc_config, "r", SECRET)
    connection = client.join("g", "ada")
    await asyncio.wait_for(connection._call.code(), 30)
    with pytest.raises(CallFailed, match="no server responds there") as failed:
        await asyncio.wait_for(read(connection), 30)
    assert failed.value.code is StatusCode.UNAVAILABLE
    await client.close()


async def test_silent_service_is_not_waited_for(service: Play, start_server: Callable[..., Any], rpc_config: RpcConfig
                                                ) -> None:
    service.silent = True
    server = await start_server(play_pb2_grpc.add_PlayServiceServicer_to_server, service)
    client = PlayClient(at(server), rpc_config.model_copy(update={"deadline_seconds": 0.2}), "r", SECRET)
    with pytest.raises(CallFailed, match="no response within 0.2 s") as late:
        await asyncio.wait_for(read(client.join("g", "ada")), 30)
    assert late.value.code is StatusCode.DEADLINE_EXCEEDED
    await client.close()


async def test_people_of_one_client_share_its_channel(service: Play, client: PlayClient) -> None:
    service.frames = 0
    for _ in range(2):
        await asyncio.wait_for(read(client.join("g", "ada")), 30)
    channel = client._channel
    client.join("g", "bob").leave()
    assert channel is not None and client._channel is channel
