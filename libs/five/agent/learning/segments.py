"""From the steps that a team played in one game to a labelled segment (Berner et al. 2019, appendix A).

A segment that ends within its game is *cut*: it bootstraps from the value and the predictions of the step that
follows. One that ends with its game has nothing to bootstrap from, and its labels are the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from five.agent.config import LearnerConfig
from five.agent.learning.gae import discount, gae
from five.agent.learning.labels import Outcome, segment_labels
from five.agent.learning.recurrence import recurrence
from five.agent.learning.samples import STATE_PREFIX, Array, Arrays


class Rows(Protocol):
    """What gives rows by their numbers, as an array does."""

    def __getitem__(self, which: npt.NDArray[np.intp], /) -> Any: ...


@dataclass(frozen=True)
class TeamSteps:
    """T consecutive steps of one team in one game.

    ``arrays``: the observation by name, ``actions``, ``behaviour_logp``, ``behaviour_values`` and ``versions``, each
    leading with any number of rows; ``rows`` int [T] says which of them are the steps, in order, so that a ring needs
    no copy of its own. An observation may lie there in another form, if it gives rows as they are to be sent.
    ``states``: recurrent states *before* each sample's first step, [samples or more, ...]. ``rewards`` float [T, H]:
    what followed each step, not yet divided by the running deviation. ``fallen`` [T, n]: 1 where an enemy building fell
    in what followed. ``begins``: the first of these steps is its game's first.

    Log-probabilities, values and states are those of the version that acted: they are never computed again.
    """

    arrays: Mapping[str, Rows]
    rows: npt.NDArray[np.intp]
    states: Mapping[str, Array]
    rewards: Array
    fallen: Array
    begins: bool


@dataclass(frozen=True)
class Following:
    """The step after a segment that is cut: the team's ``values`` float [H], and the auxiliary heads' probabilities
    as `segment_labels` reads them."""

    values: Array
    predictions: Mapping[str, Array]


@dataclass(frozen=True)
class Segment:
    """Labelled steps of one team, ready to send. ``arrays`` as `five.agent.learning.samples` describes.

    The sums are over the hero-steps' raw rewards, for the optimizer's running deviation; with
    ``reward_scale="return"`` they are over the rewards' running discounted sums instead.
    """

    arrays: Arrays
    samples: int
    steps: int
    reward_sum: float
    reward_square_sum: float
    reward_count: int
    oldest_version: int
    newest_version: int


def cut_segment(steps: TeamSteps, end: Following | Outcome, config: LearnerConfig, gae_horizon_seconds: float,
                reward_std: float, running_return: Array, timestep_seconds: float) -> Segment:
    """The segment of these steps. Arrays are copied.

    Args:
        steps: T of them; what is missing of the last sample is filled with the last step, whose ``mask`` is 0.
        end: the step that follows, or how the game ended with the last step.
        config: of the learner: unroll length, λ, horizons, what the deviation is taken of.
        gae_horizon_seconds: the advantages' horizon, as the newest version's schedule has it.
        reward_std: the newest version's running deviation; rewards are divided by it.
        running_return: float64 [H], the game's discounted sum of rewards so far, zero where it begins; brought up to
            the segment's end in place.
        timestep_seconds: game time of a step (`dota.config.GameConfig.timestep_seconds`).

    Raises ValueError when the steps' arrays do not fit together, naming the shapes.
    """
    rows, unroll = steps.rows, config.lstm_unroll_length
    length, heroes = steps.rewards.shape
    if rows.shape != (length,) or steps.fallen.shape[0] != length or not length:
        raise ValueError(f"rows {rows.shape}, rewards {steps.rewards.shape} and fallen {steps.fallen.shape} are not of "
                         "the same steps, at least one")
    samples = -(-length // unroll)
    padded = np.concatenate([rows, np.full(samples * unroll - length, rows[-1])])
    arrays: Arrays = {name: array[padded] for name, array in steps.arrays.items()}
    for name, state in steps.states.items():
        arrays[STATE_PREFIX + name] = state[:samples].copy()

    gamma = discount(gae_horizon_seconds, timestep_seconds)
    values = np.zeros((length + 1, heroes), np.float32)
    values[:length] = arrays["behaviour_values"][:length]
    terminated = np.zeros(length, np.bool_)
    if isinstance(end, Following):
        values[length] = end.values
    else:
        terminated[-1] = True
    advantages, returns = gae(steps.rewards / reward_std, values, terminated, gamma, config.gae_lambda)
    labels = segment_labels(
        steps.fallen, None if isinstance(end, Following) else end,
        end.predictions if isinstance(end, Following) else None, heroes,
        discount(config.building_horizon_seconds, timestep_seconds))
    for name, array in (("advantages", advantages), ("returns", returns), ("win_label", labels.win),
                        ("rank_label", labels.rank), ("building_label", labels.building)):
        arrays[name] = _padded(array, len(padded))
    mask = np.ones((len(padded), heroes), np.float32)
    mask[length:] = 0.0
    arrays["mask"] = mask
    arrays["resets"] = np.zeros(len(padded), np.bool_)
    arrays["resets"][0] = steps.begins

    measured = recurrence(gamma, steps.rewards, running_return)
    running_return[:] = measured[-1]
    if config.reward_scale == "reward":
        measured = steps.rewards.astype(np.float64)
    versions = arrays["versions"]
    return Segment(arrays, samples, length, float(measured.sum()), float((measured**2).sum()), length * heroes,
                   int(versions.min()), int(versions.max()))


def _padded(array: Array, length: int) -> Array:
    if len(array) == length:
        return array
    return np.concatenate([array, np.broadcast_to(array[-1:], (length - len(array), *array.shape[1:]))])
