"""The observation trunk: the tree of Berner et al. 2019, figure 17, from arrays to Game State and Unit Embeddings."""

from typing import NamedTuple

import torch
from dota.spaces import Layout
from torch import Tensor, nn

from five.config import ModelConfig
from five.model.embeddings import Embeddings
from five.model.inputs import InputReader, Inputs
from five.model.process_set import ProcessSet, UnitSet
from five.model.spatial import MapNet


class TrunkOutput(NamedTuple):
    """``shared`` [N, Gs] and ``private`` [N, H, Gp] halves of the Game State with the controlled hero's embedding;
    ``units`` [R, H, K] embeddings of the units present, packed; ``index`` int64 [N, U], the row of a slot in
    ``units`` (-1: absent)."""

    shared: Tensor
    private: Tensor
    units: Tensor
    index: Tensor


class Trunk(nn.Module):
    """Walks the tree. Nodes whose slots the layout does not have take no part and have no parameters."""

    def __init__(self, layout: Layout, config: ModelConfig, embeddings: Embeddings) -> None:
        super().__init__()
        self.reader = InputReader(layout)
        self.config = config
        self.units, self.heroes = layout.units, layout.heroes
        widths = self.reader.widths()
        observation, c = layout.observation, config
        self.spaces = {"hero_modifiers": "modifier", "unit_modifiers": "modifier", "hero_abilities": "ability",
                       "hero_items": "item", "pickups": "pickup"}
        self.minimap = MapNet(observation.minimap, widths["minimap"], c.conv_filters)
        self.nearby_map = MapNet(observation.nearby_map, widths["nearby_map"] + 2 * c.area_embedding, c.conv_filters)
        # One set of weights for allied and enemy heroes, one for all other units.
        self.sets = nn.ModuleDict({
            name: ProcessSet(widths[name] + embeddings[self.spaces[name]].embedding_dim, c.set_hidden, c.set)
            for name in self.reader.sets})
        self.towers = nn.ModuleDict()
        for tower in self.reader.towers:
            shared = widths[tower.name] + c.unit_embedding + c.animation_embedding
            shared += c.set * len(self._sets_of(tower.heroes))
            if tower.name == "allied_heroes":
                shared += c.build_embedding + c.item_embedding
            self.towers[tower.name] = UnitSet(shared, widths[f"{tower.name}/private"], c.unit_hidden, c.unit)
        self.shared_width = widths["global"] + self.minimap.width + (c.set if "pickups" in self.sets else 0)
        self.private_width = self.nearby_map.width + c.unit * (len(self.towers) + 1)

    def _sets_of(self, hero: bool) -> list[str]:
        kind = "hero_" if hero else "unit_"
        return [name for name in self.reader.sets if name.startswith(kind)]

    def forward(self, inputs: Inputs, floats: dict[str, Tensor], embeddings: Embeddings) -> TrunkOutput:
        """``inputs`` as read, ``floats`` its streams normalised."""
        steps, ids = inputs.steps, inputs.ids
        pooled = {name: encode(torch.cat((floats[name], embeddings.embed(self.spaces[name], ids[name])), -1),
                               inputs.rows[name])
                  for name, encode in self.sets.items()}
        shared = [floats["global"], self.minimap(floats["minimap"])]
        if "pickups" in pooled:
            shared.append(pooled["pickups"])
        area = embeddings.embed("area", ids["area"]).flatten(-2)
        private = [self.nearby_map(torch.cat((floats["nearby_map"], area), -1))]

        encoded, flat_slots = [], []
        for tower in self.reader.towers:
            name, rows = tower.name, inputs.rows[tower.name]
            parts = [floats[name], embeddings.embed("unit", ids[f"{name}/unit"]),
                     embeddings.embed("animation", ids[f"{name}/animation"])]
            owner = ids[f"{name}/sets"]
            parts += [pooled[s].index_select(0, owner) for s in self._sets_of(tower.heroes)]
            if name == "allied_heroes":
                parts += [embeddings.embed("build", ids["build"]), embeddings.embed("item", ids["next_item"])]
            units, pool = self.towers[name](torch.cat(parts, -1), floats[f"{name}/private"], rows)
            private.append(pool)
            flat_slots.append(rows.owner * self.units + rows.place)
            if name == "allied_heroes":
                private.append(self._own(units, rows.owner, rows.place, steps))
            encoded.append(units[..., :self.config.key])
        present = torch.cat(flat_slots)
        index = torch.full((steps * self.units,), -1, device=present.device)
        index[present] = torch.arange(len(present), device=present.device)
        return TrunkOutput(torch.cat(shared, -1), torch.cat(private, -1), torch.cat(encoded),
                           index.view(steps, self.units))

    def _own(self, units: Tensor, step: Tensor, slot: Tensor, steps: int) -> Tensor:
        """Each hero's embedding of itself: the hero in allied slot i is controlled by replica i. [N, H, S]."""
        diagonal = units[torch.arange(len(slot), device=slot.device), slot]
        own = units.new_zeros(steps * self.heroes, units.shape[-1])
        return own.index_copy(0, step * self.heroes + slot, diagonal).unflatten(0, (steps, self.heroes))
