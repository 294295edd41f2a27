"""Learned embeddings of the categorical ids."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dota import registry
from five.agent.config import ModelConfig
from five.agent.model.tree import embedding_widths, id_rows


class Embeddings(nn.Module):
    """One table per id space; id 0 ("none") is the zero vector and never learns. Raises ValueError for ids without a
    row.

    ``action`` is as wide as a key: the same vectors are scored against the LSTM's output and shown, for the
    previous action, on the way in.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tables = nn.ParameterDict()
        for space, width in embedding_widths(config).items():
            known = len(registry.load().names[registry.SAME_IDS_AS.get(space, space)]) + (space != "action")
            if known > id_rows(config, space):
                raise ValueError(f"the game's data have {known} {space} ids, the model has rows for "
                                 f"{id_rows(config, space)}: add rows by surgery under the release before "
                                 f"(kind: add_ids, rows: {{{space}: {known}}})")
            table = nn.Parameter(nn.init.normal_(torch.empty(id_rows(config, space), width)))
            table.data[0].zero_()
            self.tables[space] = table

    def table(self, space: str) -> Tensor:
        """[ids, width]."""
        table: Tensor = self.tables[space]
        return table

    def width(self, space: str) -> int:
        """Numbers that stand for one id."""
        return self.table(space).shape[1]

    def embed(self, space: str, ids: Tensor) -> Tensor:
        """[...] int64 -> [..., width]."""
        return F.embedding(ids, self.table(space), padding_idx=0)
