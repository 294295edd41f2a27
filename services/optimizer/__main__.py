"""The optimizer service. An agent starts several of them, which average their gradients (services.optimizer.agent)."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dota import packing
from dota.spaces import Layout
from five.agent.compute import apply_compute_config, require_device, uses_cuda_graphs
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.checkpoint import checkpoint_bytes
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.model.policy import Policy
from five.agent.model.schema import ModelSchema
from five.agent.surgery import AgentSpec
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.drain_time import DrainTime
from five.services.optimizer.experience_server import serve_experience
from five.services.optimizer.intake import Intake
from five.services.optimizer.leased_publisher import LeasedPublisher
from five.services.optimizer.migrations import CheckpointMigrations, commit_staged_checkpoint
from five.services.optimizer.process_group import (
    LAST_WRITES_SECONDS,
    OptimizerGroup,
    device_of,
    join,
    leave,
    use_device,
)
from five.services.optimizer.run_state_client import RunStateClient
from five.services.optimizer.sample_recordings import SampleRecordings
from five.services.optimizer.stored_arrays import SampleCollator
from five.services.optimizer.surgery_worker import SurgeryWorker
from five.services.optimizer.traced_collator import TracedCollator
from five.services.optimizer.training import Training
from rapid import codec
from rapid.critical_tasks import Watchdog
from rapid.lifecycle import Lifecycle
from rapid.service import Service, start
from rapid.startup import local_rank
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import PublisherLease
from rapid.store.lineage import current_line_filter
from rapid.store.series import Series
from rapid.telemetry import tracing

log = logging.getLogger("five.services.optimizer")
NEXT_ROUND = 75  # exit status (EX_TEMPFAIL) after which the agent starts its ranks again


def build(service: Service[RunConfig], group: OptimizerGroup, layout: Layout, publisher: LeasedPublisher,
          beat: Callable[[], None]) -> tuple[Training, RunStateClient]:
    """Build the training loop; it calls ``beat`` in every iteration."""
    config, settings = service.config, service.config.services.optimizer
    device = device_of(settings.device)
    torch.manual_seed(config.seed)
    policy = Policy(layout, config.model)
    learner = Learner(policy, config.learning, device, group.reduce, group.begin, settings.bucket_mebibytes << 20,
                      uses_cuda_graphs(device, config.compute, settings.cuda_graphs))
    collate = SampleCollator(settings.collate_threads)
    traced = TracedCollator(collate) if tracing.is_on() else None
    buffer = SampleBuffer(config.buffer, traced or collate, seed=config.seed * 1000 + group.rank,
                          allocate=learner.allocate)
    intake = Intake(buffer, Pacer(config.buffer, config.learning.batch_samples), traced)
    client = RunStateClient(service.state, Series(service.state.redis, config.name, config.store.series_records),
                            service.lifecycle, config.schedules, f"optimizer-{group.rank}",
                            lambda: publisher.fencing_token)
    checkpoints = Checkpoints(service.blobs, config.name, settings.checkpoints_kept,
                              CheckpointIndex(service.state.redis, config.name), lambda: publisher.fencing_token,
                              current_line_filter(service.state.lineage(), service.parameters.head()),
                              service.confirm_blob_owner)
    schema = ModelSchema.of(policy).id
    training = Training(
        learner, intake, config.learning, publisher, checkpoints, client, {"schema": schema, "layout": layout.hash},
        settings.checkpoint_every_versions, group,
        CheckpointMigrations(service.state, service.record, schema, config.learning.gradient_steps_per_iteration),
        DrainTime(config.lifecycle.grace_seconds,
                  checkpoint_bytes(policy.state_dict(), dict(policy.named_parameters())),
                  service.lifecycle.set_grace_seconds),
        beat)
    return training, client


def lease_publisher(service: Service[RunConfig], group: OptimizerGroup) -> LeasedPublisher:
    """Return the publisher; on rank 0 wait until it holds the publisher's lease.

    The other ranks publish nothing and wait for rank 0 in their first collective operation. Raises SystemExit when the
    service drains while it waits.
    """
    config = service.config
    lease = PublisherLease(service.state.redis, config.name, f"optimizer {service.id}", config.lifecycle.lease_seconds)
    # The background writer retries failed writes for as long as a store is unavailable.
    publisher = LeasedPublisher(service.parameters.without_retries(), lease, service.epoch, service.lifecycle.drain,
                                service.critical_tasks)
    if group.rank != 0:
        return publisher

    last_reason = ""

    def wait(reason: str) -> bool:
        nonlocal last_reason
        if reason != last_reason:
            log.warning("waiting for the publisher's lease: %s", reason)
            service.report_with(lambda: reason)
            last_reason = reason
        return service.lifecycle.wait_drain(config.lifecycle.poll_seconds)

    if not publisher.acquire(wait, config.lifecycle.heartbeat_seconds):
        raise SystemExit(0)
    return publisher


def complete_index(service: Service[RunConfig], checkpoints: Checkpoints,
                   event: Callable[[str, dict[str, Any]], None]) -> None:
    """List the checkpoints that rank 0 may resume from: its predecessor's last, a recovered and a staged one."""
    checkpoints.commit_unindexed()
    checkpoints.recover(service.config.services.optimizer.recover_checkpoint, event)
    commit_staged_checkpoint(service.state, service.record, checkpoints, event)


