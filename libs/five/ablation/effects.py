"""Effects of the factors of an ablation, each estimated from all of its runs."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from five.ablation.comparison import MeanEstimate, t95
from five.ablation.config import AblationConfig
from five.ablation.results import TrialRun


def effects(config: AblationConfig, runs: Sequence[TrialRun], metric: Callable[[TrialRun], float]
            ) -> dict[str, MeanEstimate]:
    """Return by factor what its change adds to a metric, with half the width of the 95 % interval.

    The effects are the least-squares fit of a mean for each seed and an effect for each factor. The interval is that
    of Student's t from the residuals; it is infinite where no degree of freedom is left. An effect is NaN if the runs
    do not tell it from the others. Runs whose metric is NaN are ignored. ``seeds`` of an effect: its number of runs.
    """
    known = [(run, value) for run in runs if math.isfinite(value := metric(run))]
    unknown = dict.fromkeys(config.factors, MeanEstimate(math.nan, math.nan, len(known)))
    if not known:
        return unknown
    seeds = sorted({run.seed for run, _ in known})
    matrix = np.array([[*(float(run.seed == seed) for seed in seeds),
                        *(float(values.items() <= config.variants[run.variant].items())
                          for values in config.factors.values())] for run, _ in known])
    observed = np.array([value for _, value in known])
    fitted, _, rank, _ = np.linalg.lstsq(matrix, observed, rcond=None)
    if rank < matrix.shape[1]:
        return unknown
    freedom = len(observed) - rank
    residuals = observed - matrix @ fitted
    covariance = np.linalg.inv(matrix.T @ matrix)
    found = {}
    for column, name in enumerate(config.factors, len(seeds)):
        half = math.inf
        if freedom > 0:
            half = t95(freedom) * math.sqrt(float(residuals @ residuals) / freedom * covariance[column, column])
        # A difference of equal means would be a rounding error.
        value = float(fitted[column]) if abs(fitted[column]) > 1e-12 * np.abs(observed).max() else 0.0
        found[name] = MeanEstimate(value, half, len(known))
    return found
