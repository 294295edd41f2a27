"""Batched inference through the service, beside the bare forward pass."""

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dota.spaces import Layout
from five.agent.learning.samples import Arrays
from five.agent.model.policy import Policy
from five.agent.model.schema import Schema
from five.agent.model.states import state_specs
from five.cli.benchmarks import recorded
from five.cli.benchmarks.child import RPC, Child, prepare, serve_until_closed
from five.cli.benchmarks.table import Row, machine, median_rate, percentiles, row
from five.protos.v1 import inference_pb2_grpc
from five.run.config import RunConfig
from five.run.load import load
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.loading import PolicyLoader
from five.services.inference.models import Models
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from rapid.clients.inference import NEWEST, RESET, WANT_STATE, InferenceClient

SPARSE = ("shared", "private")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    batches: tuple[int, ...] = (1, 8, 60)  # team-steps
    from_seconds: float = 120.0
    seconds: float = 1.5
    repeats: int = 3
    requests: int = 400  # whose latency is measured, of each batch size


class _Fixed:
    """A store that holds one version."""

    def __init__(self, tensors: dict[str, npt.NDArray[Any]]) -> None:
        self._tensors = tensors

    def head(self) -> int | None:
        return 0

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(versions, "")

    def fetch(self, version: int) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        return self._tensors, {}


def _serve(pipe: Connection, config: RunConfig, batches: tuple[int, ...]) -> None:
    """One server for each batch size, so that requests under way are not merged into larger batches."""
    settings = config.services.inference
    torch.set_num_threads(settings.threads)
    device, layout = torch.device(settings.device), Layout(config.game)
    specs = state_specs(layout, config.model)
    loader = PolicyLoader(layout, config.model, device)
    tensors = {n: t.numpy() for n, t in recorded.policy_of(config).state_dict().items()}
    models = Models(_Fixed(tensors), loader, past_bytes=0, poll_seconds=3600.0)
    models.refresh()
    services, batchers = [], []
    for batch in batches:
        table = SessionTable(specs, device, settings.max_sessions, settings.session_seconds)
        batcher = Batcher(models, table, BatcherOptions(
            batch, settings.queue_delay_us / 1e6, settings.request_timeout_seconds, settings.device))
        batcher.start()
        batchers.append(batcher)
        service = InferenceService(config.name, Schema.of(loader.create()).id, layout.hash, layout.array_specs(), specs,
                                layout.heroes, models, batcher, epoch=1)
        services.append((inference_pb2_grpc.add_InferenceServiceServicer_to_server, service))
    serve_until_closed(pipe, services)
    for batcher in batchers:
        batcher.close()
    models.close()


class _Player:
    """Plays ``rows`` sessions on recorded observations, a step a call, as a group of a rollout does."""

    def __init__(self, client: InferenceClient, seen: Arrays, rows: int, unroll: int, first: int) -> None:
        self._client = client
        self._sessions = np.arange(first, first + rows, dtype=np.int64)
        self._policies = np.full(rows, NEWEST, np.int64)
        self._seen = _rows_of(seen, rows)
        self._unroll = unroll
        self._steps = itertools.count()

    async def step(self) -> None:
        """One request and its answer."""
        step = next(self._steps)
        flags = (RESET if step == 0 else 0) | (WANT_STATE if step % self._unroll == 0 else 0)
        await self._client.act(self._sessions, self._policies, np.full(len(self._sessions), flags, np.uint8),
                               self._seen[step % len(self._seen)])


