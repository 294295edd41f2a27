"""What `InputReader` and `Normaliser` do for a policy in the host's memory, in one pass over it.

The rows and their order are the same; raw values are not kept. A call of the network on a few team-steps is mostly the
cost of its many small operations, of which reading was a quarter; a gradient step on a few hundred passes over less
memory.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dota.spaces import Array, Block
from five.agent.model.inputs import InputReader, Inputs, Present, Rows, id_columns, rows_of
from five.agent.model.normaliser import Normaliser, row_sums
from five.native import RowColumns
from five.native.rows import RowLayout, Sums, id_rows, standard_rows

Ints = npt.NDArray[np.int64]
MAPS = ("minimap", "nearby_map")
READ = {"shared": torch.float16, "private": torch.float16, "shared_ids": torch.uint16}


class NativeRead(NamedTuple):
    """``inputs`` without their ``floats``; the streams as the normaliser makes them of these; ``moments`` float64
    [3, F] as of `Normaliser.stream_moments`, where they were asked for."""

    inputs: Inputs
    floats: dict[str, Tensor]
    moments: Tensor | None


class NativeReader:
    """Reads arrays of one layout."""

    def __init__(self, reader: InputReader) -> None:
        self._reader = reader

    def __reduce__(self) -> tuple[type["NativeReader"], tuple[InputReader]]:
        return NativeReader, (self._reader,)  # the core's part is made again

    @cached_property
    def _tables(self) -> "_Tables":
        reader = self._reader
        return _Tables(
            columns_of(reader),
            {name: (array, row_layout_of(reader, block, array)) for name, (block, array, _) in reader.streams.items()},
            {name: row_layout_of(reader, block, "shared_ids") for name, block in reader.blocks.items()},
            *(table.cpu().numpy() for table in (
                reader.owner_slots, reader.bounds, reader.tower_slots, reader.tower_of, reader.place_of)))

    @staticmethod
    def takes(obs: dict[str, Tensor]) -> bool:
        """Whether these arrays are such as games write, in the host's memory."""
        return all(obs[name].device.type == "cpu" and obs[name].dtype is dtype for name, dtype in READ.items())

    def __call__(self, obs: dict[str, Tensor], normaliser: Normaliser, present: Present | None = None,
                 moments: bool = False) -> NativeRead:
        """``obs`` as `InputReader` takes it, such as `takes` says; ``present`` as there. Raises ValueError on arrays of
        other widths."""
        self._reader.require_widths(obs["shared"], obs["private"])
        read = _Read(self._reader, self._tables, obs, normaliser, moments)
        inputs = Inputs(read.steps)
        self._whole(read, inputs, obs)
        column, step, cuts = self._found(read.arrays) if present is None else (
            present.column.numpy(), present.step.numpy(), present.ends)
        sets = len(self._reader.sets)
        first = cuts[sets - 1] if sets else 0
        index = self._units(read, inputs, column[first:], step[first:], [cut - first for cut in cuts[sets:]])
        self._sets(read, inputs, column, step, cuts[:sets], index)
        seen = None if read.sums is None else normaliser.about_the_mean(*torch.from_numpy(read.sums))
        return NativeRead(inputs, read.floats, seen)

    def search(self, obs: dict[str, Tensor]) -> tuple[Present, Tensor]:
        """The rows that are present, as `InputReader.search` finds them, and the unit slots that have one, as
        `InputReader.units_of` does: bool [N, U]."""
        column, step, ends = self._found({name: obs[name].contiguous().numpy() for name in ("shared", "shared_ids")})
        first = ends[len(self._reader.sets) - 1] if self._reader.sets else 0
        there = np.zeros((len(obs["shared"]), self._reader.units), np.bool_)
        there[step[first:], self._tables.tower_slots[column[first:] - self._reader.set_columns]] = True
        return Present(torch.from_numpy(column), torch.from_numpy(step), ends), torch.from_numpy(there)

    def _found(self, arrays: dict[str, npt.NDArray[Any]]) -> tuple[Ints, Ints, list[int]]:
        """Column and step of each row, and where each set or tower ends."""
        shared = arrays["shared"]
        column, step = self._tables.columns.find(arrays["shared_ids"], shared.view(np.uint16), len(shared))
        return column, step, np.searchsorted(column, self._tables.bounds).tolist()

    def maps(self, obs: dict[str, Tensor], normaliser: Normaliser) -> tuple[dict[str, Tensor], Tensor | None]:
        """The maps' streams alone, and the ids [N, H, cells, n] of areas on the nearby map where the layout has them.
        """
        read = _Read(self._reader, self._tables, obs, normaliser, moments=False)
        for name in MAPS:
            if name in self._reader.streams:
                read.whole_map(name, obs)
        nearby = self._reader.blocks["nearby_map"]
        ids = rows_of(obs["private_ids"], nearby, "private_ids").long() if nearby.has("area_effect") else None
        return read.floats, ids

    def _whole(self, read: "_Read", inputs: Inputs, obs: dict[str, Tensor]) -> None:
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
                read.whole_map(name, obs)
        if nearby.has("area_effect"):
            inputs.ids["area"] = rows_of(obs["private_ids"], nearby, "private_ids").long()

    def _units(self, read: "_Read", inputs: Inputs, column: Ints, step: Ints, cuts: list[int]) -> Ints:
        """Returns where each slot's row lies, [N * U]; -1: absent."""
        blocks, units = self._reader.blocks, self._reader.units
        place = column - self._reader.set_columns
        slot, tower = self._tables.tower_slots[place], self._tables.tower_of[place]
        inputs.tower_rows = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        index = np.full(read.steps * units, -1, np.int64)
        index[step * units + slot] = np.arange(len(step))
        inputs.unit_step, inputs.unit_slot, inputs.unit_tower, inputs.unit_place, inputs.index = (
            torch.from_numpy(array) for array in (step, slot, tower, self._tables.place_of[place],
                                                  index.reshape(read.steps, units)))
        inputs.ids |= id_columns(read.ids(blocks["units"], step, slot), blocks["units"], "unit", "animation")
        read.stream("units", step, slot, tower)
        read.stream("units/private", step, slot, tower)
        allied, heroes = cuts[0], cuts[1]
        step, slot, tower = step[:heroes], slot[:heroes], tower[:heroes]
        read.stream("heroes", step, slot, tower)
        read.stream("heroes/private", step, slot, tower)
        step, slot, own = step[:allied], slot[:allied], blocks["allied_heroes"]
        read.stream("allied_heroes", step, slot)
        inputs.ids |= id_columns(read.ids(own, step, slot), own, "build", "next_item")
        return index

    def _sets(self, read: "_Read", inputs: Inputs, column: Ints, step: Ints, cuts: list[int], index: Ints) -> None:
        heroes, units = sum(inputs.tower_rows[:2]), sum(inputs.tower_rows)
        start = base = 0
        for (name, spec), end in zip(self._reader.sets.items(), cuts, strict=True):
            at, place = step[start:end], column[start:end] - base
            read.stream(name, at, place)
            inputs.ids[name] = read.ids(spec.block, at, place)[:, 0]
            if name == "pickups":
                owner, owners, slots = at, inputs.steps, spec.block.instances
            else:
                first, owners = (heroes, units - heroes) if name == "unit_modifiers" else (0, heroes)
                owner = index[at * self._reader.units + self._tables.owner_slots[column[start:end]]] - first
                place, slots = place % spec.per_owner, spec.per_owner
            inputs.sets[name] = Rows(torch.from_numpy(owner), owners, torch.from_numpy(place), slots)
            start, base = end, base + spec.block.instances


