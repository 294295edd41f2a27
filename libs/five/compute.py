"""Accounting of optimization compute in PFLOP/s-days (Berner et al. 2019, appendix E, equations 4 and 5).

Compute is the sum over the segments of a run, stretches between changes of the model or of the pool, of
gradient steps x optimizers x floating point operations of one step on one optimizer. Rollouts and inference do not
count.
"""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

PFLOPS_DAY = 1e15 * 86_400  # floating point operations


def count_flops(step: Callable[[], object]) -> int:
    """Floating point operations of what ``step`` does, backward passes included: matrix products and convolutions,
    a multiplication and an addition counting as two. What is element-wise is not counted, a few percent."""
    counter = FlopCounterMode(display=False)
    # The CPU's fused LSTM is one operation that the counter does not look into.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), counter:
            step()
    return int(counter.get_total_flops())


@dataclass
class ComputeSegment:
    """A stretch of a run with one model and one pool of optimizers."""

    flops_per_step: float
    optimizers: int
    gradient_steps: int = 0

    @property
    def flops(self) -> float:
        """Floating point operations of the stretch."""
        return self.flops_per_step * self.optimizers * self.gradient_steps


class ComputeLedger:
    """The segments of a run."""

    def __init__(self) -> None:
        self.segments: list[ComputeSegment] = []

    def begin(self, flops_per_step: float, optimizers: int) -> None:
        """A new stretch, unless nothing changed since the last one."""
        if flops_per_step < 0 or optimizers < 1:
            raise ValueError(f"{flops_per_step} operations a step on {optimizers} optimizers are no training")
        last = self.segments[-1] if self.segments else None
        if last is None or (last.flops_per_step, last.optimizers) != (flops_per_step, optimizers):
            self.segments.append(ComputeSegment(flops_per_step, optimizers))

    def on_gradient_steps(self, steps: int = 1) -> None:
        """Gradient steps were taken. Raises ValueError before the first `begin`."""
        if not self.segments:
            raise ValueError("no segment has begun: what a step costs is not known")
        self.segments[-1].gradient_steps += steps

    @property
    def pflops_days(self) -> float:
        """The run's optimization compute."""
        return sum(segment.flops for segment in self.segments) / PFLOPS_DAY

    def dump(self) -> list[dict[str, Any]]:
        """As JSON values."""
        return [asdict(segment) for segment in self.segments]

    @classmethod
    def load(cls, state: list[dict[str, Any]]) -> "ComputeLedger":
        """From `dump`."""
        ledger = cls()
        ledger.segments = [ComputeSegment(**segment) for segment in state]
        return ledger
