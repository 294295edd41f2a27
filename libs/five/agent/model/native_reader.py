"""Native counterpart of `InputReader` and `Normaliser` for a policy on the CPU, in one pass over memory.

Rows and their order are the same; raw values are not kept. Reading was a quarter of a call on a few team-steps, whose
cost is mostly its many small operations. A gradient step on a few hundred team-steps reads less memory.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dota.spaces import Array, Block
from five.agent.model.inputs import InputReader, Inputs, PackedPool, PresentRows, block_rows, id_columns
from five.agent.model.normaliser import Normaliser, row_sums
from five.native import RowColumns
from five.native.rows import RowLayout, RunningSums, id_rows, standard_rows

Ints = npt.NDArray[np.int64]
MAPS = ("minimap", "nearby_map")
READ = {"shared": torch.float16, "private": torch.float16, "shared_ids": torch.uint16}


class NativeRead(NamedTuple):
    """Result of a read: ``inputs`` without ``floats``; the normalised streams ``floats``; and ``moments`` float64 [3,
    F] as `Normaliser.stream_moments` returns them, where requested."""

    inputs: Inputs
    floats: dict[str, Tensor]
    moments: Tensor | None


class NativeReader:
    """Reader of the arrays of one layout."""

    def __init__(self, reader: InputReader) -> None:
        self._reader = reader

    def __reduce__(self) -> tuple[type["NativeReader"], tuple[InputReader]]:
        return NativeReader, (self._reader,)  # native objects are created again on first use

    @cached_property
    def _tables(self) -> "_Tables":
        reader = self._reader
        return _Tables(
            columns_of(reader),
            {name: (array, row_layout_of(reader, block, array)) for name, (block, array, _) in reader.streams.items()},
            {name: row_layout_of(reader, block, "shared_ids") for name, block in reader.blocks.items()},
            *(table.cpu().numpy() for table in (
                reader.owner_slots, reader.bounds, reader.group_slots, reader.group_of, reader.position_of)))

    @staticmethod
    def accepts(obs: dict[str, Tensor]) -> bool:
        """Return whether the arrays are on the CPU, with the dtypes that games write."""
        return all(obs[name].device.type == "cpu" and obs[name].dtype is dtype for name, dtype in READ.items())

    def __call__(self, obs: dict[str, Tensor], normaliser: Normaliser, present: PresentRows | None = None,
                 moments: bool = False) -> NativeRead:
        """Read ``obs`` and ``present`` as `InputReader` does. Raises ValueError for arrays of other widths."""
        self._reader.require_widths(obs["shared"], obs["private"])
        read = _BatchReader(self._reader, self._tables, obs, normaliser, moments)
        inputs = Inputs(read.steps)
        self._read_fixed_blocks(read, inputs, obs)
        column, step, cuts = self._find_rows(read.arrays) if present is None else (
            present.column.numpy(), present.step.numpy(), present.ends)
        sets = len(self._reader.sets)
        first = cuts[sets - 1] if sets else 0
        index = self._units(read, inputs, column[first:], step[first:], [cut - first for cut in cuts[sets:]])
        self._sets(read, inputs, column, step, cuts[:sets], index)
        seen = None if read.sums is None else normaliser.moments_about_mean(*torch.from_numpy(read.sums))
        return NativeRead(inputs, read.floats, seen)

    def search(self, obs: dict[str, Tensor]) -> tuple[PresentRows, Tensor]:
        """Return the present rows as `InputReader.search` does, and the unit slots with a row, bool [N, U]."""
        column, step, ends = self._find_rows(
            {name: obs[name].contiguous().numpy() for name in ("shared", "shared_ids")})
        first = ends[len(self._reader.sets) - 1] if self._reader.sets else 0
        is_present = np.zeros((len(obs["shared"]), self._reader.units), np.bool_)
        is_present[step[first:], self._tables.group_slots[column[first:] - self._reader.set_columns]] = True
        return PresentRows(torch.from_numpy(column), torch.from_numpy(step), ends), torch.from_numpy(is_present)

    def _find_rows(self, arrays: dict[str, npt.NDArray[Any]]) -> tuple[Ints, Ints, list[int]]:
        """Return column and step of each row, and the end of each set or unit group."""
        shared = arrays["shared"]
        column, step = self._tables.columns.find(arrays["shared_ids"], shared.view(np.uint16), len(shared))
        return column, step, np.searchsorted(column, self._tables.bounds).tolist()

    def _read_fixed_blocks(self, read: "_BatchReader", inputs: Inputs, obs: dict[str, Tensor]) -> None:
        blocks = self._reader.blocks
        everyone, none = np.arange(read.steps), np.zeros(read.steps, np.int64)
        read.stream("global", everyone, none)
        read.stream("previous_action", everyone, none)
        previous, nearby = blocks["previous_action"], blocks["nearby_map"]
        if previous.has("action"):
            inputs.ids["previous_action"] = obs["private_ids"][
                ..., previous.offset["private_ids"] + previous.field("action").offset].long()
        for name in MAPS:
            if name in self._reader.streams:
                read.read_map(name, obs)
        if nearby.has("area_effect"):
            inputs.ids["area"] = block_rows(obs["private_ids"], nearby, "private_ids").long()

    def _units(self, read: "_BatchReader", inputs: Inputs, column: Ints, step: Ints, cuts: list[int]) -> Ints:
        """Read the units. Return the row of each slot, [N * U]; -1: absent."""
        blocks, units = self._reader.blocks, self._reader.units
        position = column - self._reader.set_columns
        slot, group = self._tables.group_slots[position], self._tables.group_of[position]
        inputs.group_rows = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        index = np.full(read.steps * units, -1, np.int64)
        index[step * units + slot] = np.arange(len(step))
        inputs.unit_step, inputs.unit_slot, inputs.unit_group, inputs.unit_position, inputs.unit_row = (
            torch.from_numpy(array) for array in (step, slot, group, self._tables.position_of[position],
                                                  index.reshape(read.steps, units)))
        inputs.ids |= id_columns(read.ids(blocks["units"], step, slot), blocks["units"], "unit", "animation")
        read.stream("units", step, slot, group)
        read.stream("units/private", step, slot, group)
        allied, heroes = cuts[0], cuts[1]
        step, slot, group = step[:heroes], slot[:heroes], group[:heroes]
        read.stream("heroes", step, slot, group)
        read.stream("heroes/private", step, slot, group)
        step, slot, own = step[:allied], slot[:allied], blocks["allied_heroes"]
        read.stream("allied_heroes", step, slot)
        inputs.ids |= id_columns(read.ids(own, step, slot), own, "build", "next_item")
        return index

    def _sets(self, read: "_BatchReader", inputs: Inputs, column: Ints, step: Ints, cuts: list[int], index: Ints
              ) -> None:
        heroes, units = sum(inputs.group_rows[:2]), sum(inputs.group_rows)
        start = base = 0
        for (name, spec), end in zip(self._reader.sets.items(), cuts, strict=True):
            at, position = step[start:end], column[start:end] - base
            read.stream(name, at, position)
            inputs.ids[name] = read.ids(spec.block, at, position)[:, 0]
            if name == "pickups":
                owner, owners, slots = at, inputs.steps, spec.block.instances
            else:
                first, owners = (heroes, units - heroes) if name == "unit_modifiers" else (0, heroes)
                owner = index[at * self._reader.units + self._tables.owner_slots[column[start:end]]] - first
                position, slots = position % spec.per_owner, spec.per_owner
            inputs.sets[name] = PackedPool(torch.from_numpy(owner), owners, torch.from_numpy(position), slots)
            start, base = end, base + spec.block.instances


class _Tables(NamedTuple):
    """The reader's tables as numpy and native objects."""

    columns: RowColumns
    streams: dict[str, tuple[Array, RowLayout]]
    ids: dict[str, RowLayout]  # by block
    owner_slots: Ints
    bounds: Ints
    group_slots: Ints
    group_of: Ints
    position_of: Ints


