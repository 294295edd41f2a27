"""Measurements of learning: counters of the metrics page, sums over the ranks, and the record of each version."""

import time
from typing import NamedTuple

from five.agent.learning.buffer import HostBatch
from five.agent.learning.pacing import ReuseMeter
from five.agent.learning.step_metrics import DeviceEvent, StepMetrics
from five.agent.schedules import Hyperparameters
from five.services.optimizer import metrics as page
from five.services.optimizer.intake import Intake
from five.services.optimizer.process_group import OptimizerGroup
from five.services.optimizer.version_records import SubmittedStep, VersionRecord, VersionWindow
from rapid.telemetry import tracing


class RunTotals(NamedTuple):
    """Sums over all ranks since the run began; ``consumed_hero_steps`` is since the newest version."""

    hero_steps: int  # received
    consumed_hero_steps: int  # of the gradient steps whose metrics are read
    received: int  # samples
    consumed: int  # samples; every use counts
    flop: float


class LearningMeter:
    """Measures the learning of one process.

    Steps are added when they are submitted to the device. `read_steps` waits for their metrics, once a version.
    """

    def __init__(self, intake: Intake) -> None:
        self.flop = 0.0  # of this process; on rank 0 of the whole run
        self.learned_hero_steps = 0  # of this process: received hero-steps that were learned from at least once
        self.totals = RunTotals(0, 0, 0, 0, 0.0)  # at the newest version
        self._intake = intake
        self._reuse = ReuseMeter()
        self._window = VersionWindow()
        self._submitted: list[SubmittedStep] = []  # since the newest version
        self._received = 0

    @property
    def submitted_steps(self) -> int:
        """Gradient steps submitted since the newest version."""
        return len(self._submitted)

    def start(self, flop: float, group: OptimizerGroup) -> None:
        """Begin to measure after the start of training: ``flop`` is the operations until then. Every rank calls it."""
        self.flop = flop
        self._window = VersionWindow()
        self._received = self._intake.pacer.received
        self.totals = self.sum_over_ranks(group)

    def sum_over_ranks(self, group: OptimizerGroup) -> RunTotals:
        """Return the present sums over the ranks. Every rank calls it."""
        pacer = self._intake.pacer
        hero_steps, consumed_hero_steps, received, consumed, flop = group.sum_over_ranks(
            [self._intake.hero_steps, self._window.hero_steps, pacer.received, pacer.consumed, self.flop])
        return RunTotals(int(hero_steps), int(consumed_hero_steps), int(received), int(consumed), flop)

    def count_received(self) -> None:
        """Count the samples that were received since the last call."""
        received = self._intake.pacer.received
        if received != self._received:
            self._reuse.on_received(received - self._received, time.monotonic())
            page.RECEIVED.inc(received - self._received)
            self._received = received

    def add_step(self, metrics: StepMetrics, previous: DeviceEvent, batch: HostBatch, submitted_ns: int, flop: int
                 ) -> None:
        """Add a submitted step. Never waits for the device.

        Args:
            metrics: of the step.
            previous: end of the device's previous work.
            batch: the step's batch; its arrays may be overwritten after the call.
            submitted_ns: time of the submission, nanoseconds since 1970.
            flop: floating point operations of the step.
        """
        mask, samples = batch.arrays["mask"], batch.uses.size
        self._submitted.append(SubmittedStep(metrics, previous, batch.staleness, batch.uses, int(mask.sum()),
                                             batch.traceparents, submitted_ns))
        self.learned_hero_steps += int(mask[:, batch.uses == 1].sum())
        self.flop += flop
        self._reuse.on_consumed(samples, time.monotonic())
        page.STEPS.inc()
        page.CONSUMED.inc(samples)
        page.FLOP.inc(flop)
        page.STALENESS.observe_all(batch.staleness[batch.staleness >= 0])

    def read_steps(self, version: int) -> None:
        """Read the metrics of the submitted steps, which lead to ``version``, after waiting for the device."""
        for step in self._submitted:
            page.SKIPPED.inc(step.metrics["skipped"])
            page.STEP_SECONDS.observe(step.metrics.seconds)
            self._window.add_submitted(step)
            if step.traceparents:
                tracing.record_linked("gradient step", step.traceparents, step.submitted_ns,
                                      step.submitted_ns + int(step.metrics.seconds * 1e9), {"five.version": version})
        self._submitted.clear()

    def close_version(self, version: int, hyper: Hyperparameters, totals: RunTotals, stall_seconds: float
                      ) -> VersionRecord:
        """Return the record of a new version, show it on the metrics page, and begin to measure the next one.

        Args:
            version: number of the version, whose steps are read.
            hyper: hyperparameters of its steps.
            totals: sums over the ranks after its last step.
            stall_seconds: time in which making the version let no step run.
        """
        record = self._window.close(version, hyper, stall_seconds)
        seconds = record["seconds"]
        statistics = self._intake.buffer.statistics()
        record |= {
            "reuse": totals.consumed / max(totals.received, 1),
            "reuse_recent": self._reuse.value(time.monotonic()),
            "hero_steps": totals.hero_steps,
            "flop": totals.flop,
            "hero_steps_per_second": (totals.hero_steps - self.totals.hero_steps) / seconds,
            "consumed_per_second": totals.consumed_hero_steps / seconds,
            "buffer_samples": statistics.samples,
            "buffer_bytes": statistics.nbytes,
            "dropped": {str(reason): count for reason, count in statistics.dropped.items()},
        }
        page.STALL_SECONDS.observe(stall_seconds)
        page.WAIT_SECONDS.inc(self._window.waited)
        page.show_version(record)
        self.totals = totals
        self._window = VersionWindow()
        return record