class _Tables(NamedTuple):
    """The reader's, as the core and numpy take them."""

    columns: RowColumns
    streams: dict[str, tuple[Array, RowLayout]]
    ids: dict[str, RowLayout]  # by block
    owner_slots: Ints
    bounds: Ints
    tower_slots: Ints
    tower_of: Ints
    place_of: Ints


class _Read:
    """A batch while it is read: its arrays in numpy, the streams that are done, and what was added up of their values,
    if it is wanted: `Sums`, [4, F]."""

    def __init__(self, reader: InputReader, tables: _Tables, obs: dict[str, Tensor], normaliser: Normaliser,
                 moments: bool) -> None:
        self._reader = reader
        self._tables = tables
        self._normaliser = normaliser
        self._scale, self._shift = normaliser.standard()
        self._scales, self._shifts = self._scale.numpy(), self._shift.numpy()
        self.arrays = {name: obs[name].contiguous().numpy() for name in READ}
        self.steps = len(self.arrays["shared"])
        self.floats: dict[str, Tensor] = {}
        self.sums = np.zeros((4, len(self._scales))) if moments else None

    def stream(self, name: str, step: Ints, slot: Ints, group: Ints | None = None) -> None:
        """The stream of that name from these rows of its block."""
        array, place = self._tables.streams[name]
        shape = (len(step), place.lines, place.fields) if array == "private" else (len(step), place.fields)
        out = torch.empty(shape)
        start, groups, fields = self._normaliser.columns[name]
        span = slice(start, start + groups * fields)
        standard_rows(self.arrays[array], place, step, slot, self._scales[span], self._shifts[span],
                      self._normaliser.clip, out.numpy(), group,
                      None if self.sums is None else Sums(*self.sums[:, span]))
        self.floats[name] = out

    def whole_map(self, name: str, obs: dict[str, Tensor]) -> None:
        """A map's stream: all of its cells."""
        block, array, _ = self._reader.streams[name]
        values = rows_of(obs[array], block, array).float()
        self.floats[name] = self._normaliser.standardised(name, values, self._scale, self._shift)
        if self.sums is not None:
            start, _, fields = self._normaliser.columns[name]
            self.sums[:, start:start + fields] = torch.stack([x.double() for x in row_sums(values, None)]).numpy()

    def ids(self, block: Block, step: Ints, slot: Ints) -> Tensor:
        """int64 [R, fields]."""
        return torch.from_numpy(id_rows(self.arrays["shared_ids"], self._tables.ids[block.name], step, slot))


def row_layout_of(reader: InputReader, block: Block, array: Array) -> RowLayout:
    """Where the rows of a block lie in an array of the reader's layout."""
    width, lines = {"shared": (reader.shared, 1), "private": (reader.private, reader.heroes),
                    "shared_ids": (reader.shared_ids, 1)}[array]
    return RowLayout(width, lines, block.offset.get(array, 0), block.width(array), block.width(array))


def columns_of(reader: InputReader) -> RowColumns:
    """The reader's columns, of sets and then of units by tower, as the core searches them."""
    pickups = reader.sets.get("pickups")
    status = (0, 0, 0)
    if pickups is not None:
        block = pickups.block
        status = (block.instances, block.offset["shared"] + block.field("status").offset, block.stride["shared"])
    owned = reader.set_columns - status[0]
    return RowColumns(reader.columns.tolist(), reader.owner_columns[:owned].tolist(), status)
