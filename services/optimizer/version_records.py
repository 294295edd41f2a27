"""Record of a version: means over the gradient steps that led to it."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.auxiliary import relative_losses
from five.agent.learning.diagnostics import relative_entropies
from five.agent.learning.step_metrics import DeviceEvent, StepMetrics
from five.agent.schedules import Hyperparameters

VersionRecord = dict[str, Any]
STALENESS_BINS = 64  # the last bin also holds everything older
OF_ALL_STEPS = {"skipped", "held"}  # the metrics that a skipped step has too


@dataclass(frozen=True)
class SubmittedStep:
    """A gradient step submitted to the device, whose metrics are not read yet.

    ``previous`` is the end of the device's previous work; ``staleness`` [T, B], ``uses`` [B] and ``hero_steps`` are
    those of the step's batch, ``traceparents`` its trace contexts. The step was submitted at ``submitted_ns``,
    nanoseconds since 1970.
    """

    metrics: StepMetrics
    previous: DeviceEvent
    staleness: npt.NDArray[np.int32]
    uses: npt.NDArray[np.int32]
    hero_steps: int
    traceparents: tuple[str, ...] = ()
    submitted_ns: int = 0


class VersionWindow:
    """The gradient steps from one version to the next."""

    def __init__(self) -> None:
        self.steps = 0
        self.hero_steps = 0  # learned from
        self.waited = 0.0  # seconds in which the device had no batch
        self._computed = 0.0
        self._began = time.monotonic()
        self._sums: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)  # of the steps in each sum
        self._staleness = np.zeros(STALENESS_BINS, np.int64)
        self._uses = 0
        self._samples = 0

    def add(self, metrics: Mapping[str, float], staleness: npt.NDArray[np.int32], uses: npt.NDArray[np.int32],
            seconds: float, hero_steps: int) -> None:
        """Add one step: the learner's metrics, staleness [T, B] (-1: padding) and uses [B].

        The loss and gradient of a skipped step changed nothing and are left out, and so is a value that is not finite,
        which JSON cannot represent.
        """
        self.steps += 1
        self._computed += seconds
        for name, value in metrics.items():
            if math.isfinite(value) and (name in OF_ALL_STEPS or not metrics.get("skipped")):
                self._sums[name] += value
                self._counts[name] += 1
        known = staleness[staleness >= 0]
        self._staleness += np.bincount(np.minimum(known, STALENESS_BINS - 1), minlength=STALENESS_BINS)
        self._uses += int(uses.sum())
        self._samples += uses.size
        self.hero_steps += hero_steps

    def add_submitted(self, step: SubmittedStep) -> None:
        """Add a submitted step after waiting for the device to complete it."""
        metrics = step.metrics
        self.waited += metrics.start.seconds_since(step.previous)
        self.add(metrics, step.staleness, step.uses, metrics.seconds, step.hero_steps)

    def close(self, version: int, hyper: Hyperparameters, stall_seconds: float) -> VersionRecord:
        """Return the record of the version. A metric that no step has is missing.

        Staleness is in versions per consumed timestep. ``stall_seconds`` is the time in which making the version let no
        step run. The learning rate is the mean over the steps, 0 for a held one.
        """
        seconds = max(time.monotonic() - self._began, 1e-9)
        total = int(self._staleness.sum())
        record: VersionRecord = {
            "version": version, "seconds": seconds, "stall_seconds": stall_seconds,
            "busy_share": self._computed / seconds, "wait_share": self.waited / seconds,
            "samples": self._samples, "mean_uses": self._uses / max(self._samples, 1),
            "staleness_histogram": np.trim_zeros(self._staleness, "b").tolist(),
        }
        if total:
            ages = np.arange(STALENESS_BINS)
            shares = np.cumsum(self._staleness) / total
            record |= {
                "staleness_mean": float((ages * self._staleness).sum() / total),
                "staleness_median": quantile(shares, 0.5), "staleness_p95": quantile(shares, 0.95),
            }
        means = {name: value / self._counts[name] for name, value in self._sums.items()}
        record |= means | relative_entropies(means) | relative_losses(means) | hyper.as_dict()
        return record | {"learning_rate": hyper.learning_rate * (1.0 - means.get("held", 0.0))}


def quantile(shares: npt.NDArray[np.float64], share: float) -> float:
    """Return the smallest staleness that at least ``share`` of the steps do not exceed; ``shares`` are cumulative."""
    return float(np.searchsorted(shares, share - 1e-12))
