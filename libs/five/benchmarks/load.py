"""Five hundred simulated rollouts (real clients, no games) against one opponents service, one Redis and one intake.

Clients and servers share this machine, so that the clients' own rate says little. A server's limit follows from its
processor time: calls a second at which one core is full, with all clients connected. It is compared with the inputs
of `five scale`.
"""

import asyncio
import gc
import itertools
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import redis

from dota.spaces import Layout
from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Segment
from five.benchmarks import recorded_data
from five.benchmarks.child_process import RPC, ChildProcess, prepare
from five.benchmarks.experience import intake_service
from five.benchmarks.results import BenchmarkRow, machine, row
from five.capacity import inputs
from five.capacity.cluster_sizes import clusters
from five.capacity.links import intake_seconds
from five.clients.experience import ACCEPTED, ExperienceClient
from five.clients.opponents import WON, OpponentsClient
from five.protos.v1 import opponents_pb2_grpc
from five.run.config import RunConfig
from five.run.load import load
from five.services.opponents.pool import LAST_ADDED, TABLE, OpponentPool
from five.services.opponents.service import OpponentService
from five.services.optimizer.experience_service import add_to_server
from five.services.rollout.sender import delta_encoded_arrays
from rapid.embedded_redis import EmbeddedRedis
from rapid.rpc.server import Register, serve
from rapid.store.leases import Leases
from rapid.store.series import Series
from rapid.store.state import RunState

RUN = "bench"


@dataclass(frozen=True)
class LoadWorkload:
    """Workload of the benchmark ``load``."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    rollouts: int = 500
    versions: int = 5600  # in the pool, as at the end of Rerun
    games: int = 10  # games of each rollout; every fifth is reported
    beats: int = 20  # heartbeats of each rollout
    segments: int = 1  # segments of each rollout
    from_seconds: float = 120.0


def _serve_and_report(pipe: Connection, service: Register) -> None:
    """Serve until the pipe is closed. Send the address, then the processor seconds on each request."""
    gc.freeze()  # a full collection of the imported modules would take as long as a hundred segments

    async def run() -> None:
        server = await serve("127.0.0.1:0", [service], RPC)
        pipe.send(f"127.0.0.1:{server.port}")
        try:
            while True:
                await asyncio.to_thread(pipe.recv)
                pipe.send(time.process_time())
        except EOFError:
            pass
        await server.stop(0)

    asyncio.run(run())


def _opponents(pipe: Connection, url: str, config: RunConfig) -> None:
    pool = OpponentPool(RunState(redis.Redis.from_url(url), RUN), config.league, config.seed)
    _serve_and_report(pipe, (opponents_pb2_grpc.add_OpponentServiceServicer_to_server,
                             OpponentService(RUN, pool, epoch=1)))


def _intake(pipe: Connection, config: RunConfig) -> None:
    _serve_and_report(pipe, (add_to_server, intake_service(RUN, config)))


def _server_seconds(server: ChildProcess) -> float:
    server.pipe.send("")
    return float(server.receive())


async def _seconds_per_call(server: ChildProcess, calls: Sequence[Callable[[], Awaitable[Any]]]) -> float:
    """Return the server's processor seconds a call, with all calls in flight at once."""
    before = await asyncio.to_thread(_server_seconds, server)
    await asyncio.gather(*(call() for call in calls))
    return (await asyncio.to_thread(_server_seconds, server) - before) / len(calls)


async def _opponent_costs(server: ChildProcess, size: LoadWorkload) -> tuple[float, float]:
    """Return the opponents service's processor seconds for an assignment and for a result."""
    clients = [OpponentsClient([server.first], RPC, RUN, epoch=1) for _ in range(size.rollouts)]
    drawn: list[tuple[OpponentsClient, str, int]] = []

    async def play(client: OpponentsClient, who: int) -> None:
        for game in range(size.games):
            name = f"{who}-{game}"
            found = await client.assign(name)
            if game % 5 == 0:
                drawn.append((client, name, max(found.version, 0)))

    await _seconds_per_call(server, [client.pool for client in clients[:1]])
    assign = await _seconds_per_call(server,
                                     [partial(play, client, i) for i, client in enumerate(clients)]) / size.games
    report = await _seconds_per_call(server, [partial(client.report, game, version, WON, 60.0)
                                              for client, game, version in drawn])
    await asyncio.gather(*(client.close() for client in clients))
    return assign, report


