"""Labels of the auxiliary heads: win probability, net-worth rank, building events.

Labels are made where the game is played, segment by segment. What a segment does not show yet is taken from the
model's own prediction at its end, as a value function with one-segment backups would (Berner et al. 2019, equation 10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.recurrence import linear_recurrence

RANKS = 5
WIN, RANK, BUILDING = "win_probability", "net_worth_rank", "building_events"

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class GameOutcome:
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
    # A building falls once: what is predicted for after its fall does not count before it.
    falls = (events > 0).astype(np.float64)
    building = linear_recurrence(building_gamma * (1.0 - falls), falls, later, backward=True).astype(np.float32)
    return SegmentLabels(np.full(steps, win, np.float32), np.broadcast_to(rank, (steps, heroes, RANKS)).copy(), building)