def _rows_of(seen: Arrays, rows: int) -> list[Arrays]:
    """Batches of ``rows`` team-steps of [T, B, ...], as many as T * B holds, at least one."""
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in seen.items()}
    count = max(len(flat["shared"]) // rows, 1)
    return [{name: np.ascontiguousarray(np.take(array, range(i * rows, (i + 1) * rows), 0, mode="wrap"))
             for name, array in flat.items()} for i in range(count)]


def forward(policy: Policy, seen: Arrays, rows: int, device: torch.device) -> "Forward":
    """The bare forward pass over batches of ``rows`` team-steps, on the device already."""
    batches = [{name: torch.from_numpy(a).to(device) for name, a in batch.items()} for batch in _rows_of(seen, rows)]
    return Forward(policy, batches, rows)


class Forward:
    """Forward passes one after another. Calling it makes one, and returns the team-steps."""

    def __init__(self, policy: Policy, batches: list[dict[str, torch.Tensor]], rows: int) -> None:
        self._policy = policy
        self._batches = itertools.cycle(batches)
        self._rows = rows
        self._state = policy.initial_state(rows)

    def __call__(self) -> float:
        acted = self._policy.act(next(self._batches), self._state)
        self._state = acted.state
        acted.actions.cpu()  # waits for a device that runs beside
        return float(self._rows)


def milliseconds(work: Any, times: int) -> list[float]:
    """How long each of ``times`` calls takes."""
    out = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        out.append(1000 * (time.perf_counter() - began))
    return out


def measure(size: Size | None = None) -> list[Row]:
    """Rows ``inference.team_steps.batchN``: team-steps/s with two requests of N under way, as a rollout has; and
    ``inference.latency.batchN.p50|p95|p99``, milliseconds with one. The reference is the bare forward pass."""
    size = size or Size()
    prepare()
    config = load(size.preset, size.overrides)
    settings, layout = config.services.inference, Layout(config.game)
    device = torch.device(settings.device)
    torch.set_num_threads(settings.threads)
    conditions = machine(preset=size.preset, torch=torch.__version__, threads=settings.threads, device=settings.device,
                         model=recorded.description(config), in_flight=2)
    seen = recorded.team_steps(config, max(-(-max(size.batches) // 16), 16), size.from_seconds)
    policy = recorded.policy_of(config).to(device).eval()
    rows: list[Row] = []
    with Child(_serve, config, size.batches) as server, asyncio.Runner() as runner:
        for batch, address in zip(size.batches, server.first, strict=True):
            bare = forward(policy, seen, batch, device)
            bare_rate = median_rate(bare, size.seconds, size.repeats)
            bare_latency = percentiles(milliseconds(bare, size.requests))
            rate, latency = runner.run(_through_service(config, size, address, layout, seen, batch))
            rows.append(row(f"inference.team_steps.batch{batch}", rate, "team-steps/s", bare_rate, conditions))
            alone = {**conditions, "in_flight": 1}
            rows += [row(f"inference.latency.batch{batch}.{q}", ms, "ms", bare_latency[q], alone)
                     for q, ms in percentiles(latency).items()]
    return rows


async def _through_service(config: RunConfig, size: Size, address: str, layout: Layout, seen: Arrays, batch: int
                           ) -> tuple[float, list[float]]:
    """(team-steps a second with two requests under way, milliseconds of each request with one)."""
    unroll = config.learning.lstm_unroll_length
    clients = [InferenceClient([address], RPC, layout.hash, sparse=SPARSE, epoch=1) for _ in range(2)]
    players = [_Player(client, seen, batch, unroll, 1 + i * batch) for i, client in enumerate(clients)]
    for player in players:
        await player.step()
    rates = []
    for _ in range(size.repeats):
        began = time.perf_counter()
        counts = await asyncio.gather(*(_play(player, began + size.seconds) for player in players))
        rates.append(batch * sum(counts) / (time.perf_counter() - began))
    await clients[1].close()
    latency = []
    for _ in range(size.requests):
        began = time.perf_counter()
        await players[0].step()
        latency.append(1000 * (time.perf_counter() - began))
    await clients[0].close()
    return float(np.median(rates)), latency


async def _play(player: _Player, until: float) -> int:
    steps = 0
    while time.perf_counter() < until:
        await player.step()
        steps += 1
    return steps
