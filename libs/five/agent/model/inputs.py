"""Reading of observation arrays into the network's inputs, in one of two forms.

A slot whose id is 0 is absent. *Packed*: absent rows are dropped before anything is computed on them, so they cost no
time and reach no pool. The remaining rows are ordered by slot, then by team-step. *Dense*: every slot of every
team-step has a row, in the same order, so all sizes follow from the number of team-steps. Absent rows are zeros there,
and `Inputs.is_present` masks them out of pools and statistics.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dota.spaces import Array, Block, Layout
from five.agent.model.field_coverage import require_read
from five.agent.model.input_structure import feature_streams, sets, unit_groups


class PackedPool(NamedTuple):
    """Pool assignment of packed rows: each row's ``owner`` int64 [R], below ``owners``, and its ``slot`` int64 [R]
    among the owner's ``slots``."""

    owner: Tensor
    owners: int
    slot: Tensor
    slots: int


class DensePool(NamedTuple):
    """Pool assignment of dense rows: they are [owners of a team-step, ``slots``, ``steps``].

    ``is_present`` bool [R] masks them. Pools are [owners of a team-step, steps].
    """

    is_present: Tensor
    slots: int
    steps: int


class PresentRows(NamedTuple):
    """Present rows ordered by column: ``column`` and ``step`` int64 [R], and the end of each set or unit group in
    ``ends``."""

    column: Tensor
    step: Tensor
    ends: list[int]


class _PackedRows(NamedTuple):
    """Rows by team-step and slot, int64 [R] each."""

    step: Tensor
    slot: Tensor

    def take(self, rows: Tensor) -> Tensor:
        """Select [N, slots, ...] -> [R, ...]."""
        # Selecting rows of a flat table is two to three times as fast as indexing by two tensors.
        return rows.flatten(0, 1).index_select(0, self.step * rows.shape[1] + self.slot)

    def first(self, rows: int) -> "_PackedRows":
        return _PackedRows(self.step[:rows], self.slot[:rows])


class _DenseRows(NamedTuple):
    """Set of all slots, in ``order`` int64 [C], with ``is_present`` bool [C, N]."""

    order: Tensor
    is_present: Tensor

    def take(self, rows: Tensor) -> Tensor:
        """Reorder [N, slots, ...] -> [C * N, ...], with zeros in absent rows."""
        selected = rows.transpose(0, 1).index_select(0, self.order)
        absent = ~self.is_present.view(*self.is_present.shape, *[1] * (rows.dim() - 2))
        return selected.masked_fill_(absent, 0).flatten(0, 1)

    def first(self, rows: int) -> "_DenseRows":
        slots = rows // self.is_present.shape[1]
        return _DenseRows(self.order[:slots], self.is_present[:slots])


@dataclass
class Inputs:
    """Raw inputs of ``steps`` team-steps N.

    ``floats`` are by feature stream, fields last; ``ids`` are categorical. ``sets`` assigns the packed set rows to
    pools, whose owners are packed unit rows: hero sets belong to the first rows, ``unit_modifiers`` to those after the
    heroes. ``unit_step``, ``unit_slot``, ``unit_group`` and ``unit_position`` int64 [R] are the origin of a packed unit
    row; the position is within its group. ``group_rows`` counts the rows of each group. ``unit_row`` int64 [N, U] is
    the row of a slot (-1: absent).

    Dense: ``is_present`` bool [R] by stream with absent rows. ``column`` int64 [U] is the position of a slot among the
    slots by group. ``unit_group`` int64 [U] is by that position; the other ``unit_`` tensors are empty.
    """

    steps: int
    floats: dict[str, Tensor] = field(default_factory=dict)
    ids: dict[str, Tensor] = field(default_factory=dict)
    sets: dict[str, PackedPool | DensePool] = field(default_factory=dict)
    is_present: dict[str, Tensor] = field(default_factory=dict)
    column: Tensor | None = None
    group_rows: list[int] = field(default_factory=list)
    unit_step: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_slot: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_group: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_position: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_row: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def groups(self) -> dict[str, list[int]]:
        """Return the number of rows of each group, for streams with statistics by group."""
        units, heroes = self.group_rows, self.group_rows[:2]
        return {"units": units, "units/private": units, "heroes": heroes, "heroes/private": heroes}


