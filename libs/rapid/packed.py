"""float16 arrays that stay in the sparse encoding, as they came over the wire or as they rest in a buffer."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

FLOAT16 = np.dtype(np.float16)
_BYTES_PER_WORD = 8
Join = Callable[[Sequence[bytes], int], bytes]


class PackedArray:
    """An array as ``ceil(n / 8)`` presence bytes and the values that are not zero; `rapid.wire` has the codec.

    It is checked without being unpacked: whether the presence bits announce exactly the values that are there. Cut
    along its first dimension it gives packed arrays again, by slices of its bytes.

    Raises ValueError when ``data`` is not the packed form of an array of ``shape``.
    """

    __slots__ = ("data", "shape")
    dtype = FLOAT16

    def __init__(self, shape: Sequence[int], data: bytes) -> None:
        self.shape = tuple(shape)
        self.data = data
        count = math.prod(self.shape)
        mask_bytes = -(-count // 8)
        if len(data) < mask_bytes:
            raise ValueError(f"{len(data)} bytes are too few for the presence bits of {count} values")
        mask = np.frombuffer(data, np.uint8, mask_bytes)
        if count % 8 and int(mask[-1]) >> count % 8:
            raise ValueError(f"presence bits are set beyond the {count} values")
        needed = mask_bytes + 2 * int(_ones(mask, 1)[0])
        if len(data) != needed:
            raise ValueError(f"{len(data)} bytes where the presence bits announce {needed}")

    @classmethod
    def of(cls, shape: tuple[int, ...], data: bytes) -> "PackedArray":
        """Without a look at bytes that are known to be right."""
        made = cls.__new__(cls)
        made.shape, made.data = shape, data
        return made

    @property
    def nbytes(self) -> int:
        """As it is held."""
        return len(self.data)

    @property
    def size(self) -> int:
        """Values, zeros included."""
        return math.prod(self.shape)

    def split(self, parts: int) -> "list[PackedArray] | None":
        """Equal parts along the first dimension, each with bytes of its own. None where their borders fall into the
        middle of a presence byte. Raises ValueError when the dimension cannot be split so."""
        if self.shape[0] % parts:
            raise ValueError(f"{self.shape[0]} rows cannot be split into {parts} parts")
        count = self.size // parts
        if count % 8:
            return None
        shape, size = (self.shape[0] // parts, *self.shape[1:]), count // 8
        whole = memoryview(self.data)
        mask = np.frombuffer(self.data, np.uint8, size * parts)
        ends = size * parts + 2 * np.cumsum(_ones(mask, parts))
        starts = [size * parts, *ends[:-1].tolist()]
        return [self.of(shape, b"".join((whole[i * size:(i + 1) * size], whole[start:end])))
                for i, (start, end) in enumerate(zip(starts, ends.tolist(), strict=True))]


class PackedRows:
    """An array whose rows are packed each by itself, as games make them: selected without a look at their bytes, and
    joined to one packed array when it is sent.

    ``rows`` object [...]: of each the bytes, of an array of ``row_shape``. ``join`` makes of rows and a row's number of
    values the bytes of all.
    """

    __slots__ = ("_join", "_row_shape", "rows", "shape")
    dtype = FLOAT16

    def __init__(self, rows: npt.NDArray[np.object_], row_shape: tuple[int, ...], join: Join) -> None:
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
        return PackedArray.of(self.shape, self._join(self.rows.reshape(-1).tolist(), math.prod(self._row_shape)))

    def present(self, columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which values of each row are not zero, [len(self), len(columns)]; ``columns`` count a row's values. Of rows
        in one dimension."""
        size = -(-math.prod(self._row_shape) // 8)
        mask = np.stack([np.frombuffer(row, np.uint8, size) for row in self.rows])
        found: npt.NDArray[np.bool_] = (mask[:, columns // 8] >> (columns % 8).astype(np.uint8) & 1).astype(np.bool_)
        return found


def _ones(mask: npt.NDArray[np.uint8], parts: int) -> npt.NDArray[np.int64]:
    """How many bits are set in each of ``parts`` equal parts of ``mask``."""
    size = len(mask) // parts
    if size % _BYTES_PER_WORD == 0:
        counts = np.bitwise_count(mask.view(np.uint64)).reshape(parts, -1)
    else:
        counts = np.bitwise_count(mask).reshape(parts, -1)
    total: npt.NDArray[np.int64] = counts.sum(1, dtype=np.int64)
    return total
