"""A segment's arrays as the optimizer stores them: in the bytes they arrived in, decoded only into a batch."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from five.agent.learning.buffer import Allocate, batch_array
from five.agent.learning.samples import STATE_PREFIX, Arrays
from five.clients import wire
from five.clients.raw_tensor_set import TensorHeader
from five.native.collate import Collator, Encoding, StoredArray, StoredSet
from rapid.packed_array import PackedArray

Array = npt.NDArray[Any]
# Wire encodings that are stored without decoding.
STORED_ENCODINGS: dict[int, Encoding] = {
    wire.RAW: Encoding.PLAIN, wire.SPARSE: Encoding.PACKED, wire.CHANGES: Encoding.CHANGES}


class SampleArray(NamedTuple):
    """Array of one sample: its shape [T, ...], of states without T, and the size of its rows in the message."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: int
    row_bytes: int


@dataclass(frozen=True)
class MessageFormat:
    """Positions of a segment's arrays among the tensors of a message.

    A message with the same tensor heads has the same format and needs no further check of names, shapes and dtypes.
    ``order``, ``encodings`` and ``sample_arrays`` are sorted by name. The others are positions in the message.
    """

    samples: int
    order: tuple[int, ...]
    encodings: tuple[Encoding, ...]
    sample_arrays: tuple[SampleArray, ...]
    bools: tuple[int, ...]
    versions: int
    mask: int


