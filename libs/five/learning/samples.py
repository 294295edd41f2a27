"""From the steps of one team to labelled segments, and from segments to samples.

A *segment* is a dictionary of arrays with a leading time dimension; recurrent states, named ``state/<name>``, lead
with the number of samples instead. A *sample* is ``unroll`` timesteps of it; a *batch* is many samples, time first:
[T, B, ...], states [B, ...].

Names besides the observation's: ``actions`` int16 [T, H, 6]; ``behaviour_logp``, ``behaviour_values``,
``advantages``, ``returns``, ``mask`` float32 [T, H]; ``resets`` bool [T]; ``versions`` int32 [T]; ``win_label``
float32 [T], ``rank_label`` float32 [T, H, 5], ``building_label`` float32 [T, n].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from five.config import LearnerConfig
from five.learning.auxiliary import RANKS, Outcome, segment_labels
from five.learning.gae import discount, gae

STATE_PREFIX = "state/"
ACTION_PARTS = 6
LEARNING_ARRAYS = (
    "actions", "behaviour_logp", "behaviour_values", "advantages", "returns", "mask", "resets", "versions",
    "win_label", "rank_label", "building_label")

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


def learning_specs(heroes: int, buildings: int) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
    """Shape and dtype of one timestep's row of each of `LEARNING_ARRAYS`, for ``heroes`` of a team and ``buildings``
    slots of the enemy's."""
    per_hero: tuple[tuple[int, ...], npt.DTypeLike] = ((heroes,), np.float32)
    return {
        "actions": ((heroes, ACTION_PARTS), np.int16), "behaviour_logp": per_hero, "behaviour_values": per_hero,
        "advantages": per_hero, "returns": per_hero, "mask": per_hero, "resets": ((), np.bool_),
        "versions": ((), np.int32), "win_label": ((), np.float32), "rank_label": ((heroes, RANKS), np.float32),
        "building_label": ((buildings,), np.float32)}


@dataclass(frozen=True)
class Step:
    """What one team saw, did and got in a timestep.

    ``state`` is the recurrent state *before* the step, ``rewards`` float [H] what followed it, not yet divided by
    the running deviation. ``behaviour_logp`` and ``behaviour_values`` are those of the acting version and are never
    computed again. ``terminated``: the game ended with this step, and ``outcome`` says how. ``predictions``: the
    auxiliary heads' probabilities, as `segment_labels` reads them.
    """

    observation: Mapping[str, Array]
    state: Mapping[str, Array]
    actions: Array
    behaviour_logp: Array
    behaviour_values: Array
    predictions: Mapping[str, Array]
    version: int
    reset: bool
    rewards: Array
    terminated: bool = False
    outcome: Outcome | None = None
    building_events: Array | None = None


@dataclass(frozen=True)
class Segment:
    """Labelled steps of one team, ready to send. ``arrays`` as the module describes.

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
    games_ended: int = 0


def split_segment(arrays: Mapping[str, Array], samples: int) -> list[Arrays]:
    """The samples of a segment, as views. Raises ValueError naming an array that cannot be split so."""
    out: list[Arrays] = [{} for _ in range(samples)]
    for name, array in arrays.items():
        if array.shape[0] % samples or (name.startswith(STATE_PREFIX) and array.shape[0] != samples):
            raise ValueError(f"{name!r} of shape {array.shape} cannot be split into {samples} samples")
        length = array.shape[0] // samples
        for i in range(samples):
            out[i][name] = array[i] if name.startswith(STATE_PREFIX) else array[i * length : (i + 1) * length]
    return out


def split_batch(batch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(observation, state, learning arrays) of a batch, states without their prefix."""
    observation, state, learning = {}, {}, {}
    for name, array in batch.items():
        if name.startswith(STATE_PREFIX):
            state[name[len(STATE_PREFIX) :]] = array
        elif name in LEARNING_ARRAYS:
            learning[name] = array
        else:
            observation[name] = array
    return observation, state, learning


