"""The optimizer service. Several of them are started by torchrun and average their gradients."""

import asyncio
import logging
import threading

import torch

from dota import packing
from dota.spaces import Layout
from five.learning.buffer import SampleBuffer
from five.learning.learner import Learner
from five.learning.pacing import Pacer
from five.learning.samples import learning_specs
from five.model.policy import Policy
from five.model.schema import Schema
from five.model.states import state_specs
from protos.five.v1 import experience_pb2_grpc
from rapid import wire
from rapid.rpc.server import serve
from rapid.service import Service, local_rank, start
from run.config import RunConfig
from run.effective import overlay
from run.load import load
from services.optimizer import metrics
from services.optimizer.checkpoints import Checkpoints
from services.optimizer.desk import StateDesk
from services.optimizer.group import Group, device_of, join, leave
from services.optimizer.intake import Intake, unpack
from services.optimizer.service import ExperienceService
from services.optimizer.training import Training

log = logging.getLogger("services.optimizer")


def build(service: Service[RunConfig], group: Group, device: torch.device, layout: Layout
          ) -> tuple[Training, StateDesk]:
    """Everything that learns, wired up."""
    config = service.config
    torch.manual_seed(config.seed)
    policy = Policy(layout, config.model)
    learner = Learner(policy, config.learning, device, group.reduce)
    buffer = SampleBuffer(config.buffer, unpack, seed=config.seed * 1000 + group.rank, allocate=learner.allocate)
    intake = Intake(buffer, Pacer(config.buffer, config.learning.batch_samples))
    desk = StateDesk(service.state, service.lifecycle, config.schedules, f"optimizer-{group.rank}")
    settings = config.services.optimizer
    training = Training(
        learner, intake, config.learning, service.parameters,
        Checkpoints(service.blobs, config.name, settings.checkpoints_kept),
        desk, {"schema": Schema.of(policy).id, "layout": layout.hash}, settings.checkpoint_every_versions, group)
    return training, desk


async def take_in(service: Service[RunConfig], training: Training, layout: Layout, port: int,
                  learning: threading.Thread) -> None:
    """Takes segments in, at ``port`` unless the command line has another, while the loop learns."""
    config = service.config
    heroes = layout.heroes
    specs = {n: (shape, dtype) for n, (shape, dtype) in layout.array_specs().items()}
    step_specs = {**specs, **learning_specs(heroes, layout.groups["enemy_buildings"].count)}
    sample_specs = {f"state/{n}": spec for n, spec in state_specs(layout, config.model).items()}
    servicer = ExperienceService(config.name, layout.hash, config.learning.lstm_unroll_length, step_specs, sample_specs,
                                 training.intake, epoch=service.epoch, active=lambda: service.lifecycle.active)
    server = await serve(service.listen_address(port),
                         [(experience_pb2_grpc.add_ExperienceServiceServicer_to_server, servicer)], config.rpc,
                         service.token)
    log.info("takes segments of %d heroes in at %s", heroes, service.announce(server.port))
    service.not_ready = lambda: ""
    meter = metrics.BufferMeter()
    while learning.is_alive():
        buffer = training.intake.buffer
        meter.show(buffer.statistics(), buffer.ages(training.version))
        await asyncio.sleep(0.5)
    await server.stop(0.5)


def main() -> None:
    with start("optimizer", load, overlay=overlay) as service:
        config = service.config
        settings = config.services.optimizer
        torch.set_num_threads(settings.threads)
        wire.register_sparse(packing.pack_f16, packing.unpacked_f16)
        device = device_of(settings.device)
        group = join(device)
        layout = Layout(config.game)
        training, desk = build(service, group, device, layout)
        training.start()
        service.stats = lambda: {
            "version": training.version, "buffer": len(training.intake.buffer),
            "hero_steps": training.intake.hero_steps,
            "reuse": round(training.intake.pacer.consumed / max(training.intake.pacer.received, 1), 3),
            "busy": round(desk.last.get("busy_share", 0.0), 3),
            "versions/min": round(60 / desk.last["seconds"], 2) if desk.last else 0.0,
            "received": training.intake.pacer.received, "consumed": training.intake.pacer.consumed,
            "starved_seconds": round(training.starved.seconds, 3),
            **({"fingerprint": f"{training.fingerprint:012x}"} if group.size > 1 else {}),
        }
        service.quiet = lambda: training.resting
        failure: list[BaseException] = []

        def learn() -> None:
            try:
                training.run(lambda: service.lifecycle.draining)
            except BaseException as error:
                log.exception("learning ended")
                failure.append(error)

        thread = threading.Thread(target=learn, name="learning")
        thread.start()
        port = settings.listening_port(group.rank, local_rank())
        asyncio.run(take_in(service, training, layout, port, thread))
        thread.join()
        if failure:
            raise SystemExit(1)
        if service.renewing:
            training.end_epoch()
        leave()


if __name__ == "__main__":
    main()
