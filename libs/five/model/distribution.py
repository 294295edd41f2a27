"""Distributions over what may be chosen: masked categoricals, and which parameters an action reads."""

import torch
from torch import Tensor, nn

from dota.spaces import ID_SPACES, ActionPart, Layout, TargetType, action_parts_used

OFFSET_PAIRS = ("regular", "caster", "ward")


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """float32 log-probabilities over the last dimension. Masked entries get the lowest finite number, so that no
    infinity meets a zero in a gradient; a row without any entry is uniform, and its reader must not count it."""
    return logits.float().masked_fill(~mask, torch.finfo(torch.float32).min).log_softmax(-1)


def entropy(log_probabilities: Tensor) -> Tensor:
    """Entropy over the last dimension, in nats."""
    probabilities = log_probabilities.exp()
    # A masked entry: probability 0 times the lowest finite number is -0.
    return -(probabilities * log_probabilities).sum(-1)


def sample(log_probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One index per row, int64. Exponential races: one draw per entry, so a generator's stream does not depend on
    the outcome. A masked entry is never drawn from a row that has any other."""
    race = torch.empty_like(log_probabilities).exponential_(generator=generator)
    return (log_probabilities.exp() / race.clamp_min_(torch.finfo(torch.float32).tiny)).argmax(-1)


class ActionTable(nn.Module):
    """What each primary action of the layout reads, by action id. Not part of a version: the layout says it all."""

    mask_class: Tensor
    reads_unit: Tensor
    reads_teleport: Tensor
    reads_offset: Tensor
    offset_pair: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        pair = {TargetType.UNIT_OFFSET: 0, TargetType.TELEPORT: 0, TargetType.POINT: 1, TargetType.WARD: 2}
        size = ID_SPACES["action"]
        columns = {"mask_class": [0] * size, "offset_pair": [0] * size}
        flags = {"reads_unit": [False] * size, "reads_teleport": [False] * size, "reads_offset": [False] * size}
        for action in layout.actions:
            used = action_parts_used(action.target)
            columns["mask_class"][action.id] = int(action.mask)
            columns["offset_pair"][action.id] = pair.get(action.target, 0)
            flags["reads_unit"][action.id] = ActionPart.UNIT in used
            flags["reads_teleport"][action.id] = ActionPart.TELEPORT in used
            flags["reads_offset"][action.id] = ActionPart.OFFSET_X in used
        for name, column in columns.items():
            self.register_buffer(name, torch.tensor(column), persistent=False)
        for name, flag in flags.items():
            self.register_buffer(name, torch.tensor(flag), persistent=False)
