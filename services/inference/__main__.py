"""The inference service: batched forward passes for all games of a run."""

import asyncio
import logging
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from dota import packing
from dota.spaces import Layout
from five.agent.compute import apply_compute_config, require_device, uses_cuda_graphs
from five.agent.model.recurrent_state import state_specs
from five.agent.model.schema import ModelSchema
from five.agent.surgery import AgentSpec
from five.protos.v1 import inference_pb2_grpc
from five.run.config import RunConfig
from five.run.config.address import own_port
from five.run.effective import overlay
from five.run.load import load
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.device import forward_on
from five.services.inference.loading import OlderVersions, PolicyLoader, StoreSource
from five.services.inference.metrics import Meter
from five.services.inference.models import Models
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from rapid import codec
from rapid.rpc.server import RpcServer, serve
from rapid.service import Service, start

log = logging.getLogger("five.services.inference")


def build(service: Service[RunConfig], meter: Meter) -> tuple[InferenceService, Models, Batcher]:
    """Create the components of the service without starting them."""
    config, settings = service.config, service.config.services.inference
    device = torch.device(settings.device)
    layout = Layout(config.game)
    specs = state_specs(layout, config.model)
    loader = PolicyLoader(layout, config.model, device)
    older = OlderVersions.of(service.state, service.record, AgentSpec(config.game, config.model))
    models = Models(StoreSource(service.parameters, device.type == "cuda", older), loader,
                    past_bytes=settings.past_mebibytes << 20,
                    poll_seconds=settings.poll_seconds, load_jitter_seconds=settings.load_jitter_seconds,
                    on_swap=lambda served, seconds: meter.swapped(served, seconds, len(models.resident),
                                                                  models.past_bytes),
                    on_past=lambda served: meter.past_loaded(served, len(models.resident), models.past_bytes))
    table = SessionTable(specs, device, settings.max_sessions, settings.session_seconds)
    # Each server has its own random stream.
    seed = torch.seed() if settings.seed == 0 else settings.seed + zlib.crc32(service.id.encode())
    forward = forward_on(device, table, seed, layout.array_specs(), specs, settings.max_batch,
                         loader.create_dense if uses_cuda_graphs(device, config.compute) else None)
    batcher = Batcher(models, table, BatcherOptions(
        settings.max_batch, settings.queue_delay_us / 1e6, settings.request_timeout_seconds), meter.observer,
        forward=forward)
    servicer = InferenceService(config.name, ModelSchema.of(loader.create()).id, layout.hash, layout.array_specs(),
                                specs, layout.heroes, models, batcher, epoch=service.epoch,
                                read_ahead=config.rpc.read_ahead_bytes)
    return servicer, models, batcher


async def follow_announcements(service: Service[RunConfig], models: Models) -> None:
    """Wake the loader when a version is announced. Without announcements the loader polls."""
    async for _ in service.parameters.watch():
        models.wake()


def why_not_ready(models: Models) -> str:
    """Return why the server cannot respond yet; "" when it can."""
    if models.newest is not None:
        return ""
    return f"no version could be loaded yet: {models.failure}" if models.failure else "no version has been loaded yet"


async def report_ready(server: RpcServer, models: Models, batcher: Batcher) -> None:
    """Report ready once a version is loaded and the forward pass is prepared."""
    while models.newest is None or not batcher.prepared.is_set():
        await asyncio.sleep(0.1)
    await server.set_serving(True)
    log.info("serving version=%d", models.newest)


async def serve_actions(service: Service[RunConfig]) -> None:
    """Serve until the process drains."""
    config, settings = service.config, service.config.services.inference
    meter = Meter()
    servicer, models, batcher = build(service, meter)
    server = await serve(service.listen_address(own_port(settings.addresses)),
                         [(inference_pb2_grpc.add_InferenceServiceServicer_to_server, servicer)], config.rpc,
                         service.callers, serving=False)

    def is_idle() -> bool:
        """Return whether the run is paused and no request is unanswered."""
        return not service.lifecycle.active and batcher.idle

    def stats() -> dict[str, Any]:
        return {"version": -1 if models.newest is None else models.newest, **meter.recent()}

    service.report_with(lambda: why_not_ready(models), stats=stats, is_idle=is_idle)
    service.announce(server.port)
    models.start(service.critical_tasks)
    batcher.start(service.critical_tasks)
    tasks = [service.critical_tasks.task("version-follower", follow_announcements(service, models)),
             service.critical_tasks.task("readiness-reporter", report_ready(server, models, batcher),
                                         may_end=True)]
    await service.lifecycle.wait_drained()
    for task in tasks:
        task.cancel()
    # Clients restore their sessions at another server, so nothing needs to be waited for.
    await server.stop(1.0)
    await asyncio.to_thread(batcher.close)
    await asyncio.to_thread(models.close)


def load_checked(path: str, overrides: Sequence[str]) -> RunConfig:
    """Return the configuration. Raises ValueError for a device that this process lacks."""
    config = load(path, overrides)
    require_device(config.services.inference.device, "services.inference.device")
    return config


def main() -> None:
    """Run the service."""
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    # A service that launches work on a GPU must run as soon as it wakes.
    with start("inference", load_checked, overlay=overlay,
               long_time_slices=lambda config: config.services.inference.device == "cpu") as service:
        torch.set_num_threads(service.config.services.inference.threads)
        torch.set_flush_denormal(True)
        apply_compute_config(service.config.compute)
        service.critical_tasks.run(serve_actions(service))


if __name__ == "__main__":
    main()
