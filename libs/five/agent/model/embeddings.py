"""Learned embeddings of the categorical ids."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dota import registry
from five.agent.config import ModelConfig
from five.agent.model.input_structure import embedding_widths, id_rows


class _Rows(torch.autograd.Function):
    """Table lookup whose gradient is summed in the order of the ids; PyTorch's own sorts the ids first."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.rows = len(table)
        return F.embedding(ids, table)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        ids, = ctx.saved_tensors
        each = grads[0].reshape(ids.numel(), grads[0].shape[-1])
        summed = each.new_zeros(ctx.rows, each.shape[1]).index_add_(0, ids.reshape(-1), each)
        summed[0] = 0.0
        return summed, None


def lookup(table: Tensor, ids: Tensor) -> Tensor:
    """Return rows of ``table`` [n, width] by int64 ids [...]: [..., width]. Row 0 gets no gradient."""
    if table.device.type == "cpu" and table.requires_grad and torch.is_grad_enabled():
        looked_up: Tensor = _Rows.apply(table, ids)  # type: ignore[no-untyped-call]
        return looked_up
    return F.embedding(ids, table, padding_idx=0)  # index_add_ has no fixed order on a GPU


class Embeddings(nn.Module):
    """Embedding tables, one per id space; id 0 ("none") is the zero vector and never learns.

    Raises ValueError for ids without a row. ``action`` is as wide as a key: the same vectors score the LSTM's output
    and encode the previous action on the way in.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tables = nn.ParameterDict()
        for space, width in embedding_widths(config).items():
            known = len(registry.load().names[registry.SAME_IDS_AS.get(space, space)]) + (space != "action")
            if known > id_rows(config, space):
                raise ValueError(f"the game's data have {known} {space} ids, the model has rows for "
                                 f"{id_rows(config, space)}: add rows by surgery under the previous release "
                                 f"(kind: add_ids, rows: {{{space}: {known}}})")
            table = nn.Parameter(nn.init.normal_(torch.empty(id_rows(config, space), width)))
            table.data[0].zero_()
            self.tables[space] = table

    def table(self, space: str) -> Tensor:
        """Return the table of an id space [ids, width]."""
        table: Tensor = self.tables[space]
        return table

    def width(self, space: str) -> int:
        """Return the width of an id space's embedding."""
        return self.table(space).shape[1]

    def embed(self, space: str, ids: Tensor) -> Tensor:
        """Embed int64 ids [...] -> [..., width]."""
        return lookup(self.table(space), ids)
