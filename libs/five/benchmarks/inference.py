"""Batched inference through the service, compared with the bare forward pass."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dota.spaces import Layout
from five.agent.compute import apply_compute_config, uses_cuda_graphs
from five.agent.learning.samples import Arrays
from five.agent.model.native_actor import freeze
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.agent.model.schema import ModelSchema
from five.benchmarks import recorded_data
from five.benchmarks.child_process import ChildProcess, prepare, serve_until_closed
from five.benchmarks.load_clients import InferenceTarget, LoadClient, LoadClientPool, requests_of, rows_of
from five.benchmarks.results import BenchmarkRow, Conditions, machine, median_rate, percentiles, row
from five.protos.v1 import inference_pb2_grpc
from five.run.config import RunConfig
from five.run.load import load
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.device import forward_on
from five.services.inference.graphs import Graphs
from five.services.inference.loading import PolicyLoader
from five.services.inference.models import Models, ResidentVersion
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from five.services.inference.staging import device_dtype


@dataclass(frozen=True)
class InferenceWorkload:
    """Workload of the benchmark ``inference``."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    batches: tuple[int, ...] = (1, 8, 60)  # team-steps; on a GPU also the preset's largest batch
    from_seconds: float = 120.0
    seconds: float = 1.5
    repeats: int = 3
    requests: int = 400  # requests of each batch size whose latency is measured


class _SingleVersionStore:
    """A store of one version."""

    def __init__(self, tensors: dict[str, npt.NDArray[Any]]) -> None:
        self._tensors = tensors

    def head(self) -> int | None:
        return 0

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(versions, "")

    def fetch(self, version: int) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        return self._tensors, {}


def _serve(pipe: Connection, config: RunConfig, batches: tuple[int, ...]) -> None:
    """Run one server for each batch size, so that concurrent requests are not merged into larger batches."""
    settings = config.services.inference
    torch.set_num_threads(settings.threads)
    apply_compute_config(config.compute)
    device, layout = torch.device(settings.device), Layout(config.game)
    specs = state_specs(layout, config.model)
    loader = PolicyLoader(layout, config.model, device)
    tensors = {n: t.numpy() for n, t in recorded_data.policy_of(config).state_dict().items()}
    models = Models(_SingleVersionStore(tensors), loader, past_bytes=0, poll_seconds=3600.0)
    models.refresh()
    services, batchers = [], []
    for batch in batches:
        table = SessionTable(specs, device, settings.max_sessions, settings.session_seconds)
        forward = forward_on(device, table, config.seed, layout.array_specs(), specs, batch,
                             loader.create_dense if uses_cuda_graphs(device, config.compute) else None)
        batcher = Batcher(models, table, BatcherOptions(
            batch, settings.queue_delay_us / 1e6, settings.request_timeout_seconds), forward=forward)
        batcher.start()
        batcher.prepared.wait()
        batchers.append(batcher)
        service = InferenceService(config.name, ModelSchema.of(loader.create()).id, layout.hash, layout.array_specs(),
                                   specs,
                                   layout.heroes, models, batcher, epoch=1, read_ahead=config.rpc.read_ahead_bytes)
        services.append((inference_pb2_grpc.add_InferenceServiceServicer_to_server, service))
    serve_until_closed(pipe, services)
    for batcher in batchers:
        batcher.close()
    models.close()


def forward(policy: Policy, seen: Arrays, rows: int, device: torch.device) -> "ForwardPasses":
    """Return the bare forward pass over batches of ``rows`` team-steps that are already on the device."""
    batches = [{name: torch.from_numpy(a).to(device) for name, a in batch.items()} for batch in rows_of(seen, rows)]
    return ForwardPasses(policy, batches, rows)


class ForwardPasses:
    """Consecutive forward passes. A call makes one and returns its team-steps."""

    def __init__(self, policy: Policy, batches: list[dict[str, torch.Tensor]], rows: int) -> None:
        self._policy = policy
        self._batches = itertools.cycle(batches)
        self._rows = rows
        self._state = policy.initial_state(rows)

    def __call__(self) -> float:
        acted = self._policy.act(next(self._batches), self._state)
        self._state = acted.state
        acted.actions.cpu()  # waits for the asynchronous device
        return float(self._rows)


class GraphedForwardPasses:
    """Forward passes by CUDA graphs, as the server runs them: the rate of a service without overhead. A CPU runs the
    same operations one by one."""

    def __init__(self, config: RunConfig, policy: Policy, most: int, device: torch.device) -> None:
        layout = Layout(config.game)
        specs = state_specs(layout, config.model)
        self._device = device
        self._specs = layout.array_specs()
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        dense = PolicyLoader(layout, config.model, device).create_dense()
        with torch.cuda.stream(self._stream):
            self._graphs = Graphs(dense, self._specs, specs, most, device, config.seed)
            self._graphs.capture()
            self._graphs.load(ResidentVersion(0, "", policy, 1.0))

    def of(self, seen: Arrays, rows: int) -> Callable[[], float]:
        """Return a function that makes one pass over a batch of ``rows`` team-steps on the device and returns their
        number."""
        batches = itertools.cycle([
            {name: torch.from_numpy(a).to(self._device).view(device_dtype(np.dtype(self._specs[name][1])))
             for name, a in batch.items()} for batch in rows_of(seen, rows)])
        states: dict[str, torch.Tensor] = {}

        def run() -> float:
            nonlocal states
            with torch.cuda.stream(self._stream), torch.inference_mode():
                for name, state in self._graphs.fill(next(batches), None, rows).items():
                    state.copy_(states[f"state/{name}"]) if states else state.zero_()
                states = self._graphs.run(rows)
                states["actions"].cpu()  # waits for the asynchronous device
            return float(rows)

        return run


