"""Training statistics of a run from its version records: number, staleness and reuse of samples.

The records are the optimizer's (``records.json`` of the run's folder). Their ``staleness_mean`` and ``reuse`` cover
the whole run: while the buffer fills, samples are younger than later, and more come in than go out. So both are
measured from the first version that no longer samples experience of the first policy; from then on the buffer's
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
        places = np.flatnonzero(self.version == version)
        return float(self.learned[places[0]]) if len(places) else math.nan


def measure_training(records: Records) -> TrainingStatistics:
    """Return the statistics of version records; empty statistics without records."""
    if not records:
        return TrainingStatistics()
    version = np.array([r["version"] for r in records], np.float64)
    staleness = np.array([r.get("staleness_mean", math.nan) for r in records])
    seconds = np.array([r["seconds"] for r in records])
    drawn = np.cumsum([r["consumed_per_second"] * r["seconds"] for r in records])  # hero-steps, each use counted
    place = _full_at(records)
    if place is None:
        return TrainingStatistics(version, staleness, np.full(len(records), math.nan))
    median, p95 = _quantiles([r["staleness_histogram"] for r in records[place:]])
    reuse, uses, unused = _uses(records, place)
    return TrainingStatistics(version, staleness, drawn / uses, int(version[place]), median, p95, reuse, uses, unused,
                    float(drawn[-1] / uses / seconds.sum()))


def _full_at(records: Records) -> int | None:
    """Return the index of the first version that learned from nothing that the first policy played."""
    first = records[0]["version"]
    for place, record in enumerate(records):
        histogram = record["staleness_histogram"]
        # A sample of the first policy is so many versions old; the last bin holds all that are older than the bins go.
        oldest = min(record["version"] - first, LAST_BIN)
        if not any(histogram[oldest:]):
            return place
    return None


def _quantiles(histograms: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Return the least whole numbers of versions that half, and 95 %, of all steps do not exceed."""
    total = np.zeros(LAST_BIN + 1)
    for histogram in histograms:
        total[:len(histogram)] += histogram
    shares = np.cumsum(total) / total.sum()
    median, p95 = np.searchsorted(shares, np.array([0.5, 0.95]) - 1e-12)
    return float(median), float(p95)


def _uses(records: Records, place: int) -> tuple[float, float, float]:
    """Return, from the version before ``place`` to the last: samples used over samples received, uses of a used sample,
    and the share that left unused."""
    used = np.cumsum([r["samples"] for r in records])
    start, end = max(place - 1, 0), len(records) - 1
    received = [used[i] / records[i]["reuse"] for i in (start, end)]  # reuse is of the whole run so far
    left = {reason: records[end]["dropped"].get(reason, 0) - records[start]["dropped"].get(reason, 0)
            for reason in ("used", "unused", "too_old")}
    draws = float(used[end] - used[start])
    if received[1] <= received[0] or not left["used"]:
        return math.nan, math.nan, math.nan
    known = left["used"] + left["unused"]
    # Those that left for their age are not told apart: as many of them had been used as of the others.
    different = left["used"] * (1 + left["too_old"] / known)
    return draws / (received[1] - received[0]), draws / different, left["unused"] / known
