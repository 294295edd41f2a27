"""Generalised advantage estimation (Schulman et al. 2016), which rollouts compute per segment."""

from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.recurrence import linear_recurrence

Floats = npt.NDArray[np.floating[Any]]


def discount(horizon_seconds: float, timestep_seconds: float = 4 / 30) -> float:
    """Return the discount γ of a horizon H: 1 - T/H (Berner et al. 2019, equation 3).

    Raise ValueError if the horizon is shorter than a timestep.
    """
    if not horizon_seconds >= timestep_seconds > 0:
        raise ValueError(f"horizon {horizon_seconds} s: at least a timestep, {timestep_seconds} s, is required")
    return 1.0 - timestep_seconds / horizon_seconds


def gae(
    rewards: Floats, values: Floats, terminated: npt.NDArray[np.bool_], gamma: float, lam: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return advantages and value targets of a segment, time first.

    Args:
        rewards: [T, ...], the reward after step t, in the units of the values.
        values: [T+1, ...]. The last row is the value of the step after the segment, for bootstrapping.
        terminated: [T] or a leading part of ``rewards``' shape, True if the game ended with step t. Neither value nor
            advantage flows back across such a step.
        gamma: discount per timestep.
        lam: GAE's λ.

    Returns:
        advantages and returns (advantages plus values), float32 [T, ...].

    Raise ValueError with the shapes if they do not match.
    """
    steps = rewards.shape[0]
    if values.shape != (steps + 1, *rewards.shape[1:]):
        raise ValueError(f"values must be {(steps + 1, *rewards.shape[1:])} for rewards {rewards.shape}, "
                         f"not {values.shape}")
    if terminated.shape != rewards.shape[: terminated.ndim]:
        raise ValueError(f"terminated {terminated.shape} must be a leading part of rewards {rewards.shape}")
    continues = 1.0 - terminated.astype(np.float64)
    continues = continues.reshape(continues.shape + (1,) * (rewards.ndim - terminated.ndim))
    v = values.astype(np.float64)
    delta = rewards + gamma * continues * v[1:] - v[:-1]
    advantages = linear_recurrence(gamma * lam * continues, delta, backward=True)
    return advantages.astype(np.float32), (advantages + v[:-1]).astype(np.float32)
