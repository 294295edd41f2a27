"""Arrays that stay packed as they were received or stored."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FLOAT16 = np.dtype(np.float16)
_BYTES_PER_WORD = 8
Bytes = bytes | memoryview


class RowJoiner(NamedTuple):
    """Functions that join individually packed rows into one packed array."""

    whole: Callable[[Sequence[bytes], int], bytes]  # (rows, values per row) to one packed array
    changes: Callable[[Sequence[bytes], int, int], bytes]  # (rows, values per row, period) to packed changes


class PackedArray:
    """A packed array of 16-bit words: ``ceil(n / 8)`` presence bytes, then the words that are not zero (`rapid.codec`).

    With a ``period``, every row except each ``period``-th is stored as its exclusive or with the row before it.
    Consecutive observations differ little, so few words remain. The constructor checks that the presence bits announce
    exactly the words present, without unpacking.

    Raises ValueError when ``data`` is not the packed form of an array of ``shape`` and ``dtype``.
    """

    __slots__ = ("data", "dtype", "period", "shape")

    def __init__(self, shape: Sequence[int], data: Bytes, dtype: np.dtype[Any] = FLOAT16, period: int = 0) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.period = period
        self.data = data
        count = word_count(self.shape, dtype)
        mask_bytes = -(-count // 8)
        if len(data) < mask_bytes:
            raise ValueError(f"{len(data)} bytes are too few for the presence bits of {count} values")
        mask = np.frombuffer(data, np.uint8, mask_bytes)
        if count % 8 and int(mask[-1]) >> count % 8:
            raise ValueError(f"presence bits are set beyond the {count} values")
        needed = mask_bytes + 2 * _count_ones(mask)
        if len(data) != needed:
            raise ValueError(f"{len(data)} bytes where the presence bits announce {needed}")

    @classmethod
    def of(cls, shape: tuple[int, ...], data: Bytes, dtype: np.dtype[Any] = FLOAT16, period: int = 0) -> "PackedArray":
        """Create an array without checking the bytes."""
        made = cls.__new__(cls)
        made.shape, made.data, made.dtype, made.period = shape, data, dtype, period
        return made

    @property
    def nbytes(self) -> int:
        """Bytes in packed form."""
        return len(self.data)

    @property
    def size(self) -> int:
        """Number of values, including zeros."""
        return math.prod(self.shape)


def word_count(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the number of 16-bit words of an array. Raise ValueError unless each row is a whole number of words."""
    if math.prod(shape[1:]) * dtype.itemsize % 2:
        raise ValueError(f"rows of {list(shape[1:])} {dtype.name} are not a whole number of 16-bit words")
    return math.prod(shape) * dtype.itemsize // 2


class PackedRows:
    """An array of individually packed rows, as games produce them.

    Rows are selected without reading their bytes, and joined to one packed array for sending. ``rows``, object [...],
    holds the bytes of each row of shape ``row_shape``.
    """

    __slots__ = ("_join", "_row_shape", "rows", "shape")
    dtype = FLOAT16

    def __init__(self, rows: npt.NDArray[np.object_], row_shape: tuple[int, ...], join: RowJoiner) -> None:
        self.rows = rows
        self.shape = (*rows.shape, *row_shape)
        self._row_shape = row_shape
        self._join = join

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: npt.NDArray[np.integer], /) -> "PackedRows":
        return PackedRows(self.rows[which], self._row_shape, self._join)

    def joined(self) -> PackedArray:
        """Return all rows as one packed array."""
        return PackedArray.of(self.shape, self._join.whole(self._rows(), math.prod(self._row_shape)))

    def changes(self, period: int) -> PackedArray:
        """Return all rows as one packed array of row-to-row changes. ``period`` is that of `PackedArray`."""
        data = self._join.changes(self._rows(), math.prod(self._row_shape), period)
        return PackedArray.of(self.shape, data, period=period)

    def _rows(self) -> list[bytes]:
        rows: list[bytes] = self.rows.reshape(-1).tolist()
        return rows

    def present(self, columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Return which values are not zero, bool [len(self), len(columns)]. Rows must be in one dimension."""
        if not columns.size:
            return np.zeros((len(self.rows), 0), np.bool_)
        first, end = int(columns.min()) // 8, int(columns.max()) // 8 + 1
        # Only the needed bytes: creating an array per row takes longer than reading it.
        bits = np.frombuffer(b"".join([row[first:end] for row in self.rows]), np.uint8).reshape(-1, end - first)
        found: npt.NDArray[np.bool_] = (
            bits[:, columns // 8 - first] >> (columns % 8).astype(np.uint8) & 1).astype(np.bool_)
        return found


def _count_ones(mask: npt.NDArray[np.uint8]) -> int:
    """Return the number of bits set."""
    whole = len(mask) // _BYTES_PER_WORD * _BYTES_PER_WORD
    return (int(np.bitwise_count(mask[:whole].view(np.uint64)).sum(dtype=np.int64))
            + int(np.bitwise_count(mask[whole:]).sum(dtype=np.int64)))
