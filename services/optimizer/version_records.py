"""What is written down of a version: the means over its gradient steps."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.step_metrics import DeviceEvent, StepMetrics
from five.agent.schedules import Hyperparameters

VersionRecord = dict[str, Any]
STALENESS_BINS = 64  # the last one holds everything older


@dataclass(frozen=True)
class Taken:
    """A gradient step that was asked for: what it says of itself, the end of what the device did before, and what is
    known of the samples."""

    metrics: StepMetrics
    before: DeviceEvent
    staleness: npt.NDArray[np.int32]
    uses: npt.NDArray[np.int32]
    hero_steps: int


class Window:
    """The gradient steps from one version to the next."""

    def __init__(self) -> None:
        self.steps = 0
        self.hero_steps = 0  # learned from
        self.waited = 0.0  # seconds without a batch to learn from
        self._computed = 0.0
        self._began = time.monotonic()
        self._sums: dict[str, float] = defaultdict(float)
        self._staleness = np.zeros(STALENESS_BINS, np.int64)
        self._uses = 0
        self._samples = 0

    def add(self, metrics: Mapping[str, float], staleness: npt.NDArray[np.int32], uses: npt.NDArray[np.int32],
            seconds: float, hero_steps: int) -> None:
        """Takes in one step: the learner's metrics, staleness [T, B] (-1: no step there), uses [B]."""
        self.steps += 1
        self._computed += seconds
        for name, value in metrics.items():
            self._sums[name] += value
        known = staleness[staleness >= 0]
        self._staleness += np.bincount(np.minimum(known, STALENESS_BINS - 1), minlength=STALENESS_BINS)
        self._uses += int(uses.sum())
        self._samples += uses.size
        self.hero_steps += hero_steps

    def take(self, taken: Taken) -> None:
        """Takes in one step that was asked for; waits until the device has taken it."""
        metrics = taken.metrics
        self.waited += metrics.began.since(taken.before)
        self.add(metrics, taken.staleness, taken.uses, metrics.seconds, taken.hero_steps)

    def close(self, version: int, hyper: Hyperparameters, stall_seconds: float) -> VersionRecord:
        """The record of the version that the window led to. Staleness is in versions, per timestep consumed;
        ``stall_seconds``: how long no step was taken because the version was made."""
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
        record |= {name: value / self.steps for name, value in self._sums.items()}
        return record | hyper.as_dict()


def quantile(shares: npt.NDArray[np.float64], share: float) -> float:
    """The least whole number of versions that at least ``share`` of the steps do not exceed; ``shares`` cumulative."""
    return float(np.searchsorted(shares, share - 1e-12))
