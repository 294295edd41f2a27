"""Server loop of the optimizer: accepts segments while the training thread runs and updates the buffer's metrics."""

import asyncio
import logging
import threading

from dota.spaces import Layout
from five.agent.learning.samples import learning_specs
from five.agent.model.recurrent_state import state_specs
from five.run.config import RunConfig
from five.services.optimizer.experience_service import ExperienceService, add_to_server
from five.services.optimizer.metrics import BufferMeter
from five.services.optimizer.training import Training
from rapid.rpc.server import serve
from rapid.service import Service

log = logging.getLogger(__name__)
METRICS_SECONDS = 0.5


async def serve_experience(service: Service[RunConfig], training: Training, layout: Layout, port: int,
                           training_thread: threading.Thread) -> None:
    """Accept segments at ``port``, or at the command line's port, until the training thread ends."""
    config = service.config
    specs = {n: (shape, dtype) for n, (shape, dtype) in layout.array_specs().items()}
    step_specs = {**specs, **learning_specs(layout.heroes, layout.groups["enemy_buildings"].count)}
    sample_specs = {f"state/{n}": spec for n, spec in state_specs(layout, config.model).items()}
    servicer = ExperienceService(config.name, layout.hash, config.learning.lstm_unroll_length, step_specs, sample_specs,
                                 training.intake, epoch=service.epoch, active=lambda: service.lifecycle.active)
    server = await serve(service.listen_address(port), [(add_to_server, servicer)], config.rpc, service.callers)
    log.info("accepting segments address=%s heroes=%d", service.announce(server.port), layout.heroes)
    service.report_with(lambda: "")
    meter = BufferMeter()
    while training_thread.is_alive():
        buffer = training.intake.buffer
        meter.show(buffer.statistics(), buffer.ages(training.version))
        await asyncio.sleep(METRICS_SECONDS)
    await server.stop(0.5)
