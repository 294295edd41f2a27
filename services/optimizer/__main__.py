"""The optimizer service. Several of them are started by torchrun and average their gradients."""

import asyncio
import logging
import threading

import torch

from dota import packing
from dota.spaces import Layout
from five.agent.compute import apply_compute_config, uses_cuda_graphs
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.learning.samples import learning_specs
from five.agent.model.policy import Policy
from five.agent.model.schema import Schema
from five.agent.model.states import state_specs
from five.agent.surgery import AgentSpec
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.optimizer import metrics
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.experience_service import ExperienceService, add_to_server
from five.services.optimizer.intake import Intake
from five.services.optimizer.leased_publisher import LeasedPublisher
from five.services.optimizer.migrations import CheckpointMigrations, commit_staged_checkpoint
from five.services.optimizer.process_group import OptimizerGroup, device_of, join, leave
from five.services.optimizer.run_state_client import RunStateClient
from five.services.optimizer.sample_recordings import Recordings
from five.services.optimizer.stored_arrays import SampleCollator
from five.services.optimizer.surgery_worker import SurgeryWorker
from five.services.optimizer.training import Training
from rapid import codec
from rapid.rpc.server import serve
from rapid.service import Service, start
from rapid.startup import local_rank
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import PublisherLease
from rapid.store.lineage import current_line_filter

log = logging.getLogger("five.services.optimizer")


def build(service: Service[RunConfig], group: OptimizerGroup, device: torch.device, layout: Layout, publisher: LeasedPublisher
          ) -> tuple[Training, RunStateClient]:
    """Everything that learns, wired up."""
    config = service.config
    torch.manual_seed(config.seed)
    policy = Policy(layout, config.model)
    settings = config.services.optimizer
    learner = Learner(policy, config.learning, device, group.reduce, group.begin, settings.bucket_mebibytes << 20,
                      uses_cuda_graphs(device, config.compute, settings.cuda_graphs))
    buffer = SampleBuffer(config.buffer, SampleCollator(settings.drawing_threads), seed=config.seed * 1000 + group.rank,
                          allocate=learner.allocate)
    intake = Intake(buffer, Pacer(config.buffer, config.learning.batch_samples))
    client = RunStateClient(service.state, service.lifecycle, config.schedules, f"optimizer-{group.rank}",
                     lambda: publisher.authority)
    schema = Schema.of(policy).id
    training = Training(
        learner, intake, config.learning, publisher,
        Checkpoints(service.blobs, config.name, settings.checkpoints_kept,
                    CheckpointIndex(service.state.redis, config.name), lambda: publisher.authority,
                    current_line_filter(service.state.lineage(), service.parameters.head())),
        client, {"schema": schema, "layout": layout.hash}, settings.checkpoint_every_versions, group,
        older=CheckpointMigrations(service.state, service.record, schema,
                               config.learning.gradient_steps_per_iteration))
    return training, client


def hold_lease(service: Service[RunConfig], group: OptimizerGroup) -> LeasedPublisher:
    """The publisher's lease, on the first rank. The others publish nothing: they wait for it in the first exchange
    with that one. Raises SystemExit when the service is told to end before it is had."""
    config = service.config
    lease = PublisherLease(service.state.redis, config.name, f"optimizer {service.id}", config.lifecycle.lease_seconds)
    # What cannot be written now is tried again beside learning, for as long as it takes.
    publisher = LeasedPublisher(service.parameters.without_retries(), lease, service.epoch, service.lifecycle.drain,
                                service.critical_tasks)
    if group.rank != 0:
        return publisher

    def wait(why: str) -> bool:
        if service.not_ready() != why:
            log.warning("waits: %s", why)
        service.not_ready = lambda: why
        return service.lifecycle.wait_drain(config.lifecycle.poll_seconds)

    if not publisher.acquire(wait, config.lifecycle.heartbeat_seconds):
        raise SystemExit(0)
    return publisher


def start_surgery(service: Service[RunConfig], training: Training, publisher: LeasedPublisher) -> None:
    """Carries the controller's orders out, in a thread beside training. On the first rank."""
    config = service.config
    spec = AgentSpec(config.game, config.model)
    recordings = Recordings(training.intake.buffer, service.blobs, config.name, spec.layout.hash)
    surgeon = SurgeryWorker(service.state, service.parameters, service.blobs, training, spec, recordings,
                      lambda: publisher.authority)
    service.critical_tasks.thread("carrying orders out", lambda: surgeon.run(lambda: service.lifecycle.draining)).start()


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
    server = await serve(service.listen_address(port), [(add_to_server, servicer)], config.rpc, service.token)
    log.info("accepting segments of %d heroes at %s", heroes, service.announce(server.port))
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
        apply_compute_config(config.compute)
        codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
        device = device_of(settings.device)
        group = join(device)
        layout = Layout(config.game)
        publisher = hold_lease(service, group)
        training, client = build(service, group, device, layout, publisher)
        if group.rank == 0:
            training.checkpoints.settle()
            commit_staged_checkpoint(service.state, service.record, training.checkpoints, client.event)
        training.measure_drains(config.lifecycle.grace_seconds, service.lifecycle.set_grace_seconds)
        training.start()
        client.follow(service.critical_tasks)
        if group.rank == 0:
            start_surgery(service, training, publisher)
        service.stats = lambda: {
            "version": training.version, "buffer": len(training.intake.buffer),
            "hero_steps": training.intake.hero_steps, "learned_hero_steps": training.learned_hero_steps,
            "reuse": round(training.intake.pacer.consumed / max(training.intake.pacer.received, 1), 3),
            "busy": round(client.last.get("busy_share", 0.0), 3),
            "versions/min": round(60 / client.last["seconds"], 2) if client.last else 0.0,
            "received": training.intake.pacer.received, "consumed": training.intake.pacer.consumed,
            "starved_seconds": round(training.starved.seconds, 3),
            **({"holding": training.holding} if training.holding else {}),
            **({"compared": "{}:{:012x}".format(*training.compared)} if training.compared else {}),
        }
        service.is_idle = lambda: training.resting
        watchdog = service.critical_tasks.watchdog("learning")
        training.turned = watchdog.beat

        def learn() -> None:
            try:
                training.run(lambda: service.lifecycle.draining)
            finally:
                watchdog.stop()

        # It ends by itself when the run is in another epoch.
        thread = service.critical_tasks.thread("learning", learn, may_end=True)
        thread.start()
        port = settings.listening_port(group.rank, local_rank())
        service.critical_tasks.run(take_in(service, training, layout, port, thread))
        thread.join()
        if service.critical_tasks.failure:
            raise SystemExit(1)
        if training.left_behind:
            service.restart("the run is in another epoch")
        if service.restarting:
            client.leave_epoch()
            training.end_epoch()
        publisher.release()
        service.before_restart = leave()


if __name__ == "__main__":
    main()
