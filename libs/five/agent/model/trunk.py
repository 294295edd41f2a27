"""The observation trunk: the tree of Berner et al. 2019, figure 17, from inputs to game state and unit embeddings."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dota.spaces import Layout
from five.agent import native_tensors
from five.agent.config import ModelConfig
from five.agent.model.batch_index import Targets
from five.agent.model.embeddings import Embeddings
from five.agent.model.inputs import DensePool, InputReader, Inputs, PackedPool
from five.agent.model.map_encoder import MapEncoder
from five.agent.model.process_set import ProcessSet, UnitSet, pool_and_select, segment_max

POOLED_BY_GROUP = ("cuda",)  # devices that pool each unit group by itself


class TrunkOutput(NamedTuple):
    """Output of the trunk.

    ``shared`` [N, Gs] and ``private`` [N, H, Gp] are the halves of the game state, with the controlled hero's
    embedding. ``units`` [R, H, K] are embeddings of the present units, packed; ``rows`` int64 [N, U] is a slot's row in
    them (-1: absent). Dense: ``units`` [U * N, H, K] are those of all slots, and ``column`` int64 [U] is a slot's
    position there. ``keys`` [M, K] are the embeddings of the given targets, if they were selected together with the
    pools.
    """

    shared: Tensor
    private: Tensor
    units: Tensor
    rows: Tensor
    column: Tensor | None = None
    keys: Tensor | None = None


class Trunk(nn.Module):
    """The tree's modules. Nodes without slots in the layout have no module."""

    def __init__(self, layout: Layout, config: ModelConfig, embeddings: Embeddings) -> None:
        super().__init__()
        self.reader = InputReader(layout)
        self.key = config.key
        self.heroes = layout.heroes
        widths = {name: fields for name, (_, fields) in self.reader.widths().items()}
        o, c, b = layout.observation, config, layout.blocks

        def ids(block: str, field: str, space: str) -> int:
            """Width of a categorical field's embeddings: 0 where the layout leaves it out."""
            return b[block].field(field).count * embeddings.width(space) if b[block].has(field) else 0

        self.minimap = MapEncoder(o.minimap, widths["minimap"], c.conv_filters) if "minimap" in widths else None
        self.nearby_map = MapEncoder(o.nearby_map, widths["nearby_map"] + ids("nearby_map", "area_effect", "area"),
                                     c.conv_filters) if "nearby_map" in widths else None
        # Allied and enemy heroes share set weights; all other units share others.
        self.sets = nn.ModuleDict({
            name: ProcessSet(widths[name] + embeddings.width(spec.space), c.set_hidden, c.set)
            for name, spec in self.reader.sets.items()})
        self.hero_sets = [name for name in self.sets if name.startswith("hero_")]
        unit = widths["units"] + embeddings.width("unit") + ids("units", "animation", "animation")
        hero = unit + widths["heroes"] + c.set * len(self.hero_sets)
        allied = hero + widths["allied_heroes"] + ids("allied_heroes", "build", "build") + ids(
            "allied_heroes", "next_item", "item")
        other = unit + (c.set if "unit_modifiers" in self.sets else 0)
        private = widths["units/private"]
        hero_private = private + widths["heroes/private"]
        features = {"allied_heroes": (allied, hero_private), "enemy_heroes": (hero, hero_private)}
        self.towers = nn.ModuleDict({
            group.name: UnitSet(*features.get(group.name, (other, private)), c.unit_hidden, c.unit)
            for group in self.reader.unit_groups})
        minimap, nearby = (0 if net is None else net.width for net in (self.minimap, self.nearby_map))
        self.shared_width = widths["global"] + minimap + (c.set if "pickups" in self.sets else 0)
        self.private_width = nearby + c.unit * (len(self.towers) + 1)

    def forward(self, inputs: Inputs, floats: dict[str, Tensor], embeddings: Embeddings,
                targets: Targets | None = None) -> TrunkOutput:
        """Evaluate the tree on ``inputs`` and their normalised streams ``floats``.

        ``targets`` are the units whose keys the heads need, if they are known.
        """
        ids = inputs.ids
        pooled = {}
        for name, spec in self.reader.sets.items():
            values = [floats[name], embeddings.embed(spec.space, ids[name])]
            pooled[name] = self.sets[name](values, inputs.sets[name])
        shared = [floats["global"]]
        if self.minimap is not None:
            shared.append(self.minimap(floats["minimap"]))
        if "pickups" in pooled:
            shared.append(pooled["pickups"])
        private = []
        if self.nearby_map is not None:
            area = [embeddings.embed("area", ids["area"]).flatten(-2)] if "area" in ids else []
            private.append(self.nearby_map(torch.cat((floats["nearby_map"], *area), -1)))

        by_group = [group(*features) for group, features in zip(
            self.towers.values(), self._features(inputs, floats, embeddings, pooled), strict=True)]
        units = torch.cat(by_group)
        keys = None
        if targets is not None and inputs.column is None and native_tensors.is_native(units):
            pools, own, keys = pool_and_select(
                units, self._pool_of(inputs), self._own_row(inputs),
                inputs.unit_row[targets.step, targets.slot] * self.heroes + targets.hero)
            private += [self._by_hero(pools, inputs), self._restore_absent(own, inputs)]
            keys = keys[:, :self.key]
        else:
            private += [self._by_hero(self._pools(units.flatten(1), inputs), inputs),
                        self._own_embedding(by_group[0], inputs)]
        return TrunkOutput(torch.cat(shared, -1), torch.cat(private, -1), units[..., :self.key], inputs.unit_row,
                           inputs.column, keys)

    def _features(self, inputs: Inputs, floats: dict[str, Tensor], embeddings: Embeddings,
                  pooled: dict[str, Tensor]) -> list[tuple[list[Tensor], list[Tensor]]]:
        """Return (shared [R, ...], private [R, H, ...]) of each unit group's rows."""
        ids, sizes = inputs.ids, inputs.group_rows
        spaces = {"unit": "unit", "animation": "animation", "build": "build", "next_item": "item"}
        embedded = {name: embeddings.embed(space, ids[name]) for name, space in spaces.items() if name in ids}
        of_unit = [floats["units"], *(embedded[name] for name in ("unit", "animation") if name in ids)]
        of_hero = [floats["heroes"], *(pooled[name] for name in self.hero_sets)]
        of_ally = [floats["allied_heroes"], *(embedded[name] for name in ("build", "next_item") if name in ids)]
        shared = [list(rows) for rows in zip(*(torch.split(x, sizes) for x in of_unit), strict=True)]
        private = [[rows] for rows in torch.split(floats["units/private"], sizes)]
        for i, rows in enumerate(zip(*(torch.split(x, sizes[:2]) for x in of_hero), strict=True)):
            shared[i] += rows
        for i, own in enumerate(torch.split(floats["heroes/private"], sizes[:2])):
            private[i].append(own)
        shared[0] += of_ally
        if "unit_modifiers" in pooled:
            for i, worn in enumerate(torch.split(pooled["unit_modifiers"], sizes[2:]), 2):
                shared[i].append(worn)
        return list(zip(shared, private, strict=True))

    def _pools(self, units: Tensor, inputs: Inputs) -> Tensor:
        """Pool units [R, H * S] by team-step and unit group: N * groups pools."""
        steps = inputs.steps
        sizes = [len(group.slots) for group in self.reader.unit_groups]
        if inputs.column is not None:
            is_present = torch.split(inputs.is_present["units"], inputs.group_rows)
            return torch.stack([segment_max(rows, DensePool(mine, slots, steps)) for rows, mine, slots in zip(
                torch.split(units, inputs.group_rows), is_present, sizes, strict=True)], 1)
        if units.device.type in POOLED_BY_GROUP:
            # Group by group: with as many slots as the largest group has, most would be empty.
            parts = zip(*(torch.split(x, inputs.group_rows) for x in (units, inputs.unit_step, inputs.unit_position)),
                        sizes, strict=True)
            return torch.stack([segment_max(rows, PackedPool(step, steps, place, slots))
                                for rows, step, place, slots in parts], 1)
        return segment_max(units, self._pool_of(inputs))

    def _pool_of(self, inputs: Inputs) -> PackedPool:
        """Return the pool of each unit row: that of its team-step and group."""
        count = len(self.towers)
        return PackedPool(inputs.unit_step * count + inputs.unit_group, inputs.steps * count, inputs.unit_position,
                          max(len(group.slots) for group in self.reader.unit_groups))

    def _by_hero(self, pools: Tensor, inputs: Inputs) -> Tensor:
        """Reorder pools by team-step and group -> [N, H, groups * S]."""
        return pools.view(inputs.steps, len(self.towers), self.heroes, -1).transpose(1, 2).flatten(2)

    def _own_embedding(self, heroes: Tensor, inputs: Inputs) -> Tensor:
        """Return each hero's embedding of itself [N, H, S], from those of the allied heroes [R, H, S].

        Replica i controls the hero in allied slot i.
        """
        if inputs.column is not None:
            by_slot = heroes.view(self.heroes, inputs.steps, self.heroes, -1)
            is_present = inputs.is_present["allied_heroes"].view(self.heroes, inputs.steps)
            return by_slot.diagonal(0, 0, 2).transpose(1, 2).masked_fill(~is_present.t()[..., None], 0.0)
        allied = torch.arange(len(heroes), device=heroes.device)
        return self._restore_absent(heroes[allied, inputs.unit_slot[:len(heroes)]], inputs)

    def _own_row(self, inputs: Inputs) -> Tensor:
        """Return the index in the units [R * H] of each present allied hero as it sees itself."""
        slot = inputs.unit_slot[:inputs.group_rows[0]]
        return torch.arange(len(slot), device=slot.device) * self.heroes + slot

    def _restore_absent(self, own: Tensor, inputs: Inputs) -> Tensor:
        """Spread rows [allied, S] over all allied heroes, with zeros for absent ones -> [N, H, S]."""
        step, slot = inputs.unit_step[:len(own)], inputs.unit_slot[:len(own)]
        everyone = own.new_zeros(inputs.steps * self.heroes, own.shape[-1])
        return everyone.index_copy(0, step * self.heroes + slot, own).view(inputs.steps, self.heroes, -1)
