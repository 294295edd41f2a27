"""Collation of stored samples into batches: unpack them on several threads, straight into a batch's arrays.

A stored set is a list of arrays in the bytes in which they arrived. Each array is cut along its first dimension into
equal *parts*, one per sample. A batch array has the rows first, then the samples: [rows, B, ...].
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy.typing as npt

from five.native import _native


class Encoding(IntEnum):
    """Encoding of an array's bytes."""

    PLAIN = 0
    PACKED = 1  # The packed form of dota.packing.
    CHANGES = 2  # Packed after each row but a part's first was replaced by its exclusive or with the row before.


class StoredArray(NamedTuple):
    """A stored array: ``size`` bytes at ``begin`` of ``data`` (bytes or a C-contiguous array).

    The bytes must not change afterwards. A part has ``rows`` rows of ``row_bytes`` bytes.
    """

    data: Any
    begin: int
    size: int
    encoding: Encoding
    rows: int
    row_bytes: int


class StoredSet:
    """Arrays that are stored together and cut into the same number of parts.

    The constructor checks every array and raises ValueError with the array's index when its bytes do not match its
    encoding and size. Later reads do not check again. The set keeps the arrays' memory alive.
    """

    __slots__ = ("native",)

    def __init__(self, arrays: Sequence[StoredArray], parts: int) -> None:
        self.native = _native.StoredSet(list(arrays), parts)


class Collator:
    """Unpack parts of stored sets side by side on ``threads`` threads, without the interpreter's lock.

    The calling thread is one of them. Several threads may call one collator at once.
    """

    def __init__(self, threads: int = 1) -> None:
        self._native = _native.Collator(threads)

    def collate(self, sets: Sequence[StoredSet], parts: Sequence[int], outs: Sequence[npt.NDArray[Any]]) -> None:
        """Write part ``parts[b]`` of ``sets[b]`` into column b of every array of ``outs``, [rows, B, ...].

        The arrays are C-contiguous; an array with one row a part may be [B, ...]. Raises ValueError for sets that
        differ in the size of an array and for targets of another size, IndexError for a part that a set lacks.
        """
        self._native.collate([s.native for s in sets], parts, list(outs))
