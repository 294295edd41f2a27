"""Cross-hero pool: heroes of a team react to each other's private inputs."""

import torch
from torch import Tensor


def cross_hero_pool(x: Tensor, pooled: int) -> Tensor:
    """Replace the first ``pooled`` values of [..., H, D] by their maximum over the heroes (Berner et al. 2019, figure
    17: a quarter)."""
    if x.shape[-2] == 1 or pooled == 0:
        return x
    most = x[..., :pooled].amax(-2, keepdim=True).expand(*x.shape[:-1], pooled)
    return torch.cat((most, x[..., pooled:]), -1)
