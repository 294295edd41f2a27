"""Arrays that stay packed, as they came over the wire or as they rest in a buffer."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FLOAT16 = np.dtype(np.float16)
_BYTES_PER_WORD = 8
Bytes = bytes | memoryview


class RowJoiner(NamedTuple):
    """What joins rows that are packed each by itself, of so many values each."""

    whole: Callable[[Sequence[bytes], int], bytes]  # of rows and values: the packed form of all
    changes: Callable[[Sequence[bytes], int, int], bytes]  # of a period too: that of what changes


class PackedArray:
    """An array in words of 16 bits: ``ceil(n / 8)`` presence bytes and the words that are not zero; `rapid.codec`
    has the codec. With a ``period`` each row, but every ``period``-th counted from the first, is packed as its
    exclusive or with the row before: of consecutive observations little is left.

    It is checked without being unpacked: whether the presence bits announce exactly the words that are there.

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
        needed = mask_bytes + 2 * _ones(mask)
        if len(data) != needed:
            raise ValueError(f"{len(data)} bytes where the presence bits announce {needed}")

    @classmethod
    def of(cls, shape: tuple[int, ...], data: Bytes, dtype: np.dtype[Any] = FLOAT16, period: int = 0) -> "PackedArray":
        """Without a look at bytes that are known to be right."""
        made = cls.__new__(cls)
        made.shape, made.data, made.dtype, made.period = shape, data, dtype, period
        return made

    @property
    def nbytes(self) -> int:
        """As it is held."""
        return len(self.data)

    @property
    def size(self) -> int:
        """Values, zeros included."""
        return math.prod(self.shape)


def word_count(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """16-bit words of an array whose rows are packed. Raises ValueError where a row is no whole number of them."""
    if math.prod(shape[1:]) * dtype.itemsize % 2:
        raise ValueError(f"rows of {list(shape[1:])} {dtype.name} are no whole number of 16-bit words")
    return math.prod(shape) * dtype.itemsize // 2


class PackedRows:
    """An array whose rows are packed each by itself, as games make them: selected without a look at their bytes, and
    joined to one packed array when it is sent.

    ``rows`` object [...]: of each the bytes, of an array of ``row_shape``.
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
        """All rows in one."""
        return PackedArray.of(self.shape, self._join.whole(self._rows(), math.prod(self._row_shape)))

    def changes(self, period: int) -> PackedArray:
        """All rows in one, as what changes from row to row; ``period`` as `PackedArray` has it."""
        data = self._join.changes(self._rows(), math.prod(self._row_shape), period)
        return PackedArray.of(self.shape, data, period=period)

    def _rows(self) -> list[bytes]:
        rows: list[bytes] = self.rows.reshape(-1).tolist()
        return rows

    def present(self, columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which values of each row are not zero, [len(self), len(columns)]; ``columns`` count a row's values. Of rows
        in one dimension."""
        if not columns.size:
            return np.zeros((len(self.rows), 0), np.bool_)
        first, end = int(columns.min()) // 8, int(columns.max()) // 8 + 1
        # The few bytes that are asked for: to make an array of each row takes longer than to look at it.
        bits = np.frombuffer(b"".join([row[first:end] for row in self.rows]), np.uint8).reshape(-1, end - first)
        found: npt.NDArray[np.bool_] = (
            bits[:, columns // 8 - first] >> (columns % 8).astype(np.uint8) & 1).astype(np.bool_)
        return found


def _ones(mask: npt.NDArray[np.uint8]) -> int:
    """How many bits are set."""
    whole = len(mask) // _BYTES_PER_WORD * _BYTES_PER_WORD
    return (int(np.bitwise_count(mask[:whole].view(np.uint64)).sum(dtype=np.int64))
            + int(np.bitwise_count(mask[whole:]).sum(dtype=np.int64)))
