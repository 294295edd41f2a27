"""Codec of packed arrays: one presence bit per 16-bit word, then the words that are not zero.

The encodings are defined here in numpy. A service registers a faster codec of the same bytes when it starts.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapid.packed_array import Bytes, word_count

Array = npt.NDArray[Any]


class Pack(Protocol):
    """Encode float16 values: one presence bit per value (lowest bit first), then the non-zero values."""

    def __call__(self, values: npt.NDArray[np.float16], /) -> bytes: ...


class Unpack(Protocol):
    """Decode sparse bytes into ``count`` float16 values. Raise ValueError when the bytes do not fit."""

    def __call__(self, data: Bytes, count: int, /) -> npt.NDArray[np.float16]: ...


class PackChanges(Protocol):
    """Encode the rows of a C-contiguous array of any dtype as row-to-row changes.

    Every row except each ``period``-th, counted from the first, is encoded as its exclusive or with the row before it.
    """

    def __call__(self, array: Array, period: int, /) -> bytes: ...


def pack_sparse(values: npt.NDArray[np.float16]) -> bytes:
    """Encode values in numpy: ceil(n / 8) presence bytes, then the values whose bits are not all zero."""
    bits = np.ascontiguousarray(values, np.float16).reshape(-1).view(np.uint16)
    present = bits != 0
    mask: bytes = np.packbits(present, bitorder="little").tobytes()
    values_present: bytes = bits[present].tobytes()
    return mask + values_present


def unpack_sparse(data: Bytes, count: int) -> npt.NDArray[np.float16]:
    """Decode the bytes of `pack_sparse` to float16 [count]. Raise ValueError when the bytes do not fit ``count``."""
    mask_bytes = -(-count // 8)
    if len(data) < mask_bytes:
        raise ValueError(f"{len(data)} bytes are too few for the presence bits of {count} values")
    mask = np.unpackbits(np.frombuffer(data, np.uint8, mask_bytes), bitorder="little")
    if mask[count:].any():
        raise ValueError(f"presence bits are set beyond the {count} values")
    present = mask[:count].astype(bool)
    needed = mask_bytes + 2 * int(np.count_nonzero(present))
    if len(data) != needed:
        raise ValueError(f"{len(data)} bytes where the presence bits announce {needed}")
    values = np.zeros(count, np.uint16)
    values[present] = np.frombuffer(data, np.uint16, offset=mask_bytes)
    return values.view(np.float16)


def pack_changes(array: Array, period: int) -> bytes:
    """Encode row-to-row changes in numpy. Raise ValueError unless each row is a whole number of 16-bit words."""
    word_count(array.shape, array.dtype)
    rows = array.reshape(len(array), -1).view(np.uint8).view(np.uint16)
    changed = rows.copy()
    changed[1:] ^= rows[:-1]
    changed[::period] = rows[::period]
    return pack_sparse(changed.view(np.float16))


def restore(words: npt.NDArray[np.uint16], period: int) -> None:
    """Turn row-to-row changes [rows, n] back into rows, in place."""
    for first in range(0, len(words), period):
        part = words[first:first + period]
        np.bitwise_xor.accumulate(part, axis=0, out=part)


_used: tuple[Pack, Unpack, PackChanges] = (pack_sparse, unpack_sparse, pack_changes)


def register(pack: Pack, unpack: Unpack, changes: PackChanges) -> None:
    """Install a faster codec of the same bytes. Raise ValueError when it differs from the numpy codec on a probe."""
    probe = np.zeros(19, np.float16)
    probe[[0, 3, 8, 18]] = [1.5, -2, 65504, -0.25]
    if bytes(pack(probe)) != pack_sparse(probe):
        raise ValueError("the sparse codec's bytes differ from the wire format's")
    if not np.array_equal(unpack(pack_sparse(probe), probe.size), probe):
        raise ValueError("the sparse codec does not read the wire format's bytes")
    rows = np.arange(7 * 5 * 2, dtype=np.uint8).reshape(7, 5, 2) // 3
    if bytes(changes(rows, 3)) != pack_changes(rows, 3):
        raise ValueError("the bytes of changes differ from the wire format's")
    global _used
    _used = (pack, unpack, changes)


def packed(values: npt.NDArray[np.float16]) -> bytes:
    """Encode values with the installed codec."""
    return bytes(_used[0](values))


def unpacked(data: Bytes, count: int) -> npt.NDArray[np.float16]:
    """Decode sparse bytes with the installed codec. Raise ValueError when the bytes do not fit ``count``."""
    return _used[1](data, count)


def packed_changes(array: Array, period: int) -> bytes:
    """Encode the rows of a C-contiguous array as row-to-row changes with the installed codec."""
    return bytes(_used[2](array, period))