async def _segment_cost(server: ChildProcess, config: RunConfig, size: LoadWorkload, parts: list[Arrays]
                        ) -> tuple[float, float]:
    """Return the intake's processor seconds for a segment, and the segment's bytes on the wire."""
    settings, samples = config.services.rollout, config.learning.samples_per_segment
    turn = itertools.cycle(parts)
    steps = samples * config.learning.lstm_unroll_length
    layout = Layout(config.game)
    clients = [ExperienceClient([server.first], RPC, layout.hash, RUN, f"rollout-{i}", in_flight=1,
                                zstd=settings.encoding.endswith("zstd"), epoch=1, changes=delta_encoded_arrays(layout),
                                period=config.learning.lstm_unroll_length)
               for i in range(size.rollouts)]

    async def play(client: ExperienceClient) -> None:
        for _ in range(size.segments):
            await client.push(Segment(next(turn), samples, 0.0, 1.0, steps, 0, 0))
        if not await client.flush(300):
            raise TimeoutError("the intake does not acknowledge segments")

    cost = await _seconds_per_call(server, [partial(play, client) for client in clients]) / size.segments
    taken = sum(client.verdicts[ACCEPTED] for client in clients)
    if taken != size.rollouts * size.segments:
        raise RuntimeError(f"{taken} of {size.rollouts * size.segments} segments were accepted")
    nbytes = sum(client.bytes_sent for client in clients) / taken
    for client in clients:
        await client.close()
    return cost, nbytes


def _redis_seconds(client: redis.Redis) -> float:
    """Return the processor seconds of a Redis so far."""
    info: Any = client.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def _heartbeat_costs(url: str, size: LoadWorkload) -> tuple[float, float, float]:
    """Return Redis' processor seconds for a heartbeat, for reading all leases, and for a game's record."""
    watch = redis.Redis.from_url(url)
    leases = [RunState(redis.Redis.from_url(url), RUN).lease("rollout", str(i), 60.0, metrics_address="10.0.0.1:9100")
              for i in range(size.rollouts)]
    stats = {"steps/s": 1234.5, "hero_steps/s": 1234.5, "games": 17, "unsent": 1, "version": 1204, "waiting": 0.1,
             "inference_wait_share": 0.5, "game": 0.2, "segments": 0.2, "recoveries": 0, "throttled_seconds": 1.25}

    def beat(some: Sequence[Any]) -> None:
        for _ in range(size.beats):
            for lease in some:
                lease.renew(stats, 1, 1)

    before = _redis_seconds(watch)
    threads = [threading.Thread(target=beat, args=(leases[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    each = (_redis_seconds(watch) - before) / (size.beats * size.rollouts)
    live, looks = Leases(watch, RUN), 50
    if len(live.live("rollout")) != size.rollouts:
        raise RuntimeError("not all rollouts are alive")
    before = _redis_seconds(watch)
    for _ in range(looks):
        live.live("rollout")
    look = (_redis_seconds(watch) - before) / looks
    series = Series(watch, RUN)
    record = {"game": "", "version": 1204, "outcome": "won", "rewards": {f"signal{i}": 0.1234 for i in range(20)}}
    before = _redis_seconds(watch)
    for i in range(0, size.rollouts * 10, 10):
        series.extend_once("games", [(f"{i + k}", {**record, "game": f"{i + k}"}) for k in range(10)])
    return each, look, (_redis_seconds(watch) - before) / (size.rollouts * 10)


def measure(size: LoadWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``load.*``: calls a second at which one core of the server is full.

    The reference comes from the inputs of libs/five/capacity: a ratio above 1 is capacity that the model does not
    count.
    """
    size = size or LoadWorkload()
    prepare()
    config = load(size.preset, size.overrides)
    samples = config.learning.samples_per_segment
    found = recorded_data.samples(config, samples * 2, size.from_seconds)
    parts = [recorded_data.segment_of(found[i * samples:(i + 1) * samples]) for i in range(2)]
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        with EmbeddedRedis(Path(folder), append_only=True).start() as server:
            state = RunState(redis.Redis.from_url(server.url), RUN)
            state.create({}, "bench")
            rows: Any = {f"version:{v}": "[1.0, 10, 5]" for v in range(size.versions)}
            state.redis.hset(state.keys.table(TABLE), mapping={**rows, LAST_ADDED: str(size.versions - 1)})
            beat, look, record = _heartbeat_costs(server.url, size)
            with ChildProcess(_opponents, server.url, config) as opponents:
                assign, report = runner.run(_opponent_costs(opponents, size))
        with ChildProcess(_intake, config) as intake:
            segment, nbytes = runner.run(_segment_cost(intake, config, size, parts))
    largest = clusters()[-1]
    conditions = machine(preset=size.preset, rollouts=size.rollouts, versions=size.versions, segment_bytes=int(nbytes))
    return [
        row("load.opponents.assign", 1 / assign, "calls/s", 1 / inputs.ASSIGN.value, conditions),
        row("load.opponents.report", 1 / report, "calls/s", 1 / inputs.REPORT.value, conditions),
        row("load.redis.heartbeats", 1 / beat, "heartbeats/s", 1 / inputs.REDIS_BEAT.value, conditions),
        row("load.redis.games", 1 / record, "records/s", 1 / inputs.REDIS_SET.value, conditions),
        row("load.redis.look", look * 1e3, "ms", None, conditions),
        row("load.redis.rollouts", largest.config.lifecycle.heartbeat_seconds / beat, "rollouts",
            largest.config.lifecycle.heartbeat_seconds / inputs.REDIS_BEAT.value, conditions),
        row("load.intake.segments", nbytes / segment / 1e6, "MB/s", nbytes / intake_seconds(nbytes) / 1e6, conditions),
    ]