def start_surgery_worker(service: Service[RunConfig], training: Training, publisher: LeasedPublisher) -> None:
    """Start the thread that runs the controller's jobs on rank 0."""
    config = service.config
    spec = AgentSpec(config.game, config.model)
    recordings = SampleRecordings(training.intake.buffer, service.blobs, config.name, spec.layout.hash)
    worker = SurgeryWorker(service.state, service.parameters, service.blobs, training, spec, recordings,
                           lambda: publisher.fencing_token)
    service.critical_tasks.thread("surgery-worker", lambda: worker.run(lambda: service.lifecycle.draining)).start()


def heartbeat_stats(training: Training, client: RunStateClient) -> dict[str, Any]:
    """Return the statistics that go with each heartbeat."""
    pacer = training.intake.pacer
    return {
        "version": training.version, "buffer": len(training.intake.buffer), "hero_steps": training.intake.hero_steps,
        "learned_hero_steps": training.meter.learned_hero_steps,
        "reuse": round(pacer.consumed / max(pacer.received, 1), 3),
        "busy": round(client.last.get("busy_share", 0.0), 3),
        "versions/min": round(60 / client.last["seconds"], 2) if client.last else 0.0,
        "received": pacer.received, "consumed": pacer.consumed, "starved_seconds": round(training.starved.seconds, 3),
        **({"holding": training.blocked_reason} if training.blocked_reason else {}),
        **({"compared": "{}:{:012x}".format(*training.fingerprint)} if training.fingerprint else {}),
    }


def load_checked(path: str, overrides: Sequence[str]) -> RunConfig:
    """Return the configuration. Raises ValueError for a device that this process lacks."""
    config = load(path, overrides)
    require_device(config.services.optimizer.device, "services.optimizer.device", local_rank() + 1)
    return config


def train(training: Training, watchdog: Watchdog, lifecycle: Lifecycle) -> None:
    """Learn until the process drains. The watchdog covers the loop; the grace period bounds the last writes.

    The other ranks wait for rank 0's last writes, whose rate only rank 0 measures, so their grace period is extended
    by the longest wait.
    """
    def end_loop() -> None:
        watchdog.stop()
        if training.group.rank != 0:
            lifecycle.set_grace_seconds(lifecycle.grace_seconds + LAST_WRITES_SECONDS)

    use_device(training.learner.device)
    try:
        training.run(lambda: lifecycle.draining, end_loop)
    finally:
        watchdog.stop()


def main() -> None:
    with start("optimizer", load_checked, overlay=overlay, claims_blobs=True,
               long_time_slices=lambda config: config.services.optimizer.device == "cpu") as service:
        config, settings = service.config, service.config.services.optimizer
        torch.set_num_threads(settings.threads)
        apply_compute_config(config.compute)
        codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
        group = join(device_of(settings.device), settings.start_timeout_seconds)
        layout = Layout(config.game)
        publisher = lease_publisher(service, group)
        watchdog = service.critical_tasks.watchdog("training")
        training, client = build(service, group, layout, publisher, watchdog.beat)
        if group.rank == 0:
            complete_index(service, training.checkpoints, client.event)
        training.start()
        client.start_polling(service.critical_tasks)
        if group.rank == 0:
            start_surgery_worker(service, training, publisher)
        service.report_with(stats=lambda: heartbeat_stats(training, client), is_idle=lambda: training.is_idle)

        # The thread ends by itself when the run enters another fencing epoch.
        thread = service.critical_tasks.thread(
            "training", lambda: train(training, watchdog, service.lifecycle), may_end=True)
        thread.start()
        port = settings.listening_port(group.rank, local_rank())
        service.critical_tasks.run(serve_experience(service, training, layout, port, thread))
        thread.join()
        if service.critical_tasks.failure:
            raise SystemExit(1)
        if training.is_fenced_out:
            service.restart("the run is in another fencing epoch")
        if service.restarting:
            client.leave_epoch()
            training.end_epoch()
        publisher.release()
        # Without a signal another rank drains, and the agent takes this one into the next round.
        service.end_with(NEXT_ROUND if group.size > 1 and not service.lifecycle.signal_received else 0, leave(group))


if __name__ == "__main__":
    main()