class _BatchReader:
    """A batch that is being read: its numpy arrays, the finished streams, and the running sums [4, F] where
    requested."""

    def __init__(self, reader: InputReader, tables: _Tables, obs: dict[str, Tensor], normaliser: Normaliser,
                 moments: bool) -> None:
        self._reader = reader
        self._tables = tables
        self._normaliser = normaliser
        self._scale, self._shift = normaliser.scale_and_shift()
        self._scales, self._shifts = self._scale.numpy(), self._shift.numpy()
        self.arrays = {name: obs[name].contiguous().numpy() for name in READ}
        self.steps = len(self.arrays["shared"])
        self.floats: dict[str, Tensor] = {}
        self.sums = np.zeros((4, len(self._scales))) if moments else None

    def stream(self, name: str, step: Ints, slot: Ints, group: Ints | None = None) -> None:
        """Read the stream of that name from these rows of its block."""
        array, position = self._tables.streams[name]
        shape = (len(step), position.lines, position.fields) if array == "private" else (len(step), position.fields)
        out = torch.empty(shape)
        start, groups, fields = self._normaliser.columns[name]
        span = slice(start, start + groups * fields)
        standard_rows(self.arrays[array], position, step, slot, self._scales[span], self._shifts[span],
                      self._normaliser.clip, out.numpy(), group,
                      None if self.sums is None else RunningSums(*self.sums[:, span]))
        self.floats[name] = out

    def read_map(self, name: str, obs: dict[str, Tensor]) -> None:
        """Read a map's stream with all its cells."""
        block, array, _ = self._reader.streams[name]
        values = block_rows(obs[array], block, array).float()
        self.floats[name] = self._normaliser.standardise(name, values, self._scale, self._shift)
        if self.sums is not None:
            start, _, fields = self._normaliser.columns[name]
            self.sums[:, start:start + fields] = torch.stack([x.double() for x in row_sums(values, None)]).numpy()

    def ids(self, block: Block, step: Ints, slot: Ints) -> Tensor:
        """Return int64 [R, fields]."""
        return torch.from_numpy(id_rows(self.arrays["shared_ids"], self._tables.ids[block.name], step, slot))


def row_layout_of(reader: InputReader, block: Block, array: Array) -> RowLayout:
    """Return the position of a block's rows in an array of the reader's layout."""
    width, lines = {"shared": (reader.shared, 1), "private": (reader.private, reader.heroes),
                    "shared_ids": (reader.shared_ids, 1)}[array]
    return RowLayout(width, lines, block.offset.get(array, 0), block.width(array), block.width(array))


def columns_of(reader: InputReader) -> RowColumns:
    """Return the reader's columns, of the sets and then of the units by group."""
    pickups = reader.sets.get("pickups")
    status = (0, 0, 0)
    if pickups is not None:
        block = pickups.block
        status = (block.instances, block.offset["shared"] + block.field("status").offset, block.stride["shared"])
    owned = reader.set_columns - status[0]
    return RowColumns(reader.columns.tolist(), reader.owner_columns[:owned].tolist(), status)
