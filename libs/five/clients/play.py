"""Client of the play service: games of people, and one person's connection to a game."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio

from five.protos.v1 import play_pb2, play_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.channel import Channel, aio_channel
from rapid.rpc.errors import CallFailed, StatusCode, failure_of
from rapid.rpc.unary_client import UnaryClient

SERVICE = "five.v1.PlayService"
JOIN = SERVICE + "/Join"


class GameConnection:
    """A person's connection to a game: ``send`` commands, read responses by ``async for``, and ``leave``.

    The first response arrives within ``first_seconds``; afterwards the service sends the game's state every second.
    """

    def __init__(self, channel: Channel, join: play_pb2.Join, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._target = channel.target
        call: Any = play_pb2_grpc.PlayServiceStub(channel.grpc).Join
        self._call = call(metadata=channel.metadata)
        self._join = join
        self._writing = asyncio.Lock()
        self._begun = False

    async def send(self, request: play_pb2.JoinRequest) -> None:
        """Send a request. Raise CallFailed when the connection is lost."""
        try:
            await self._send_join()
            async with self._writing:
                await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise CallFailed(StatusCode.UNAVAILABLE, self._target, JOIN,
                             f"the connection to the game is lost: {error}") from None

    async def _send_join(self) -> None:
        async with self._writing:
            if not self._begun:
                self._begun = True
                await self._call.write(play_pb2.JoinRequest(join=self._join))

    async def __aiter__(self) -> AsyncIterator[play_pb2.JoinResponse]:
        """Yield responses until the end. Raise CallFailed."""
        try:
            async with asyncio.timeout(self._first_seconds):
                with contextlib.suppress(asyncio.InvalidStateError):  # the call has failed already: a read tells why
                    await self._send_join()
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
                             f"no response within {self._first_seconds:g} s") from None
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._target, JOIN) from None

    def leave(self) -> None:
        """Close the connection."""
        self._call.cancel()


class PlayClient:
    """Opens and joins games for people whom the caller has authenticated. Use it within one asyncio loop."""

    def __init__(self, address: str, config: RpcConfig, run: str, secret: Secret = None) -> None:
        self._address = address
        self._config = config
        self._token = token = CallToken(secret, Audience.PLAY)
        self._run = run
        self._caller = UnaryClient([address], play_pb2_grpc.PlayServiceStub, SERVICE, config, token)
        self._channel: Channel | None = None

    async def offer(self, deadline: float | None = None) -> play_pb2.OfferResponse:
        """Return what can be played. Raise CallFailed."""
        return await self._caller.call("Offer", lambda stub: stub.Offer, play_pb2.OfferRequest(run=self._run), deadline)

    async def open(self, who: str, team: int, heroes: Sequence[int], lineup: Sequence[Sequence[str]] | None = None,
                   mates: str = "agent", against: str = "newest", seed: int | None = None) -> play_pb2.OpenResponse:
        """Start a game for ``who``, with ``mates`` for the other heroes of that side. It is sent once. Raise
        CallFailed."""
        request = play_pb2.OpenRequest(
            run=self._run, who=who, team=team, heroes=heroes, mates=mates, against=against, seed=seed,
            lineup=[play_pb2.Team(heroes=names) for names in lineup or ()])
        return await self._caller.call("Open", lambda stub: stub.Open, request, repeats=False)

    async def games(self, deadline: float | None = None) -> list[play_pb2.GameState]:
        """Return games in progress. Raise CallFailed."""
        answer = await self._caller.call("List", lambda stub: stub.List, play_pb2.ListGamesRequest(run=self._run),
                                         deadline)
        return list(answer.games)

    async def recordings(self, deadline: float | None = None) -> list[play_pb2.RecordedGame]:
        """Return recordings of ended games, newest first. Raise CallFailed."""
        answer = await self._caller.call("Recordings", lambda stub: stub.Recordings,
                                         play_pb2.RecordingsRequest(run=self._run), deadline)
        return list(answer.recordings)

    async def recording(self, game: str) -> bytes:
        """Return a recording's bytes. Raise CallFailed."""
        data = bytearray()
        while True:
            piece = await self._caller.call("Recording", lambda stub: stub.Recording,
                                            play_pb2.RecordingRequest(run=self._run, game=game, offset=len(data)))
            data += piece.data
            if len(data) >= piece.size or not piece.data:
                return bytes(data)

    async def close_game(self, game: str, who: str) -> None:
        """End a game without a result. Raise CallFailed."""
        await self._caller.call("Close", lambda stub: stub.Close,
                                play_pb2.CloseRequest(run=self._run, game=game, who=who))

    def join(self, game: str, who: str, spectate: bool = False, heroes: Sequence[int] = ()) -> GameConnection:
        """Return ``who``'s connection to a game. Nothing is sent before it is read."""
        if self._channel is None:
            self._channel = aio_channel(self._address, self._config, self._token)
        return GameConnection(self._channel, play_pb2.Join(run=self._run, game=game, who=who, spectate=spectate,
                                                           heroes=heroes), self._config.deadline_seconds)

    async def close(self) -> None:
        """Close all connections, also those of people in games."""
        await self._caller.close()
        if self._channel is not None:
            await self._channel.close()
