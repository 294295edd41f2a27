"""Learned embeddings of the categorical ids."""

from dota.spaces import ID_SPACES
from torch import Tensor, nn

from five.config import ModelConfig


class Embeddings(nn.ModuleDict):
    """One table per id space; id 0 ("none") is the zero vector and never learns.

    ``action`` is as wide as a key: the same vectors are scored against the LSTM's output and shown, for the previous
    action, on the way in.
    """

    def __init__(self, config: ModelConfig) -> None:
        widths = {
            "unit": config.unit_embedding, "animation": config.animation_embedding,
            "modifier": config.modifier_embedding, "ability": config.ability_embedding,
            "item": config.item_embedding, "pickup": config.pickup_embedding, "build": config.build_embedding,
            "area": config.area_embedding, "action": config.key,
        }
        super().__init__({name: nn.Embedding(ID_SPACES[name], width, padding_idx=0) for name, width in widths.items()})

    def embed(self, space: str, ids: Tensor) -> Tensor:
        """[...] int64 -> [..., width]."""
        embedded: Tensor = self[space](ids)
        return embedded
