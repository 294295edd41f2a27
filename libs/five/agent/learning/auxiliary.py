"""Losses of the auxiliary heads: win probability, net-worth rank, building events."""

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from five.agent.config import LearnerConfig
from five.agent.learning.labels import BUILDING, RANK, RANKS, WIN


def cross_entropies(logits: Mapping[str, Tensor], batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the cross-entropy of each head that the model has, float32 [T, B, H], the mean over buildings.

    ``logits``: ``win_probability`` [T, B, H], ``net_worth_rank`` [T, B, H, 5], ``building_events`` [T, B, H, n].
    ``batch`` holds the labels (`five.agent.learning.labels`) ``win_label`` [T, B], ``rank_label`` [T, B, H, 5] and
    ``building_label`` [T, B, n].
    """
    found = {}
    if WIN in logits:
        found[WIN] = F.binary_cross_entropy_with_logits(
            logits[WIN].float(), batch["win_label"][..., None].expand_as(logits[WIN]), reduction="none")
    if RANK in logits:
        found[RANK] = -(batch["rank_label"] * F.log_softmax(logits[RANK].float(), dim=-1)).sum(-1)
    if BUILDING in logits and logits[BUILDING].shape[-1]:
        found[BUILDING] = F.binary_cross_entropy_with_logits(
            logits[BUILDING].float(), batch["building_label"][..., None, :].expand_as(logits[BUILDING]),
            reduction="none").mean(-1)
    return found


def auxiliary_losses(entropies: Mapping[str, Tensor], mask: Tensor, outcome_mask: Tensor) -> dict[str, Tensor]:
    """Return the loss of each head from its `cross_entropies`.

    It is the mean over the steps whose ``mask`` [T, B, H] is 1. Win and rank add the mean over outcome samples, whose
    ``outcome_mask`` [T, B] is 1: these are few, and in one mean the bootstrapped labels would outweigh them. The model
    itself stops the rank and building gradients before the LSTM.
    """
    weight = mask / mask.sum().clamp(min=1)
    outcome = outcome_mask[..., None].expand_as(mask)
    both = weight + outcome / outcome.sum().clamp(min=1)
    return {name: (each * (weight if name == BUILDING else both)).sum() for name, each in entropies.items()}


def auxiliary_weights(config: LearnerConfig) -> dict[str, float]:
    """Return the weight of each head's loss."""
    return {WIN: config.win_loss_weight, RANK: config.net_worth_rank_loss_weight,
            BUILDING: config.building_loss_weight}


@torch.no_grad()
def auxiliary_diagnostics(entropies: Mapping[str, Tensor], batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return scalars from which `relative_losses` computes each head's loss relative to chance.

    Batches with few outcome samples, or none, must not count as much as others, so each scalar is a sum divided by the
    batch's hero-steps: ``known_win_probability`` and ``known_net_worth_rank`` of the cross-entropies in outcome
    samples, ``outcome_fraction`` of their hero-steps. ``known_building_events`` and ``building_label_mean`` are means
    over the other samples. ``net_worth_rank_chance`` is the logarithm of the number of ranks.
    """
    mask, outcome = batch["mask"], batch["outcome_mask"]
    ranks = min(mask.shape[-1], RANKS)
    found = {"outcome_fraction": outcome.mean(), "net_worth_rank_chance": mask.new_full((), math.log(ranks))}
    for name, each in entropies.items():
        if name != BUILDING:
            found[f"known_{name}"] = (each * outcome[..., None]).mean()
            continue
        weight = mask / mask.sum().clamp(min=1)
        found[f"known_{name}"] = (each * weight).sum()
        found["building_label_mean"] = (batch["building_label"].mean(-1)[..., None] * weight).sum()
    return found


def relative_losses(means: Mapping[str, float]) -> dict[str, float]:
    """Return the loss of each head as a share of chance, by ``of_chance_<head>``, from means of the diagnostics.

    Chance is the loss of a head that knows no observation. It predicts a win with 0.5, a hero's rank uniformly, and
    buildings with the mean label. A head without a known label is left out.
    """
    share, base = means.get("outcome_fraction", 0.0), means.get("building_label_mean", 0.0)
    chances = {WIN: share * math.log(2), RANK: share * means.get("net_worth_rank_chance", 0.0),
               BUILDING: _binary_entropy(base)}
    return {f"of_chance_{name}": means[f"known_{name}"] / chance for name, chance in chances.items()
            if chance > 0 and f"known_{name}" in means}


def _binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log1p(-p) if 0 < p < 1 else 0.0
