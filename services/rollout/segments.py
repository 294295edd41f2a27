"""From a game's recorded steps to labelled segments: rewards, advantages, auxiliary labels, and the way to the wire."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dota.config import RewardConfig
from dota.rewards import rewards, signal_weights, time_weights
from dota.spaces import Layout
from five.config import LearnerConfig
from five.learning.auxiliary import Outcome, segment_labels
from five.learning.gae import discount, gae
from five.learning.samples import STATE_PREFIX, Segment
from services.rollout.ring import SIDES, Array, Arrays, StepRing


@dataclass(frozen=True)
class Rates:
    """What changes while a run goes on: schedule values at the newest version seen, and that version's statistic."""

    team_spirit: float
    gae_horizon_seconds: float
    reward_std: float = 1.0


@dataclass(frozen=True)
class Following:
    """The step after a segment that is cut: both sides' values float32 [2, H] and predictions by head [2, ...]."""

    values: Array
    predictions: Arrays


class Segments:
    """Cuts the steps of one game, both sides at once, into segments (Berner et al. 2019, appendix A).

    Holds per game and side what crosses segments: the running discounted return. One a group of games.
    """

    def __init__(self, layout: Layout, learning: LearnerConfig, reward_config: RewardConfig, ring: StepRing) -> None:
        self._learning = learning
        self._rewards = reward_config
        self._ring = ring
        self._building_gamma = discount(learning.building_horizon_seconds, learning.timestep_seconds)
        self._weights = signal_weights(reward_config)
        self._fresh = np.ones(ring.games, np.bool_)
        self._returns = np.zeros((ring.games, SIDES, ring.heroes))
        block, group = layout.blocks["units"], layout.groups["enemy_buildings"]
        field = block.field("max_hp")
        first = block.offset["shared"] + field.offset + group.start * block.stride["shared"]
        self._buildings = first + block.stride["shared"] * np.arange(group.count)

    def begin(self, game: int) -> None:
        """A new game starts in this place."""
        self._returns[game] = 0.0
        self._fresh[game] = True

    def cut(self, game: int, start: int, steps: int, train: tuple[int, ...], states: Mapping[str, Array], rates: Rates,
            following: Following | None, outcomes: tuple[Outcome, Outcome] | None
            ) -> tuple[list[Segment], npt.NDArray[np.float64]]:
        """Segments of the sides in ``train`` and the rewards that both sides got.

        Args:
            game: place in the group.
            start: the group's step with which the segment begins; the observation of step ``start + steps`` must be
                in the ring as well.
            steps: T.
            train: sides that a segment is made for.
            states: recurrent states at the samples' starts, [samples, G, 2, ...].
            rates: see `Rates`.
            following: the step after, for a segment that is cut; None when the game ended with the last step.
            outcomes: how the game ended for each side, when it did.

        Returns the segments in the order of ``train``, and by signal what both sides' heroes earned, float64
        [2, H, signals]: weighted, before it is shared in the team and the other team's is subtracted.
        """
        ring, learning = self._ring, self._learning
        rows = ring.span(start, steps)
        signals, time = ring.signals[rows, game], ring.game_time[rows, game]
        raw, _ = rewards(signals, time, rates.team_spirit, self._rewards)
        gamma = discount(rates.gae_horizon_seconds, learning.timestep_seconds)
        values = np.zeros((steps + 1, SIDES, ring.heroes), np.float32)
        values[:steps] = ring.values[rows, game]
        terminated = np.zeros(steps, np.bool_)
        if following is not None:
            values[steps] = following.values
        else:
            terminated[-1] = True
        advantages, returns = gae(raw / rates.reward_std, values, terminated, gamma, learning.gae_lambda)
        sums = self._sums(game, raw, gamma)
        segments = [
            self._segment(game, side, rows, start, states, raw, advantages[:, side], returns[:, side],
                          None if following is None else {n: a[side] for n, a in following.predictions.items()},
                          None if outcomes is None else outcomes[side], sums[side])
            for side in train]
        self._fresh[game] = False
        weights = self._weights * time_weights(time, self._rewards)
        weighted = np.einsum("tshk,tk->shk", signals, weights, dtype=np.float64)
        return segments, weighted

    def _sums(self, game: int, raw: Array, gamma: float) -> list[tuple[float, float]]:
        """Per side, what the optimizer's running deviation is made of: a sum and a sum of squares."""
        if self._learning.reward_scale == "reward":
            measured = raw.astype(np.float64)
        else:
            measured = np.empty(raw.shape)
            running = self._returns[game]
            for t in range(len(raw)):
                running = gamma * running + raw[t]
                measured[t] = running
            self._returns[game] = running
        total, squares = measured.sum(axis=(0, 2)), (measured**2).sum(axis=(0, 2))
        return [(float(total[side]), float(squares[side])) for side in range(SIDES)]

    def _segment(self, game: int, side: int, rows: npt.NDArray[np.intp], start: int, states: Mapping[str, Array],
                 raw: Array, advantages: Array, returns: Array, predictions: Arrays | None, outcome: Outcome | None,
                 sums: tuple[float, float]) -> Segment:
        ring, unroll = self._ring, self._learning.lstm_unroll_length
        steps, heroes = len(rows), ring.heroes
        samples = -(-steps // unroll)
        # What is missing of the last sample is filled with its last step, which then does not count.
        padded = np.concatenate([rows, np.full(samples * unroll - steps, rows[-1])])
        arrays: Arrays = {name: array[padded, game, side] for name, array in ring.observations.items()}
        for name, state in states.items():
            arrays[STATE_PREFIX + name] = state[:samples, game, side].copy()
        arrays["actions"] = ring.actions[padded, game, side]
        arrays["behaviour_logp"] = ring.logp[padded, game, side]
        arrays["behaviour_values"] = ring.values[padded, game, side]
        arrays["versions"] = ring.versions[padded, game, side]
        labels = segment_labels(self._fallen(game, side, start, steps), outcome, predictions, heroes,
                                self._building_gamma)
        for name, array in (("advantages", advantages), ("returns", returns), ("win_label", labels.win),
                            ("rank_label", labels.rank), ("building_label", labels.building)):
            arrays[name] = _padded(array, samples * unroll)
        mask = np.ones((samples * unroll, heroes), np.float32)
        mask[steps:] = 0.0
        arrays["mask"] = mask
        # A segment begins with a game or in the middle of one, and never crosses a game's end.
        arrays["resets"] = np.zeros(samples * unroll, np.bool_)
        arrays["resets"][0] = self._fresh[game]
        versions = arrays["versions"]
        return Segment(arrays, samples, steps, sums[0], sums[1], steps * heroes, int(versions.min()),
                       int(versions.max()), int(outcome is not None))

    def _fallen(self, game: int, side: int, start: int, steps: int) -> Array:
        """float32 [T, n]: 1 where an enemy building that stood in the observation of step t is gone in the next."""
        rows = self._ring.span(start, steps + 1)
        stands = self._ring.observations["shared"][rows[:, None], game, side, self._buildings[None]] > 0
        fallen: Array = (stands[:-1] & ~stands[1:]).astype(np.float32)
        return fallen


def net_worth_ranks(net_worth: Array) -> npt.NDArray[np.int64]:
    """int64 [H]: 0 for the richest hero; equals in the order of their slots. ``net_worth`` [H], gold."""
    order = np.argsort(-net_worth, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _padded(array: Array, length: int) -> Array:
    if len(array) == length:
        return array
    return np.concatenate([array, np.broadcast_to(array[-1:], (length - len(array), *array.shape[1:]))])

