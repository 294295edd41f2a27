"""Bitmask packing of 16-bit arrays, for observations at rest and on the wire.

Most of an observation is zero: one bit a value says whether it is not, and the values that are not follow. The packed
form holds no shape and no dtype; who unpacks knows both.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dota import _core

Array16 = npt.NDArray[np.float16] | npt.NDArray[np.uint16] | npt.NDArray[np.int16]


def pack_f16(array: Array16) -> bytes:
    """Packs a C-contiguous array of 16-bit numbers of any shape: ceil(n / 8) + 2 * nonzero bytes.

    Raises ValueError for another dtype or for an array that is not contiguous.
    """
    return bytes(_core.pack16(_bits(array, "array")))


def join_f16(rows: Sequence[bytes], values: int) -> bytes:
    """The packed form of rows one after another, each of which is that of ``values`` 16-bit numbers.

    Raises ValueError when a row is not of that many, in so far as its size tells.
    """
    return bytes(_core.join16(rows, values))


def unpack_f16(data: bytes | bytearray | memoryview, out: Array16) -> None:
    """Unpacks into ``out``, whose size must be that of the array packed.

    Raises ValueError when the bytes are not the packed form of exactly that many values; ``out`` is then undefined.
    """
    bits = _bits(out, "out")
    if not out.flags.writeable:
        raise ValueError("out cannot be written to")
    if not _core.unpack16(np.frombuffer(data, np.uint8), bits):
        raise ValueError(f"{len(memoryview(data).cast('B'))} bytes are no packed array of {out.size} values")


def unpacked_f16(data: bytes, count: int) -> npt.NDArray[np.float16]:
    """Unpacks into a new array, float16 [count]. Raises ValueError as `unpack_f16` does."""
    out = np.empty(count, np.float16)
    unpack_f16(data, out)
    return out


def _bits(array: Array16, name: str) -> npt.NDArray[np.uint16]:
    if array.dtype.itemsize != 2 or array.dtype.kind not in "fui":
        raise ValueError(f"{name} must hold 16-bit numbers, not {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    return array.reshape(-1).view(np.uint16)