class StoredArrays:
    """Arrays of one segment, neither copied nor decoded.

    Observations stay delta-encoded from step to step, or a bit mask with the values that are not zero.

    Attributes:
        samples: number of samples.
        nbytes: stored size of one sample.
        sample_arrays: name, shape and dtype of each array.
        versions: int32 [samples, T], the version that acted.
        hero_steps: int64 [samples], number of hero-steps whose mask is 1.
    """

    __slots__ = ("hero_steps", "native", "nbytes", "sample_arrays", "samples", "versions")

    def __init__(self, samples: int, sample_arrays: tuple[SampleArray, ...], stored: list[StoredArray], versions: Array,
                 mask: Array) -> None:
        """Store arrays that `from_arrays` or `from_message` has checked. Raises ValueError as `StoredSet` does."""
        self.samples = samples
        self.sample_arrays = sample_arrays
        self.native = StoredSet(stored, samples)
        self.nbytes = sum([array.size for array in stored]) // samples
        self.versions: npt.NDArray[np.int32] = np.array(versions, np.int32).reshape(samples, -1)
        self.hero_steps: npt.NDArray[np.int64] = mask.reshape(samples, -1).sum(axis=1).astype(np.int64)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array | PackedArray], samples: int) -> "StoredArrays":
        """Store arrays as the wire delivers them. Raises ValueError naming one that cannot be split into samples."""
        sample_arrays, stored = [], []
        # Sorted, because segments of one batch must have the same order whatever their sender's is.
        for name in sorted(arrays):
            array = arrays[name]
            sample_array = _sample_array(name, array.shape, array.dtype, samples)
            sample_arrays.append(sample_array)
            if isinstance(array, np.ndarray) and array.dtype == np.float16:
                array = wire.pack(array)
            data, encoding = _stored_bytes(name, array, sample_array)
            stored.append(StoredArray(data, 0, data.nbytes, encoding, sample_array.rows, sample_array.row_bytes))
        versions, mask = arrays["versions"], arrays["mask"]
        assert isinstance(versions, np.ndarray) and isinstance(mask, np.ndarray)
        return cls(samples, tuple(sample_arrays), stored, versions, mask)

    @classmethod
    def from_message(cls, format: MessageFormat, message: bytes, spans: Sequence[tuple[int, int]]) -> "StoredArrays":
        """Store the arrays at ``spans`` (begin and size by tensor) of a message of a known format.

        Raises ValueError without naming the invalid array; `from_arrays` names it.
        """
        stored = [StoredArray(message, *spans[at], encoding, array.rows, array.row_bytes)
                  for at, encoding, array in zip(format.order, format.encodings, format.sample_arrays, strict=True)]
        for at in format.bools:
            begin, size = spans[at]
            if message[begin:begin + size].translate(None, b"\0\1"):
                raise ValueError("a bool must be 0 or 1")
        versions, mask = (np.frombuffer(message, dtype, spans[at][1] // 4, spans[at][0])
                          for at, dtype in ((format.versions, np.int32), (format.mask, np.float32)))
        return cls(format.samples, format.sample_arrays, stored, versions, mask)


def message_format(heads: Sequence[TensorHeader], arrays: StoredArrays) -> MessageFormat | None:
    """Return the format of a message with these tensor heads, from which ``arrays`` were stored.

    None where a tensor has to be decoded or encoded before it is stored.
    """
    encodings = [STORED_ENCODINGS.get(head.encoding) for head in heads]
    if None in encodings or any(is_encoded_on_arrival(head) for head in heads):
        return None
    names = [head.name for head in heads]
    order = tuple(names.index(sample_array.name) for sample_array in arrays.sample_arrays)
    return MessageFormat(
        arrays.samples, order, tuple(encoding for at in order if (encoding := encodings[at]) is not None),
        arrays.sample_arrays,
        tuple(at for at, head in enumerate(heads) if head.dtype == "bool"), names.index("versions"),
        names.index("mask"))


def is_encoded_on_arrival(head: TensorHeader) -> bool:
    """Return whether the tensor arrives as plain float16, which is packed before it is stored."""
    return head.encoding == wire.RAW and head.dtype == "float16"


class SampleCollator:
    """Decodes stored samples into a batch's arrays on ``threads`` threads (`SampleBuffer`'s ``collate``)."""

    def __init__(self, threads: int = 1) -> None:
        self._collator = Collator(threads)

    def __call__(self, batch: Arrays, sources: Sequence[StoredArrays], indices: Sequence[int], allocate: Allocate
                 ) -> None:
        """Fill ``batch`` [T, B, ...], states [B, ...]. Raises ValueError naming an array in which samples differ."""
        sample_arrays = sources[0].sample_arrays
        for source in sources:
            if source.sample_arrays is not sample_arrays and source.sample_arrays != sample_arrays:
                _raise_difference(sample_arrays, source.sample_arrays)
        for name in batch.keys() - {sample_array.name for sample_array in sample_arrays}:
            del batch[name]
        targets = [batch_array(batch, a.name, a.shape, a.dtype, len(sources), allocate) for a in sample_arrays]
        self._collator.collate([source.native for source in sources], indices, targets)


@functools.lru_cache(maxsize=4096)
def _sample_array(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], samples: int) -> SampleArray:
    is_state = name.startswith(STATE_PREFIX)
    if not shape or shape[0] % samples or (is_state and shape[0] != samples):
        raise ValueError(f"{name!r} of shape {shape} cannot be split into {samples} samples")
    rows, row = shape[0] // samples, shape[1:]
    return SampleArray(name, row if is_state else (rows, *row), dtype, rows, math.prod(row) * dtype.itemsize)


def _stored_bytes(name: str, array: Array | PackedArray, sample_array: SampleArray) -> tuple[memoryview, Encoding]:
    """Return an array's bytes and their encoding."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, Encoding.PLAIN
    if array.period not in (0, sample_array.rows):
        raise ValueError(f"{name!r} is delta-encoded within {array.period} rows, but a sample has "
                         f"{sample_array.rows}: both sides must run the same learning.lstm_unroll_length")
    return memoryview(array.data), Encoding.CHANGES if array.period else Encoding.PACKED


def _raise_difference(one: tuple[SampleArray, ...], other: tuple[SampleArray, ...]) -> None:
    names = {a.name for a in one} ^ {a.name for a in other}
    if names:
        raise ValueError(f"samples of one batch differ: only some have {sorted(names)}")
    first, second = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
    raise ValueError(f"samples of one batch differ: {first.name!r} is {first.dtype} {first.shape} and "
                     f"{second.dtype} {second.shape}")
