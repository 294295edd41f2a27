"""Segments and samples as plain numpy arrays, the reference for the optimizer's stored arrays."""

from collections.abc import Mapping, Sequence

import numpy as np

from five.agent.learning.buffer import Allocate, SampleBuffer, batch_array
from five.agent.learning.samples import STATE_PREFIX, Array, Arrays
from five.agent.learning.segments import Segment


def split_segment(arrays: Mapping[str, Array], samples: int) -> list[Arrays]:
    """Return the samples of a segment as views of its arrays."""
    steps = {name: len(array) // samples for name, array in arrays.items() if not name.startswith(STATE_PREFIX)}
    assert all(len(array) == samples * steps.get(name, 1) for name, array in arrays.items())
    return [{name: array[i * steps[name] : (i + 1) * steps[name]] if name in steps else array[i]
             for name, array in arrays.items()} for i in range(samples)]


def steps_of(segment: Segment[Arrays]) -> int:
    """Return the number of steps of a segment, padding excluded."""
    return segment.reward_count // segment.arrays["mask"].shape[1]


def add_sample(buffer: SampleBuffer, sample: Arrays, versions: Sequence[int], current_version: int) -> bool:
    """Add one plain sample to a buffer that `collate_arrays` reads."""
    nbytes = sum(array.nbytes for array in sample.values())
    return buffer.add(sample, np.array(versions, np.int32)[None], current_version, nbytes) == [0]


def collate_arrays(batch: Arrays, samples: Sequence[Arrays], indices: Sequence[int], allocate: Allocate) -> None:
    """Stack plain samples into a batch's arrays (`five.agent.learning.buffer.Collate`)."""
    for name in batch.keys() - samples[0].keys():
        del batch[name]
    for name, first in samples[0].items():
        rows = [sample[name] for sample in samples]
        target = batch_array(batch, name, first.shape, first.dtype, len(rows), allocate)
        np.stack(rows, 0 if name.startswith(STATE_PREFIX) else 1, out=target)
