"""Labels of the auxiliary heads: win probability, net-worth rank, building events.

Rollouts label each segment. Labels that the segment does not determine come from the model's own prediction at its
end, as in a value function with one-segment backups (Berner et al. 2019, equation 10). Only the last segment of a game
has labels that the model did not predict; `five.agent.learning.outcome_samples` adds others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.recurrence import linear_recurrence

RANKS = 5  # heroes of a team; a smaller team uses the first ranks only
WIN, RANK, BUILDING = "win_probability", "net_worth_rank", "building_events"

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class GameOutcome:
    """Result of a game for one team: ``won`` 1, 0, or 0.5 for a drawn game; ``ranks`` int [H], 0 for the richest
    hero."""

    won: float
    ranks: npt.NDArray[np.integer[Any]]


def net_worth_ranks(net_worth: Floats) -> npt.NDArray[np.int64]:
    """Return int64 [H], 0 for the richest hero. Ties are ranked in slot order. ``net_worth`` [H] is in gold."""
    order = np.argsort(-net_worth, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


@dataclass(frozen=True)
class SegmentLabels:
    """Targets of T steps: ``win`` f32 [T]; ``rank`` f32 [T, H, 5], probabilities; ``building`` f32 [T, n]."""

    win: npt.NDArray[np.float32]
    rank: npt.NDArray[np.float32]
    building: npt.NDArray[np.float32]


def label_segment(
    events: Floats,
    outcome: GameOutcome | None,
    predictions: Mapping[str, Floats] | None,
    heroes: int,
    building_gamma: float,
) -> SegmentLabels:
    """Return the labels of consecutive steps of one game.

    Args:
        events: [T, n], 1 where the team destroyed that enemy building after step t, else 0.
        outcome: result of the game if it ended with the last step, else None.
        predictions: probabilities predicted for the step after the last, if the game goes on: ``win_probability`` [H],
            ``net_worth_rank`` [H, 5] and ``building_events`` [H, n].
        heroes: H.
        building_gamma: discount of building events per timestep, ``discount(building_horizon_seconds)``.

    Events inside the segment take precedence over predictions. Raise ValueError if both ``outcome`` and ``predictions``
    are None, or if ``outcome`` has ranks of another number of heroes.
    """
    steps, buildings = events.shape
    if outcome is not None:
        if outcome.ranks.shape != (heroes,):
            raise ValueError(f"outcome.ranks has shape {outcome.ranks.shape}, expected {(heroes,)}")
        win = float(outcome.won)
        rank = np.eye(RANKS, dtype=np.float32)[outcome.ranks]
        later = np.zeros(buildings)
    elif predictions is not None:
        win = float(np.mean(predictions[WIN]))
        rank = np.asarray(predictions[RANK], np.float32)
        later = np.mean(predictions[BUILDING], axis=0, dtype=np.float64)
    else:
        raise ValueError("predictions are required for a segment that ends before its game")
    # A building falls once, so predictions for later steps end at its fall.
    falls = (events > 0).astype(np.float64)
    building = linear_recurrence(building_gamma * (1.0 - falls), falls, later, backward=True).astype(np.float32)
    ranks = np.broadcast_to(rank, (steps, heroes, RANKS)).copy()
    return SegmentLabels(np.full(steps, win, np.float32), ranks, building)
