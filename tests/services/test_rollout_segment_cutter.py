"""Cuts of a group's segments: where they end, their bootstraps, and the trace of a sampled step."""

from collections.abc import Sequence

import numpy as np
import pytest

from dota.config import RewardConfig
from dota.rewards import SIGNALS
from five.agent.learning.labels import GameOutcome
from five.services.rollout.anneal_assignment import GameVariant
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.matchmaking import GameRecord, Match
from five.services.rollout.segment_builder import SegmentBuilder
from five.services.rollout.segment_cutter import SegmentCutter
from five.services.rollout.step_buffer import SIDES, StepBuffer
from rapid.telemetry import tracing
from tests.agent.plain_samples import steps_of
from tests.services.counting import BUILDINGS, HEROES, LAYOUT, STATE_SPECS, CountingGames
from tests.services.test_rollout import LEARNING, RATES, SAMPLES, UNROLL, SegmentSink

GAMES, CAPACITY = 2, UNROLL * (SAMPLES + 1) + 2
SELF_PLAY, BOT_ON_DIRE = Match("self-play"), Match("bot", side=1, bot="scripted")


class Group:
    """A cutter of two games that began at step 0, whose values and rewards are zero until a test sets them."""

    def __init__(self, *matches: Match, variant: str = "") -> None:
        self.buffer = StepBuffer(LAYOUT.array_specs(), CAPACITY, GAMES, HEROES, len(SIGNALS))
        self.slots = EnvSlots(GAMES, UNROLL, SAMPLES, STATE_SPECS, np.random.default_rng(0))
        self.records = [GameRecord(match, np.zeros((SIDES, HEROES, len(SIGNALS))), GameVariant(variant))
                        for match in matches]
        self.progress = GroupProgress(newest_version=7)
        self.schedules: list[tuple[int, float]] = []
        sink = SegmentSink(CountingGames([[100]] * GAMES))
        self.sent = sink.segments
        builder = SegmentBuilder(LAYOUT, LEARNING, RewardConfig(), self.buffer, 4 / 30, np.zeros((2, 1), np.int16))

        def schedule_values(version: int, reward_std: float) -> object:
            self.schedules.append((version, reward_std))
            return RATES

        self.cutter = SegmentCutter(sink, schedule_values, self.buffer, self.slots,  # type: ignore[arg-type]
                                    builder, self.records, self.progress)
        self.cutter.reward_std = 2.0
        for game, match in enumerate(matches):
            self.slots.start_game(game, 0, match.seats)

    def predict(self, win: float = 0.5) -> None:
        """Record predictions of the acting sides. Each side's differs by 0.1 from the previous side's."""
        rows = self.slots.rows
        self.slots.record_predictions(rows, {
            "win_probability": (win + 0.1 * rows[:, None]) * np.ones((len(rows), HEROES)),
            "net_worth_rank": np.full((len(rows), HEROES, 5), 0.2),
            "building_events": np.full((len(rows), HEROES, BUILDINGS), 0.1)})

    def record_states(self, step: int, games: Sequence[int] = (0, 1)) -> None:
        """Record states equal to the step, of both sides of games."""
        rows = np.array([game * SIDES + side for game in games for side in range(SIDES)])
        self.slots.record_states(step, rows, {
            name: np.full((len(rows), *shape), step, np.float32) for name, (shape, _) in STATE_SPECS.items()})


@pytest.fixture
def group() -> Group:
    return Group(SELF_PLAY, SELF_PLAY)


def test_segment_at_a_boundary_has_its_sides_bootstrap(group: Group) -> None:
    group.predict(0.1)
    group.buffer.values[UNROLL, 1, 1] = 3.0  # of the last side only
    group.cutter.cut_at_boundary(np.array([0, 1]), UNROLL)
    assert [steps_of(segment) for segment in group.sent] == [UNROLL] * 4
    labels = [segment.arrays["win_label"].tolist() for segment in group.sent]
    np.testing.assert_allclose(labels, [[win] * UNROLL for win in (0.1, 0.2, 0.3, 0.4)], rtol=1e-6)
    assert [bool(segment.arrays["advantages"].any()) for segment in group.sent] == [False, False, False, True]
    assert group.slots.start.tolist() == [UNROLL, UNROLL]
    assert group.progress.segments == 4 and group.schedules == [(7, 2.0)] * 2


