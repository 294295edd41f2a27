"""Reads a team-step's arrays into what the network walks: packed rows of what is present, nothing of the rest.

A slot whose id is 0 is absent. Absent rows are left out before anything is computed on them, so they neither
cost time nor reach a pool; the rows that remain lie packed, ordered by slot and then by team-step.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dota.spaces import HERO_ABILITIES, HERO_ITEMS, Array, Block, Layout


class Tower(NamedTuple):
    """A group of unit slots that share weights. ``slots`` are its unit slots, in order."""

    name: str
    slots: tuple[int, ...]


class SetSpec(NamedTuple):
    """A set of rows that hang on an owner: a hero, another unit, or (pickups) the team-step itself."""

    block: Block
    per_owner: int
    first_owner: int  # unit slot of the first owner
    space: str  # id space of its rows


class Rows(NamedTuple):
    """Which pool each packed row belongs to: ``owner`` int64 [R], below ``owners``."""

    owner: Tensor
    owners: int


@dataclass
class Inputs:
    """Raw values of ``steps`` team-steps N.

    ``floats``: by normaliser stream, fields last. ``ids``: categorical ids. ``sets``: pools of the packed sets; the
    owners are packed unit rows (hero sets: the first rows; ``unit_modifiers``: those after the heroes).
    ``unit_step``, ``unit_slot``, ``unit_tower`` int64 [R] say where a packed unit row comes from, ``tower_rows`` how
    many each tower has, ``index`` int64 [N, U] where a slot's row lies (-1: absent).
    """

    steps: int
    floats: dict[str, Tensor] = field(default_factory=dict)
    ids: dict[str, Tensor] = field(default_factory=dict)
    sets: dict[str, Rows] = field(default_factory=dict)
    tower_rows: list[int] = field(default_factory=list)
    unit_step: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_slot: Tensor = field(default_factory=lambda: torch.empty(0))
    unit_tower: Tensor = field(default_factory=lambda: torch.empty(0))
    index: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def groups(self) -> dict[str, tuple[list[int], Tensor]]:
        """Streams whose rows have statistics by tower: (rows of each tower, tower of each row)."""
        heroes = sum(self.tower_rows[:2])
        units = (self.tower_rows, self.unit_tower)
        two = (self.tower_rows[:2], self.unit_tower[:heroes])
        return {"units": units, "units/private": units, "heroes": two, "heroes/private": two}


def towers(layout: Layout) -> tuple[Tower, ...]:
    """The five groups of units with weights of their own (Berner et al. 2019, figure 17); empty ones left out.
    The two groups of heroes come first."""
    def slots(*names: str) -> tuple[int, ...]:
        return tuple(s for n in names for s in range(layout.groups[n].start,
                                                     layout.groups[n].start + layout.groups[n].count))

    kinds = ("creeps", "buildings", "wards", "courier")
    found = (
        Tower("allied_heroes", slots("allied_heroes")),
        Tower("enemy_heroes", slots("enemy_heroes")),
        Tower("allied_units", slots(*(f"allied_{k}" for k in kinds))),
        Tower("enemy_units", slots(*(f"enemy_{k}" for k in kinds))),
        Tower("neutrals", slots("neutral_creeps")),
    )
    return tuple(t for t in found if t.slots)


def sets(layout: Layout) -> dict[str, SetSpec]:
    """The sets of the tree by name; those without slots left out. Names begin with what owns them."""
    blocks, o, heroes = layout.blocks, layout.observation, 2 * layout.heroes
    found = {
        "hero_modifiers": SetSpec(blocks["hero_modifiers"], o.hero_modifiers, 0, "modifier"),
        "hero_abilities": SetSpec(blocks["abilities"], HERO_ABILITIES, 0, "ability"),
        "hero_items": SetSpec(blocks["items"], HERO_ITEMS, 0, "item"),
        "unit_modifiers": SetSpec(blocks["unit_modifiers"], o.unit_modifiers, heroes, "modifier"),
        "pickups": SetSpec(blocks["pickups"], o.pickups, 0, "pickup"),
    }
    return {name: spec for name, spec in found.items() if spec.block.instances > 0}


class InputReader(nn.Module):
    """Cuts the arrays of ``layout`` into streams. Knows any batch size; has index tables but no parameters."""

    columns: Tensor
    owner_columns: Tensor
    owner_slots: Tensor
    bounds: Tensor
    tower_slots: Tensor
    tower_of: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout_hash = layout.hash
        self.heroes, self.units = layout.heroes, layout.units
        self.shared, self.private = layout.shared, layout.private
        self.blocks = layout.blocks
        self.towers = towers(layout)
        self.sets = sets(layout)
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
        }
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table, dtype=torch.int64), persistent=False)

    def widths(self) -> dict[str, tuple[int, int]]:
        """(groups with statistics of their own, fields) of each normaliser stream, in a fixed order."""
        b, n = self.blocks, len(self.towers)
        widths = {"global": (1, b["global"].width("shared")), "minimap": (1, b["minimap"].width("shared")),
                  "nearby_map": (1, b["nearby_map"].width("private")),
                  "previous_action": (1, b["previous_action"].width("private"))}
        widths |= {name: (1, spec.block.width("shared")) for name, spec in self.sets.items()}
        return widths | {
            "units": (n, b["units"].width("shared")), "units/private": (n, b["units"].width("private")),
            "heroes": (2, b["heroes"].width("shared")), "heroes/private": (2, b["heroes"].width("private")),
            "allied_heroes": (1, b["allied_heroes"].width("shared"))}

    def forward(self, obs: dict[str, Tensor]) -> Inputs:
        """``obs``: the layout's arrays with one leading dimension N. Raises ValueError on arrays of other widths."""
        shared, private = obs["shared"], obs["private"]
        if shared.shape[-1] != self.shared or private.shape[-2:] != (self.heroes, self.private):
            raise ValueError(
                f"observation arrays shared {tuple(shared.shape)} and private {tuple(private.shape)} do not end in "
                f"({self.shared},) and ({self.heroes}, {self.private}), the widths of layout {self.layout_hash}")
        shared_ids, private_ids = obs["shared_ids"].long(), obs["private_ids"].long()
        inputs = Inputs(shared.shape[0])
        self._dense(inputs, shared, private, private_ids)
        column, step, cuts = self._present(shared, shared_ids)
        count = len(self.sets)
        first = cuts[count - 1] if count else 0
        self._units(inputs, column[first:], step[first:], [c - first for c in cuts[count:]], shared, private,
                    shared_ids)
        if count:
            self._sets(inputs, column[:first], step[:first], cuts[:count], shared, shared_ids)
        return inputs

    def _dense(self, inputs: Inputs, shared: Tensor, private: Tensor, private_ids: Tensor) -> None:
        nearby, previous = self.blocks["nearby_map"], self.blocks["previous_action"]
        inputs.floats["global"] = shared[:, self.blocks["global"].span("shared")].float()
        inputs.floats["minimap"] = rows_of(shared, self.blocks["minimap"], "shared").float()
        inputs.floats["nearby_map"] = rows_of(private, nearby, "private").float()
        inputs.floats["previous_action"] = private[..., previous.span("private")].float()
        inputs.ids["area"] = rows_of(private_ids, nearby, "private_ids")
        inputs.ids["previous_action"] = private_ids[
            ..., previous.offset["private_ids"] + previous.field("action").offset]

    def _present(self, shared: Tensor, shared_ids: Tensor) -> tuple[Tensor, Tensor, list[int]]:
        """(column, team-step) of every row that is present, ordered by column, and where each set or tower ends.

        One search for all of them: on a GPU each search waits for the device.
        """
        present = shared_ids.t().index_select(0, self.columns) != 0
        width = self.set_columns
        if width:
            # What hangs on an absent unit is absent with it; pickups hang on none.
            pickups = self.sets["pickups"].block.instances if "pickups" in self.sets else 0
            owned = width - pickups
            present[:owned] &= present.index_select(0, self.owner_columns[:owned])
            if pickups:
                # A pickup that is known to be gone has no id but says so in its status.
                status = rows_of(shared, self.sets["pickups"].block, "shared")[..., :3]
                present[owned:width] |= (status != 0).any(-1).t()
        column, step = present.nonzero(as_tuple=True)
        return column, step, torch.searchsorted(column, self.bounds).tolist()

    def _units(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor, private: Tensor,
               shared_ids: Tensor) -> None:
        b = self.blocks
        place = column - self.set_columns
        slot = self.tower_slots[place]
        inputs.tower_rows = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        inputs.unit_step, inputs.unit_slot, inputs.unit_tower = step, slot, self.tower_of[place]
        index = torch.full((inputs.steps * self.units,), -1, device=step.device)
        index[step * self.units + slot] = torch.arange(len(step), device=step.device)
        inputs.index = index.view(inputs.steps, self.units)

        inputs.floats["units"] = rows_of(shared, b["units"], "shared")[step, slot].float()
        inputs.floats["units/private"] = by_row(private, b["units"])[step, slot].float()
        types = rows_of(shared_ids, b["units"], "shared_ids")[step, slot]
        inputs.ids["unit"], inputs.ids["animation"] = types[:, 0], types[:, 1]
        allied, heroes = cuts[0], cuts[1]
        step, slot = step[:heroes], slot[:heroes]
        inputs.floats["heroes"] = rows_of(shared, b["heroes"], "shared")[step, slot].float()
        inputs.floats["heroes/private"] = by_row(private, b["heroes"])[step, slot].float()
        step, slot = step[:allied], slot[:allied]
        inputs.floats["allied_heroes"] = rows_of(shared, b["allied_heroes"], "shared")[step, slot].float()
        purchases = rows_of(shared_ids, b["allied_heroes"], "shared_ids")[step, slot]
        inputs.ids["build"], inputs.ids["next_item"] = purchases[:, 0], purchases[:, 1]

    def _sets(self, inputs: Inputs, column: Tensor, step: Tensor, cuts: list[int], shared: Tensor,
              shared_ids: Tensor) -> None:
        owner = inputs.index[step, self.owner_slots[column]]
        heroes, units = sum(inputs.tower_rows[:2]), sum(inputs.tower_rows)
        start = base = 0
        for (name, spec), end in zip(self.sets.items(), cuts, strict=True):
            at, place = step[start:end], column[start:end] - base
            inputs.floats[name] = rows_of(shared, spec.block, "shared")[at, place].float()
            inputs.ids[name] = rows_of(shared_ids, spec.block, "shared_ids")[at, place, 0]
            if name == "pickups":
                inputs.sets[name] = Rows(at, inputs.steps)
            elif name == "unit_modifiers":
                inputs.sets[name] = Rows(owner[start:end] - heroes, units - heroes)
            else:
                inputs.sets[name] = Rows(owner[start:end], heroes)
            start, base = end, base + spec.block.instances


def rows_of(array: Tensor, block: Block, name: Array) -> Tensor:
    """The block's rows of an array: [..., instances, fields]."""
    span = array[..., block.span(name)]
    return span.view(*span.shape[:-1], block.instances, block.width(name))


def by_row(private: Tensor, block: Block) -> Tensor:
    """The block's rows of the private array with heroes behind rows: [N, instances, H, fields]."""
    return rows_of(private, block, "private").transpose(1, 2)
