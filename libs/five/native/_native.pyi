"""The agent's native code. Generate with `python -m nanobind.stubgen -m five.native._native`."""
# ruff: noqa: E501

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

INTERFACE: int = 3

class RowColumns:
    """
    Rows that a team-step may have, and the ids that tell which are present.
    """

    def __init__(self, columns: Sequence[int], owners: Sequence[int], status: tuple[int, int, int]) -> None:
        """
        `status`: the number of rows without owners that three numbers mark as present too, the offset of the first and their stride.
        """

    def find(self, ids: NDArray[numpy.uint16], shared: NDArray[numpy.uint16], steps: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        """
        Returns column and step of each row that is present, by column and then by step.
        """

def standard_rows(values: NDArray[numpy.uint16], layout: tuple[int, int, int, int, int], step: NDArray[numpy.int64], slot: NDArray[numpy.int64], group: NDArray[numpy.int64] | None, scale: NDArray[numpy.float32], shift: NDArray[numpy.float32], clip: float, out: NDArray[numpy.float32], sums: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]] | None = None, portable: bool = False) -> None:
    """
    Writes rows of float16 values as float32, standardised and clipped. `layout`: width, lines, offset, stride and fields. `sums`: count, first value, and sums of the differences from it and of their squares, to add to.
    """

def id_rows(ids: NDArray[numpy.uint16], layout: tuple[int, int, int, int, int], step: NDArray[numpy.int64], slot: NDArray[numpy.int64], out: NDArray[numpy.int64]) -> None:
    """Writes rows of ids as int64."""

class StoredSet:
    """
    Stored arrays, each cut along its first dimension into the same number of parts.
    """

    def __init__(self, arrays: Sequence[tuple[object, int, int, int, int, int]], parts: int) -> None:
        """
        `arrays`: (object with the bytes, begin, size, encoding, rows of a part, bytes of a row) each.
        """

    @property
    def parts(self) -> int: ...

class Collator:
    """Unpacks parts of stored sets side by side on several threads."""

    def __init__(self, threads: int) -> None: ...

    def collate(self, sets: Sequence[StoredSet], parts: Sequence[int], outs: list[Any], method: int = 0) -> None:
        """
        Writes part `parts[b]` of `sets[b]` into column b of the arrays `outs`, rows first.
        """

class Actor:
    """A policy's network with a copy of its parameters."""

    def __init__(self, net: dict[str, Any], instructions: str = '') -> None:
        """
        `net`: sizes, offsets, layers and tables by name. `instructions`: 'portable' or 'avx2'; '' is the widest instruction set that the CPU has.
        """

    def act(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """
        Reads the arrays of `inputs` and writes those of `outputs`. Raises ValueError for wrong sizes, IndexError for an id without an embedding.
        """

def segment_max(values: NDArray[Any], owner: NDArray[numpy.int64], pooled: NDArray[Any]) -> None:
    """
    Writes the maximum of 0 and each owner's rows. bfloat16 is given as uint16. Raises IndexError for an unknown owner.
    """

def segment_max_gradient(values: NDArray[Any], owner: NDArray[numpy.int64], pooled: NDArray[Any], gradient: NDArray[Any], out: NDArray[Any]) -> None:
    """
    Writes the gradient of the rows. Arguments and errors are those of `segment_max`.
    """

def lstm_step(step: int, from_input: NDArray[Any], product: NDArray[Any], before: NDArray[Any], gates: NDArray[numpy.float32], cells: NDArray[numpy.float32], cell_tanh: NDArray[numpy.float32], outputs: NDArray[numpy.float32], keep: NDArray[numpy.float32] | None) -> None:
    """
    Evaluates one step of the cell after its product. bfloat16 is given as uint16. Raises ValueError for sizes that do not match.
    """

def lstm_step_gradient(step: int, product: NDArray[Any], of_outputs: NDArray[numpy.float32], gates: NDArray[numpy.float32], cells: NDArray[numpy.float32], cell_tanh: NDArray[numpy.float32], of_gates: NDArray[Any], of_cell: NDArray[numpy.float32], keep: NDArray[numpy.float32] | None) -> None:
    """
    Evaluates the gradient of one step up to its product. Errors are those of `lstm_step`.
    """

def clip_elements(gradient: NDArray[numpy.float32], v: NDArray[numpy.float32], scale: float, decay: float, share: float) -> int:
    """
    Clips a gradient to ± sqrt(v * scale) where that is not 0, and then adds the unclipped gradient to its second moment `v`. Returns the number of clipped elements.
    """
