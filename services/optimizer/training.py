"""The loop that learns: draw, step, and after every so many steps a new version."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from five.agent.config import LearnerConfig
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import ReuseMeter, WaitMeter
from five.agent.learning.snapshots import SnapshotCopier
from five.agent.learning.step_metrics import DeviceEvent
from five.agent.schedules import Hyperparameters, dump_schedules, hyperparameters_at
from five.services.optimizer import faults
from five.services.optimizer import metrics as page
from five.services.optimizer.asked import AskedCheckpoints, answering, told
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.drain_time import DrainTime, nbytes
from five.services.optimizer.holding import Holding
from five.services.optimizer.intake import Intake
from five.services.optimizer.interfaces import Older, Publisher, StateClient
from five.services.optimizer.prefetch import BatchPrefetcher, HostAndDeviceBatch
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, OptimizerGroup
from five.services.optimizer.version_records import Taken, VersionRecord, Window
from five.services.optimizer.writing import Writing
from rapid.blobs import BlobMissing
from rapid.store.errors import FencedOut, is_away

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.005


@dataclass
class Training:
    """One optimizer's part of the run. Rank 0 publishes, writes checkpoints and keeps the records beside learning, from
    copies, so that no rank waits for a store or a disk. While a store takes nothing learning holds: the step that would
    make another version is not taken, on any rank, and ``holding`` says why. A checkpoint comes after its version and
    may take as long as several; one that is due meanwhile is made of the first version after it.

    ``meta`` goes with every version (schema, layout).
    """

    learner: Learner
    intake: Intake
    config: LearnerConfig
    publisher: Publisher
    checkpoints: Checkpoints
    client: StateClient
    meta: Mapping[str, Any]
    checkpoint_every: int = 10
    group: OptimizerGroup = SINGLE_OPTIMIZER
    older: Older | None = None
    version: int = 0
    window: Window = field(default_factory=Window)
    reuse: ReuseMeter = field(default_factory=ReuseMeter)
    starved: WaitMeter = field(default_factory=WaitMeter)  # time without a batch on all ranks
    compared: tuple[int, int] | None = None  # a version and its parameters' fingerprint, which all optimizers had
    flop: float = 0.0  # of this optimizer since it started; on rank 0 also all that came before
    learned_hero_steps: int = 0  # of this process: hero-steps received that were learned from, each counted once
    left_behind: bool = False  # whether the run is in another epoch than this process
    resting: bool = True  # whether it has seen that the run does not learn now, and takes no step
    drain_time: DrainTime | None = None
    turned: Callable[[], None] = lambda: None  # told each time that the loop comes round
    warm_up_until: int = 0  # versions up to this one are clones of the first after a surgery
    _asked: AskedCheckpoints = field(default_factory=AskedCheckpoints)
    _writing: Writing = field(default_factory=lambda: Writing(is_away))
    _holding: Holding = field(default_factory=Holding)
    _batches: BatchPrefetcher = field(init=False)
    _ways: tuple[SnapshotCopier, SnapshotCopier] = field(init=False)  # of versions, and of checkpoints
    _due: bool = False  # whether a checkpoint is due
    _taken: list[Taken] = field(default_factory=list)  # steps since the newest version, whose metrics were not read
    _flop_a_step: int = 0
    _received: int = 0
    _hero_steps: float = 0.0

    def __post_init__(self) -> None:
        self._batches = BatchPrefetcher(self.intake, self.config.batch_samples, self.learner)
        self._ways = SnapshotCopier(self.learner.device), SnapshotCopier(self.learner.device)

    def start(self) -> None:
        """Resumes from the newest checkpoint, or publishes version 0. All ranks go on from rank 0's checkpoint, with
        the same parameters to the bit."""
        checkpoint = self._resume_or_begin() if self.group.rank == 0 else -1
        checkpoint, self.version = map(int, self.group.from_first([checkpoint, self.version]))
        if self.group.rank != 0:
            try:
                tensors, extra = self.checkpoints.load(checkpoint)
            except BlobMissing as error:
                raise RuntimeError(f"optimizer {self.group.rank} does not see the checkpoint that optimizer 0 wrote "
                                   f"({error}): blobs.url must be a place that all of them share") from None
            self._load(tensors, extra)
        page.show_start(self.version, checkpointed=True)
        page.show_limits(self.intake.buffer.config, self.config.batch_samples, self.group.size)
        self.intake.version = self.version
        self._received = self.intake.pacer.received
        (self._hero_steps,) = self.group.total([self.intake.hero_steps])

    def _resume_or_begin(self) -> int:
        """Rank 0's start; returns the version of the checkpoint that all go on from."""
        head = self.publisher.head()
        found = self.checkpoints.newest()
        if found is not None:
            checkpoint, tensors, extra = found
            self._load(tensors, extra)
            self.intake.buffer.load_state_dict(extra["buffer"])
            self.intake.hero_steps = int(extra["hero_steps"])
            self.flop = float(extra.get("flop", 0.0))
            # Versions after the checkpoint exist and never change: numbering goes on behind them.
            self.version = max(checkpoint, head if head is not None else -1)
            self.client.event("optimizer.resumed", {
                "checkpoint": checkpoint, "version": self.version, "optimizers": self.group.size,
                "restarts": self.group.restarts})
            if head is None or head < checkpoint:
                self._until_written(self._publication())
            return checkpoint
        if head is not None:
            raise RuntimeError(
                f"the run has version {head} but no checkpoint: the blob store (blobs.url) is not the one it was "
                "started with. Point it there, or start a run with another name")
        self._until_written(self._checkpoint(0, 0.0))
        self._until_written(self._publication())
        return 0

    def _load(self, tensors: dict[str, Tensor], extra: dict[str, Any]) -> None:
        if self.older is not None:
            tensors, extra = self.older.bring(tensors, extra)
        self.learner.load_state_dict(tensors, extra["learner"])
        self.intake.pacer.load_state_dict(extra["pacer"])
        self.warm_up_until = int(extra.get("warm_up_until", 0))

    def run(self, stopping: Callable[[], bool]) -> None:
        """Learns until ``stopping``, on any of the ranks."""
        hyper = self._hyperparameters()
        before: DeviceEvent = self.learner.moment()
        ready: HostAndDeviceBatch | None = None
        while True:
            self.turned()
            self._watch(self._writing.look)
            # A batch that was drawn is kept until the others have one too.
            active = self._active()
            if ready is None and active:
                ready = self._batches.next()
            self._count_intake()
            go_on, fed, free, unasked = self.group.everywhere(
                not (stopping() or self.left_behind), ready is not None, not self._holds(),
                not (self._asked and self._writing.idle))
            if not unasked:
                self._save_as_asked()
            if not go_on:
                break
            go = fed and free
            self.resting = not go and not active and self._writing.idle
            if not go or not unasked:
                # Who holds does not starve: more rollouts would not help. Before the moment has passed the device is at
                # work on the step asked for last, and misses nothing.
                if not free:
                    self.starved.end()
                elif not fed and not self.starved.waiting and before.passed:
                    self.starved.begin()
                time.sleep(IDLE_SECONDS)
                continue
            self.starved.end()
            rewards = self.intake.take_rewards()
            if rewards.count:
                self.learner.add_rewards(rewards.count, rewards.total, rewards.squares)
            assert ready is not None
            self._flop_a_step = self._flop_a_step or self.learner.flops(ready[1])
            if active:
                self._batches.prefetch()
            before = self._step(ready, hyper, before)
            ready = None
            if len(self._taken) == self.config.gradient_steps_per_iteration:
                self._next_version(hyper)
                hyper = self._hyperparameters()
                before = self.learner.moment()
        self._read_steps()
        self._watch(self._writing.end)
        hero_steps, flop = self.group.total([self.intake.hero_steps, self.flop])
        if self.group.rank == 0:
            self._watch(self._checkpoint(int(hero_steps), flop))

    def _watch(self, write: Callable[[], None]) -> None:
        """Calls what writes, or tells of what was written beside; the loop ends when the run is in another epoch."""
        try:
            write()
        except FencedOut as error:
            self._leave_behind(error)

    @property
    def holding(self) -> str:
        """Why the next version waits: what was made before cannot be written; '' while learning goes on."""
        return self._holding.why

    def _holds(self) -> bool:
        """Whether the next step would make a version that may not be made yet."""
        due = len(self._taken) == self.config.gradient_steps_per_iteration - 1
        obstacle = self._writing.obstacle if due else ""
        if obstacle:
            self._holding.hold(obstacle)
        else:
            self._holding.go_on()
        return bool(obstacle)

    def _active(self) -> bool:
        """Whether the run learns now. ``resting`` no longer holds by the time of the reading that this returns: whoever
        saw it hold in a pause that began since may rely on it."""
        active = self.client.active()
        if active and self.resting:
            self.resting = False
            active = self.client.active()
        return active

    def _leave_behind(self, error: FencedOut) -> None:
        """Takes note that the run is in another epoch: all ranks stop. What was refused was not needed any more, the
        run has gone on from something else. Raises the error when it is about the lease."""
        if error.reason != "epoch":
            raise error
        log.info("learning ends: %s", error)
        self.left_behind = True

    def end_epoch(self) -> None:
        """This process is about to be renewed under the run's next record: what is left in its buffer is not learned
        from. To be called after `run`."""
        self._batches.discard()
        dropped = self.intake.end_epoch()
        log.info("%d samples of the epoch that is over are dropped", dropped)
        if self.group.rank == 0:
            self.client.event("optimizer.renewed", {"version": self.version, "dropped_samples": dropped})

    def checkpoint_now(self, timeout: float = 300.0) -> int:
        """Has the loop write a checkpoint between two steps, on whatever thread this is called; returns its version.

        On rank 0. Raises TimeoutError, or what went wrong with the saving.
        """
        return self._asked.wait(timeout)

    def _save_as_asked(self) -> None:
        hero_steps, flop = self.group.total([self.intake.hero_steps, self.flop])
        asked = self._asked.take()
        if self.group.rank != 0:
            return
        self._watch(self._writing.settle)  # it is idle: who asked finds the newest version published
        with told(asked):
            self._writing.checkpoint(answering(asked, self.version, self._checkpoint(int(hero_steps), flop)))

    def _hyperparameters(self) -> Hyperparameters:
        """Those of the present version, as rank 0 reads the schedules: the same for all."""
        read = hyperparameters_at(self.client.schedules(), self.version).as_dict()
        return Hyperparameters(**dict(zip(read, self.group.from_first(list(read.values())), strict=True)))

    def _step(self, batch: HostAndDeviceBatch, hyper: Hyperparameters, before: DeviceEvent) -> DeviceEvent:
        """Asks for a gradient step; returns its end. ``before``: the end of what the device did last."""
        host, device = batch
        metrics = self.learner.step(device, hyper)
        mask = host.arrays["mask"]
        self._taken.append(Taken(metrics, before, host.staleness, host.uses, int(mask.sum())))
        self.learned_hero_steps += int(mask[:, host.uses == 1].sum())
        self.reuse.on_consumed(self.config.batch_samples, time.monotonic())
        page.STEPS.inc()
        page.CONSUMED.inc(self.config.batch_samples)
        page.FLOP.inc(self._flop_a_step)
        self.flop += self._flop_a_step
        page.STALENESS.observe_all(host.staleness[host.staleness >= 0])
        return metrics.ended

    def _read_steps(self) -> None:
        """Reads what the steps since the last version say of themselves: waits until the device has taken them."""
        for taken in self._taken:
            page.SKIPPED.inc(taken.metrics["skipped"])
            page.STEP_SECONDS.observe(taken.metrics.seconds)
            self.window.take(taken)
        self._taken.clear()

    def _count_intake(self) -> None:
        received = self.intake.pacer.received
        if received != self._received:
            self.reuse.on_received(received - self._received, time.monotonic())
            page.RECEIVED.inc(received - self._received)
            self._received = received

    def _next_version(self, hyper: Hyperparameters) -> None:
        """The parameters become a version. ``hyper`` are those of the steps that led to it."""
        self._read_steps()
        began = time.monotonic()
        self.version += 1
        faults.overwrite(self.learner.policy.state_dict)
        self._compare()
        pacer = self.intake.pacer
        hero_steps, consumed_hero_steps, received, consumed, flop = self.group.total(
            [self.intake.hero_steps, self.window.hero_steps, pacer.received, pacer.consumed, self.flop])
        self._due = self._due or self.version % self.checkpoint_every == 0
        publish: Callable[[], None] | None = None
        save: Callable[[], None] | None = None
        if self.group.rank == 0:
            self._watch(self._writing.out)  # at most one version is on its way
            if self._due and self._writing.saved:
                self._due, save = False, self._checkpoint(int(hero_steps), flop)
            publish = self._publication()
        self.intake.version = self.version
        now = time.monotonic()
        record = self.window.close(self.version, hyper, stall_seconds=now - began)
        statistics = self.intake.buffer.statistics()
        record |= {
            "reuse": consumed / max(received, 1), "reuse_recent": self.reuse.value(now), "hero_steps": int(hero_steps),
            "flop": flop, "hero_steps_per_second": (hero_steps - self._hero_steps) / record["seconds"],
            "consumed_per_second": consumed_hero_steps / record["seconds"],
            "buffer_samples": statistics.samples, "buffer_bytes": statistics.nbytes,
            "dropped": {str(k): v for k, v in statistics.dropped.items()},
        }
        self._hero_steps = hero_steps
        page.STALL_SECONDS.observe(now - began)
        page.WAIT_SECONDS.inc(self.window.waited)
        page.show_version(record)
        self.window = Window()
        if publish is not None and not self.left_behind:
            self._writing.version(partial(self._write, publish, record, began), save)

    def _write(self, publish: Callable[[], None], record: VersionRecord, began: float) -> None:
        """Writes a version and then its record, beside learning."""
        publish()
        seconds = time.monotonic() - began
        page.PUBLISH_SECONDS.observe(seconds)
        self.client.record(record | {"publish_seconds": seconds})

    def _compare(self) -> None:
        """Raises RuntimeError when the ranks' parameters are not the same to the bit: averaged gradients would no
        longer be those of any of them."""
        if self.group.size == 1:
            return
        own = self.learner.fingerprint()
        first = int(self.group.from_first([own])[0])
        if not all(self.group.everywhere(first == own)):
            raise RuntimeError(f"version {self.version}: the optimizers' parameters differ ({own:x} here, "
                               f"{first:x} on optimizer 0); the group starts again from the last checkpoint")
        self.compared = self.version, own

    def _checkpoint(self, hero_steps: int, flop: float) -> Callable[[], None]:
        """What writes the present state as a checkpoint, from copies of it."""
        version, taken = self.version, self._ways[1].keep(self.learner.state_dict())
        extra = {
            "learner": self.learner.extra(), "pacer": self.intake.pacer.state_dict(),
            "buffer": self.intake.buffer.state_dict(), "hero_steps": hero_steps,
            "flop": flop, "schedules": dump_schedules(self.client.schedules()),
            "schema": self.meta["schema"], "warm_up_until": self.warm_up_until,
        }

        def save() -> None:
            self.checkpoints.save(version, taken.arrays(), extra)

        def write() -> None:
            began = time.monotonic()
            if self.drain_time is None:
                save()
            else:
                self.drain_time.timed(save, taken.nbytes)
            page.show_checkpoint(time.monotonic() - began)

        return write

    def measure_drains(self, base: float, allow: Callable[[float], None]) -> None:
        """Has the time that draining may take follow from what has to be written then; ``base`` seconds beside it."""
        self.drain_time = DrainTime(base, nbytes(self.learner.state_dict()), allow)

    def _until_written(self, write: Callable[[], None]) -> None:
        """Writes what nothing can begin without, however long a store is away."""
        self._writing.version(write)
        self._writing.settle()

    def _publication(self) -> Callable[[], None]:
        """What publishes the present parameters as the present version, from copies of them."""
        version, hyper = self.version, hyperparameters_at(self.client.schedules(), self.version)
        taken = self._ways[0].take(self.learner.policy.state_dict())
        meta = {**self.meta, "reward_std": self.learner.policy.rewards.std(), "hyperparameters": hyper.as_dict(),
                "gradient_steps": self.learner.gradient_steps,
                **({"warming": True} if version <= self.warm_up_until else {})}
        return lambda: self.publisher.publish(version, taken.arrays(), meta)
