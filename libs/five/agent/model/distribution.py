"""Distributions over actions: masked categoricals, and the parameters that each action reads."""

import torch
from torch import Tensor, nn

from dota.spaces import ActionPart, Layout, MaskClass, action_parts_used
from five.agent.config import ModelConfig
from five.agent.model.head_names import offset_pair_of, offset_pairs, unit_split_of, unit_splits
from five.agent.model.input_structure import id_rows


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Return float32 log-probabilities over the last dimension.

    Masked entries get the lowest finite number, so that gradients have no infinity times zero. A row without valid
    entries is uniform; the caller must ignore it.
    """
    return logits.float().masked_fill(~mask, torch.finfo(torch.float32).min).log_softmax(-1)


def entropy(log_probabilities: Tensor) -> Tensor:
    """Return the entropy over the last dimension, in nats."""
    probabilities = log_probabilities.exp()
    # A masked entry adds probability 0 times the lowest finite number, which is -0.
    return -(probabilities * log_probabilities).sum(-1)


def sample(log_probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Sample one index per row, int64, by the Gumbel-max trick.

    It draws one number per entry, so a generator's position does not depend on the outcome. A masked entry is never
    sampled from a row with any other.
    """
    # PyTorch's exponential_() takes several times as long on a CPU.
    noise = torch.rand(log_probabilities.shape, generator=generator, device=log_probabilities.device)
    # One number in 2^24 is 0. Its noise would be infinite, and even an only valid entry would lose to a masked one.
    noise.clamp_min_(torch.finfo(noise.dtype).tiny)
    return log_probabilities.sub(noise.log_().neg_().log_()).argmax(-1)


class ActionTable(nn.Module):
    """Table of what each primary action of the layout reads, by action id.

    It follows from the layout and is not part of a version.
    """

    mask_class: Tensor
    reads_unit: Tensor
    reads_teleport: Tensor
    reads_offset: Tensor
    offset_pair: Tensor
    unit_split: Tensor  # 0 is the regular head, i + 1 the split head i

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        super().__init__()
        size = id_rows(config, "action")
        pairs, splits = offset_pairs(config), ("", *unit_splits(config))
        columns = {"mask_class": [0] * size, "offset_pair": [0] * size, "unit_split": [0] * size}
        flags = {"reads_unit": [False] * size, "reads_teleport": [False] * size, "reads_offset": [False] * size}
        for action in layout.actions:
            used = action_parts_used(action.target)
            columns["mask_class"][action.id] = int(action.mask)
            columns["offset_pair"][action.id] = pairs.index(offset_pair_of(action, config))
            columns["unit_split"][action.id] = splits.index(unit_split_of(action, config))
            flags["reads_unit"][action.id] = ActionPart.UNIT in used
            flags["reads_teleport"][action.id] = ActionPart.TELEPORT in used
            flags["reads_offset"][action.id] = ActionPart.OFFSET_X in used
        for name, column in columns.items():
            self.register_buffer(name, torch.tensor(column), persistent=False)
        for name, flag in flags.items():
            self.register_buffer(name, torch.tensor(flag), persistent=False)


def chosen_action(available: Tensor, actions: Tensor) -> Tensor:
    """Return ids int64 [N, H] of the primary actions in ``actions`` int64 [N, H, 6] out of ``available`` [N, H, 30]."""
    return available.gather(-1, actions[..., :1])[..., 0]


def valid_targets(table: ActionTable, target_mask: Tensor, action: Tensor, is_present: Tensor) -> Tensor:
    """Return bool [N, H, U]: unit slots that the action can target; none if it reads no unit.

    ``is_present`` bool [N, U] says which slots have a unit.
    """
    teleports = table.reads_teleport[action]
    row = torch.where(teleports, int(MaskClass.TELEPORT), table.mask_class[action])
    mask = target_mask.gather(2, row[..., None, None].expand(-1, -1, 1, target_mask.shape[-1]))[:, :, 0] != 0
    reads = table.reads_unit[action] | teleports
    return mask & reads[..., None] & is_present[:, None]
