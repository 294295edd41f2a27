"""Segments from a rollout into the optimizer's buffer, compared with as many opaque bytes over the same connection."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import grpc
import numpy as np

from dota.spaces import Layout
from five.agent.config import BufferConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.pacing import Pacer
from five.agent.learning.samples import Arrays, learning_specs
from five.agent.learning.segments import Segment
from five.agent.model.recurrent_state import state_specs
from five.benchmarks import batch_sampling, recorded_data
from five.benchmarks.child_process import RPC, ChildProcess, prepare, serve_until_closed
from five.benchmarks.results import BenchmarkRow, machine, row
from five.clients.experience import ACCEPTED, ExperienceClient
from five.run.config import RunConfig
from five.run.load import load
from five.services.optimizer.experience_service import ExperienceService, add_to_server
from five.services.optimizer.intake import Intake
from five.services.optimizer.stored_arrays import SampleCollator
from five.services.rollout.sender import delta_encoded_arrays
from rapid.rpc.channel import aio_channel

OPAQUE = "five.bench.Opaque"


@dataclass(frozen=True)
class ExperienceWorkload:
    """Workload of the benchmark ``experience``."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    segments: int = 4  # different segments, sent in turn
    from_seconds: float = 120.0
    seconds: float = 2.0
    repeats: int = 5


