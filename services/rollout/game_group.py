"""Game group: plays games in lockstep, with the actions of inference, and records their steps and results."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.labels import WIN, GameOutcome, net_worth_ranks
from five.clients.inference import NEWEST, WANT_STATE, ActResult
from five.services.rollout.env_slots import Bools, EnvSlots
from five.services.rollout.environment import StepResult
from five.services.rollout.game_starter import GameStarter
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.matchmaking import DRAW, GameRecord, Match, side_outcomes
from five.services.rollout.middle_games import GameSnapshot
from five.services.rollout.policy_inference import InferenceLost, PastVersionMissing, act, replay_and_act
from five.services.rollout.segment_builder import SegmentBuilder
from five.services.rollout.segment_cutter import SegmentCutter
from five.services.rollout.step_buffer import SIDES, StepBuffer
from rapid.telemetry import tracing

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1  # between two requests while inference is lost; pauses double
MAX_PAUSE_SECONDS = 5.0


@dataclass
class GameGroup:
    """G games in lockstep. While one group waits for inference or its games, the other groups of the process work."""

    dependencies: GroupDependencies
    buffer: StepBuffer
    slots: EnvSlots
    segments: SegmentBuilder
    progress: GroupProgress = field(default_factory=GroupProgress)

    def __post_init__(self) -> None:
        # One a slot. `play` replaces these before the first step.
        self._records = [GameRecord(Match(""), np.zeros(0))] * self.buffer.games
        self._cutter = SegmentCutter(self.dependencies.sender, self.dependencies.schedule_values, self.buffer,
                                     self.slots, self.segments, self._records, self.progress)
        self._starter = GameStarter(self.dependencies, self.buffer, self.slots, self.segments, self._records,
                                    self.progress, self._wait_while_paused)
        self._net_worth = self.dependencies.environment.statistic_names.index("net_worth")

    @property
    def environment_server(self) -> str:
        """Address of the server that runs the games; "" for games of this process."""
        return self.dependencies.environment.server

    def live_games(self) -> list[dict[str, Any]]:
        """Return the group's games for the list of live games."""
        broadcast = self.dependencies.broadcast
        return [] if broadcast is None else broadcast.games()

    async def close(self) -> None:
        """Close the environment and stop loading past versions."""
        if self.dependencies.past is not None:
            await self.dependencies.past.close()
        await self.dependencies.environment.close()

    async def play(self) -> None:
        """Play until the gate stops. Steps of incomplete samples are lost then."""
        step = 0
        await self._starter.start(step, np.arange(self.buffer.games, dtype=np.int32), stagger=True)
        await self._wait_while_paused()
        while not self.dependencies.gate.is_stopping:
            with tracing.step_span("game step", {"five.games": self.buffer.games}) as span:
                if span is not None:
                    self._cutter.trace(step, span.traceparent)
                await self._play_step(step)
            step += 1
        self._cutter.cut_all()

    async def _play_step(self, step: int) -> None:
        """Play a step, or the part of it that precedes the stop of the gate."""
        dependencies, timed = self.dependencies, self.progress.timed
        with timed("wait"):
            await dependencies.sender.wait_for_capacity()
        if dependencies.broadcast is not None:
            dependencies.broadcast.update_viewers(self._records, self.slots, dependencies.environment)
        with timed("act"):
            answer = await self._request_actions(step)
        if answer is None:
            return
        with timed("cut"):
            self._record_actions(step, answer)
            if dependencies.broadcast is not None:
                dependencies.broadcast.add_policy_debug(step, self.buffer, self.slots, answer,
                                                        dependencies.environment)
        # Checked after the request, because a game at a sample boundary has a complete sample only then.
        with timed("wait"):
            await self._wait_while_paused()
        if dependencies.gate.is_stopping:
            return
        try:
            with timed("step"):
                outcome = await dependencies.environment.step(
                    self.buffer.actions[self.buffer.row(step)], self.buffer.observation(step + 1))
        except ConnectionError as error:
            await self._starter.abandon_all(step + 1, error)
            return
        with timed("cut"):
            if dependencies.broadcast is not None:
                dependencies.broadcast.add_step(outcome, dependencies.environment)
            await self._record_result(step, outcome)

    async def _wait_while_paused(self) -> None:
        """Wait while the run is paused, after sending the games' segments.

        Played steps count whatever follows the pause. After a plain resume the games continue with the same states.
        """
        gate, progress = self.dependencies.gate, self.progress
        progress.is_idle = False
        while gate.is_paused:
            self._cutter.cut_all()
            progress.is_idle = True
            await gate.wait_until_active()
            # Cleared before the gate is read again: a paused gate followed by an idle group is then reliable.
            progress.is_idle = False

    # Before the step.

    async def _request_actions(self, step: int) -> ActResult | None:
        """Return inference's answer, or None when stopping. Lost states are rebuilt first."""
        inference, buffer, slots = self.dependencies.inference, self.buffer, self.slots
        pause = FIRST_PAUSE_SECONDS
        lost: Bools | None = None
        while not self.dependencies.gate.is_stopping:
            try:
                if lost is None:
                    answer = await act(inference, buffer, slots, step)
                    if not len(answer.unknown_sessions):
                        return answer
                    lost = np.isin(slots.sessions, answer.unknown_sessions)
                    log.info("sessions unknown to inference, rebuilding states sessions=%d", lost.sum())
                self.progress.recoveries += 1
                return await replay_and_act(inference, buffer, slots, step, lost & slots.acting)
            except InferenceLost as error:
                log.warning("inference lost, rebuilding states: %s", error)
                lost = np.ones_like(slots.acting)
            except PastVersionMissing as error:
                past = np.flatnonzero((slots.policies != NEWEST).any(axis=1)).astype(np.int32)
                log.warning("past version not available, abandoning games=%d: %s", len(past), error)
                if self.dependencies.past is not None:
                    self.dependencies.past.drop()  # otherwise the new games would be against it as well
                await self._starter.abandon(step, past)
                lost = np.ones_like(slots.acting)
            await self._wait_while_paused()
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        return None

    def _record_actions(self, step: int, answer: ActResult) -> None:
        """Record the answer to a step and cut the segments that needed it as a bootstrap."""
        buffer, slots, progress = self.buffer, self.slots, self.progress
        row, rows = buffer.row(step), slots.rows
        games, sides = rows // SIDES, rows % SIDES
        buffer.actions[row, games, sides] = answer.actions
        buffer.logp[row, games, sides] = answer.log_probabilities
        buffer.values[row, games, sides] = answer.values
        buffer.versions[row, games, sides] = answer.versions
        newest = answer.versions[slots.policies.ravel()[rows] == NEWEST]
        if len(newest):
            progress.newest_version = max(progress.newest_version, int(newest.max()))
        self._cutter.reward_std = answer.reward_std
        sample_starts = rows[np.flatnonzero(slots.flags(step).ravel()[rows] & WANT_STATE)]
        if len(sample_starts):
            self._record_sample_starts(step, sample_starts, answer)
        progress.team_steps += len(rows)
        progress.hero_steps += answer.values.size
        progress.queue_us += answer.queue_us
        progress.forward_us += answer.forward_us

    def _record_sample_starts(self, step: int, rows: npt.NDArray[np.int64], answer: ActResult) -> None:
        """Cut the segments that end before a step, and record the states and predictions of the samples that begin.

        ``rows`` are the samples' sides, as indices into [G * 2]. A segment ends only where its game's sample begins.
        """
        slots = self.slots
        self._record_win_prediction(step, rows, answer)
        slots.record_predictions(rows, answer.auxiliary)
        ended = np.union1d(slots.full_segments(step), self._games_over_limit(step))
        if len(ended):
            self._cutter.cut_at_boundary(ended, step)
        slots.record_states(step, rows, answer.states)

    def _record_win_prediction(self, step: int, rows: npt.NDArray[np.int64], answer: ActResult) -> None:
        """Record the win prediction at a game's first step. The draft's evaluation uses it."""
        predictions = answer.auxiliary.get(WIN)
        if predictions is None:
            return
        for i in np.flatnonzero(self.slots.start_step[rows // SIDES] == step).tolist():
            game, side = divmod(int(rows[i]), SIDES)
            if self._records[game].start_seconds is None:
                self._records[game].predicted[side] = float(np.mean(predictions[i], dtype=np.float64))

    # After the step.

    async def _record_result(self, step: int, outcome: StepResult) -> None:
        buffer = self.buffer
        row = buffer.row(step)
        buffer.signals[row] = outcome.signals
        buffer.game_time[row] = outcome.game_time
        ended = np.flatnonzero(outcome.winners)
        for game in ended.tolist():
            self._finish_game(game, step, int(outcome.winners[game]), float(outcome.game_time[game]),
                              outcome.statistics[game])
        cut = np.setdiff1d(self._games_over_limit(step), ended)
        for game in cut.tolist():
            self._record_game(game, 0, float(outcome.game_time[game]), outcome.statistics[game])
        await self._take_snapshots(step, outcome)
        if len(ended) or len(cut):
            await self._starter.start(step + 1, np.union1d(ended, cut).astype(np.int32))

    def _games_over_limit(self, step: int) -> npt.NDArray[np.int64]:
        """Return the games that are cut at a step. Their segments end before it; it is played and dropped, because
        their answers arrive with the other games'."""
        return self.slots.over_limit(step, self.buffer.game_time[self.buffer.row(step - 1)])

    async def _take_snapshots(self, step: int, outcome: StepResult) -> None:
        """Take the due snapshots of whole games of the run's configuration, while a share of games begins with one."""
        ring = self.dependencies.snapshots
        if (ring is None or ring.of_bots
                or not self.dependencies.hyperparameters(self.progress.newest_version).middle_fraction):
            return
        due = ring.due(self.buffer.game_time[self.buffer.row(step - 1)], outcome.game_time)
        for game in np.flatnonzero(due & (outcome.winners == 0) & (self.slots.start_step < step)).tolist():
            record = self._records[game]
            if record.start_seconds is None and record.variant.config is None:
                state = await self.dependencies.environment.snapshot(game)
                ring.add(GameSnapshot(state, float(outcome.game_time[game])))

    def _finish_game(self, game: int, step: int, winner: int, game_seconds: float,
                     statistics: npt.NDArray[np.float32]) -> None:
        """Finish a game that ended with ``step``. The next step holds its last observation."""
        won = (0.5, 0.5) if winner == DRAW else (float(winner == 1), float(winner == 2))
        ranks = [net_worth_ranks(statistics[side, :, self._net_worth]) for side in range(SIDES)]
        self._cutter.cut(game, step + 1, {side: GameOutcome(won[side], ranks[side]) for side in range(SIDES)})
        record = self._records[game]
        if record.start_seconds is None:
            learner = int(np.argmax(record.match.seats.trains))
            self.dependencies.matchmaker.report_result(record.match, side_outcomes(winner)[learner], game_seconds)
        self._record_game(game, winner, game_seconds, statistics)

    def _record_game(self, game: int, winner: int, game_seconds: float, statistics: npt.NDArray[np.float32]) -> None:
        self.dependencies.on_game(self._records[game].finish(
            winner, game_seconds, self.progress.newest_version, statistics,
            self.dependencies.environment.statistic_names))
        self.progress.games += 1


def ring_capacity(unroll: int, samples: int) -> int:
    """Return the number of steps to keep: a segment, its bootstrap step, and the sample before it.

    A lost state is rebuilt from the start of the previous sample while the present one's state is unknown.
    """
    return unroll * (samples + 1) + 2


def split_games(games: int, groups: int) -> list[int]:
    """Return the number of games of each group; groups without games are left out."""
    return [n for n in (games // groups + (i < games % groups) for i in range(groups)) if n]
