"""State of env slots: request flags, segment and sample boundaries, and the states that restore a lost session."""

from typing import Any

import numpy as np
import pytest

from five.clients.inference import NEWEST, RESET, WANT_POLICY_DEBUG, WANT_STATE
from five.services.rollout.env_slots import EnvSlots, SideAssignment

UNROLL, SAMPLES, GAMES = 4, 3, 3
SPECS: dict[str, tuple[tuple[int, ...], Any]] = {"h": ((2,), np.float32)}
SELF_PLAY = SideAssignment((NEWEST, NEWEST), (True, True), (True, True))
BOT_ON_DIRE = SideAssignment((NEWEST, NEWEST), (True, False), (True, False))
PAST_ON_RADIANT = SideAssignment((5, NEWEST), (True, True), (False, True))


@pytest.fixture
def slots() -> EnvSlots:
    made = EnvSlots(GAMES, UNROLL, SAMPLES, SPECS, np.random.default_rng(0))
    for game, seats in enumerate((SELF_PLAY, BOT_ON_DIRE, PAST_ON_RADIANT)):
        made.start_game(game, 0, seats)
    return made


def record(slots: EnvSlots, step: int, values: list[float], rows: list[int] | None = None, **predictions: Any) -> None:
    at = slots.rows if rows is None else np.array(rows)
    states = {"h": np.repeat(np.array(values, np.float32)[:, None], 2, axis=1)}
    slots.record_predictions(at, {n: np.array(p, np.float32) for n, p in predictions.items()})
    slots.record_states(step, at, states)


def test_slots_are_empty_before_the_first_game() -> None:
    made = EnvSlots(2, UNROLL, SAMPLES, SPECS, np.random.default_rng(0))
    assert (made.policies == NEWEST).all() and not made.acting.any() and not made.trains.any()
    assert not len(made.rows) and not made.watched.any()
    assert made.target.tolist() == [UNROLL * SAMPLES] * 2
    assert made.sample_states["h"].shape == (SAMPLES, 2, 2, 2) and made.boundary_states["h"].shape == (2, 2, 2)


def test_game_has_its_seats_and_new_sessions(slots: EnvSlots) -> None:
    assert slots.rows.tolist() == [0, 1, 2, 4, 5]  # side 3 is a bot's
    assert slots.policies.tolist() == [[NEWEST, NEWEST], [NEWEST, NEWEST], [5, NEWEST]]
    assert slots.trains.tolist() == [[True, True], [True, False], [False, True]]
    before = slots.sessions.copy()
    assert len(set(before.reshape(-1).tolist())) == 6 and (before >= 0).all() and (before > 2**40).sum() >= 5
    slots.start_game(1, 7, SELF_PLAY)
    assert slots.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert (slots.sessions[1] != before[1]).all() and np.array_equal(slots.sessions[[0, 2]], before[[0, 2]])
    assert (slots.start_step[1], slots.start[1], slots.boundary[1].tolist()) == (7, 7, [7, 7])
    assert slots.target[1] == UNROLL * SAMPLES


def test_request_flags_follow_each_games_age(slots: EnvSlots) -> None:
    slots.start_game(1, 2, SELF_PLAY)
    new, sample = RESET | WANT_STATE, WANT_STATE
    expected = {0: (new, None, new), 1: (0, None, 0), 2: (0, new, 0), 4: (sample, 0, sample), 6: (0, sample, 0),
                8: (sample, 0, sample)}
    for step, by_game in expected.items():
        flags = slots.flags(step)
        assert flags.shape == (GAMES, 2) and flags.dtype == np.uint8
        for game, of_game in enumerate(by_game):
            if of_game is not None:
                assert flags[game].tolist() == [of_game] * 2, (step, game)
    slots.watched[0] = True
    assert slots.flags(4)[0].tolist() == [sample | WANT_POLICY_DEBUG] * 2
    assert slots.flags(5)[0].tolist() == [WANT_POLICY_DEBUG] * 2 and slots.flags(5)[2].tolist() == [0, 0]
    slots.flags(4)[...] = 255  # a copy
    assert slots.flags(5)[2].tolist() == [0, 0]