class InputReader(nn.Module):
    """Reader of the arrays of ``layout`` for any batch size. It has index tables and no parameters.

    Raises ValueError for a layout with a field that the network does not read.
    """

    columns: Tensor
    owner_columns: Tensor
    owner_slots: Tensor
    bounds: Tensor
    group_slots: Tensor
    group_of: Tensor
    position_of: Tensor
    column_of: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        require_read(layout)
        self.layout_hash = layout.hash
        self.heroes, self.units = layout.heroes, layout.units
        self.shared, self.private, self.shared_ids = layout.shared, layout.private, layout.shared_ids
        self.blocks = layout.blocks
        self.unit_groups = unit_groups(layout)
        self.sets = sets(layout)
        self.streams = feature_streams(layout)
        # One column per row that may be present: first those of the sets, then the unit slots group by group.
        columns: list[int] = []
        owners: list[int] = []
        bounds = []
        for name, spec in self.sets.items():
            offset, stride = spec.block.offset["shared_ids"], spec.block.stride["shared_ids"]
            columns += [offset + i * stride for i in range(spec.block.instances)]
            owners += [0 if name == "pickups" else spec.first_owner + i // spec.per_owner
                       for i in range(spec.block.instances)]
            bounds.append(len(columns))
        self.set_columns = len(columns)
        units = layout.blocks["units"]
        slots = [slot for group in self.unit_groups for slot in group.slots]
        for group in self.unit_groups:
            columns += [units.offset["shared_ids"] + slot * units.stride["shared_ids"] for slot in group.slots]
            bounds.append(len(columns))
        column_of = {slot: self.set_columns + i for i, slot in enumerate(slots)}
        tables = {
            "columns": columns, "owner_slots": owners, "owner_columns": [column_of[slot] for slot in owners],
            "bounds": bounds, "group_slots": slots,
            "group_of": [i for i, group in enumerate(self.unit_groups) for _ in group.slots],
            "position_of": [position for group in self.unit_groups for position in range(len(group.slots))],
            "column_of": [slots.index(slot) for slot in range(layout.units)],
        }
        for name, spec in self.sets.items():
            # Dense rows of a set are in the order of their owners, group by group.
            of = [0] if name == "pickups" else [slot for slot in slots if 0 <= slot - spec.first_owner
                                                < spec.block.instances // spec.per_owner]
            per = spec.block.instances if name == "pickups" else spec.per_owner
            tables[f"order_{name}"] = [(slot - spec.first_owner) * per + i for slot in of for i in range(per)]
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table, dtype=torch.int64), persistent=False)

    def widths(self) -> dict[str, tuple[int, int]]:
        """Return (groups with their own statistics, fields) of each feature stream, in a fixed order."""
        return {name: (len(stream.groups), stream.fields) for name, stream in self.streams.items()}

    def forward(self, obs: dict[str, Tensor], present: PresentRows | None = None, dense: bool = False) -> Inputs:
        """Read ``obs``, the layout's arrays with one leading dimension N.

        ``present`` are their rows if they were searched before; ``dense`` reads all rows. Raises ValueError for arrays
        of other widths.
        """
        shared, private = obs["shared"], obs["private"]
        self.require_widths(shared, private)
        shared_ids, private_ids = obs["shared_ids"].long(), obs["private_ids"].long()
        inputs = Inputs(shared.shape[0])
        self._read_fixed_blocks(inputs, shared, private, private_ids)
        if dense:
            self._slots(inputs, shared, private, shared_ids)
            return inputs
        column, step, cuts = present or self.search(self.presence(shared, shared_ids))
        count = len(self.sets)
        first = cuts[count - 1] if count else 0
        self._units(inputs, column[first:], step[first:], [c - first for c in cuts[count:]], shared, private,
                    shared_ids)
        if count:
            self._sets(inputs, column[:first], step[:first], cuts[:count], shared, shared_ids)
        return inputs

    def require_widths(self, shared: Any, private: Any) -> None:
        """Raise ValueError for arrays of other widths than the layout's."""
        if shared.shape[-1] != self.shared or private.shape[-2:] != (self.heroes, self.private):
            raise ValueError(
                f"observation arrays shared {tuple(shared.shape)} and private {tuple(private.shape)} do not end in "
                f"({self.shared},) and ({self.heroes}, {self.private}), the widths of layout {self.layout_hash}")

    def _read_fixed_blocks(self, inputs: Inputs, shared: Tensor, private: Tensor, private_ids: Tensor) -> None:
        """Read the blocks that every team-step has."""
        inputs.floats["global"] = shared[:, self.blocks["global"].span("shared")].float()
        if "minimap" in self.streams:
            inputs.floats["minimap"] = block_rows(shared, self.blocks["minimap"], "shared").float()
        nearby, previous = self.blocks["nearby_map"], self.blocks["previous_action"]
        if "nearby_map" in self.streams:
            inputs.floats["nearby_map"] = block_rows(private, nearby, "private").float()
        if nearby.has("area_effect"):
            inputs.ids["area"] = block_rows(private_ids, nearby, "private_ids")
        inputs.floats["previous_action"] = private[..., previous.span("private")].float()
        if previous.has("action"):
            inputs.ids["previous_action"] = private_ids[
                ..., previous.offset["private_ids"] + previous.field("action").offset]

    def units_of(self, presence: Tensor) -> Tensor:
        """Return bool [N, U], the unit slots with a row, of what `presence` returned."""
        return presence[self.set_columns:].index_select(0, self.column_of).t()

    def search(self, presence: Tensor) -> PresentRows:
        """Return the present rows, by one search for all of them; on a GPU the host waits for it."""
        column, step = presence.nonzero(as_tuple=True)
        return PresentRows(column, step, torch.searchsorted(column, self.bounds).tolist())

    def presence(self, shared: Tensor, shared_ids: Tensor) -> Tensor:
        """Return bool [columns, N], which rows are present: the sets' rows, then the units by group."""
        present = (shared_ids != 0).t().contiguous().index_select(0, self.columns)
        width = self.set_columns
        if width:
            # A row of an absent unit is absent; pickups have no owner.
            pickups = self.sets["pickups"].block.instances if "pickups" in self.sets else 0
            owned = width - pickups
            present[:owned] &= present.index_select(0, self.owner_columns[:owned])
            if pickups:
                # A pickup that is known to be taken has no id, and says so in its status.
                block = self.sets["pickups"].block
                at = block.field("status").offset
                status = block_rows(shared, block, "shared")[..., at:at + 3]
                present[owned:width] |= (status != 0).any(-1).t()
        return present

    def _units(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor, private: Tensor,
               shared_ids: Tensor) -> None:
        position = column - self.set_columns
        slot = self.group_slots[position]
        inputs.group_rows = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        inputs.unit_step, inputs.unit_slot, inputs.unit_group = step, slot, self.group_of[position]
        inputs.unit_position = self.position_of[position]
        index = torch.full((inputs.steps * self.units,), -1, device=step.device)
        index[step * self.units + slot] = torch.arange(len(step), device=step.device)
        inputs.unit_row = index.view(inputs.steps, self.units)
        self._unit_fields(inputs, _PackedRows(step, slot), cuts[0], cuts[1], shared, private, shared_ids)

    def _unit_fields(self, inputs: Inputs, rows: _PackedRows | _DenseRows, allied: int, heroes: int, shared: Tensor,
                     private: Tensor, shared_ids: Tensor) -> None:
        """Read the fields of unit rows, of which the first ``heroes`` are heroes and the first ``allied`` allied
        heroes."""
        b = self.blocks
        inputs.floats["units"] = rows.take(block_rows(shared, b["units"], "shared")).float()
        inputs.floats["units/private"] = rows.take(block_rows_by_hero(private, b["units"])).float()
        types = rows.take(block_rows(shared_ids, b["units"], "shared_ids"))
        inputs.ids |= id_columns(types, b["units"], "unit", "animation")
        rows = rows.first(heroes)
        inputs.floats["heroes"] = rows.take(block_rows(shared, b["heroes"], "shared")).float()
        inputs.floats["heroes/private"] = rows.take(block_rows_by_hero(private, b["heroes"])).float()
        rows = rows.first(allied)
        inputs.floats["allied_heroes"] = rows.take(block_rows(shared, b["allied_heroes"], "shared")).float()
        purchases = rows.take(block_rows(shared_ids, b["allied_heroes"], "shared_ids"))
        inputs.ids |= id_columns(purchases, b["allied_heroes"], "build", "next_item")

    def _slots(self, inputs: Inputs, shared: Tensor, private: Tensor, shared_ids: Tensor) -> None:
        """Read all rows, in sizes that follow from the number of team-steps alone."""
        present, steps = self.presence(shared, shared_ids), inputs.steps
        is_present = present[self.set_columns:]
        inputs.group_rows = [len(group.slots) * steps for group in self.unit_groups]
        inputs.unit_group, inputs.column = self.group_of, self.column_of
        row = self.column_of * steps + torch.arange(steps, device=shared.device)[:, None]
        inputs.unit_row = torch.where(is_present.index_select(0, self.column_of).t(), row, -1)
        allied, heroes = inputs.group_rows[0], sum(inputs.group_rows[:2])
        self._unit_fields(inputs, _DenseRows(self.group_slots, is_present), allied, heroes, shared, private, shared_ids)
        flat = is_present.flatten()
        inputs.is_present = {"units": flat, "units/private": flat, "heroes": flat[:heroes],
                             "heroes/private": flat[:heroes], "allied_heroes": flat[:allied]}
        base = 0
        for name, spec in self.sets.items():
            order = self.get_buffer(f"order_{name}")
            rows = _DenseRows(order, present[base:base + spec.block.instances].index_select(0, order))
            inputs.floats[name] = rows.take(block_rows(shared, spec.block, "shared")).float()
            inputs.ids[name] = rows.take(block_rows(shared_ids, spec.block, "shared_ids")[..., 0])
            inputs.is_present[name] = rows.is_present.flatten()
            slots = spec.block.instances if name == "pickups" else spec.per_owner
            inputs.sets[name] = DensePool(inputs.is_present[name], slots, steps)
            base += spec.block.instances

    def _sets(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor,
              shared_ids: Tensor) -> None:
        owner = inputs.unit_row[step, self.owner_slots[column]]
        heroes, units = sum(inputs.group_rows[:2]), sum(inputs.group_rows)
        start = base = 0
        for (name, spec), end in zip(self.sets.items(), cuts, strict=True):
            at, position = step[start:end], column[start:end] - base
            rows = _PackedRows(at, position)
            inputs.floats[name] = rows.take(block_rows(shared, spec.block, "shared")).float()
            inputs.ids[name] = rows.take(block_rows(shared_ids, spec.block, "shared_ids")[..., 0])
            if name == "pickups":
                inputs.sets[name] = PackedPool(at, inputs.steps, position, spec.block.instances)
            else:
                first, owners = (heroes, units - heroes) if name == "unit_modifiers" else (0, heroes)
                inputs.sets[name] = PackedPool(owner[start:end] - first, owners, position % spec.per_owner,
                                               spec.per_owner)
            start, base = end, base + spec.block.instances


def block_rows(array: Tensor, block: Block, name: Array) -> Tensor:
    """Return the block's rows of an array: [..., instances, fields]."""
    span = array[..., block.span(name)]
    return span.view(*span.shape[:-1], block.instances, block.width(name))


def id_columns(ids: Tensor, block: Block, *names: str) -> dict[str, Tensor]:
    """Return columns of packed ids [R, fields] by field, for fields that the layout has."""
    return {name: ids[:, block.field(name).offset] for name in names if block.has(name)}


def block_rows_by_hero(private: Tensor, block: Block) -> Tensor:
    """Return the block's rows of the private array with the heroes after the rows: [N, instances, H, fields]."""
    return block_rows(private, block, "private").transpose(1, 2)
