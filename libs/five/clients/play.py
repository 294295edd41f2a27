"""Client of the play service: games that people play, and one person's connection to one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio

from five.protos.v1 import play_pb2, play_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.channel import Channel, aio_channel
from rapid.rpc.errors import CallFailed, StatusCode, failure_of
from rapid.rpc.token import Token
from rapid.rpc.unary_client import UnaryClient

SERVICE = "five.v1.PlayService"
JOIN = SERVICE + "/Join"


class GameConnection:
    """A person in a game: ``send`` what he does, read what he is told by ``async for``; ``leave`` ends it. The first
    answer comes within ``first_seconds``; after it the service tells how the game stands every second."""

    def __init__(self, channel: Channel, join: play_pb2.Join, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._target = channel.target
        call: Any = play_pb2_grpc.PlayServiceStub(channel.grpc).Join
        self._call = call(metadata=channel.metadata)
        self._join = join
        self._writing = asyncio.Lock()
        self._begun = False

    async def send(self, request: play_pb2.JoinRequest) -> None:
        """Raises CallFailed when the connection is gone."""
        try:
            await self._begin()
            async with self._writing:
                await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise CallFailed(StatusCode.UNAVAILABLE, self._target, JOIN, f"the game is gone: {error}") from None

    async def _begin(self) -> None:
        async with self._writing:
            if not self._begun:
                self._begun = True
                await self._call.write(play_pb2.JoinRequest(join=self._join))

    async def __aiter__(self) -> AsyncIterator[play_pb2.JoinResponse]:
        """What comes, to the end. Raises CallFailed."""
        try:
            async with asyncio.timeout(self._first_seconds):
                await self._begin()
                response = await self._call.read()
            while response is not grpc.aio.EOF:  # type: ignore[attr-defined]
                yield response
                response = await self._call.read()
            code = await self._call.code()
            if code is not StatusCode.OK:
                raise CallFailed(code, self._target, JOIN, await self._call.details() or "the stream was ended")
        except TimeoutError:
            self._call.cancel()
            raise CallFailed(StatusCode.DEADLINE_EXCEEDED, self._target, JOIN,
                             f"no answer within {self._first_seconds:g} s") from None
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._target, JOIN) from None

    def leave(self) -> None:
        """Ends the connection."""
        self._call.cancel()


class PlayClient:
    """Opens games and joins them, for people whom the caller knows. Use within one asyncio loop."""

    def __init__(self, address: str, config: RpcConfig, run: str, token: Token = None) -> None:
        self._address = address
        self._config = config
        self._token = token
        self._run = run
        self._caller = UnaryClient([address], play_pb2_grpc.PlayServiceStub, SERVICE, config, token)
        self._channel: Channel | None = None

    async def offer(self, deadline: float | None = None) -> play_pb2.OfferResponse:
        """What can be played. Raises CallFailed."""
        return await self._caller.call("Offer", lambda stub: stub.Offer, play_pb2.OfferRequest(run=self._run), deadline)

    async def open(self, who: str, team: int, heroes: Sequence[int], lineup: Sequence[Sequence[str]] | None = None,
                   mates: str = "agent", against: str = "newest", seed: int | None = None) -> play_pb2.OpenResponse:
        """Begins a game for ``who``, with ``mates`` for the other heroes of his side. It is sent once. Raises
        CallFailed."""
        request = play_pb2.OpenRequest(
            run=self._run, who=who, team=team, heroes=heroes, mates=mates, against=against, seed=seed,
            lineup=[play_pb2.Team(heroes=names) for names in lineup or ()])
        return await self._caller.call("Open", lambda stub: stub.Open, request, repeats=False)

    async def games(self, deadline: float | None = None) -> list[play_pb2.GameState]:
        """Games that are being played. Raises CallFailed."""
        answer = await self._caller.call("List", lambda stub: stub.List, play_pb2.ListGamesRequest(run=self._run),
                                         deadline)
        return list(answer.games)

    async def recordings(self, deadline: float | None = None) -> list[play_pb2.RecordedGame]:
        """Games that are over and can be watched again, the newest first. Raises CallFailed."""
        answer = await self._caller.call("Recordings", lambda stub: stub.Recordings,
                                         play_pb2.RecordingsRequest(run=self._run), deadline)
        return list(answer.recordings)

    async def recording(self, game: str) -> bytes:
        """A recording's bytes. Raises CallFailed."""
        data = bytearray()
        while True:
            piece = await self._caller.call("Recording", lambda stub: stub.Recording,
                                            play_pb2.RecordingRequest(run=self._run, game=game, offset=len(data)))
            data += piece.data
            if len(data) >= piece.size or not piece.data:
                return bytes(data)

    async def close_game(self, game: str, who: str) -> None:
        """Ends a game without a result. Raises CallFailed."""
        await self._caller.call("Close", lambda stub: stub.Close,
                                play_pb2.CloseRequest(run=self._run, game=game, who=who))

    def join(self, game: str, who: str, spectate: bool = False, heroes: Sequence[int] = ()) -> GameConnection:
        """``who`` comes into a game: nothing is sent before it is read."""
        if self._channel is None:
            self._channel = aio_channel(self._address, self._config, self._token)
        return GameConnection(self._channel, play_pb2.Join(run=self._run, game=game, who=who, spectate=spectate,
                                                   heroes=heroes), self._config.deadline_seconds)

    async def close(self) -> None:
        """Ends the connections, and with them whoever has joined."""
        await self._caller.close()
        if self._channel is not None:
            await self._channel.close()