def test_segments_are_full_at_their_own_steps(slots: EnvSlots) -> None:
    slots.start_game(1, 0, SELF_PLAY, first_target=UNROLL)
    full = {step: slots.full_segments(step).tolist() for step in range(UNROLL * SAMPLES + 2)}
    assert {step: games for step, games in full.items() if games} == {UNROLL: [1], UNROLL * SAMPLES: [0, 2]}
    slots.start_segment(np.array([1]), UNROLL)
    assert slots.full_segments(UNROLL * (SAMPLES + 1)).tolist() == [1]
    assert slots.start.tolist() == [0, UNROLL, 0]


def test_staggered_targets_are_whole_samples(slots: EnvSlots) -> None:
    assert [slots.staggered_target(game) for game in range(4)] == [UNROLL, 2 * UNROLL, 3 * UNROLL, UNROLL]


def test_states_are_recorded_at_their_sample_and_boundary(slots: EnvSlots) -> None:
    record(slots, 0, [1, 2, 3, 4, 5])
    record(slots, UNROLL, [6, 7, 8, 9, 10])
    assert slots.boundary_states["h"][:, :, 0].tolist() == [[6, 7], [8, 0], [9, 10]]
    assert slots.sample_states["h"][:2, :, :, 1].tolist() == [[[1, 2], [3, 0], [4, 5]], [[6, 7], [8, 0], [9, 10]]]
    assert slots.boundary.tolist() == [[UNROLL, UNROLL], [UNROLL, 0], [UNROLL, UNROLL]]
    slots.start_segment(np.array([0]), UNROLL)
    record(slots, 2 * UNROLL, [11], rows=[1])  # the second sample of its new segment
    assert slots.sample_states["h"][1, 0, 1].tolist() == [11, 11]
    assert slots.boundary[0].tolist() == [UNROLL, 2 * UNROLL]


def test_predictions_are_kept_by_side(slots: EnvSlots) -> None:
    record(slots, 0, [1, 2, 3, 4, 5], win=[[0.1], [0.2], [0.3], [0.4], [0.5]])
    record(slots, UNROLL, [1], rows=[1], win=[[0.9]])
    np.testing.assert_allclose(slots.boundary_predictions["win"][..., 0], [[0.1, 0.9], [0.3, 0], [0.4, 0.5]], rtol=1e-6)
    record(slots, 2 * UNROLL, [1], rows=[2], win=[[0.6, 0.7]])  # a model with another head
    assert slots.boundary_predictions["win"].shape == (GAMES, 2, 2)
    np.testing.assert_allclose(slots.boundary_predictions["win"][1, 0], [0.6, 0.7], rtol=1e-6)


def test_last_boundary_is_that_of_the_acting_sides(slots: EnvSlots) -> None:
    record(slots, UNROLL, [1, 2], rows=[0, 2])
    assert [slots.last_boundary(game) for game in range(GAMES)] == [0, UNROLL, 0]
    record(slots, UNROLL, [1], rows=[1])
    assert slots.last_boundary(0) == UNROLL


def test_split_segment_ends_where_the_full_one_would_have(slots: EnvSlots) -> None:
    slots.start_segment(np.arange(GAMES), 8)
    record(slots, 8 + UNROLL, [1, 2, 3, 4, 5])
    slots.split_segment(0, 8 + UNROLL)
    assert (slots.start[0], slots.target[0]) == (8 + UNROLL, UNROLL * (SAMPLES - 1))
    assert slots.full_segments(8 + UNROLL * SAMPLES).tolist() == [0, 1, 2]
    assert slots.sample_states["h"][0, 0].tolist() == [[1, 1], [2, 2]]  # the rest begins with these states
    assert not slots.sample_states["h"][0, 1].any()
