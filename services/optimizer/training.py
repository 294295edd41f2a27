"""Training loop: take gradient steps and make a version after a fixed number of them."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis

from five.agent.config import LearnerConfig
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import WaitMeter
from five.agent.learning.step_metrics import DeviceEvent
from five.agent.schedules import Hyperparameters, hyperparameters_at
from five.services.optimizer import metrics as page
from five.services.optimizer.background_writer import (
    BlockedTimer,
    CheckpointRequests,
    VersionWriter,
    Write,
    failing_waiters,
    resolve_waiters,
)
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.drain_time import DrainTime
from five.services.optimizer.intake import Intake
from five.services.optimizer.interfaces import CheckpointMigrator, Publisher, StateClient
from five.services.optimizer.learning_meter import LearningMeter, RunTotals
from five.services.optimizer.prefetch import BatchPrefetcher, HostAndDeviceBatch
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, OptimizerGroup
from five.services.optimizer.state_writes import StateWrites
from five.services.optimizer.training_start import TrainingStart
from five.services.optimizer.version_records import VersionRecord
from rapid.store.errors import FencedOut, is_away

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.005


@dataclass
class Training:
    """Training loop of one optimizer process.

    Rank 0 publishes versions and writes checkpoints and records in the background, from copies, so no rank waits for a
    store or a disk. While a store refuses writes, learning is blocked on all ranks before the step that would make the
    next version; ``blocked_reason`` says why. Writing a checkpoint may take as long as several versions; one that
    becomes due meanwhile is made of the first version after it.

    Args:
        meta: metadata of every version (schema, layout).
        migrations: migrate a checkpoint of an earlier schema on resume.
        drain_time: measures checkpoint writes.
        beat: called in every iteration of the loop.
    """

    learner: Learner
    intake: Intake
    config: LearnerConfig
    publisher: Publisher
    checkpoints: Checkpoints
    client: StateClient
    meta: Mapping[str, Any]
    checkpoint_every: int
    group: OptimizerGroup = SINGLE_OPTIMIZER
    migrations: CheckpointMigrator | None = None
    drain_time: DrainTime | None = None
    beat: Callable[[], None] = lambda: None
    version: int = 0
    starved: WaitMeter = field(default_factory=WaitMeter)  # time in which no rank had a batch
    fingerprint: tuple[int, int] | None = None  # a version and the parameters' fingerprint that all ranks agree on
    is_fenced_out: bool = False  # the run is in another fencing epoch
    is_idle: bool = True  # the run is paused, no step is taken and everything is written
    warm_up_until: int = 0  # versions up to this one are copies of the first after a surgery
    meter: LearningMeter = field(init=False)
    _requests: CheckpointRequests = field(default_factory=CheckpointRequests)
    _writer: VersionWriter = field(default_factory=lambda: VersionWriter(is_away))
    _blocked: BlockedTimer = field(default_factory=BlockedTimer)
    _batches: BatchPrefetcher = field(init=False)
    _writes: StateWrites = field(init=False)
    _checkpoint_due: bool = False
    _flop_per_step: int = 0

    def __post_init__(self) -> None:
        self.meter = LearningMeter(self.intake)
        self._batches = BatchPrefetcher(self.intake, self.config.batch_samples, self.learner)
        self._writes = StateWrites(self.learner, self.intake, self.publisher, self.checkpoints, self.client, self.meta,
                                   self.drain_time)

    def start(self) -> None:
        """Resume from the newest checkpoint, or publish version 0. Every rank calls it.

        Raises as `TrainingStart.run`.
        """
        start = TrainingStart(self.learner, self.intake, self.publisher, self.checkpoints, self.client, self._writes,
                              self.group, self.migrations).run()
        self.version = self.intake.version = start.version
        self.warm_up_until = start.warm_up_until
        self.meter.start(start.flop, self.group)
        page.show_start(self.version)
        page.show_limits(self.intake.buffer.config, self.config.batch_samples, self.group.size)

    def run(self, stopping: Callable[[], bool], loop_ended: Callable[[], None] = lambda: None) -> None:
        """Learn until ``stopping()`` is true on any rank. ``loop_ended`` is called before the last writes."""
        hyper = self._hyperparameters()
        previous: DeviceEvent = self.learner.record_event()
        batch: HostAndDeviceBatch | None = None
        decide: Callable[[], list[bool]] | None = None  # the decision on this step that the previous one began
        while True:
            self.beat()
            self._run_fenced(self._writer.poll)
            # A batch is kept until every rank has one.
            active = self._read_active()
            if decide is None:
                if batch is None and active:
                    batch = self._batches.next()
                decide = self._begin_decision(stopping, batch is not None)
            self.meter.count_received()
            (running, has_batch, unblocked, no_request), decide = decide(), None
            if not no_request:
                self._save_requested_checkpoint()
            if not running:
                break
            steps = has_batch and unblocked
            self.is_idle = not steps and not active and self._writer.is_idle
            if not steps or not no_request:
                self._wait(has_batch, unblocked, previous)
                continue
            self.starved.end()
            rewards = self.intake.take_rewards()
            if rewards.count:
                self.learner.add_rewards(rewards.count, rewards.total, rewards.squares)
            if batch is None:
                batch = self._batches.next()  # the one that this rank promised when the decision began
            assert batch is not None
            self._flop_per_step = self._flop_per_step or self.learner.count_step_flops(batch[1])
            # With several ranks a decision takes a round trip, so that on the next step begins now. A step that makes a
            # version is an exception: whether it is blocked is known only just before.
            if self.group.size > 1 and self.meter.submitted_steps + 2 < self.config.gradient_steps_per_iteration:
                decide = self._begin_decision(stopping, active and self.intake.may_sample(self.config.batch_samples))
            if active:
                self._batches.prefetch()
            previous = self._step(batch, hyper, previous)
            batch = None
            if self.meter.submitted_steps == self.config.gradient_steps_per_iteration:
                self._make_version(hyper)
                hyper = self._hyperparameters()
                previous = self.learner.record_event()
        self.meter.read_steps(self.version + 1)
        totals = self.meter.sum_over_ranks(self.group)
        loop_ended()  # from here on rank 0 may take longer than any timeout of the loop
        self._run_at_drain(self._writer.finish, "the last version may be missing", redis.RedisError, OSError)
        if self.group.rank == 0:
            self._run_at_drain(self._checkpoint_write(totals), f"the checkpoint of version {self.version} is "
                               "stored but not in the index; the next optimizer adds it", redis.RedisError)

    def _wait(self, has_batch: bool, unblocked: bool, previous: DeviceEvent) -> None:
        """Wait before the loop tries the next step again, and measure whether it lacks samples.

        Blocked time is not starvation, because more rollouts would not help. Starvation starts when the device has
        completed its last step, whose end is ``previous``.
        """
        if not unblocked:
            self.starved.end()
        elif not has_batch and not self.starved.is_waiting and previous.is_done:
            self.starved.begin()
        time.sleep(IDLE_SECONDS)

    def _begin_decision(self, stopping: Callable[[], bool], has_batch: bool) -> Callable[[], list[bool]]:
        """Begin to agree whether all ranks run, have a batch, may make the next version, and need no checkpoint."""
        self._blocked.update(self._next_version_blocked_reason())
        return self.group.begin_all_ranks(
            not (stopping() or self.is_fenced_out), has_batch, not self._blocked.reason,
            not (self._requests and self._writer.is_idle))

    @property
    def blocked_reason(self) -> str:
        """The reason why the next version waits; "" while learning is not blocked."""
        return self._blocked.reason

    def _run_fenced(self, write: Write) -> None:
        """Run a write. When the run is in another fencing epoch, learning ends; a lost lease raises FencedOut."""
        try:
            write()
        except FencedOut as error:
            if error.reason != "epoch":
                raise
            # The refused write is obsolete: the run has continued from another version.
            log.info("learning ends: %s", error)
            self.is_fenced_out = True

    def _run_at_drain(self, write: Write, consequence: str, *expected: type[Exception]) -> None:
        """Run a write of the drain and log an expected error.

        Redis may be gone already, as when a node is drained. A checkpoint's blob is written before its entry in Redis.
        An earlier checkpoint that the blob store refuses (OSError) must not prevent the final one, which replaces it.
        """
        try:
            self._run_fenced(write)
        except expected as error:
            log.warning("a store is unavailable during the drain: %s (%s)", consequence, error)

    def _next_version_blocked_reason(self) -> str:
        """Return why the next step must wait because it would make a version; "" if it may run."""
        makes_version = self.meter.submitted_steps == self.config.gradient_steps_per_iteration - 1
        return self._writer.blocked_reason if makes_version else ""

    def _read_active(self) -> bool:
        """Return whether the run learns now.

        `is_idle` is cleared before the reading that is returned. A heartbeat that reads a pause first and then that
        `is_idle` is set may therefore report that pause as idle.
        """
        active = self.client.active()
        if active and self.is_idle:
            self.is_idle = False
            active = self.client.active()
        return active

    def end_epoch(self) -> None:
        """Drop the buffer's samples before the process restarts in the next fencing epoch. Call it after `run`."""
        self._batches.discard()
        dropped = self.intake.end_epoch()
        log.info("fencing epoch ended dropped_samples=%d", dropped)
        if self.group.rank == 0:
            self.client.event("optimizer.renewed", {"version": self.version, "dropped_samples": dropped})

    def checkpoint_now(self, is_wanted: Callable[[], bool] = lambda: True) -> int:
        """Request a checkpoint between two steps, wait for it and return its version. For any thread of rank 0.

        Raises TimeoutError once ``is_wanted()`` is false, or the error of the write.
        """
        return self._requests.request(is_wanted)

    def _save_requested_checkpoint(self) -> None:
        totals = self.meter.sum_over_ranks(self.group)
        waiters = self._requests.take()
        if self.group.rank != 0:
            return
        self._run_fenced(self._writer.wait)  # callers must find the newest version published
        with failing_waiters(waiters):
            write = self._checkpoint_write(totals)
            self._writer.submit_checkpoint(resolve_waiters(waiters, self.version, write))

    def _checkpoint_write(self, totals: RunTotals) -> Write:
        """Copy the present state and return the write of its checkpoint."""
        return self._writes.checkpoint(self.version, self.warm_up_until, totals.hero_steps, totals.flop)

    def _hyperparameters(self) -> Hyperparameters:
        """Return rank 0's reading of the schedules at the present version and its hero-steps."""
        read = hyperparameters_at(self.client.schedules(), self.version, self.meter.totals.hero_steps).as_dict()
        return Hyperparameters(**dict(zip(read, self.group.broadcast(list(read.values())), strict=True)))

    def _step(self, batch: HostAndDeviceBatch, hyper: Hyperparameters, previous: DeviceEvent) -> DeviceEvent:
        """Submit a gradient step and return its end. ``previous`` is the end of the device's previous work."""
        host, device = batch
        submitted_ns = time.time_ns()
        metrics = self.learner.train_step(device, hyper)
        self.meter.add_step(metrics, previous, host, submitted_ns, self._flop_per_step)
        return metrics.end

    def _make_version(self, hyper: Hyperparameters) -> None:
        """Make the parameters a version. ``hyper`` are the hyperparameters of the steps that led to it."""
        self.meter.read_steps(self.version + 1)
        began = time.monotonic()
        self.version += 1
        self._require_equal_parameters()
        totals = self.meter.sum_over_ranks(self.group)
        self._checkpoint_due = self._checkpoint_due or self.version % self.checkpoint_every == 0
        publish: Write | None = None
        save: Write | None = None
        if self.group.rank == 0:
            self._run_fenced(self._writer.wait_for_version)
            if self._checkpoint_due and self._writer.is_checkpoint_idle:
                self._checkpoint_due = False
                save = self._checkpoint_write(totals)
            publish = self._writes.version(self.version, self.warm_up_until, totals.hero_steps)
        self.intake.version = self.version
        record = self.meter.close_version(self.version, hyper, totals, time.monotonic() - began)
        if publish is not None and not self.is_fenced_out:
            self._writer.submit_version(partial(self._write_version_and_record, publish, record, began), save)

    def _write_version_and_record(self, publish: Write, record: VersionRecord, began: float) -> None:
        publish()
        seconds = time.monotonic() - began
        page.PUBLISH_SECONDS.observe(seconds)
        self.client.record(record | {"publish_seconds": seconds})

    def _require_equal_parameters(self) -> None:
        """Raise RuntimeError unless the ranks' parameters are equal to the bit, as averaged gradients need."""
        if self.group.size == 1:
            return
        own = self.learner.fingerprint()
        first = int(self.group.broadcast([own])[0])
        if not all(self.group.all_ranks(first == own)):
            raise RuntimeError(f"version {self.version}: the optimizers' parameters differ ({own:x} here, "
                               f"{first:x} on optimizer 0); the group restarts from the last checkpoint")
        self.fingerprint = self.version, own
