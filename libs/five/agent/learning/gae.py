"""Generalised advantage estimation (Schulman et al. 2016), as the rollouts compute it over a segment."""

from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.recurrence import linear_recurrence

Floats = npt.NDArray[np.floating[Any]]


def discount(horizon_seconds: float, timestep_seconds: float = 4 / 30) -> float:
    """γ of a horizon H: 1 - T/H (Berner et al. 2019, equation 3).

    Raises ValueError when the horizon is shorter than a timestep.
    """
    if not horizon_seconds >= timestep_seconds > 0:
        raise ValueError(f"a horizon of {horizon_seconds} s is shorter than a timestep of {timestep_seconds} s")
    return 1.0 - timestep_seconds / horizon_seconds


def gae(
    rewards: Floats, values: Floats, terminated: npt.NDArray[np.bool_], gamma: float, lam: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Advantages and value targets of a segment, time first.

    Args:
        rewards: [T, ...], what followed step t, in the units of the values.
        values: [T+1, ...]; the last row is the value of the step after the segment, from which a segment that is
            *cut* bootstraps.
        terminated: [T] or a leading part of ``rewards``' shape; a game *ended* with step t, so that neither value nor
            advantage flows back across it.
        gamma: discount a timestep.
        lam: GAE's λ.

    Returns:
        advantages and returns (advantages plus values), float32 [T, ...].

    Raises ValueError naming the shapes when they do not fit together.
    """
    steps = rewards.shape[0]
    if values.shape != (steps + 1, *rewards.shape[1:]):
        raise ValueError(f"values must be {(steps + 1, *rewards.shape[1:])} for rewards {rewards.shape}, "
                         f"not {values.shape}")
    if terminated.shape != rewards.shape[: terminated.ndim]:
        raise ValueError(f"terminated {terminated.shape} is no leading part of rewards {rewards.shape}")
    goes_on = 1.0 - terminated.astype(np.float64)
    goes_on = goes_on.reshape(goes_on.shape + (1,) * (rewards.ndim - terminated.ndim))
    v = values.astype(np.float64)
    delta = rewards + gamma * goes_on * v[1:] - v[:-1]
    advantages = linear_recurrence(gamma * lam * goes_on, delta, backward=True)
    return advantages.astype(np.float32), (advantages + v[:-1]).astype(np.float32)
