"""Reads a team-step's arrays into what the network walks, in one of two ways.

A slot whose id is 0 is absent. *Packed*: absent rows are left out before anything is computed on them, so they neither
cost time nor reach a pool; the rows that remain lie packed, ordered by slot and then by team-step. *Dense*: every slot
of every team-step has a row, in the same order, so that all sizes follow from the number of team-steps; what stands in
absent rows is read as zeros, and `Inputs.there` keeps them out of pools and statistics.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dota.spaces import Array, Block, Layout
from five.agent.model.field_coverage import require_read
from five.agent.model.input_structure import sets, streams, towers


class Rows(NamedTuple):
    """Which pool each packed row belongs to: ``owner`` int64 [R], below ``owners``, and which of its ``slots`` it is:
    ``slot`` int64 [R]."""

    owner: Tensor
    owners: int
    slot: Tensor
    slots: int


class SlotRows(NamedTuple):
    """The dense counterpart of `Rows`: rows lie [owners of a team-step, ``slots``, ``steps``], ``there`` bool [R] says
    which of them are. Pools lie [owners of a team-step, steps]."""

    there: Tensor
    slots: int
    steps: int


class Present(NamedTuple):
    """Rows that are there, ordered by column: ``column`` and ``step`` int64 [R], and where each set or tower ``ends``
    among them."""

    column: Tensor
    step: Tensor
    ends: list[int]


class _Packed(NamedTuple):
    """Rows by team-step and slot, int64 [R] each."""

    step: Tensor
    slot: Tensor

    def take(self, rows: Tensor) -> Tensor:
        """[N, slots, ...] -> [R, ...]."""
        # Whole rows out of a table: a search by two indices takes two to three times as long.
        return rows.flatten(0, 1).index_select(0, self.step * rows.shape[1] + self.slot)

    def first(self, rows: int) -> "_Packed":
        return _Packed(self.step[:rows], self.slot[:rows])


class _Dense(NamedTuple):
    """All of the slots in ``order`` int64 [C], of which ``there`` bool [C, N] are."""

    order: Tensor
    there: Tensor

    def take(self, rows: Tensor) -> Tensor:
        """[N, slots, ...] -> [C * N, ...], zeros where there is nothing."""
        taken = rows.transpose(0, 1).index_select(0, self.order)
        absent = ~self.there.view(*self.there.shape, *[1] * (rows.dim() - 2))
        return taken.masked_fill_(absent, 0).flatten(0, 1)

    def first(self, rows: int) -> "_Dense":
        slots = rows // self.there.shape[1]
        return _Dense(self.order[:slots], self.there[:slots])


@dataclass
class Inputs:
    """Raw values of ``steps`` team-steps N.

    ``floats``: by normaliser stream, fields last. ``ids``: categorical ids. ``sets``: pools of the packed sets; the
    owners are packed unit rows (hero sets: the first rows; ``unit_modifiers``: those after the heroes).
    ``unit_step``, ``unit_slot``, ``unit_tower``, ``unit_place`` int64 [R] say where a packed unit row comes from (the
    place is that within its tower), ``tower_rows`` how many each tower has, ``index`` int64 [N, U] where a slot's row
    lies (-1: absent).

    Dense: ``there`` bool [R] by stream, of those with absent rows; ``column`` int64 [U], the place of a slot among the
    units' slots by tower. ``unit_tower`` is then by that place, int64 [U]; the other ``unit_`` tensors are empty.
    """

    steps: int
    floats: dict[str, Tensor] = field(default_factory=dict)
    ids: dict[str, Tensor] = field(default_factory=dict)
    sets: dict[str, Rows | SlotRows] = field(default_factory=dict)
    there: dict[str, Tensor] = field(default_factory=dict)
    column: Tensor | None = None
    tower_rows: list[int] = field(default_factory=list)
    unit_step: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_slot: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_tower: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_place: Tensor = field(default_factory=lambda: torch.empty(0))
    index: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def groups(self) -> dict[str, list[int]]:
        """Streams whose rows have statistics by tower, and how many of them are of each."""
        units, heroes = self.tower_rows, self.tower_rows[:2]
        return {"units": units, "units/private": units, "heroes": heroes, "heroes/private": heroes}


class InputReader(nn.Module):
    """Cuts the arrays of ``layout`` into streams. Knows any batch size; has index tables but no parameters.

    Raises ValueError for a layout with a field that nothing reads.
    """

    columns: Tensor
    owner_columns: Tensor
    owner_slots: Tensor
    bounds: Tensor
    tower_slots: Tensor
    tower_of: Tensor
    place_of: Tensor
    column_of: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        require_read(layout)
        self.layout_hash = layout.hash
        self.heroes, self.units = layout.heroes, layout.units
        self.shared, self.private, self.shared_ids = layout.shared, layout.private, layout.shared_ids
        self.blocks = layout.blocks
        self.towers = towers(layout)
        self.sets = sets(layout)
        self.streams = streams(layout)
        # One column per row that may be present: first those of the sets, then the unit slots tower by tower.
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
        slots = [slot for tower in self.towers for slot in tower.slots]
        for tower in self.towers:
            columns += [units.offset["shared_ids"] + slot * units.stride["shared_ids"] for slot in tower.slots]
            bounds.append(len(columns))
        column_of = {slot: self.set_columns + i for i, slot in enumerate(slots)}
        tables = {
            "columns": columns, "owner_slots": owners, "owner_columns": [column_of[slot] for slot in owners],
            "bounds": bounds, "tower_slots": slots,
            "tower_of": [i for i, tower in enumerate(self.towers) for _ in tower.slots],
            "place_of": [place for tower in self.towers for place in range(len(tower.slots))],
            "column_of": [slots.index(slot) for slot in range(layout.units)],
        }
        for name, spec in self.sets.items():
            # Dense rows of a set lie as their owners do, tower by tower.
            of = [0] if name == "pickups" else [slot for slot in slots if 0 <= slot - spec.first_owner
                                                < spec.block.instances // spec.per_owner]
            per = spec.block.instances if name == "pickups" else spec.per_owner
            tables[f"order_{name}"] = [(slot - spec.first_owner) * per + i for slot in of for i in range(per)]
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table, dtype=torch.int64), persistent=False)

    def widths(self) -> dict[str, tuple[int, int]]:
        """(groups with statistics of their own, fields) of each normaliser stream, in a fixed order."""
        return {name: (len(stream.groups), stream.fields) for name, stream in self.streams.items()}

    def forward(self, obs: dict[str, Tensor], present: Present | None = None, dense: bool = False) -> Inputs:
        """``obs``: the layout's arrays with one leading dimension N; ``present``: their rows, where they were searched
        for before; ``dense``: all rows instead. Raises ValueError on arrays of other widths."""
        shared, private = obs["shared"], obs["private"]
        self.require_widths(shared, private)
        shared_ids, private_ids = obs["shared_ids"].long(), obs["private_ids"].long()
        inputs = Inputs(shared.shape[0])
        self._whole(inputs, shared, private, private_ids)
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
        """Raises ValueError on arrays of other widths than the layout's."""
        if shared.shape[-1] != self.shared or private.shape[-2:] != (self.heroes, self.private):
            raise ValueError(
                f"observation arrays shared {tuple(shared.shape)} and private {tuple(private.shape)} do not end in "
                f"({self.shared},) and ({self.heroes}, {self.private}), the widths of layout {self.layout_hash}")

    def _whole(self, inputs: Inputs, shared: Tensor, private: Tensor, private_ids: Tensor) -> None:
        """What every team-step has."""
        inputs.floats["global"] = shared[:, self.blocks["global"].span("shared")].float()
        if "minimap" in self.streams:
            inputs.floats["minimap"] = rows_of(shared, self.blocks["minimap"], "shared").float()
        nearby, previous = self.blocks["nearby_map"], self.blocks["previous_action"]
        if "nearby_map" in self.streams:
            inputs.floats["nearby_map"] = rows_of(private, nearby, "private").float()
        if nearby.has("area_effect"):
            inputs.ids["area"] = rows_of(private_ids, nearby, "private_ids")
        inputs.floats["previous_action"] = private[..., previous.span("private")].float()
        if previous.has("action"):
            inputs.ids["previous_action"] = private_ids[
                ..., previous.offset["private_ids"] + previous.field("action").offset]

    def units_of(self, presence: Tensor) -> Tensor:
        """bool [N, U]: the unit slots that have a row, by what `presence` found."""
        return presence[self.set_columns:].index_select(0, self.column_of).t()

    def search(self, presence: Tensor) -> Present:
        """The rows that are present. One search for all of them: on a GPU it makes the host wait."""
        column, step = presence.nonzero(as_tuple=True)
        return Present(column, step, torch.searchsorted(column, self.bounds).tolist())

    def presence(self, shared: Tensor, shared_ids: Tensor) -> Tensor:
        """bool [columns, N]: which rows are present, those of the sets before those of the units by tower."""
        present = (shared_ids != 0).t().contiguous().index_select(0, self.columns)
        width = self.set_columns
        if width:
            # What hangs on an absent unit is absent with it; pickups hang on none.
            pickups = self.sets["pickups"].block.instances if "pickups" in self.sets else 0
            owned = width - pickups
            present[:owned] &= present.index_select(0, self.owner_columns[:owned])
            if pickups:
                # A pickup that is known to be gone has no id but says so in its status.
                block = self.sets["pickups"].block
                at = block.field("status").offset
                status = rows_of(shared, block, "shared")[..., at:at + 3]
                present[owned:width] |= (status != 0).any(-1).t()
        return present

    def _units(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor, private: Tensor,
               shared_ids: Tensor) -> None:
        place = column - self.set_columns
        slot = self.tower_slots[place]
        inputs.tower_rows = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        inputs.unit_step, inputs.unit_slot, inputs.unit_tower = step, slot, self.tower_of[place]
        inputs.unit_place = self.place_of[place]
        index = torch.full((inputs.steps * self.units,), -1, device=step.device)
        index[step * self.units + slot] = torch.arange(len(step), device=step.device)
        inputs.index = index.view(inputs.steps, self.units)
        self._unit_fields(inputs, _Packed(step, slot), cuts[0], cuts[1], shared, private, shared_ids)

    def _unit_fields(self, inputs: Inputs, rows: _Packed | _Dense, allied: int, heroes: int, shared: Tensor,
                     private: Tensor, shared_ids: Tensor) -> None:
        """``allied``, ``heroes``: how many of the rows are the allied heroes', and all heroes'."""
        b = self.blocks
        inputs.floats["units"] = rows.take(rows_of(shared, b["units"], "shared")).float()
        inputs.floats["units/private"] = rows.take(by_row(private, b["units"])).float()
        types = rows.take(rows_of(shared_ids, b["units"], "shared_ids"))
        inputs.ids |= id_columns(types, b["units"], "unit", "animation")
        rows = rows.first(heroes)
        inputs.floats["heroes"] = rows.take(rows_of(shared, b["heroes"], "shared")).float()
        inputs.floats["heroes/private"] = rows.take(by_row(private, b["heroes"])).float()
        rows = rows.first(allied)
        inputs.floats["allied_heroes"] = rows.take(rows_of(shared, b["allied_heroes"], "shared")).float()
        purchases = rows.take(rows_of(shared_ids, b["allied_heroes"], "shared_ids"))
        inputs.ids |= id_columns(purchases, b["allied_heroes"], "build", "next_item")

    def _slots(self, inputs: Inputs, shared: Tensor, private: Tensor, shared_ids: Tensor) -> None:
        """All rows, with sizes that follow from the number of team-steps alone."""
        present, steps = self.presence(shared, shared_ids), inputs.steps
        there = present[self.set_columns:]
        inputs.tower_rows = [len(tower.slots) * steps for tower in self.towers]
        inputs.unit_tower, inputs.column = self.tower_of, self.column_of
        row = self.column_of * steps + torch.arange(steps, device=shared.device)[:, None]
        inputs.index = torch.where(there.index_select(0, self.column_of).t(), row, -1)
        allied, heroes = inputs.tower_rows[0], sum(inputs.tower_rows[:2])
        self._unit_fields(inputs, _Dense(self.tower_slots, there), allied, heroes, shared, private, shared_ids)
        flat = there.flatten()
        inputs.there = {"units": flat, "units/private": flat, "heroes": flat[:heroes],
                        "heroes/private": flat[:heroes], "allied_heroes": flat[:allied]}
        base = 0
        for name, spec in self.sets.items():
            order = self.get_buffer(f"order_{name}")
            rows = _Dense(order, present[base:base + spec.block.instances].index_select(0, order))
            inputs.floats[name] = rows.take(rows_of(shared, spec.block, "shared")).float()
            inputs.ids[name] = rows.take(rows_of(shared_ids, spec.block, "shared_ids")[..., 0])
            inputs.there[name] = rows.there.flatten()
            slots = spec.block.instances if name == "pickups" else spec.per_owner
            inputs.sets[name] = SlotRows(inputs.there[name], slots, steps)
            base += spec.block.instances

    def _sets(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor,
              shared_ids: Tensor) -> None:
        owner = inputs.index[step, self.owner_slots[column]]
        heroes, units = sum(inputs.tower_rows[:2]), sum(inputs.tower_rows)
        start = base = 0
        for (name, spec), end in zip(self.sets.items(), cuts, strict=True):
            at, place = step[start:end], column[start:end] - base
            rows = _Packed(at, place)
            inputs.floats[name] = rows.take(rows_of(shared, spec.block, "shared")).float()
            inputs.ids[name] = rows.take(rows_of(shared_ids, spec.block, "shared_ids")[..., 0])
            if name == "pickups":
                inputs.sets[name] = Rows(at, inputs.steps, place, spec.block.instances)
            else:
                first, owners = (heroes, units - heroes) if name == "unit_modifiers" else (0, heroes)
                inputs.sets[name] = Rows(owner[start:end] - first, owners, place % spec.per_owner, spec.per_owner)
            start, base = end, base + spec.block.instances


def rows_of(array: Tensor, block: Block, name: Array) -> Tensor:
    """The block's rows of an array: [..., instances, fields]."""
    span = array[..., block.span(name)]
    return span.view(*span.shape[:-1], block.instances, block.width(name))


def id_columns(ids: Tensor, block: Block, *names: str) -> dict[str, Tensor]:
    """Columns of packed ids [R, fields] by field: of the fields that the layout has."""
    return {name: ids[:, block.field(name).offset] for name in names if block.has(name)}


def by_row(private: Tensor, block: Block) -> Tensor:
    """The block's rows of the private array with heroes behind rows: [N, instances, H, fields]."""
    return rows_of(private, block, "private").transpose(1, 2)
