"""Bitmask packing of 16-bit arrays, for stored and transmitted observations.

Most values of an observation are zero: one bit a value marks the nonzero ones, and their values follow. The packed form
holds neither shape nor dtype; the reader must know both.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dota import _core

Array16 = npt.NDArray[np.float16] | npt.NDArray[np.uint16] | npt.NDArray[np.int16]


def pack_f16(array: Array16) -> bytes:
    """Pack a C-contiguous array of 16-bit numbers of any shape into ceil(n / 8) + 2 * nonzero bytes.

    Raises ValueError for another dtype or a non-contiguous array.
    """
    return bytes(_core.pack16(_bits(array, "array")))


def join_f16(rows: Sequence[bytes], values: int) -> bytes:
    """Concatenate packed rows of ``values`` 16-bit numbers each into the packed form of all rows.

    Raises ValueError when a row's size cannot be that of so many values.
    """
    return bytes(_core.join16(rows, values))


def split_f16(data: bytes | bytearray | memoryview, rows: int, values: int) -> list[bytes]:
    """Split the packed form of all rows, the reverse of ``join_f16``, into ``rows`` packed rows of ``values`` numbers
    each.

    Raises ValueError when the bytes are not the packed form of so many values. Stored zeros are not detected.
    """
    return list(_core.split16(np.frombuffer(data, np.uint8), rows, values))


def pack_changes(array: npt.NDArray[Any], period: int) -> bytes:
    """Pack the rows of a C-contiguous array [rows, ...] as differences.

    Each row is XORed with the previous one in 16-bit words, except the first row and every ``period``-th after it.
    Needs at least one row. Raises ValueError for rows that are not a whole number of words.
    """
    row_bytes = math.prod(array.shape[1:]) * array.itemsize
    if row_bytes % 2:
        raise ValueError(f"rows of {list(array.shape[1:])} {array.dtype} are not a whole number of 16-bit words")
    return bytes(_core.pack_changes(_words(array), len(array), period))


def join_changes(rows: Sequence[bytes], values: int, period: int) -> bytes:
    """Combine separately packed rows of ``values`` 16-bit numbers each into the form of ``pack_changes``. Raises
    ValueError for another size."""
    return bytes(_core.join_changes(rows, values, period))


def unpack_f16(data: bytes | bytearray | memoryview, out: Array16) -> None:
    """Unpack into ``out``, whose size must be that of the packed array.

    Raises ValueError when the bytes are not the packed form of exactly that many values; ``out`` is then undefined.
    """
    bits = _bits(out, "out")
    if not out.flags.writeable:
        raise ValueError("out must be writable")
    if not _core.unpack16(np.frombuffer(data, np.uint8), bits):
        raise ValueError(f"{len(memoryview(data).cast('B'))} bytes are not a packed array of {out.size} values")


def unpacked_f16(data: bytes | memoryview, count: int) -> npt.NDArray[np.float16]:
    """Unpack into a new array float16 [count]. Raises ValueError as `unpack_f16` does."""
    out = np.empty(count, np.float16)
    unpack_f16(data, out)
    return out


def _bits(array: Array16, name: str) -> npt.NDArray[np.uint16]:
    if array.dtype.itemsize != 2 or array.dtype.kind not in "fui":
        raise ValueError(f"{name} must hold 16-bit numbers, not {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    return array.reshape(-1).view(np.uint16)


def _words(array: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    if not array.flags.c_contiguous:
        raise ValueError("array must be C-contiguous")
    return array.reshape(-1).view(np.uint16)
