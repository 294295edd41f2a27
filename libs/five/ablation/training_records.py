"""Training statistics of a run from its version records: number, staleness and reuse of samples.

The records are the optimizer's (``records.json`` of the run's folder). Their ``staleness_mean`` and ``reuse`` cover
the whole run. While the buffer fills, samples are younger than later, and more are received than used. So both are
measured from the first version that no longer learns from samples of the first policy; from then on the buffer's
length is constant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Records = Sequence[Mapping[str, Any]]  # one a version, oldest first
LAST_BIN = 63  # of the optimizer's histograms of staleness


@dataclass(frozen=True)
class TrainingStatistics:
    """Training statistics of one run.

    ``version`` [P]: its versions. ``staleness`` [P]: each version's mean staleness, in versions. ``learned`` [P]:
    the hero-steps learned from until then, each counted once. ``full_from``: the version from which the buffer was
    full; None if it never was, and then the following are NaN. ``staleness_median`` and ``staleness_p95``, in
    versions. ``reuse``: samples used over samples received (Berner et al. 2019, equation 13). ``uses`` of a sample
    that was used at all. ``unused``: the share of samples that left without use. ``learned_per_second``: hero-steps,
    each counted once, over the whole run.
    """

    version: Floats = field(default_factory=lambda: np.zeros(0))
    staleness: Floats = field(default_factory=lambda: np.zeros(0))
    learned: Floats = field(default_factory=lambda: np.zeros(0))
    full_from: int | None = None
    staleness_median: float = math.nan
    staleness_p95: float = math.nan
    reuse: float = math.nan
    uses: float = math.nan
    unused: float = math.nan
    learned_per_second: float = math.nan

    def learned_at(self, version: int) -> float:
        """Return the hero-steps learned from until a version, each counted once; NaN without a record of it."""
        found = np.flatnonzero(self.version == version)
        return float(self.learned[found[0]]) if len(found) else math.nan


def measure_training(records: Records) -> TrainingStatistics:
    """Return the statistics of version records; empty statistics without records."""
    if not records:
        return TrainingStatistics()
    version = np.array([r["version"] for r in records], np.float64)
    staleness = np.array([r.get("staleness_mean", math.nan) for r in records])
    seconds = np.array([r["seconds"] for r in records])
    consumed = np.cumsum([r["consumed_per_second"] * r["seconds"] for r in records])  # hero-steps, each use counted
    full = _full_at(records)
    if full is None:
        return TrainingStatistics(version, staleness, np.full(len(records), math.nan))
    median, p95 = _quantiles([r["staleness_histogram"] for r in records[full:]])
    reuse, uses, unused = _sample_uses(records, full)
    return TrainingStatistics(version, staleness, consumed / uses, int(version[full]), median, p95, reuse, uses,
                              unused, float(consumed[-1] / uses / seconds.sum()))


def _full_at(records: Records) -> int | None:
    """Return the index of the first version that learned from nothing that the first policy played."""
    first = records[0]["version"]
    for index, record in enumerate(records):
        histogram = record["staleness_histogram"]
        # The age of a sample of the first policy, in versions. The last bin holds all older samples.
        oldest = min(record["version"] - first, LAST_BIN)
        if not any(histogram[oldest:]):
            return index
    return None


def _quantiles(histograms: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Return the median and the 95th percentile of the staleness of all steps, in whole versions."""
    total = np.zeros(LAST_BIN + 1)
    for histogram in histograms:
        total[:len(histogram)] += histogram
    shares = np.cumsum(total) / total.sum()
    median, p95 = np.searchsorted(shares, np.array([0.5, 0.95]) - 1e-12)
    return float(median), float(p95)


def _sample_uses(records: Records, first: int) -> tuple[float, float, float]:
    """Return the sample reuse, the mean uses of a used sample, and the share of samples that left the buffer unused.

    They cover the records from index ``first`` to the last.
    """
    used = np.cumsum([r["samples"] for r in records])
    start, end = max(first - 1, 0), len(records) - 1
    received = [used[i] / records[i]["reuse"] for i in (start, end)]  # reuse covers the whole run so far
    left = {reason: records[end]["dropped"].get(reason, 0) - records[start]["dropped"].get(reason, 0)
            for reason in ("used", "unused", "too_old")}
    total = float(used[end] - used[start])
    if received[1] <= received[0] or not left["used"]:
        return math.nan, math.nan, math.nan
    known = left["used"] + left["unused"]
    # Whether samples dropped for their age had been used is unknown: assume the share of the others.
    different = left["used"] * (1 + left["too_old"] / known)
    return total / (received[1] - received[0]), total / different, left["unused"] / known