def milliseconds(work: Any, times: int) -> list[float]:
    """Return the time of each of ``times`` calls."""
    out = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        out.append(1000 * (time.perf_counter() - began))
    return out


def measure(size: InferenceWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``inference.*``.

    ``inference.team_steps.batchN``: team-steps/s with two requests of N in flight, as a rollout has;
    ``inference.latency.batchN.p50|p95|p99``: milliseconds with one. The reference is the bare forward pass, by CUDA
    graphs or by one call of the core if the server runs it so; ``inference.forward.batchN`` then compares it with
    the pass operation by operation.

    If N is above the size of a rollout group's request, several requests fill a batch, from as many clients: two
    batches in flight for the rate, one for the latency.
    """
    size = size or InferenceWorkload()
    prepare()
    config = load(size.preset, size.overrides)
    apply_compute_config(config.compute)
    settings, rollout, layout = config.services.inference, config.services.rollout, Layout(config.game)
    device = torch.device(settings.device)
    torch.set_num_threads(settings.threads)
    conditions = machine(preset=size.preset, torch=torch.__version__, threads=settings.threads,
                         device=recorded_data.name_of(device), model=recorded_data.description(config),
                         cuda_graphs=str(uses_cuda_graphs(device, config.compute)).lower())
    batches = size.batches
    if device.type == "cuda":
        batches = tuple(sorted({*batches, settings.max_batch}))
    seen = recorded_data.team_steps(config, max(-(-max(batches) // 16), 16), size.from_seconds)
    policy = recorded_data.policy_of(config).to(device).eval()
    frozen = recorded_data.policy_of(config).to(device).eval()
    freeze(frozen)
    graphed = GraphedForwardPasses(config, policy, max(batches), device) if uses_cuda_graphs(device,
                                                                                             config.compute) else None
    rows: list[BenchmarkRow] = []
    with ChildProcess(_serve, config, batches) as server, asyncio.Runner() as runner:
        for batch, address in zip(batches, server.first, strict=True):
            bare: Callable[[], float] = forward(policy, seen, batch, device)
            bare_rate = median_rate(bare, size.seconds, size.repeats)
            if graphed is not None or frozen.actor is not None:
                bare = forward(frozen, seen, batch, device) if graphed is None else graphed.of(seen, batch)
                one_by_one, bare_rate = bare_rate, median_rate(bare, size.seconds, size.repeats)
                rows.append(row(f"inference.forward.batch{batch}", bare_rate, "team-steps/s", one_by_one, conditions))
            bare_latency = percentiles(milliseconds(bare, size.requests))
            requests = requests_of(batch, max(2 * rollout.games // rollout.groups, 1))
            target = InferenceTarget(address, layout.hash, config.learning.lstm_unroll_length)
            if len(requests) == 1:
                rate, latency = runner.run(_through_service(size, target, seen, batch))
                clients: Conditions = {"in_flight": 2}
            else:
                with LoadClientPool(target, seen, requests) as pool:
                    rate = statistics.median(pool.rate(size.seconds) for _ in range(size.repeats))
                    latency = pool.latency(size.requests)
                    clients = {"in_flight": pool.in_flight, "rows_a_request": max(requests),
                               "client_processes": pool.processes}
            rows.append(row(f"inference.team_steps.batch{batch}", rate, "team-steps/s", bare_rate,
                            {**conditions, **clients}))
            clients["in_flight"] = len(requests)
            rows += [row(f"inference.latency.batch{batch}.{q}", ms, "ms", bare_latency[q], {**conditions, **clients})
                     for q, ms in percentiles(latency).items()]
    return rows


async def _through_service(size: InferenceWorkload, target: InferenceTarget, seen: Arrays, batch: int
                           ) -> tuple[float, list[float]]:
    """Return the team-steps a second with two requests in flight, and the milliseconds of each request with one."""
    players = [LoadClient(target, seen, batch, 1 + i * batch) for i in range(2)]
    for player in players:
        await player.step()
    rates = []
    for _ in range(size.repeats):
        began = time.perf_counter()
        counts = await asyncio.gather(*(player.play(began + size.seconds) for player in players))
        rates.append(batch * sum(counts) / (time.perf_counter() - began))
    await players[1].close()
    latency = await players[0].timed(size.requests)
    await players[0].close()
    return float(np.median(rates)), latency
