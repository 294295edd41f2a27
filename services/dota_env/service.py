"""RPC servicer of the environment service."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pydantic

from dota.config import GameConfig
from dota.spaces import ActionPart, Layout
from five.clients import wire
from five.clients.environment import METHOD
from five.protos.v1 import env_pb2, env_pb2_grpc
from five.services.dota_env import metrics
from five.services.dota_env.game_batch import BatchOutput, GameBatch
from rapid.rpc.errors import Exhausted, LayoutMismatch, Unavailable
from rapid.rpc.fencing_epoch import require_epoch
from rapid.telemetry import tracing

# Observations that are mostly zero.
SPARSE = ("shared", "private")
MAX_CONFIGS = 8  # per reset
MAX_WATCHED = 64  # watched games per step
Create = Callable[[GameConfig, int, int, int], Awaitable[GameBatch]]  # game, games, seed, threads


class EnvService(env_pb2_grpc.EnvServiceServicer):
    """Servicer with one batch of games per stream, ended with the stream.

    ``config`` is the default game configuration. ``threads`` limits the threads of one stream, ``max_games`` and
    ``max_streams`` limit all streams. A stream that is silent for ``idle_seconds`` is ended. ``create`` creates a
    stream's games.

    The server holds no state of a run, so its fencing epoch is the newest one in any request for games. Without games
    it has none: a run that was restored from a backup may be at an older epoch than before.
    """

    def __init__(self, config: GameConfig, threads: int, max_games: int, max_streams: int, idle_seconds: float,
                 clock: Callable[[], float] = time.perf_counter, create: Create = GameBatch.create) -> None:
        self._config = config
        self._threads = threads
        self._max_games = max_games
        self._max_streams = max_streams
        self._idle = idle_seconds
        self._clock = clock
        self._create = create
        self._streams = 0
        self._games = 0
        self._epoch = 0

    @property
    def games(self) -> int:
        """Current number of games of all streams."""
        return self._games

    async def Play(self, request_iterator: AsyncIterator[env_pb2.PlayRequest], context: Any  # type: ignore[override]
                   ) -> AsyncIterator[bytes]:
        """Serve one client's games with serialized PlayResponses.

        The first request creates the games. An invalid request ends the stream. A full server is UNAVAILABLE: another
        server, or a later attempt, may create the games.
        """
        if self._streams >= self._max_streams:
            raise Unavailable(f"all {self._max_streams} streams are in use; raise services.dota_env.max_streams or "
                              "add servers")
        self._streams += 1
        batch: GameBatch | None = None
        layout: Layout | None = None
        reserved = epoch = 0
        requests = aiter(request_iterator)
        try:
            while (request := await self._next(requests)) is not None:
                began_ns = time.time_ns()
                kind = request.WhichOneof("kind")
                if kind == "create":
                    if batch is not None:
                        raise ValueError("the stream's games exist already; open another stream for more")
                    # Check this first, because a request of another epoch may have another layout.
                    epoch = self._require_newest(request.create.epoch)
                    config, layout = self._validate(request.create)
                    reserved = self._reserve(request.create.games)
                    threads = min(max(request.create.threads, 1), self._threads)
                    batch = await self._create(config, request.create.games, request.create.seed, threads)
                    output = await batch.observe_all()
                elif batch is None or layout is None:
                    raise ValueError("no games yet: the first request must create them")
                elif kind == "step":
                    games = _games(request.step.games)
                    actions = wire.decode_bytes("actions", request.step.actions, np.int16,
                                                (games.size, 2, layout.heroes, len(ActionPart)))
                    watched = _games(request.step.watched)
                    if watched.size > MAX_WATCHED:
                        raise ValueError(f"watched: {watched.size} games, at most {MAX_WATCHED} a request are allowed")
                    output = await batch.step(games, actions, watched)
                    metrics.count_steps(games.size, 2 * layout.heroes, output.step_us / 1e6)
                elif kind == "reset":
                    output = await self._reset(batch, request.reset)
                elif kind == "branch":
                    branch = request.branch
                    output = await batch.branch(branch.game, branch.snapshot, branch.seed, branch.building_health)
                else:
                    raise ValueError("an empty request: it must create, step, reset or branch games")
                response = _response(output, layout.hash, epoch, batch.seen_schema)
                if request.traceparent:
                    tracing.record(METHOD, request.traceparent, began_ns, time.time_ns(), "server", {
                        "five.request": kind, "five.core_us": output.step_us})
                yield response
        finally:
            self._streams -= 1
            self._release(reserved)
            if batch is not None:
                batch.close()

    async def _reset(self, batch: GameBatch, reset: env_pb2.ResetGames) -> BatchOutput:
        games = _games(reset.games)
        controllers = wire.decode_bytes("controllers", reset.controllers, np.uint8, (games.size, 2))
        variants = wire.decode_bytes("variants", reset.variants, np.uint8, (games.size,)) if reset.variants else None
        if len(reset.game_configs) > MAX_CONFIGS:
            raise ValueError(f"game_configs: {len(reset.game_configs)}, at most {MAX_CONFIGS} a request are allowed")
        return await batch.reset(games, controllers, [game_config(text) for text in reset.game_configs], variants)

    async def _next(self, requests: Any) -> env_pb2.PlayRequest | None:
        try:
            request: env_pb2.PlayRequest = await asyncio.wait_for(anext(requests), self._idle)
            return request
        except StopAsyncIteration:
            return None
        except TimeoutError:
            raise TimeoutError(f"the stream was silent for {self._idle:g} s: its games have ended") from None

    def _require_newest(self, epoch: int) -> int:
        """Return an epoch unless it is older than the server's. Raise StaleEpoch, or ValueError for 0."""
        require_epoch(max(self._epoch if self._games else 0, epoch, 1), epoch)
        self._epoch = epoch
        return epoch

    def _validate(self, create: env_pb2.CreateGames) -> tuple[GameConfig, Layout]:
        """Return the requested game configuration and its layout. Raise ValueError or LayoutMismatch."""
        config = game_config(create.game_config) if create.game_config else self._config
        layout = Layout(config)
        if create.layout_hash != layout.hash:
            raise LayoutMismatch(create.layout_hash, layout.hash)
        return config, layout

    def _reserve(self, games: int) -> int:
        """Reserve games of the limit. Raise Unavailable when too many exist now, Exhausted when they never fit."""
        if games < 1:
            raise ValueError("games: at least one is needed")
        if games > self._max_games:
            raise Exhausted(f"cannot create {games} games: at most {self._max_games} are allowed; raise "
                            "services.dota_env.max_games or services.rollout.groups")
        if self._games + games > self._max_games:
            raise Unavailable(f"cannot create {games} games: {self._games} of {self._max_games} exist; raise "
                              "services.dota_env.max_games or add servers")
        self._games += games
        metrics.GAMES.set(self._games)
        return games

    def _release(self, games: int) -> None:
        self._games -= games
        metrics.GAMES.set(self._games)