def test_segment_keeps_the_states_of_its_own_samples(group: Group) -> None:
    group.record_states(0)
    group.predict()
    group.record_states(UNROLL)
    for boundary in (2 * UNROLL, 3 * UNROLL):
        group.cutter.cut_at_boundary(np.array([0, 1]), boundary)
        group.record_states(boundary)
    states = [segment.arrays["state/count"].ravel().tolist() for segment in group.sent]
    assert states == [[0, UNROLL]] * 4 + [[2 * UNROLL]] * 4


def test_all_games_are_cut_at_their_last_boundary(group: Group) -> None:
    """The first sample of the second game, which began at step 2, is incomplete."""
    group.slots.start_game(1, 2, SELF_PLAY.seats)
    group.predict()
    group.record_states(UNROLL, [0])
    group.cutter.cut_all()
    assert [steps_of(segment) for segment in group.sent] == [UNROLL] * 2
    assert group.slots.start.tolist() == [UNROLL, 2]
    assert group.slots.target.tolist() == [UNROLL * (SAMPLES - 1), UNROLL * SAMPLES]
    group.cutter.cut_all()
    assert len(group.sent) == group.progress.segments == 2


def test_side_of_a_bot_has_no_segment() -> None:
    group = Group(SELF_PLAY, BOT_ON_DIRE)
    group.predict()
    group.cutter.cut_at_boundary(np.array([1]), UNROLL)
    (segment,) = group.sent
    np.testing.assert_allclose(segment.arrays["win_label"], 0.5 + 0.1 * 2, rtol=1e-6)


def test_finished_game_has_its_outcome_rewards_and_variant() -> None:
    group = Group(SELF_PLAY, SELF_PLAY, variant="new")
    group.buffer.signals[:, 0, 0, :, SIGNALS.index("gold")] = 1.0
    ranks = np.zeros(HEROES, np.int64)
    group.cutter.cut(0, UNROLL + 1, {0: GameOutcome(1.0, ranks), 1: GameOutcome(0.0, ranks)})
    assert [segment.arrays["win_label"][0].item() for segment in group.sent] == [1.0, 0.0]
    assert [steps_of(segment) for segment in group.sent] == [UNROLL + 1] * 2
    assert {segment.variant for segment in group.sent} == {"new"}
    earned = group.records[0].earned
    assert earned[0].sum() == pytest.approx((UNROLL + 1) * 0.006) and not earned[1].any()
    assert not group.records[1].earned.any()


def test_one_sampled_step_at_a_time_is_traced(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "record", lambda name, parent, begin, end: f"{parent}/segment")
    group.predict()
    group.cutter.trace(UNROLL, "first")
    group.cutter.trace(UNROLL + 1, "refused")
    for boundary in (UNROLL, 2 * UNROLL):
        group.cutter.cut_at_boundary(np.array([0]), boundary)
    assert [segment.traceparent for segment in group.sent] == ["", "", "first/segment", ""]
    group.cutter.trace(2 * UNROLL, "second")
    group.cutter.cut_at_boundary(np.array([0]), 3 * UNROLL)
    assert [segment.traceparent for segment in group.sent[4:]] == ["second/segment", ""]


def test_trace_without_a_segment_is_replaced(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traced step of an abandoned game is in no segment. Another one is traced when it has left the buffer."""
    monkeypatch.setattr(tracing, "record", lambda name, parent, begin, end: f"{parent}/segment")
    group.predict()
    group.cutter.trace(0, "abandoned")
    group.cutter.trace(CAPACITY - 1, "refused")
    group.cutter.trace(CAPACITY, "next")
    group.slots.start_game(0, CAPACITY, SELF_PLAY.seats)
    group.cutter.cut_at_boundary(np.array([0]), CAPACITY + UNROLL)
    assert [segment.traceparent for segment in group.sent] == ["next/segment", ""]
