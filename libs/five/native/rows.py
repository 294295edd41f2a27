"""Observation rows in the host's memory: find the rows that are present and read them as float32 in one pass.

A `RowLayout` locates rows of one kind in an array of team-steps. Row ``slot`` of a team-step begins at
``offset + slot * stride`` in each of its ``lines`` lines of ``width`` numbers, and has ``fields`` numbers.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from five.native import _native

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class RunningSums(NamedTuple):
    """Running sums of values, float64 [groups * fields] each; they start at zero.

    ``number`` counts the values and ``near`` is the first of them. ``total`` and ``squares`` are the sums of the
    differences from ``near`` and of their squares, added up in float32 over 64 lines at a time.
    """

    number: Doubles
    pivot: Doubles
    total: Doubles
    squares: Doubles


class RowLayout(NamedTuple):
    """Position of rows of one kind in an array; the module explains the fields."""

    width: int
    lines: int
    offset: int
    stride: int
    fields: int


def standard_rows(values: npt.NDArray[np.float16], layout: RowLayout, step: Ints, slot: Ints, scale: Floats,
                  shift: Floats, clip: float, out: Floats, group: Ints | None = None,
                  sums: RunningSums | None = None) -> None:
    """Write rows as ``shift + value * scale``, clipped to ±``clip``, into ``out`` [R, lines, fields], C-contiguous.

    ``step`` and ``slot`` [R] select the rows. ``scale`` and ``shift`` [groups * fields] are those of each row's
    ``group`` [R], by default group 0. Product and sum are rounded to float32 once. ``sums`` accumulates the raw values.
    Raises ValueError for sizes that do not match and IndexError for rows outside the array.
    """
    _native.standard_rows(values.view(np.uint16), layout, step, slot, group, scale, shift, clip, out, sums)


def id_rows(ids: npt.NDArray[np.uint16], layout: RowLayout, step: Ints, slot: Ints) -> npt.NDArray[Any]:
    """Return rows of ids of a one-line array, int64 [R, fields]. Raises as `standard_rows` does."""
    out = np.empty((len(step), layout.fields), np.int64)
    _native.id_rows(ids, layout, step, slot, out)
    return out
