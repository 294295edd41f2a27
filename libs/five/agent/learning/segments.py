"""Labelled segments of one team's steps in one game (Berner et al. 2019, appendix A).

A segment that ends before its game bootstraps from the value and the predictions of the step that follows. A segment
that ends with its game needs no bootstrap, and its labels are the game's outcome.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from five.agent.config import LearnerConfig
from five.agent.learning.gae import discount, gae
from five.agent.learning.labels import GameOutcome, label_segment
from five.agent.learning.recurrence import linear_recurrence
from five.agent.learning.samples import STATE_PREFIX, Array, Arrays

A = TypeVar("A")


class IndexableRows(Protocol):
    """Rows that an index array selects, as of a numpy array."""

    def __getitem__(self, which: npt.NDArray[np.intp], /) -> Any: ...


@dataclass(frozen=True)
class Bootstrap:
    """Predictions for the step that follows a segment: ``values`` float [H], and ``predictions``, the probabilities of
    the auxiliary heads as `label_segment` reads them."""

    values: Array
    predictions: Mapping[str, Array]


@dataclass(frozen=True)
class Segment(Generic[A]):
    """Labelled steps of one team in one game: cut by a rollout, sent by its client, admitted by an optimizer.

    Attributes:
        arrays: by name, as `five.agent.learning.samples` describes; an optimizer keeps them encoded instead.
        samples: number of samples of ``lstm_unroll_length`` steps each. The last one may be padded.
        reward_sum: sum over the hero-steps' raw rewards, for the optimizer's running deviation. With
            ``reward_scale="return"`` it is the sum over their running discounted sums.
        reward_square_sum: sum of the squares of what ``reward_sum`` adds up.
        reward_count: number of hero-steps, padding excluded.
        oldest_version: oldest version that acted.
        newest_version: newest version that acted.
        variant: variant of the game while a change is annealed ("old" or "new"), else "".
        created_at: seconds since 1970.
        segment_id: identifies the segment when it is sent again.
        traceparent: W3C trace context of a step in it that is traced; "" otherwise.
    """

    arrays: A
    samples: int
    reward_sum: float
    reward_square_sum: float
    reward_count: int
    oldest_version: int
    newest_version: int
    variant: str = ""
    created_at: float = field(default_factory=time.time)
    segment_id: str = field(default_factory=lambda: secrets.token_hex(16))
    traceparent: str = ""


def cut_segment(arrays: Mapping[str, IndexableRows], rows: npt.NDArray[np.intp], *, states: Mapping[str, Array],
                rewards: Array, fallen: Array, begins: bool, end: Bootstrap | GameOutcome, config: LearnerConfig,
                gae_horizon_seconds: float, reward_std: float, running_return: Array, timestep_seconds: float,
                variant: str = "") -> Segment[Arrays]:
    """Copy T consecutive steps of one team in one game out of a ring and label them.

    Args:
        arrays: the ring's rows by name: the observation, ``actions``, ``behaviour_logp``, ``behaviour_values`` and
            ``versions``. Indexing an observation may give rows in the encoding in which they are sent.
        rows: int [T], the steps' rows in order. The last step pads the last sample, with ``mask`` 0.
        states: recurrent states before each sample's first step, [samples or more, ...].
        rewards: float [T, H], the reward after each step, not divided by the running deviation.
        fallen: float [T, n], 1 where an enemy building fell after the step.
        begins: whether the first step is its game's first.
        end: the step that follows, or how the game ended with the last step.
        config: unroll length, lambda, horizons and the deviation's input.
        gae_horizon_seconds: horizon of the advantages at the newest version.
        reward_std: running deviation at the newest version, which divides the rewards.
        running_return: float64 [H], the game's discounted sum of rewards so far, 0 at its first step. Updated in place.
        timestep_seconds: game time of a step (`dota.config.GameConfig.timestep_seconds`).
        variant: variant of the game while a change is annealed, else "".

    Log-probabilities, values and states are those of the version that acted; they are never recomputed. Raises
    ValueError naming the shapes when rows, rewards and fallen differ in length.
    """
    unroll = config.lstm_unroll_length
    length, heroes = rewards.shape
    if rows.shape != (length,) or fallen.shape[0] != length or not length:
        raise ValueError(f"rows {rows.shape}, rewards {rewards.shape} and fallen {fallen.shape} must have the same "
                         "length, at least 1")
    samples = -(-length // unroll)
    padded = np.concatenate([rows, np.full(samples * unroll - length, rows[-1])])
    out: Arrays = {name: array[padded] for name, array in arrays.items()}
    for name, state in states.items():
        out[STATE_PREFIX + name] = state[:samples].copy()

    gamma = discount(gae_horizon_seconds, timestep_seconds)
    values = np.zeros((length + 1, heroes), np.float32)
    values[:length] = out["behaviour_values"][:length]
    terminated = np.zeros(length, np.bool_)
    if isinstance(end, Bootstrap):
        values[length] = end.values
    else:
        terminated[-1] = True
    advantages, returns = gae(rewards / reward_std, values, terminated, gamma, config.gae_lambda)
    outcome, predictions = (None, end.predictions) if isinstance(end, Bootstrap) else (end, None)
    labels = label_segment(fallen, outcome, predictions, heroes,
                           discount(config.building_horizon_seconds, timestep_seconds))
    for name, array in (("advantages", advantages), ("returns", returns), ("win_label", labels.win),
                        ("rank_label", labels.rank), ("building_label", labels.building)):
        out[name] = _pad(array, len(padded))
    out["mask"] = np.ones((len(padded), heroes), np.float32)
    out["mask"][length:] = 0.0
    out["outcome_mask"] = np.zeros(len(padded), np.float32)
    out["resets"] = np.zeros(len(padded), np.bool_)
    out["resets"][0] = begins
    measured = _deviation_input(config, rewards, gamma, running_return)
    versions = out["versions"]
    return Segment(out, samples, float(measured.sum()), float((measured**2).sum()), length * heroes,
                   int(versions.min()), int(versions.max()), variant)


def _deviation_input(config: LearnerConfig, rewards: Array, gamma: float, running_return: Array) -> Array:
    """Return the values whose running deviation divides rewards (``config.reward_scale``), float64 [T, H].

    ``running_return`` [H] is updated in place.
    """
    returns = linear_recurrence(gamma, rewards, running_return)
    running_return[:] = returns[-1]
    return rewards.astype(np.float64) if config.reward_scale == "reward" else returns


def _pad(array: Array, length: int) -> Array:
    if len(array) == length:
        return array
    return np.concatenate([array, np.broadcast_to(array[-1:], (length - len(array), *array.shape[1:]))])
