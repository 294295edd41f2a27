"""Cost of a game with a person, and its delays: the play service with a real game at real speed, joined as the
controller joins it. The delay runs from sending a command to its acknowledgement after it has taken effect."""

import asyncio
import statistics
import time
from dataclasses import dataclass, field

import numpy as np

from dota.config import GameConfig
from dota.vec_game import BOTS
from five.benchmarks.results import BenchmarkRow, machine, row
from five.clients.inference import ActResult
from five.clients.play import GameConnection, PlayClient
from five.protos.v1 import play_pb2, play_pb2_grpc
from five.run.config.play import PlayConfig
from five.services.play.clock import FRAME_SECONDS
from five.services.play.players import Filler
from five.services.play.service import PlayService
from rapid.config import RpcConfig
from rapid.rpc.server import serve

RPC = RpcConfig(require_token=False)
WARM_SECONDS = 2.0


@dataclass(frozen=True)
class PlayWorkload:
    """Workload of the benchmark ``play``."""

    game: GameConfig = field(default_factory=GameConfig)
    seconds: float = 30.0
    orders_per_second: float = 10.0


@dataclass
class _PlayerMeasurements:
    """Measurements of a player: delays of commands in seconds, bytes and frames of the stream, and their rates a second
    of wall clock while commands were sent."""

    sent: dict[int, float] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    bytes: int = 0
    frames: int = 0
    bytes_per_second: float = 0.0
    frames_per_second: float = 0.0
    late_frames: int = 0


class _NoAgents:
    """Inference that is never called: bots play both sides."""

    async def act(self, *_: object, **__: object) -> ActResult:
        raise AssertionError("no version plays in this game")


def measure(size: PlayWorkload = PlayWorkload()) -> list[BenchmarkRow]:
    """Return the rows ``play.*``: delay of commands, bytes of a player's stream, and processor time of a second of a
    game with one player. The reference is a game of bots alone, and an idle service."""
    measured, spent = asyncio.run(_play(size, True))
    _, alone = asyncio.run(_play(size, False))
    idle = asyncio.run(_idle(size.seconds / 3))
    conditions = machine(mode=size.game.mode, seconds=size.seconds, orders=len(measured.delays))
    delays = sorted(measured.delays)
    return [
        row("play.delay.p50", 1e3 * statistics.median(delays), "ms", 1e3 * FRAME_SECONDS, conditions),
        row("play.delay.p99", 1e3 * float(np.quantile(delays, 0.99)), "ms", 1e3 * FRAME_SECONDS, conditions),
        row("play.bytes", measured.bytes_per_second, "bytes/s", None, conditions),
        row("play.frames", measured.frames_per_second, "frames/s", 1 / FRAME_SECONDS, conditions),
        row("play.late", measured.late_frames, "late frames", None, conditions),
        row("play.processor", 1e3 * spent, "ms of processor a second", 1e3 * alone, conditions),
        row("play.idle", 1e3 * idle, "ms of processor a second", None, conditions)]


def _service(size: PlayWorkload) -> PlayService:
    return PlayService("bench", 1, size.game, PlayConfig(orders_per_second=max(60.0, size.orders_per_second)),
                       _NoAgents(), list, lambda name: Filler(name, int(BOTS[name])), lambda played: {})


async def _idle(seconds: float) -> float:
    """Return the processor seconds a second of a service without games."""
    service = _service(PlayWorkload())
    server = await serve("127.0.0.1:0", [(play_pb2_grpc.add_PlayServiceServicer_to_server, service)], RPC)
    began, spent = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    spent = (time.process_time() - spent) / (time.perf_counter() - began)
    await server.stop(0)
    return spent


async def _play(size: PlayWorkload, joined: bool) -> tuple[_PlayerMeasurements, float]:
    """Return a player's measurements, and the processor seconds a second of server, client and game together."""
    service = _service(size)
    server = await serve("127.0.0.1:0", [(play_pb2_grpc.add_PlayServiceServicer_to_server, service)], RPC)
    client = PlayClient(f"127.0.0.1:{server.port}", RPC, "bench")
    opened = await client.open("bench", 0, [0], mates="scripted-hard", against="scripted-hard", seed=1)
    measured = _PlayerMeasurements()
    player = client.join(opened.game, "bench") if joined else None
    reading = asyncio.create_task(_read(player, measured)) if player is not None else None
    await asyncio.sleep(WARM_SECONDS)
    measured.bytes = measured.frames = 0
    began, spent = time.perf_counter(), time.process_time()
    n = 0
    while (passed := time.perf_counter() - began) < size.seconds:
        if player is not None:
            n += 1
            measured.sent[n] = time.perf_counter()
            x = 20_000 + (n % 8) * 500
            await player.send(play_pb2.JoinRequest(order=play_pb2.Order(
                n=n, kind="move", at=play_pb2.MapPoint(x=x, y=x), slot=-1, to=-1)))
        # Without a fixed phase to the game's frames, as a person's keys.
        await asyncio.sleep(max(0.0, n / size.orders_per_second - passed) if player is not None else 0.1)
    wall = time.perf_counter() - began
    spent = (time.process_time() - spent) / wall
    measured.bytes_per_second, measured.frames_per_second = measured.bytes / wall, measured.frames / wall
    await asyncio.sleep(0.2)  # for the last acknowledgements
    if reading is not None and player is not None:
        player.leave()
        reading.cancel()
    await client.close()
    await service.drain()
    await server.stop(0)
    return measured, spent


async def _read(player: GameConnection, measured: _PlayerMeasurements) -> None:
    async for response in player:
        what = response.WhichOneof("what")
        if what == "frame":
            measured.bytes += len(response.frame)
            measured.frames += 1
        elif what == "ack" and response.ack.ok:
            measured.delays.append(time.perf_counter() - measured.sent[response.ack.n])
        elif what == "state":
            measured.late_frames = response.state.late_frames
