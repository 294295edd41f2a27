"""Rows of observations, read again: what is there, and its numbers as float32, in one pass over memory.

A *place* says where rows of one kind lie in an array of team-steps: row ``slot`` of a team-step begins at offset +
slot * stride in each of its ``lines`` lines of ``width`` numbers, and has ``fields``.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dota import _core

RowColumns = _core.RowColumns
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class Sums(NamedTuple):
    """Of values, [groups * fields] each, zeros to begin with: how many there were, the first one, and the sums of how
    far all are from that and of the squares, in float32 a few rows at a time."""

    number: Doubles
    near: Doubles
    total: Doubles
    squares: Doubles


class Place(NamedTuple):
    """Where rows of one kind lie; see the module."""

    width: int
    lines: int
    offset: int
    stride: int
    fields: int


def standard_rows(values: npt.NDArray[np.float16], place: Place, step: Ints, slot: Ints, scale: Floats, shift: Floats,
                  clip: float, out: Floats, group: Ints | None = None, sums: Sums | None = None) -> None:
    """Writes rows as ``shift + value * scale``, clipped to ±``clip``, into ``out`` [R, lines, fields], C-contiguous.

    ``step`` and ``slot`` [R] say which rows; ``scale`` and ``shift`` [groups * fields] are those of each row's
    ``group`` [R], by default the first. Product and sum are rounded to float32 once. ``sums``: what is added up of the
    values as they were. Raises ValueError for sizes that do not fit together, IndexError for rows that the array does
    not have.
    """
    _core.standard_rows(values.view(np.uint16), place, step, slot, group, scale, shift, clip, out, sums)


def id_rows(ids: npt.NDArray[np.uint16], place: Place, step: Ints, slot: Ints) -> npt.NDArray[Any]:
    """int64 [R, fields]: rows of ids, of an array with one line. Raises as `standard_rows` does."""
    out = np.empty((len(step), place.fields), np.int64)
    _core.id_rows(ids, place, step, slot, out)
    return out