def game_config(text: str) -> GameConfig:
    """Parse a game configuration from JSON. Raise ValueError that names the error."""
    try:
        return GameConfig.model_validate_json(text)
    except pydantic.ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors())
        raise ValueError(f"game_config: {problems}") from None


def _games(data: bytes) -> np.ndarray[Any, np.dtype[np.int32]]:
    if len(data) % 4:
        raise ValueError(f"games: {len(data)} bytes are not whole int32 values")
    return wire.decode_bytes("games", data, np.int32, (len(data) // 4,))


def _response(output: BatchOutput, layout_hash: str, epoch: int, seen_schema: bytes) -> bytes:
    """Return the bytes of a PlayResponse. Each observation is copied once."""
    response = env_pb2.PlayResponse(
        signals=output.signals.tobytes(),
        winners=output.winners.tobytes(), game_time=output.game_time.tobytes(), statistics=output.statistics.tobytes(),
        statistic_names=GameBatch.statistic_names, step_us=output.step_us,
        epoch=epoch, lineups=output.lineups.tobytes(),
        seen=[env_pb2.SpectatorView(env_slot=env_slot, schema=seen_schema, frame=frame, slots=slots, events=events)
              for env_slot, (frame, slots, events) in output.seen.items()])
    return wire.serialize_with_set(response, "observations", output.observations, layout_hash, SPARSE)
