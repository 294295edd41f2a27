"""Samples at rest and the batches that are made of them: unpacked into a batch's arrays natively, on several threads.

What rests is a set of arrays in the bytes that they came in, each cut along its first dimension into equal *parts*. A
batch has one part of each of its sets side by side: rows first, then the set, [rows, B, ...].
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy.typing as npt

from dota import _core


class Form(IntEnum):
    """How an array's bytes are written."""

    PLAIN = 0
    PACKED = 1  # as dota.packing does it
    CHANGES = 2  # packed after each row but a part's first has become its exclusive or with the row before


class StoredArray(NamedTuple):
    """An array at rest: its bytes are the ``size`` at ``begin`` of ``data`` (bytes, or a C-contiguous array), which
    must not be changed any more; a part has ``rows`` rows of ``row_bytes`` bytes."""

    data: Any
    begin: int
    size: int
    form: Form
    rows: int
    row_bytes: int


class Stored:
    """A set of arrays at rest, which it keeps. Raises ValueError, counting arrays from 0, for one whose bytes are not
    what its form and size need: what is stored is unpacked without a further look."""

    __slots__ = ("native",)

    def __init__(self, arrays: Sequence[StoredArray], parts: int) -> None:
        self.native = _core.Stored(list(arrays), parts)


class Stacker:
    """Puts parts of stored sets side by side on ``threads`` threads, the calling one among them, without the
    interpreter's lock. May be called from several threads, which take turns."""

    def __init__(self, threads: int = 1) -> None:
        self._native = _core.Stacker(threads)

    def stack(self, sets: Sequence[Stored], parts: Sequence[int], outs: Sequence[npt.NDArray[Any]]) -> None:
        """Writes part ``parts[b]`` of ``sets[b]`` into column b of every array of ``outs``, [rows, B, ...],
        C-contiguous; one with a single row a part may be [B, ...].

        Raises ValueError for sets that differ in the size of an array and for targets of another size, IndexError for
        a part that its set does not have.
        """
        self._native.stack([s.native for s in sets], parts, list(outs))
