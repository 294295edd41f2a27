"""Encoder of maps: two convolution layers over the cells (Berner et al. 2019, figure 17)."""

import torch.nn.functional as F
from torch import Tensor, nn

from five.agent.model.input_structure import map_sizes


class MapEncoder(nn.Module):
    """Convolution, 2x2 max-pool, convolution, flattened, with 2x2 kernels and ReLU (OpenAI's diagram of August 2018).

    A map that is too small for a pool or a second layer has none.
    """

    def __init__(self, side: int, channels: int, filters: int) -> None:
        super().__init__()
        sizes = map_sizes(side)
        self.side = side
        self.first = nn.Conv2d(channels, filters, 2)
        self.pool = sizes.pool
        self.second = nn.Conv2d(filters, filters, 2) if sizes.second else None
        self.width = filters * sizes.side**2

    def forward(self, cells: Tensor) -> Tensor:
        """Encode cells [..., side * side, channels], row by row -> [..., width]."""
        lead = cells.shape[:-2]
        x = cells.reshape(-1, self.side, self.side, cells.shape[-1]).permute(0, 3, 1, 2)
        x = F.relu(self.first(x))
        if self.pool:
            x = F.max_pool2d(x, 2)
        if self.second is not None:
            x = F.relu(self.second(x))
        return x.reshape(*lead, self.width)