async def _discard(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    async for _ in requests:
        yield b"\0"


def intake_service(run: str, config: RunConfig) -> ExperienceService:
    """Return the optimizer's intake without a learner."""
    layout, buffer = Layout(config.game), config.buffer
    # Nothing is consumed here. A reuse near 0 keeps the pacing from holding segments back.
    free = BufferConfig(capacity_samples=buffer.capacity_samples, capacity_bytes=buffer.capacity_bytes,
                        minimum_samples=buffer.minimum_samples, sample_reuse=1e-9)
    intake = Intake(SampleBuffer(free, SampleCollator()), Pacer(free, config.learning.batch_samples))
    steps = {**layout.array_specs(), **learning_specs(layout.heroes, layout.groups["enemy_buildings"].count)}
    states = {f"state/{name}": spec for name, spec in state_specs(layout, config.model).items()}
    return ExperienceService(run, layout.hash, config.learning.lstm_unroll_length, steps, states, intake, epoch=1)


def _serve(pipe: Connection, config: RunConfig) -> None:
    """Serve the optimizer's intake without a learner, and a service that discards what it receives."""
    handler = grpc.method_handlers_generic_handler(OPAQUE, {"Push": grpc.stream_stream_rpc_method_handler(_discard)})
    serve_until_closed(pipe, [
        (add_to_server, intake_service(config.name, config)),
        (lambda _, server: server.add_generic_rpc_handlers((handler,)), None)])


@dataclass(frozen=True)
class Rate:
    """Messages a second of wall clock, and a second of processor time of both ends."""

    clock: float
    processor: float


async def push_segments(config: RunConfig, size: ExperienceWorkload, server: ChildProcess, parts: list[Arrays]
                        ) -> tuple[Rate, int]:
    """Return the rate of segments stored in the buffer, and the bytes of one on the wire."""
    settings, samples = config.services.rollout, config.learning.samples_per_segment
    steps = samples * config.learning.lstm_unroll_length
    turn = itertools.cycle(parts)
    layout = Layout(config.game)
    client = ExperienceClient([server.first[0]], RPC, layout.hash, config.name, "bench",
                              in_flight=settings.in_flight_segments, zstd=settings.encoding.endswith("zstd"), epoch=1,
                              changes=delta_encoded_arrays(layout), period=config.learning.lstm_unroll_length)

    async def push() -> None:
        await client.push(Segment(next(turn), samples, 0.0, 1.0, steps, 0, 0))

    async def settle() -> None:
        if not await client.flush(60):
            raise TimeoutError("the buffer does not acknowledge segments")

    async with client:
        rate = await _median_rate(push, settle, size, server)
        if client.verdicts.total() != client.verdicts[ACCEPTED]:
            raise RuntimeError(f"segments were refused: {dict(client.verdicts)}")
        return rate, client.bytes_sent // client.verdicts.total()


async def push_opaque(size: ExperienceWorkload, server: ChildProcess, nbytes: int, in_flight: int) -> Rate:
    """Return the rate of messages of ``nbytes`` through a server that discards and acknowledges them one by one."""
    message = np.random.default_rng(0).bytes(nbytes)
    slots = asyncio.Semaphore(in_flight)
    sending: asyncio.Queue[bytes] = asyncio.Queue()
    channel = aio_channel(server.first[1], RPC)
    await channel.ready(10)

    async def requests() -> AsyncIterator[bytes]:
        while True:
            yield await sending.get()

    grpc_channel: Any = channel.grpc  # raw bytes need no serializers, unlike the stubs
    call: Any = grpc_channel.stream_stream(f"/{OPAQUE}/Push")(requests())

    async def acknowledge() -> None:
        async for _ in call:
            slots.release()

    reader = asyncio.create_task(acknowledge())

    async def push() -> None:
        await slots.acquire()
        sending.put_nowait(message)

    async def settle() -> None:
        for _ in range(in_flight):
            await asyncio.wait_for(slots.acquire(), 60)
        for _ in range(in_flight):
            slots.release()

    rate = await _median_rate(push, settle, size, server)
    call.cancel()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    await channel.close()
    return rate


async def _median_rate(push: Callable[[], Awaitable[None]], settle: Callable[[], Awaitable[None]],
                       size: ExperienceWorkload, server: ChildProcess) -> Rate:
    """Return the median rate of several intervals. Each interval ends when all of its messages are acknowledged."""
    await push()
    await settle()
    rates, costs = [], []
    for _ in range(size.repeats):
        began, pushed = time.perf_counter(), 0
        spent = time.process_time() + server.processor_seconds()
        while time.perf_counter() < began + size.seconds:
            await push()
            pushed += 1
        await settle()
        rates.append(pushed / (time.perf_counter() - began))
        costs.append((time.process_time() + server.processor_seconds() - spent) / pushed)
    return Rate(float(np.median(rates)), 1 / float(np.median(costs)))


def measure(size: ExperienceWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``experience.*``.

    ``experience.segments`` and ``experience.bytes`` (on the wire): encoded, sent, checked, stored and acknowledged.
    ``experience.processor``: segments a second of both ends' processor time. The reference is gRPC over the loopback
    with as many opaque bytes a message. ``experience.draw``: samples a second of processor time that one thread
    copies into a batch, compared with a copy of the batch. ``experience.draw.threads2``: by wall clock on two
    threads, compared with one.
    """
    size = size or ExperienceWorkload()
    prepare()
    config = load(size.preset, size.overrides)
    samples, in_flight = config.learning.samples_per_segment, config.services.rollout.in_flight_segments
    found = recorded_data.samples(config, samples * size.segments, size.from_seconds)
    parts = [recorded_data.segment_of(found[i * samples:(i + 1) * samples]) for i in range(size.segments)]
    with ChildProcess(_serve, config) as server, asyncio.Runner() as runner:
        rate, nbytes = runner.run(push_segments(config, size, server, parts))
        opaque = runner.run(push_opaque(size, server, nbytes, in_flight))
    conditions = machine(preset=size.preset, encoding=config.services.rollout.encoding, in_flight=in_flight,
                         segment_bytes=nbytes, segment_bytes_decoded=sum(a.nbytes for a in parts[0].values()),
                         layout=Layout(config.game).hash)
    one, two = (batch_sampling.measure_sampling(config, parts, threads, size.seconds) for threads in (1, 2))
    of_draws = conditions | {"sample_bytes": one.stored_bytes, "sample_bytes_decoded": one.batch_bytes}
    return [
        row("experience.bytes", rate.clock * nbytes / 1e6, "MB/s", opaque.clock * nbytes / 1e6, conditions),
        row("experience.segments", rate.clock, "segments/s", opaque.clock, conditions),
        row("experience.processor", rate.processor, "segments/s of processor time", opaque.processor, conditions),
        row("experience.draw", one.processor, "samples/s of processor time", one.copied, of_draws),
        row("experience.draw.threads2", two.clock, "samples/s", one.clock,
            of_draws | {"processor": round(two.processor)}),
    ]
