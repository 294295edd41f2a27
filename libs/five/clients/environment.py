"""Client of the environment service: games in another process, stepped by arrays."""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import numpy as np
import numpy.typing as npt

from five.clients import wire
from five.clients.stream_write import write
from five.protos.v1 import env_pb2, env_pb2_grpc
from rapid.config import RpcConfig
from rapid.packed_array import PackedArray
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.channel import Channel, aio_channel
from rapid.rpc.errors import CallFailed, StatusCode, check_size, failure_of
from rapid.rpc.fencing_epoch import require_same_epoch
from rapid.rpc.resolve import resolve_servers
from rapid.telemetry import tracing

Array = npt.NDArray[Any]
METHOD = "five.v1.EnvService/Play"


@dataclass(frozen=True)
class SpectatorView:
    """A spectator's view of a game.

    ``frame`` is packed by its ``schema``; ``slots`` int16 [2, units] holds, by side, the unit in each slot of the
    observation; ``events`` is a JSON list of the step's events.
    """

    schema: bytes
    frame: bytes
    slots: npt.NDArray[np.int16]
    events: bytes


@dataclass(frozen=True)
class EnvironmentStep:
    """State of k games after a step, a reset or a branch.

    ``observations`` by name with leading [k, 2], packed ones as received if the client keeps them packed; ``signals``
    float32 [k, 2, H, signals]; ``winners`` uint8 [k] (0 running, 1 radiant, 2 dire, 3 draw); ``game_time`` float32 [k]
    in seconds; ``statistics`` float32 [k, 2, H, len(statistic_names)]; ``step_us`` microseconds in the core; ``seen``
    the watched games by env slot; ``lineups`` int16 [k, 2, H] registry numbers of the heroes, None from an older
    server.
    """

    observations: dict[str, Array | PackedArray]
    signals: npt.NDArray[np.float32]
    winners: npt.NDArray[np.uint8]
    game_time: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]
    statistic_names: tuple[str, ...]
    step_us: int
    seen: dict[int, SpectatorView] = field(default_factory=dict)
    lineups: npt.NDArray[np.int16] | None = None


