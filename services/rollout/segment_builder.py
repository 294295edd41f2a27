"""Segments from a group's step buffer: computes rewards from signals and finds fallen buildings in observations."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dota.config import RewardConfig
from dota.rewards import rewards, signal_weights, time_weights
from dota.spaces import Layout
from five.agent.config import LearnerConfig
from five.agent.learning.labels import GameOutcome
from five.agent.learning.outcome_samples import OutcomeSamples
from five.agent.learning.segments import Bootstrap, Segment, cut_segment
from five.services.rollout.step_buffer import SIDES, Array, Arrays, StepBuffer


@dataclass(frozen=True)
class ScheduleValues:
    """Values that change during a run: schedules at the newest version seen, and that version's reward deviation."""

    team_spirit: float
    gae_horizon_seconds: float
    reward_std: float


class SegmentBuilder:
    """Cuts both sides' steps of a group's games into segments.

    It keeps what crosses segments: whether a game's next segment is its first, each hero's discounted return, and the
    samples that wait for the game's outcome.
    """

    def __init__(self, layout: Layout, learning: LearnerConfig, reward_config: RewardConfig, buffer: StepBuffer,
                 timestep_seconds: float, building_slots: npt.NDArray[np.int16],
                 rng: np.random.Generator | None = None) -> None:
        """``building_slots`` int16 [2, n] is `VecGame.building_slots` of the group's games. ``rng`` chooses outcome
        samples."""
        self._learning = learning
        self._timestep_seconds = timestep_seconds
        self._rewards = reward_config
        self._buffer = buffer
        self._weights = signal_weights(reward_config)
        self._begins = np.ones(buffer.games, np.bool_)
        self._returns = np.zeros((buffer.games, SIDES, buffer.heroes))
        rng = rng or np.random.default_rng()
        self._outcome_samples = [[OutcomeSamples(learning.outcome_samples_per_game, rng) for _ in range(SIDES)]
                                 for _ in range(buffer.games)]
        block, group = layout.blocks["units"], layout.groups["allied_buildings"]
        first = block.offset["shared"] + block.field("max_hp").offset + group.start * block.stride["shared"]
        self._known = building_slots >= 0
        self._buildings = first + block.stride["shared"] * np.maximum(building_slots, 0).astype(np.intp)

    def start_game(self, game: int) -> None:
        """Start a new game in a slot."""
        self._returns[game] = 0.0
        for team in self._outcome_samples[game]:
            team.start_game()
        self._begins[game] = True

    def cut(self, game: int, start: int, steps: int, train: tuple[int, ...], states: Mapping[str, Array],
            schedule: ScheduleValues, ends: Mapping[int, Bootstrap | GameOutcome], variant: str = ""
            ) -> tuple[list[Segment[Arrays]], npt.NDArray[np.float64]]:
        """Return segments of the sides in ``train`` and the weighted rewards of both sides.

        Args:
            game: env slot in the group.
            start: the group's step at which the segment begins. The buffer must still hold it and step ``start +
            steps``.
            steps: number of steps T.
            train: sides to cut segments for.
            states: recurrent states at the samples' starts, [samples, G, 2, ...].
            schedule: see `ScheduleValues`.
            ends: by side of ``train``, the step that follows or how the game ended with the last step.
            variant: of the game, as of `Segment`.

        Returns the segments in the order of ``train``, followed by at most one outcome sample of each side, and
        float64 [2, H, signals]: what the heroes earned by signal, weighted, before team spirit and the other team's
        rewards are applied.
        """
        buffer = self._buffer
        rows = buffer.row_indices(start, steps)
        signals, time = buffer.signals[rows, game], buffer.game_time[rows, game]
        raw, _ = rewards(signals, time, schedule.team_spirit, self._rewards)
        segments = [
            cut_segment(
                buffer.team_arrays(game, side), rows, states={n: state[:, game, side] for n, state in states.items()},
                rewards=raw[:, side], fallen=self._fallen_buildings(game, side, start, steps),
                begins=bool(self._begins[game]), end=ends[side], config=self._learning,
                gae_horizon_seconds=schedule.gae_horizon_seconds, reward_std=schedule.reward_std,
                running_return=self._returns[game, side], timestep_seconds=self._timestep_seconds, variant=variant)
            for side in train]
        self._begins[game] = False
        segments += self._exchange_outcome_samples(game, dict(zip(train, segments, strict=True)), ends)
        weights = self._weights * time_weights(time, self._rewards)
        weighted = np.einsum("tshk,tk->shk", signals, weights, dtype=np.float64)
        return segments, weighted

    def _exchange_outcome_samples(self, game: int, segments: Mapping[int, Segment[Arrays]],
                                  ends: Mapping[int, Bootstrap | GameOutcome]) -> list[Segment[Arrays]]:
        """Keep samples of the segments, by side; return at most one labelled sample of each side."""
        labelled = []
        for side, segment in segments.items():
            team, end = self._outcome_samples[game][side], ends[side]
            team.add(segment)
            if isinstance(end, GameOutcome):
                team.finish_game(end)
            labelled.append(team.take())
        return [sample for sample in labelled if sample is not None]

    def _fallen_buildings(self, game: int, side: int, start: int, steps: int) -> Array:
        """Return float32 [T, n]: 1 where an enemy building stands at step t and not at the next, by slot of the side.

        The owner's observation decides, because a building out of sight disappears from the side's own observation.
        """
        rows = self._buffer.row_indices(start, steps + 1)
        stands = self._buffer.nonzero("shared", rows, game, 1 - side, self._buildings[side])
        fallen: Array = (stands[:-1] & ~stands[1:] & self._known[side]).astype(np.float32)
        return fallen
