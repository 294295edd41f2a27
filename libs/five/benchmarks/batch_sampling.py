"""Sampling of batches from an optimizer's buffer: samples unpacked by several threads, compared with a copy of the
batch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dota.spaces import Layout
from five.agent.config import BufferConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.samples import Arrays
from five.run.config import RunConfig
from five.services.optimizer.stored_arrays import SampleCollator, StoredArrays
from five.services.rollout.sender import delta_encoded_arrays
from rapid import codec
from rapid.packed_array import PackedArray


@dataclass(frozen=True)
class SamplingRates:
    """Samples a second: by processor time of ``threads`` threads, by wall clock, and of a plain copy. Bytes of a sample
    as stored and in a batch."""

    processor: float
    clock: float
    copied: float
    stored_bytes: int
    batch_bytes: int


def as_sent(config: RunConfig, segment: Arrays) -> dict[str, np.ndarray | PackedArray]:
    """Return a segment's arrays as an optimizer receives them."""
    layout, period = Layout(config.game), config.learning.lstm_unroll_length
    changes = {name: PackedArray(segment[name].shape, codec.packed_changes(segment[name], period),
                                 segment[name].dtype, period) for name in delta_encoded_arrays(layout)}
    return {**segment, **changes}


def measure_sampling(config: RunConfig, segments: Sequence[Arrays], threads: int, seconds: float) -> SamplingRates:
    """Sample batches of the run's size (or of all samples) for ``seconds``."""
    per_segment = config.learning.samples_per_segment
    held = per_segment * len(segments)
    samples = min(config.learning.batch_samples, held)
    buffer = SampleBuffer(BufferConfig(capacity_samples=held, minimum_samples=1), SampleCollator(threads))
    for arrays in segments:
        stored = StoredArrays.from_arrays(as_sent(config, arrays), per_segment)
        buffer.add(stored, stored.versions, 0, stored.nbytes)
    for _ in range(2):  # fill both of the buffer's sets of arrays
        batch = buffer.sample(samples, 0)
    assert batch is not None
    sources = list(batch.arrays.values())
    targets = [array.copy() for array in sources]

    def copy() -> None:
        for target, source in zip(targets, sources, strict=True):
            np.copyto(target, source)

    processor, clock = _rates(lambda: buffer.sample(samples, 0), samples, seconds)
    copied, _ = _rates(copy, samples, seconds)
    return SamplingRates(processor, clock, copied, stored.nbytes, sum(array.nbytes for array in sources) // samples)


def _rates(work: Callable[[], object], samples: int, seconds: float) -> tuple[float, float]:
    """Return the samples a second of the fastest call, by processor time and by wall clock."""
    best = [np.inf, np.inf]
    began = time.perf_counter()
    while time.perf_counter() < began + seconds:
        before = time.process_time(), time.perf_counter()
        work()
        best = [min(b, now - then) for b, now, then in
                zip(best, (time.process_time(), time.perf_counter()), before, strict=True)]
    return samples / best[0], samples / best[1]