class EnvironmentClient:
    """Games on a server, created by ``open`` and ended with the connection. Use it within one asyncio loop.

    ``target`` may be a name of many servers; each ``open`` selects one randomly. ``epoch`` is the run's fencing epoch.
    With ``packed`` observations in a sparse encoding stay packed. Several steps may be in flight; they are answered in
    order. After the loss of the server every call raises CallFailed, and new games must be opened.
    """

    def __init__(self, target: str, config: RpcConfig, heroes: int, layout_hash: str,
                 secret: Secret = None, *, epoch: int, packed: bool = False) -> None:
        self._epoch = epoch
        self._packed = packed
        self._config = config
        self._heroes = heroes
        self._layout_hash = layout_hash
        self._target = target
        self._token = CallToken(secret, Audience.DOTA_ENV)
        self._channel: Channel | None = None
        self._call: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._waiting: deque[asyncio.Future[env_pb2.PlayResponse]] = deque()
        self._failure: CallFailed | None = None
        self.games = 0

    @property
    def server(self) -> str:
        """Address of the server with the games, once they are open."""
        return self._target

    async def open(self, games: int, seed: int, game_config: str = "", threads: int = 1) -> EnvironmentStep:
        """Create the games. ``game_config`` is JSON, '' for the server's own. Raise CallFailed."""
        server = random.choice(await resolve_servers([self._target]))
        self._target = server.address
        self._channel = channel = aio_channel(server.address, self._config, self._token, server.name)
        try:
            await channel.ready(self._config.deadline_seconds)
        except TimeoutError as error:
            raise CallFailed(StatusCode.UNAVAILABLE, self._target, METHOD, str(error)) from None
        play: Any = env_pb2_grpc.EnvServiceStub(channel.grpc).Play
        self._call = play(metadata=channel.metadata)
        self._reader = asyncio.get_running_loop().create_task(self._read())
        answer = await self._request(env_pb2.PlayRequest(create=env_pb2.CreateGames(
            games=games, seed=seed, game_config=game_config, layout_hash=self._layout_hash, threads=threads,
            epoch=self._epoch)))
        self.games = games
        return self._step(answer)

    async def step(self, games: npt.NDArray[np.int32], actions: npt.NDArray[np.int16],
                   watched: Sequence[int] = ()) -> EnvironmentStep:
        """Step the games int32 [k] by actions int16 [k, 2, H, 6] for one timestep. Raise CallFailed or ValueError.

        The result has spectator views of the env slots ``watched``.
        """
        expected = (games.size, 2, self._heroes, 6)
        if actions.shape != expected:
            raise ValueError(f"actions have shape {list(actions.shape)}, expected {list(expected)}")
        return self._step(await self._request(env_pb2.PlayRequest(step=env_pb2.StepGames(
            games=np.asarray(games, np.int32).tobytes(), actions=np.asarray(actions, np.int16).tobytes(),
            watched=np.array(watched, np.int32).tobytes()))))

    async def reset(self, games: npt.NDArray[np.int32], controllers: npt.NDArray[np.uint8],
                    game_configs: Sequence[str] = (), variants: npt.NDArray[np.uint8] | None = None) -> EnvironmentStep:
        """Start new games in the env slots int32 [k], with each side played by controllers uint8 [k, 2] (0 is the
        policy).

        ``variants`` uint8 [k] selects each game's configuration: 0 is the one given to ``open``, n the n-th of
        ``game_configs``, JSON texts of the same layout.
        """
        if controllers.shape != (games.size, 2):
            raise ValueError(f"controllers have shape {list(controllers.shape)}, expected {[games.size, 2]}")
        if variants is not None and variants.shape != (games.size,):
            raise ValueError(f"variants have shape {list(variants.shape)}, expected {[games.size]}")
        return self._step(await self._request(env_pb2.PlayRequest(reset=env_pb2.ResetGames(
            games=np.asarray(games, np.int32).tobytes(), controllers=np.asarray(controllers, np.uint8).tobytes(),
            game_configs=game_configs,
            variants=b"" if variants is None else np.asarray(variants, np.uint8).tobytes()))))

    async def branch(self, game: int, snapshot: bytes, seed: int, building_health: float) -> EnvironmentStep:
        """Replace the game of an env slot by one that continues a snapshot with the random state of ``seed``.

        ``building_health``, above 0 and at most 1, multiplies the health of standing buildings. The server refuses a
        snapshot of another build or of other settings; all games of the stream end then. Raise CallFailed.
        """
        return self._step(await self._request(env_pb2.PlayRequest(branch=env_pb2.BranchGame(
            game=game, snapshot=snapshot, seed=seed % 2**64, building_health=building_health))))

    async def close(self) -> None:
        """End the games."""
        self._fail_waiters(CallFailed(StatusCode.CANCELLED, self._target, METHOD, "the client is closed"))
        if self._reader is not None:
            self._reader.cancel()
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> "EnvironmentClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @tracing.client_call(METHOD)
    async def _request(self, request: env_pb2.PlayRequest) -> env_pb2.PlayResponse:
        if self._failure is not None:
            raise self._failure
        if self._call is None:
            raise ValueError("no games yet: call open first")
        if parent := tracing.traceparent():
            request.traceparent = parent
        check_size("the request to the games", request.ByteSize(), self._config.max_message_bytes)
        future: asyncio.Future[env_pb2.PlayResponse] = asyncio.get_running_loop().create_future()
        try:
            # The write too: it waits while the server does not read.
            async with asyncio.timeout(self._config.deadline_seconds):
                async with self._writing:
                    self._waiting.append(future)
                    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                        await write(self._call, request)  # the reader task fails the future with the reason
                return await future
        except TimeoutError:
            future.cancel()  # nobody awaits it
            self._fail_waiters(CallFailed(StatusCode.DEADLINE_EXCEEDED, self._target, METHOD,
                                          f"no response within {self._config.deadline_seconds:g} s"))
            assert self._failure is not None
            raise self._failure from None

    async def _read(self) -> None:
        target = self._target
        failure = CallFailed(StatusCode.UNAVAILABLE, target, METHOD, "the server ended the stream; its games are gone")
        try:
            async for answer in self._call:
                future = self._waiting.popleft() if self._waiting else None
                if future is not None and not future.done():
                    future.set_result(answer)
        except grpc.aio.AioRpcError as error:
            failure = failure_of(error, target, METHOD)
        except asyncio.CancelledError:
            failure = CallFailed(StatusCode.CANCELLED, target, METHOD, "the client is closed")
        except Exception as error:  # every waiter on this stream must learn of it
            failure = CallFailed(StatusCode.INTERNAL, target, METHOD, f"{type(error).__name__}: {error}")
        self._fail_waiters(failure)

    def _fail_waiters(self, failure: CallFailed) -> None:
        if self._failure is None:
            self._failure = failure
            if self._call is not None:
                self._call.cancel()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(self._failure)

    def _step(self, answer: env_pb2.PlayResponse) -> EnvironmentStep:
        """Decode a response. Raise CallFailed for one of another epoch, or that is malformed."""
        require_same_epoch(self._epoch, answer.epoch, self._target, METHOD)
        try:
            return self._decode(answer)
        except ValueError as error:
            raise CallFailed(StatusCode.INTERNAL, self._target, METHOD, f"its response is malformed: {error}") from None

    def _decode(self, answer: env_pb2.PlayResponse) -> EnvironmentStep:
        observations: Mapping[str, Array | PackedArray] = {}
        if answer.observations.tensors:
            decode = wire.decode_packed_set if self._packed else wire.decode_set
            observations = decode(answer.observations, self._layout_hash)
        winners = np.frombuffer(answer.winners, np.uint8)
        k, heroes, names = winners.size, self._heroes, tuple(answer.statistic_names)
        signals = answer.signals
        width = len(signals) // (4 * 2 * k * heroes) if k else 0
        return EnvironmentStep(
            dict(observations), wire.decode_bytes("signals", signals, np.float32, (k, 2, heroes, width)), winners,
            wire.decode_bytes("game_time", answer.game_time, np.float32, (k,)),
            wire.decode_bytes("statistics", answer.statistics, np.float32, (k, 2, heroes, len(names))), names,
            answer.step_us, {seen.env_slot: SpectatorView(seen.schema, seen.frame, _slots(seen.slots), seen.events)
                             for seen in answer.seen},
            wire.decode_bytes("lineups", answer.lineups, np.int16, (k, 2, heroes)) if answer.lineups else None)


def _slots(data: bytes) -> npt.NDArray[np.int16]:
    return wire.decode_bytes("slots", data, np.int16, (2, len(data) // 4))
