"""Segments at rest in an optimizer's memory, in the bytes that they came in, and the batches made of their samples."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dota.stacking import Form, Stacker, Stored, StoredArray
from five.agent.learning.buffer import Allocate, batch_array
from five.agent.learning.samples import STATE_PREFIX, Arrays
from five.clients import wire
from five.clients.raw_sets import Head
from rapid.packed import PackedArray

Array = npt.NDArray[Any]
AS_IT_CAME: dict[int, Form] = {wire.RAW: Form.PLAIN, wire.SPARSE: Form.PACKED, wire.CHANGES: Form.CHANGES}


class Part(NamedTuple):
    """What one sample has of an array: its shape there, [T, ...], of states without T; ``rows`` of so many bytes."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: int
    row_bytes: int


@dataclass(frozen=True)
class Plan:
    """How a segment's arrays lie in a message: what the next one of the same form needs no further look for.

    ``order``: places in the message of the arrays by name; ``forms`` and ``parts`` are theirs; ``bools``, ``versions``
    and ``mask`` are places in the message.
    """

    samples: int
    order: tuple[int, ...]
    forms: tuple[Form, ...]
    parts: tuple[Part, ...]
    bools: tuple[int, ...]
    versions: int
    mask: int


class RestingSegment:
    """A segment's arrays, not copied and not unpacked: observations by what changes from timestep to timestep, or as
    bitmask and values, the rest as it is.

    Attributes: ``samples`` that it has, ``nbytes`` of one of them, ``parts`` by array, ``versions`` int32 [samples, T],
    ``hero_steps`` that count, where the mask is 1.
    """

    __slots__ = ("hero_steps", "nbytes", "parts", "samples", "stored", "versions")

    def __init__(self, samples: int, parts: tuple[Part, ...], stored: list[StoredArray], versions: Array, mask: Array
                 ) -> None:
        """Of checked arrays, `of` and `again` make them. Raises ValueError as `dota.stacking.Stored` does."""
        self.samples = samples
        self.parts = parts
        self.stored = Stored(stored, samples)
        self.nbytes = sum([array.size for array in stored]) // samples
        self.versions: npt.NDArray[np.int32] = np.array(versions, np.int32).reshape(samples, -1)
        self.hero_steps = int(mask.sum())

    @classmethod
    def of(cls, arrays: Mapping[str, Array | PackedArray], samples: int) -> "RestingSegment":
        """Of arrays as they came over the wire. Raises ValueError naming one that cannot be cut into samples."""
        parts, stored = [], []
        # In one order whatever the sender's: sets that are stacked together must have the same.
        for name in sorted(arrays):
            array = arrays[name]
            part = _part(name, array.shape, array.dtype, samples)
            parts.append(part)
            if isinstance(array, np.ndarray) and array.dtype == np.float16:
                array = wire.pack(array)  # it came unpacked
            data, form = _written(name, array, part)
            stored.append(StoredArray(data, 0, data.nbytes, form, part.rows, part.row_bytes))
        versions, mask = arrays["versions"], arrays["mask"]
        assert isinstance(versions, np.ndarray) and isinstance(mask, np.ndarray)
        return cls(samples, tuple(parts), stored, versions, mask)

    @classmethod
    def again(cls, plan: Plan, message: bytes, places: Sequence[tuple[int, int]]) -> "RestingSegment":
        """Of a message of the form that `plan_of` knows, whose arrays' data lie at ``places``. Raises ValueError when
        some are not what they should be, without saying what: `of` does."""
        stored = [StoredArray(message, *places[at], form, part.rows, part.row_bytes)
                  for at, form, part in zip(plan.order, plan.forms, plan.parts, strict=True)]
        for at in plan.bools:
            begin, size = places[at]
            if message[begin:begin + size].translate(None, b"\0\1"):
                raise ValueError("a bool is neither 0 nor 1")
        versions, mask = (np.frombuffer(message, dtype, places[at][1] // 4, places[at][0])
                          for at, dtype in ((plan.versions, np.int32), (plan.mask, np.float32)))
        return cls(plan.samples, plan.parts, stored, versions, mask)

    def cut(self) -> "list[RestingSample]":
        """Its samples, in order."""
        return [RestingSample(self, place) for place in range(self.samples)]


def plan_of(heads: Sequence[Head], segment: RestingSegment) -> Plan | None:
    """How to take in the next message whose tensors' heads are the same as those that ``segment`` was made of; None
    where arrays do not rest as they came."""
    forms = [AS_IT_CAME.get(head.encoding) for head in heads]
    if None in forms or any(head.encoding == wire.RAW and head.dtype == "float16" for head in heads):
        return None
    names = [head.name for head in heads]
    order = tuple(names.index(part.name) for part in segment.parts)
    return Plan(segment.samples, order, tuple(form for at in order if (form := forms[at]) is not None), segment.parts,
                tuple(at for at, head in enumerate(heads) if head.dtype == "bool"), names.index("versions"),
                names.index("mask"))


class RestingSample(NamedTuple):
    """One sample of a segment, which leaves memory with the last of its samples."""

    segment: RestingSegment
    place: int  # in the segment

    def arrays(self) -> Arrays:
        """The sample's arrays, unpacked: [T, ...]."""
        batch: Arrays = {}
        Stacking()(batch, [self], np.empty)
        return {name: array[0] if name.startswith(STATE_PREFIX) else array[:, 0] for name, array in batch.items()}


class Stacking:
    """Unpacks samples side by side into a batch's arrays, on ``threads`` threads (`SampleBuffer`'s ``stack``)."""

    def __init__(self, threads: int = 1) -> None:
        self._stacker = Stacker(threads)

    def __call__(self, batch: Arrays, samples: Sequence[RestingSample], allocate: Allocate) -> None:
        """Fills ``batch`` [T, B, ...], states [B, ...]; its arrays are kept where they fit. Raises ValueError naming an
        array in which the samples differ."""
        parts = samples[0].segment.parts
        for sample in samples:
            if sample.segment.parts is not parts and sample.segment.parts != parts:
                _raise_difference(parts, sample.segment.parts)
        for name in batch.keys() - {part.name for part in parts}:
            del batch[name]
        targets = [batch_array(batch, part.name, part.shape, part.dtype, len(samples), allocate) for part in parts]
        self._stacker.stack([sample.segment.stored for sample in samples], [sample.place for sample in samples],
                            targets)


@functools.lru_cache(maxsize=4096)
def _part(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], samples: int) -> Part:
    state = name.startswith(STATE_PREFIX)
    if not shape or shape[0] % samples or (state and shape[0] != samples):
        raise ValueError(f"{name!r} of shape {shape} cannot be split into {samples} samples")
    rows, row = shape[0] // samples, shape[1:]
    return Part(name, row if state else (rows, *row), dtype, rows, math.prod(row) * dtype.itemsize)


def _written(name: str, array: Array | PackedArray, part: Part) -> tuple[memoryview, Form]:
    """An array's bytes and how they are written."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, Form.PLAIN
    if array.period not in (0, part.rows):
        raise ValueError(f"{name!r} came as changes within {array.period} rows, but a sample has {part.rows}: both "
                         "sides must run the same learning.lstm_unroll_length")
    return memoryview(array.data), Form.CHANGES if array.period else Form.PACKED


def _raise_difference(one: tuple[Part, ...], other: tuple[Part, ...]) -> None:
    names = {part.name for part in one} ^ {part.name for part in other}
    if names:
        raise ValueError(f"samples of one batch differ: one lacks {sorted(names)}")
    first, second = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
    raise ValueError(f"samples of one batch differ: {first.name!r} is {first.dtype} {first.shape} in one and "
                     f"{second.dtype} {second.shape} in another")
