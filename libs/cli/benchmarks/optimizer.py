"""Gradient steps, beside a matrix product of as many operations."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from cli.benchmarks import recorded
from cli.benchmarks.child import prepare
from cli.benchmarks.table import Row, machine, median_rate, row
from five.compute import count_flops
from five.learning.learner import Learner
from five.schedules import hyperparameters_at
from run.load import load

SIDE = 2048  # of the square matrices at most; larger ones are no faster


@dataclass(frozen=True)
class Size:
    """How much is measured: whole gradient steps of the preset's batch."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    from_seconds: float = 120.0
    seconds: float = 4.0
    repeats: int = 3


def matrix_products(flops: float, dtype: torch.dtype, device: torch.device) -> Callable[[], float]:
    """Square products of about ``flops`` operations in all; a call does them and returns how many they were."""
    side = max(min(round((flops / 2) ** (1 / 3)), SIDE), 1)
    times = max(round(flops / (2 * side**3)), 1)
    a, b = (torch.randn(side, side, dtype=dtype, device=device) for _ in range(2))
    out = torch.empty_like(a)

    def work() -> float:
        for _ in range(times):
            torch.mm(a, b, out=out)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return float(2.0 * side**3 * times)

    return work


def measure(size: Size | None = None) -> list[Row]:
    """Rows ``optimizer.flops`` and ``optimizer.samples``; the reference of both is the matrix product's speed."""
    size = size or Size()
    prepare()
    config = load(size.preset, size.overrides)
    settings, learning = config.services.optimizer, config.learning
    device = torch.device(settings.device)
    torch.set_num_threads(settings.threads)
    batch = recorded.batch_of(recorded.samples(config, learning.batch_samples, size.from_seconds))
    learner = Learner(recorded.policy_of(config), learning, device)
    hyper = hyperparameters_at(config.schedules, 0)

    def step() -> float:
        learner.step(batch, hyper)
        return float(learning.batch_samples)

    flops = count_flops(step)
    samples = median_rate(step, size.seconds, size.repeats)
    dtype = torch.bfloat16 if config.model.precision == "bfloat16" else torch.float32
    products = median_rate(matrix_products(flops, dtype, device), size.seconds / 2, size.repeats)
    per_sample = flops / learning.batch_samples
    if not math.isfinite(per_sample) or learner.skipped_steps:
        raise RuntimeError(f"the learner skipped {learner.skipped_steps} steps: {learner.skip_reason}")
    conditions = machine(preset=size.preset, torch=torch.__version__, threads=settings.threads, device=settings.device,
                         model=recorded.description(config), batch_samples=learning.batch_samples,
                         precision=config.model.precision, gflop_a_sample=round(per_sample / 1e9, 4))
    return [
        row("optimizer.flops", samples * per_sample, "FLOP/s", products, conditions),
        row("optimizer.samples", samples, "samples/s", products / per_sample, conditions),
    ]
