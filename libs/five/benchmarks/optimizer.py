"""Gradient steps from the buffer on, compared with a matrix product of as many operations."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from five.agent.compute import apply_compute_config, uses_bfloat16, uses_cuda_graphs
from five.agent.config import BufferConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.learning.samples import Arrays
from five.agent.schedules import Hyperparameters, hyperparameters_at
from five.benchmarks import recorded_data
from five.benchmarks.child_process import prepare
from five.benchmarks.results import BenchmarkRow, machine, median_rate, row
from five.run.config import RunConfig
from five.run.load import load
from five.services.optimizer.intake import Intake
from five.services.optimizer.prefetch import BatchPrefetcher
from five.services.optimizer.stored_arrays import SampleCollator, StoredArrays

SIDE = 2048  # largest side of the square matrices; larger ones are no faster


@dataclass(frozen=True)
class OptimizerWorkload:
    """Workload of the benchmark ``optimizer``: batches and whole gradient steps of the preset's size."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    from_seconds: float = 120.0
    seconds: float = 4.0
    repeats: int = 3


# Samples in all batches of the benchmark. A run's batches differ in the units they hold; a single one, repeated, would
# find every kernel of oneDNN compiled for its numbers of rows.
SAMPLES = 512


def matrix_products(flops: float, dtype: torch.dtype, device: torch.device) -> Callable[[], float]:
    """Return a function that computes square products of about ``flops`` operations and returns their exact number."""
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


def endless_batches(config: RunConfig, learner: Learner, parts: list[Arrays]) -> BatchPrefetcher:
    """Return a prefetcher of batches from a buffer that holds ``parts`` and never runs out."""
    buffers = BufferConfig(capacity_samples=len(parts), minimum_samples=len(parts), sample_reuse=1e9,
                           reuse_window_batches=1e9)
    threads = config.services.optimizer.collate_threads
    intake = Intake(SampleBuffer(buffers, SampleCollator(threads), allocate=learner.allocate),
                    Pacer(buffers, config.learning.batch_samples))
    for part in parts:
        # A sample is a segment of one sample; a segment's states have the samples as first axis.
        whole = {name: array[None] if name.startswith("state/") else array for name, array in part.items()}
        stored = StoredArrays.from_arrays(whole, 1)
        intake.buffer.add(stored, stored.versions, 0, stored.nbytes)
    intake.pacer.on_received(len(parts))
    return BatchPrefetcher(intake, config.learning.batch_samples, learner)


def steps_from_buffer(learner: Learner, batches: BatchPrefetcher, samples: int, hyper: Hyperparameters
                      ) -> Callable[[], float]:
    """Return a function that takes one step as the service does, while the next batch is prefetched, and waits for its
    end."""
    def step() -> float:
        batch = batches.next()
        if batch is None:
            raise RuntimeError("the buffer gives no batch")
        batches.prefetch()
        learner.train_step(batch[1], hyper).end.wait()
        return float(samples)

    return step


def measure(size: OptimizerWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``optimizer.*``.

    ``optimizer.flops`` and ``optimizer.samples``: from the packed sample in the buffer to the end of its gradient
    step. ``optimizer.step.samples``: the steps alone, on prepared batches, one after another. The reference is the
    speed of matrix products.
    """
    size = size or OptimizerWorkload()
    prepare()
    config = load(size.preset, size.overrides)
    settings, learning = config.services.optimizer, config.learning
    device = torch.device(settings.device)
    torch.set_num_threads(settings.threads)
    apply_compute_config(config.compute)
    count = max(SAMPLES // learning.batch_samples, 2)
    parts = recorded_data.samples(config, learning.batch_samples * count, size.from_seconds)
    learner = Learner(recorded_data.policy_of(config), learning, device,
                      graphs=uses_cuda_graphs(device, config.compute, config.services.optimizer.cuda_graphs))
    hyper = hyperparameters_at(config.schedules, 0, 0)
    prepared = [recorded_data.batch_of(parts[i::count]) for i in range(count)]
    flops = round(sum(learner.count_step_flops(batch) for batch in prepared) / count)
    endless = itertools.cycle(prepared)

    def alone() -> float:
        learner.train_step(next(endless), hyper).end.wait()
        return float(learning.batch_samples)

    steps = median_rate(alone, size.seconds, size.repeats)
    batches = endless_batches(config, learner, parts)
    samples = median_rate(steps_from_buffer(learner, batches, learning.batch_samples, hyper), size.seconds,
                          size.repeats)
    batches.discard()
    dtype = torch.bfloat16 if uses_bfloat16(config.model, device) else torch.float32
    products = median_rate(matrix_products(flops, dtype, device), size.seconds / 2, size.repeats)
    per_sample = flops / learning.batch_samples
    if not math.isfinite(per_sample) or learner.skipped_steps:
        raise RuntimeError(f"the learner skipped {learner.skipped_steps} steps: {learner.skip_reason}")
    conditions = machine(preset=size.preset, torch=torch.__version__, threads=settings.threads,
                         device=recorded_data.name_of(device), model=recorded_data.description(config),
                         batch_samples=learning.batch_samples,
                         precision=config.model.precision, gflop_a_sample=round(per_sample / 1e9, 4))
    return [
        row("optimizer.flops", samples * per_sample, "FLOP/s", products, conditions),
        row("optimizer.samples", samples, "samples/s", products / per_sample, conditions),
        row("optimizer.step.samples", steps, "samples/s", products / per_sample, conditions),
    ]
