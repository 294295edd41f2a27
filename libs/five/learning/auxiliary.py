"""Labels and losses of the auxiliary heads: win probability, net-worth rank, building events.

Labels are made where the game is played, segment by segment. What a segment does not show yet is taken from the
model's own prediction at its end, as a value function with one-segment backups would (Berner et al. 2019, equation 10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from five.config import LearnerConfig

RANKS = 5
WIN, RANK, BUILDING = "win_probability", "net_worth_rank", "building_events"

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Outcome:
    """How a game ended for one team: ``won`` 1, 0, or 0.5 for a draw; ``ranks`` int [H], 0 for the richest hero."""

    won: float
    ranks: npt.NDArray[np.integer[Any]]


def net_worth_ranks(net_worth: Floats) -> npt.NDArray[np.int64]:
    """int64 [H]: 0 for the richest hero; equals in the order of their slots. ``net_worth`` [H], gold."""
    order = np.argsort(-net_worth, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


@dataclass(frozen=True)
class Labels:
    """Targets of T steps: ``win`` f32 [T]; ``rank`` f32 [T, H, 5], probabilities; ``building`` f32 [T, n]."""

    win: npt.NDArray[np.float32]
    rank: npt.NDArray[np.float32]
    building: npt.NDArray[np.float32]


def segment_labels(
    events: Floats,
    outcome: Outcome | None,
    predictions: Mapping[str, Floats] | None,
    heroes: int,
    building_gamma: float,
) -> Labels:
    """Labels of consecutive steps of *one* game.

    Args:
        events: [T, n], 1 where the team destroyed that enemy building in what followed step t, else 0.
        outcome: how the game ended with the last of these steps; None when it goes on.
        predictions: of the step after the last, when the game goes on: ``win_probability`` [H], ``net_worth_rank``
            [H, 5] and ``building_events`` [H, n], all probabilities.
        heroes: H.
        building_gamma: discount of building events a timestep, ``discount(building_horizon_seconds)``.

    Truth inside the segment wins over the prediction. Raises ValueError when neither an outcome nor predictions are
    given: such steps have no label.
    """
    steps, buildings = events.shape
    if outcome is not None:
        if outcome.ranks.shape != (heroes,):
            raise ValueError(f"an outcome of a team of {heroes} heroes has ranks of shape {outcome.ranks.shape}")
        win = float(outcome.won)
        rank = np.eye(RANKS, dtype=np.float32)[outcome.ranks]
        later = np.zeros(buildings)
    elif predictions is not None:
        win = float(np.mean(predictions[WIN]))
        rank = np.asarray(predictions[RANK], np.float32)
        later = np.mean(predictions[BUILDING], axis=0, dtype=np.float64)
    else:
        raise ValueError("a segment that ends before its game needs the predictions of the step that follows")
    building = np.empty((steps, buildings), np.float32)
    for t in range(steps - 1, -1, -1):
        # A building falls once: what is predicted for after its fall does not count before it.
        later = np.where(events[t] > 0, 1.0, building_gamma * later)
        building[t] = later
    return Labels(np.full(steps, win, np.float32), np.broadcast_to(rank, (steps, heroes, RANKS)).copy(), building)


def auxiliary_losses(
    logits: Mapping[str, torch.Tensor],
    win_label: torch.Tensor,
    rank_label: torch.Tensor,
    building_label: torch.Tensor,
    mask: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Cross-entropies of the heads that the model has, each a scalar, averaged over the steps that count.

    ``logits``: ``win_probability`` [T, B, H], ``net_worth_rank`` [T, B, H, 5], ``building_events`` [T, B, H, n].
    Labels: [T, B], [T, B, H, 5], [T, B, n]; ``mask`` [T, B, H]. That rank and building gradients stop before the LSTM
    is the model's part.
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
    """Weight of each head's loss."""
    return {WIN: config.win_loss_weight, RANK: config.net_worth_rank_loss_weight,
            BUILDING: config.building_loss_weight}
