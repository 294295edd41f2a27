"""The loop that learns: draw, step, and after every so many steps a new version."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from five.config import LearnerConfig, SchedulesConfig
from five.learning.learner import Learner
from five.learning.pacing import ReuseMeter
from five.schedules import Hyperparameters, dump_schedules, hyperparameters_at
from services.optimizer import metrics as page
from services.optimizer.checkpoints import Checkpoints
from services.optimizer.intake import Intake
from services.optimizer.records import Window, WindowRecord

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.005


class Publisher(Protocol):
    """Where versions go (rapid.store.parameters.ParameterStore)."""

    def head(self) -> int | None: ...

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None: ...


class Desk(Protocol):
    """What the loop asks of the run's state, and tells it."""

    def active(self) -> bool: ...

    def schedules(self) -> SchedulesConfig: ...

    def record(self, record: WindowRecord) -> None: ...

    def event(self, what: str, details: dict[str, Any]) -> None: ...


@dataclass
class Training:
    """One optimizer's part of the run. Rank 0 publishes, writes checkpoints and keeps the records.

    ``meta`` goes with every version (schema, layout). ``agree`` makes a decision of rank 0's the decision of all; alone
    it is the identity.
    """

    learner: Learner
    intake: Intake
    config: LearnerConfig
    publisher: Publisher
    checkpoints: Checkpoints
    desk: Desk
    meta: Mapping[str, Any]
    rank: int = 0
    checkpoint_every: int = 10
    agree: Callable[[bool], bool] = lambda mine: mine
    version: int = 0
    window: Window = field(default_factory=Window)
    reuse: ReuseMeter = field(default_factory=ReuseMeter)
    _received: int = 0
    _hero_steps: int = 0

    def start(self) -> None:
        """Resumes from the newest checkpoint, or publishes version 0."""
        head = self.publisher.head()
        found = self.checkpoints.versions()
        if found:
            tensors, extra = self.checkpoints.load(found[-1])
            self.learner.load_state_dict(tensors, extra["learner"])
            self.intake.pacer.load_state_dict(extra["pacer"])
            self.intake.buffer.load_state_dict(extra["buffer"])
            self.intake.hero_steps = int(extra["hero_steps"])
            # Versions after the checkpoint exist and never change: numbering goes on behind them.
            self.version = max(found[-1], head if head is not None else -1)
            self._note("optimizer.resumed", {"checkpoint": found[-1], "version": self.version})
            if head is None or head < found[-1]:
                self._publish()
        elif head is not None:
            raise RuntimeError(
                f"the run has version {head} but no checkpoint: the blob store (blobs.url) is not the one it was "
                "started with. Point it there, or start a run with another name")
        else:
            self._save()
            self._publish()
        self.intake.version = self.version
        self._received = self.intake.pacer.received
        self._hero_steps = self.intake.hero_steps

    def run(self, stopping: Callable[[], bool]) -> None:
        """Learns until ``stopping``."""
        schedules = self.desk.schedules()
        hyper = hyperparameters_at(schedules, self.version)
        idle_since = time.monotonic()
        drawn = None
        while not self.agree(stopping()):
            # A batch that was drawn is kept until the others have one too.
            if drawn is None and self.desk.active():
                drawn = self.intake.draw(self.config.batch_samples)
            self._count_intake()
            if not self.agree(drawn is not None):
                time.sleep(IDLE_SECONDS)
                continue
            began = time.monotonic()
            self.window.waited += began - idle_since
            rewards = self.intake.take_rewards()
            if rewards.count:
                self.learner.add_rewards(rewards.count, rewards.total, rewards.squares)
            assert drawn is not None
            metrics = self.learner.step(drawn.arrays, hyper)
            idle_since = time.monotonic()
            self._show(metrics, drawn.staleness, idle_since - began)
            self.reuse.on_consumed(self.config.batch_samples, idle_since)
            self.window.add(metrics, drawn.staleness, drawn.uses, idle_since - began,
                            hero_steps=int(drawn.arrays["mask"].sum()))
            drawn = None
            if self.window.steps == self.config.gradient_steps_per_iteration:
                self._next_version(hyper)
                schedules = self.desk.schedules()
                hyper = hyperparameters_at(schedules, self.version)
        self._save()

    def _show(self, metrics: Mapping[str, float], staleness: npt.NDArray[np.int32], seconds: float) -> None:
        page.STEPS.inc()
        page.SKIPPED.inc(metrics["skipped"])
        page.STEP_SECONDS.observe(seconds)
        for age in staleness[staleness >= 0].tolist():
            page.STALENESS.observe(age)

    def _count_intake(self) -> None:
        received = self.intake.pacer.received
        if received != self._received:
            self.reuse.on_received(received - self._received, time.monotonic())
            self._received = received

    def _next_version(self, hyper: Hyperparameters) -> None:
        began = time.monotonic()
        self.version += 1
        if self.version % self.checkpoint_every == 0:
            self._save()
        self._publish()
        self.intake.version = self.version
        now = time.monotonic()
        record = self.window.close(self.version, hyper, publish_seconds=now - began)
        statistics = self.intake.buffer.statistics()
        record |= {
            "reuse": self.intake.pacer.consumed / max(self.intake.pacer.received, 1),
            "reuse_recent": self.reuse.value(now), "hero_steps": self.intake.hero_steps,
            "hero_steps_per_second": (self.intake.hero_steps - self._hero_steps) / record["seconds"],
            "buffer_samples": statistics.samples, "buffer_bytes": statistics.nbytes,
            "dropped": {str(k): v for k, v in statistics.dropped.items()},
        }
        self._hero_steps = self.intake.hero_steps
        page.PUBLISH_SECONDS.observe(now - began)
        page.WAIT_SECONDS.inc(self.window.waited)
        page.show_version(record)
        if self.rank == 0:
            self.desk.record(record)
        self.window = Window()

    def _save(self) -> None:
        if self.rank != 0:
            return
        extra = {
            "learner": self.learner.extra(), "pacer": self.intake.pacer.state_dict(),
            "buffer": self.intake.buffer.state_dict(), "hero_steps": self.intake.hero_steps,
            "schedules": dump_schedules(self.desk.schedules()),
        }
        self.checkpoints.save(self.version, self.learner.state_dict(), extra)

    def _publish(self) -> None:
        if self.rank != 0:
            return
        hyper = hyperparameters_at(self.desk.schedules(), self.version)
        tensors = {n: t.detach().cpu().numpy() for n, t in self.learner.policy.state_dict().items()}
        self.publisher.publish(self.version, tensors, {
            **self.meta, "reward_std": self.learner.policy.rewards.std(), "hyperparameters": hyper.as_dict(),
            "gradient_steps": self.learner.gradient_steps})

    def _note(self, what: str, details: dict[str, Any]) -> None:
        if self.rank == 0:
            self.desk.event(what, details)


