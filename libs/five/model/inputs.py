"""Reads a team-step's arrays into what the network walks: packed rows of what is present, and nothing of what is not.

A slot whose id is 0 is absent. Absent rows are left out before anything is computed on them, so they neither cost time
nor reach a pool; the rows that remain lie packed one after another, ordered by team-step.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from dota.spaces import HERO_ABILITIES, HERO_ITEMS, Block, Layout
from torch import Tensor

HERO_SETS = ("modifiers", "abilities", "items")


class Rows(NamedTuple):
    """Packed rows. ``owner`` [R] is the pool a row belongs to (of ``owners``), ``place`` [R] its slot therein."""

    owner: Tensor
    place: Tensor
    owners: int


class Tower(NamedTuple):
    """A group of unit slots that share weights. ``slots`` are its unit slots, in order."""

    name: str
    slots: tuple[int, ...]
    heroes: bool


@dataclass
class Inputs:
    """Raw values of N team-steps. ``floats`` by normaliser stream (last dimension: fields), ``ids`` by categorical,
    ``rows`` by packed set."""

    steps: int
    floats: dict[str, Tensor] = field(default_factory=dict)
    ids: dict[str, Tensor] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)


def towers(layout: Layout) -> tuple[Tower, ...]:
    """The five groups of units with weights of their own (Berner et al. 2019, figure 17); empty ones are left out."""
    def slots(*names: str) -> tuple[int, ...]:
        return tuple(s for n in names for s in range(layout.groups[n].start,
                                                     layout.groups[n].start + layout.groups[n].count))

    kinds = ("creeps", "buildings", "wards", "courier")
    found = (
        Tower("allied_heroes", slots("allied_heroes"), True),
        Tower("enemy_heroes", slots("enemy_heroes"), True),
        Tower("allied_units", slots(*(f"allied_{k}" for k in kinds)), False),
        Tower("enemy_units", slots(*(f"enemy_{k}" for k in kinds)), False),
        Tower("neutrals", slots("neutral_creeps"), False),
    )
    return tuple(t for t in found if t.slots)


class InputReader:
    """Cuts the arrays of ``layout`` into streams. Stateless: one reader serves any batch size and device."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.heroes = layout.heroes
        self.towers = towers(layout)
        blocks = layout.blocks
        self.blocks = blocks
        observation = layout.observation
        # Set name -> (block, rows per owner, owners per team-step); a set without slots is left out.
        sets = {
            "hero_modifiers": (blocks["hero_modifiers"], observation.hero_modifiers, 2 * self.heroes),
            "hero_abilities": (blocks["abilities"], HERO_ABILITIES, 2 * self.heroes),
            "hero_items": (blocks["items"], HERO_ITEMS, 2 * self.heroes),
            "unit_modifiers": (blocks["unit_modifiers"], observation.unit_modifiers, layout.units - 2 * self.heroes),
            "pickups": (blocks["pickups"], observation.pickups, 1),
        }
        self.sets = {name: s for name, s in sets.items() if s[1] * s[2] > 0}

    def widths(self) -> dict[str, int]:
        """Fields of each normaliser stream, in a fixed order."""
        b = self.blocks
        widths = {"global": b["global"].width("shared"), "minimap": b["minimap"].width("shared"),
                  "nearby_map": b["nearby_map"].width("private"),
                  "previous_action": b["previous_action"].width("private")}
        widths |= {name: block.width("shared") for name, (block, _, _) in self.sets.items()}
        for tower in self.towers:
            shared, private = b["units"].width("shared"), b["units"].width("private")
            if tower.heroes:
                shared += b["heroes"].width("shared")
                private += b["heroes"].width("private")
            if tower.name == "allied_heroes":
                shared += b["allied_heroes"].width("shared")
            widths[tower.name] = shared
            widths[f"{tower.name}/private"] = private
        return widths

    def __call__(self, obs: dict[str, Tensor]) -> Inputs:
        """``obs``: the layout's arrays with one leading dimension N. Raises ValueError on arrays of other widths."""
        layout, heroes = self.layout, self.heroes
        shared, private = obs["shared"], obs["private"]
        if shared.shape[-1] != layout.shared or private.shape[-2:] != (heroes, layout.private):
            raise ValueError(
                f"observation arrays shared {tuple(shared.shape)} and private {tuple(private.shape)} do not end in "
                f"({layout.shared},) and ({heroes}, {layout.private}), the widths of layout {layout.hash}")
        steps = shared.shape[0]
        shared_ids, private_ids = obs["shared_ids"].long(), obs["private_ids"].long()
        inputs = Inputs(steps)
        self._dense(inputs, shared, private, private_ids)

        set_rows = {name: _rows(shared, block) for name, (block, _, _) in self.sets.items()}
        set_ids = {name: _rows(shared_ids, block, "shared_ids")[..., 0] for name, (block, _, _) in self.sets.items()}
        unit_ids = _rows(shared_ids, self.blocks["units"], "shared_ids")
        present = {name: ids != 0 for name, ids in set_ids.items()}
        if "pickups" in present:
            # A pickup that is known to be absent has no id but says so in its status.
            present["pickups"] = present["pickups"] | (set_rows["pickups"][..., :3] != 0).any(-1)
        for tower in self.towers:
            slots = tower.slots
            run = unit_ids[..., slots[0]:slots[-1] + 1, 0] if _contiguous(slots) else unit_ids[:, list(slots), 0]
            present[tower.name] = run != 0
        places = _pack(present)

        for name, (_, per_owner, owners) in self.sets.items():
            step, place = places[name]
            inputs.floats[name] = set_rows[name][step, place].float()
            inputs.ids[name] = set_ids[name][step, place]
            inputs.rows[name] = Rows(step * owners + place // per_owner, place % per_owner, steps * owners)
        for tower in self.towers:
            step, place = places[tower.name]
            self._tower(inputs, tower, step, place, shared, private, shared_ids, unit_ids)
        return inputs

    def _dense(self, inputs: Inputs, shared: Tensor, private: Tensor, private_ids: Tensor) -> None:
        nearby, previous = self.blocks["nearby_map"], self.blocks["previous_action"]
        inputs.floats["global"] = shared[:, self.blocks["global"].span("shared")].float()
        inputs.floats["minimap"] = _rows(shared, self.blocks["minimap"]).float()
        inputs.floats["nearby_map"] = _rows(private, nearby, "private").float()
        inputs.floats["previous_action"] = private[..., previous.span("private")].float()
        inputs.ids["area"] = _rows(private_ids, nearby, "private_ids")
        inputs.ids["previous_action"] = private_ids[
            ..., previous.offset["private_ids"] + previous.field("action").offset]

    def _tower(self, inputs: Inputs, tower: Tower, step: Tensor, place: Tensor, shared: Tensor, private: Tensor,
               shared_ids: Tensor, unit_ids: Tensor) -> None:
        blocks, heroes = self.blocks, self.heroes
        slot = _slots(tower.slots, place)
        by_slot = _rows(private, blocks["units"], "private").transpose(1, 2)  # [N, U, H, fields]
        rows, own = [_rows(shared, blocks["units"])[step, slot]], [by_slot[step, slot]]
        types = unit_ids[step, slot]
        inputs.ids[f"{tower.name}/unit"], inputs.ids[f"{tower.name}/animation"] = types[:, 0], types[:, 1]
        if tower.heroes:
            rows.append(_rows(shared, blocks["heroes"])[step, slot])
            own.append(_rows(private, blocks["heroes"], "private").transpose(1, 2)[step, slot])
        if tower.name == "allied_heroes":
            rows.append(_rows(shared, blocks["allied_heroes"])[step, slot])
            purchases = _rows(shared_ids, blocks["allied_heroes"], "shared_ids")[step, slot]
            inputs.ids["build"], inputs.ids["next_item"] = purchases[:, 0], purchases[:, 1]
        inputs.floats[tower.name] = torch.cat(rows, -1).float()
        inputs.floats[f"{tower.name}/private"] = torch.cat(own, -1).float()
        inputs.rows[tower.name] = Rows(step, slot, inputs.steps)
        if tower.heroes:
            inputs.ids[f"{tower.name}/sets"] = step * (2 * heroes) + slot
        else:
            inputs.ids[f"{tower.name}/sets"] = step * (self.layout.units - 2 * heroes) + slot - 2 * heroes


def _rows(array: Tensor, block: Block, name: str = "shared") -> Tensor:
    """The block's rows of an array: [..., instances, fields]."""
    return array[..., block.span(name)].unflatten(-1, (block.instances, block.width(name)))


def _contiguous(slots: tuple[int, ...]) -> bool:
    return slots[-1] - slots[0] + 1 == len(slots)


def _slots(slots: tuple[int, ...], place: Tensor) -> Tensor:
    if _contiguous(slots):
        return place + slots[0]
    return torch.tensor(slots, device=place.device)[place]


def _pack(present: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Where each mask [N, M] is true, as (n, m), in order of n. One search for all masks: on a GPU each one waits."""
    flat = torch.cat([mask.reshape(-1) for mask in present.values()])
    found = flat.nonzero().squeeze(1)
    ends, total = [], 0
    for mask in present.values():
        total += mask.numel()
        ends.append(total)
    cuts = torch.searchsorted(found, torch.tensor(ends, device=flat.device)).tolist()
    places, start, base = {}, 0, 0
    for (name, mask), cut in zip(present.items(), cuts, strict=True):
        index = found[start:cut] - base
        width = mask.shape[1]
        places[name] = (torch.div(index, width, rounding_mode="floor"), index % width)
        start, base = cut, base + mask.numel()
    return places
