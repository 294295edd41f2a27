"""Losses of the auxiliary heads: win probability, net-worth rank, building events."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from five.agent.config import LearnerConfig
from five.agent.learning.labels import BUILDING, RANK, WIN


def auxiliary_losses(
    logits: Mapping[str, torch.Tensor],
    win_label: torch.Tensor,
    rank_label: torch.Tensor,
    building_label: torch.Tensor,
    mask: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Return the cross-entropy of each head that the model has, averaged over the steps whose mask is 1.

    ``logits``: ``win_probability`` [T, B, H], ``net_worth_rank`` [T, B, H, 5], ``building_events`` [T, B, H, n].
    Labels (`five.agent.learning.labels`): [T, B], [T, B, H, 5], [T, B, n]. ``mask``: [T, B, H]. The model itself stops
    the rank and building gradients before the LSTM.
    """
    weight = mask / mask.sum().clamp(min=1)
    losses = {}
    if WIN in logits:
        each = F.binary_cross_entropy_with_logits(
            logits[WIN].float(), win_label[..., None].expand_as(logits[WIN]), reduction="none")
        losses[WIN] = (each * weight).sum()
    if RANK in logits:
        each = -(rank_label * F.log_softmax(logits[RANK].float(), dim=-1)).sum(-1)
        losses[RANK] = (each * weight).sum()
    if BUILDING in logits and logits[BUILDING].shape[-1]:
        each = F.binary_cross_entropy_with_logits(
            logits[BUILDING].float(), building_label[..., None, :].expand_as(logits[BUILDING]), reduction="none")
        losses[BUILDING] = (each.mean(-1) * weight).sum()
    return losses


def auxiliary_weights(config: LearnerConfig) -> dict[str, float]:
    """Return the weight of each head's loss."""
    return {WIN: config.win_loss_weight, RANK: config.net_worth_rank_loss_weight,
            BUILDING: config.building_loss_weight}