@dataclass
class SegmentBuilder:
    """Takes the steps of one team, game after game, and cuts them into labelled segments.

    A segment may hold the end of one game and the beginning of the next: nothing flows back across the border, and
    the recurrent state is reset there. A segment that ends within a game is *cut*: it bootstraps from the values and
    predictions of the step that follows, so `add` returns it one step later.

    Set ``gae_horizon_seconds`` and ``reward_std`` to those of the newest version seen: they apply to the next segment
    that is completed.
    """

    config: LearnerConfig
    gae_horizon_seconds: float
    reward_std: float = 1.0
    dropped_steps: int = 0
    _arrays: Arrays = field(default_factory=dict)
    _rewards: list[Array] = field(default_factory=list)
    _terminated: list[bool] = field(default_factory=list)
    _outcomes: list[Outcome | None] = field(default_factory=list)
    _events: list[Array] = field(default_factory=list)
    _return: Array | None = None  # running discounted sum of rewards, [H]
    _return_sums: tuple[float, float] = (0.0, 0.0)

    @property
    def pending(self) -> int:
        """Steps taken in and not yet part of a segment."""
        return len(self._rewards)

    @property
    def length(self) -> int:
        """Timesteps of a full segment."""
        return self.config.lstm_unroll_length * self.config.samples_per_segment

    def add(self, step: Step) -> Segment | None:
        """Takes a step; returns the segment that it completes, if any. The step's arrays are copied.

        Raises ValueError when a game's last step comes without its outcome, or when a step continues a game that has
        ended, or begins one while another is still going on (call `abandon` first).
        """
        if step.terminated and step.outcome is None:
            raise ValueError("the last step of a game comes without its outcome")
        if self._rewards and step.reset != self._terminated[-1]:
            raise ValueError("a game begins before the last one ended" if step.reset else
                             "a step follows the end of its game without a reset")
        done = self._close(step) if self.pending == self.length else None
        self._put(step)
        if self.pending == self.length and step.terminated:  # nothing to bootstrap from: no need to wait
            done = self._close(None)
        return done

    def flush(self) -> Segment | None:
        """The steps so far as a shorter segment, when they end with a game; for a team that stops playing.

        The last sample is filled up with copies of the last step, whose ``mask`` is 0.
        """
        if not self._rewards:
            return None
        if not self._terminated[-1]:
            raise ValueError("the game is still going on: add its last step, or abandon it")
        return self._close(None)

    def abandon(self) -> int:
        """Drops the pending steps, for a game that was lost; returns how many."""
        lost = self.pending
        self.dropped_steps += lost
        self._clear()
        self._return = None
        return lost

    def _clear(self) -> None:
        self._arrays = {}
        self._rewards, self._terminated, self._outcomes, self._events = [], [], [], []
        self._return_sums = (0.0, 0.0)

    def _put(self, step: Step) -> None:
        t, unroll = self.pending, self.config.lstm_unroll_length
        heroes = step.rewards.shape[0]
        if t == 0:
            self._allocate(step)
        a = self._arrays
        for name, array in step.observation.items():
            a[name][t] = array
        if t % unroll == 0:
            for name, array in step.state.items():
                a[STATE_PREFIX + name][t // unroll] = array
        a["actions"][t] = step.actions
        a["behaviour_logp"][t] = step.behaviour_logp
        a["behaviour_values"][t] = step.behaviour_values
        a["resets"][t] = step.reset
        a["versions"][t] = step.version
        a["mask"][t] = 1.0
        raw = np.array(step.rewards, np.float64)
        gamma = discount(self.gae_horizon_seconds, self.config.timestep_seconds)
        self._return = raw if self._return is None or step.reset else gamma * self._return + raw
        s, q = self._return_sums
        self._return_sums = s + float(self._return.sum()), q + float((self._return**2).sum())
        self._rewards.append(raw)
        self._terminated.append(step.terminated)
        self._outcomes.append(step.outcome)
        buildings = np.shape(step.predictions["building_events"])[-1]
        events = np.zeros(buildings) if step.building_events is None else np.array(step.building_events, np.float64)
        if events.shape != (buildings,) or raw.shape != (heroes,):
            raise ValueError(f"building_events {events.shape} and rewards {raw.shape} do not fit a team of {heroes} "
                             f"heroes whose model predicts {buildings} buildings")
        self._events.append(events)

    def _allocate(self, step: Step) -> None:
        n, samples, heroes = self.length, self.config.samples_per_segment, step.rewards.shape[0]
        buildings = np.shape(step.predictions["building_events"])[-1]
        a: Arrays = {name: np.empty((n, *np.shape(x)), x.dtype) for name, x in step.observation.items()}
        for name, x in step.state.items():
            a[STATE_PREFIX + name] = np.empty((samples, *np.shape(x)), x.dtype)
        a["actions"] = np.empty((n, heroes, ACTION_PARTS), np.int16)
        for name in ("behaviour_logp", "behaviour_values", "advantages", "returns"):
            a[name] = np.empty((n, heroes), np.float32)
        a["mask"] = np.zeros((n, heroes), np.float32)
        a["resets"] = np.zeros(n, np.bool_)
        a["versions"] = np.empty(n, np.int32)
        a["win_label"] = np.empty(n, np.float32)
        a["rank_label"] = np.empty((n, heroes, RANKS), np.float32)
        a["building_label"] = np.empty((n, buildings), np.float32)
        self._arrays = a

    def _close(self, following: Step | None) -> Segment:
        """The pending steps as a segment; ``following`` is bootstrapped from where the last game goes on."""
        c, a, n = self.config, self._arrays, self.pending
        raw = np.stack(self._rewards)
        terminated = np.array(self._terminated)
        values = np.zeros((n + 1, raw.shape[1]))
        values[:n] = a["behaviour_values"][:n]
        if following is not None:
            values[n] = following.behaviour_values
        gamma = discount(self.gae_horizon_seconds, c.timestep_seconds)
        advantages, returns = gae(raw / self.reward_std, values, terminated, gamma, c.gae_lambda)
        a["advantages"][:n], a["returns"][:n] = advantages, returns
        self._label(following, raw.shape[1])

        samples = -(-n // c.lstm_unroll_length)
        padded = samples * c.lstm_unroll_length
        arrays = {}
        for name, array in a.items():
            if name.startswith(STATE_PREFIX):
                arrays[name] = array[:samples]
                continue
            arrays[name] = array[:padded]
            if name not in ("mask", "resets"):
                array[n:padded] = array[n - 1]
        if c.reward_scale == "return":
            total, squares = self._return_sums
        else:
            total, squares = float(raw.sum()), float((raw**2).sum())
        versions = a["versions"][:n]
        segment = Segment(arrays, samples, n, total, squares, raw.size, int(versions.min()), int(versions.max()),
                          int(terminated.sum()))
        self._clear()
        return segment

    def _label(self, following: Step | None, heroes: int) -> None:
        events = np.stack(self._events)
        building_gamma = discount(self.config.building_horizon_seconds, self.config.timestep_seconds)
        start = 0
        for t in range(self.pending):
            if not self._terminated[t] and t + 1 < self.pending:
                continue
            predictions = following.predictions if following is not None and not self._terminated[t] else None
            labels = segment_labels(events[start : t + 1], self._outcomes[t], predictions, heroes, building_gamma)
            self._arrays["win_label"][start : t + 1] = labels.win
            self._arrays["rank_label"][start : t + 1] = labels.rank
            self._arrays["building_label"][start : t + 1] = labels.building
            start = t + 1
