"""``game.frameskip``: a policy chooses every few frames, and its heroes continue in between."""

import numpy as np
import pytest

from dota.config import GameConfig
from dota.playback import play
from dota.spaces import Layout
from dota.vec_game import BOTS, Controller, VecGame
from tests.dota.small_games import MID

LONG = MID.model_copy(update={"kills_to_win": 0, "max_game_seconds": 600.0})


def games(frameskip: int) -> VecGame:
    return VecGame(LONG.model_copy(update={"frameskip": frameskip}), 1, seed=3)


def actions(rng: np.random.Generator, vec: VecGame) -> np.ndarray:
    h = vec.layout.heroes
    return rng.integers(0, [6, 4, vec.layout.units, vec.layout.units, 9, 9], (vec.games, 2, h, 6)).astype(np.int16)


@pytest.mark.parametrize("frameskip", [4, 8, 12, 16])
def test_a_step_is_so_many_frames(frameskip):
    vec = games(frameskip)
    assert vec.config.timestep_seconds == pytest.approx(frameskip / 30)
    for _ in range(9):
        vec.step()
    assert vec.game_time[0] - LONG.start_seconds == pytest.approx(9 * frameskip / 30, abs=1e-4)


def test_eight_frame_step_equals_two_steps_with_one_choice():
    """State, signals, events and observations are equal, except the previous action: it is the sampled one of the first
    half."""
    eight, four = games(8), games(4)
    rng = np.random.default_rng(5)
    blocks = eight.layout.blocks["previous_action"]
    last = np.ones(eight.obs["private"].shape[-1], bool)
    last[blocks.span("private")] = False
    event_count = 0
    for _ in range(300):
        chosen = actions(rng, eight)
        eight.step(chosen)
        four.step(chosen)
        signals, events = four.signals.copy(), four.events(0)
        four.step()
        assert np.allclose(eight.signals, signals + four.signals, atol=1e-4)
        assert eight.events(0) == events + four.events(0)
        event_count += len(eight.events(0))
        for name in ("shared", "shared_ids", "available", "target_mask"):
            assert np.array_equal(eight.obs[name], four.obs[name], equal_nan=True)
        assert np.array_equal(eight.obs["private"][..., last], four.obs["private"][..., last])
    assert event_count > 10 and eight.game_time[0] > 70


def test_the_last_action_that_is_seen_is_the_one_chosen():
    """The timestep without a choice does not replace it."""
    vec = games(8)
    offered = vec.obs["available"][0, 0, 0]
    move = next(i for i, a in enumerate(offered) if a and vec.layout.actions[a].name == "move")
    span = vec.layout.blocks["previous_action"].span("private")
    chosen = np.zeros((1, 2, 1, 6), np.int16)
    chosen[..., 0, 0] = move
    chosen[..., 4:] = 8
    vec.step(chosen)
    moved = vec.obs["private"][0, 0, 0, span].copy()
    vec.step()
    assert moved.any() and not np.array_equal(vec.obs["private"][0, 0, 0, span], moved)


def test_bots_choose_in_every_timestep():
    """Bot games are equal for every step length."""
    eight, four = games(8), games(4)
    for vec in (eight, four):
        vec.controllers[:] = Controller.SCRIPTED
    for _ in range(250):
        eight.step()
        four.step()
        four.step()
        assert np.array_equal(eight.stats, four.stats) and eight.spectate(0) == four.spectate(0)


def test_a_recording_holds_every_timestep_and_plays_the_same():
    vec = games(8)
    vec.controllers[:, 1] = BOTS["scripted"]
    tape, rng = vec.record(0), np.random.default_rng(1)
    for _ in range(240):
        vec.step(actions(rng, vec))
    tape.final_hash = vec.hash(0)
    assert len(tape) == 480 and len(tape.checks) == 1
    seen = [game.game_time[0] for game in play(tape)]
    assert len(seen) == 481 and seen[-1] == vec.game_time[0]


def test_a_game_that_ends_within_a_step_stays_at_its_end():
    """With automatic restarts, the following step starts a new game."""
    short = MID.model_copy(update={"frameskip": 16, "max_game_seconds": 1.1, "start_seconds": 0.0})
    vec = VecGame(short, 1, auto_reset=True)
    for _ in range(3):
        vec.step()
    assert vec.winner[0] == 3 and vec.game_time[0] == pytest.approx(1.1, abs=0.05)
    vec.step()
    assert vec.winner[0] == 0 and vec.game_time[0] == 0


def test_games_of_different_frameskips_are_not_stepped_together():
    with pytest.raises(ValueError, match=r"the variant has game\.frameskip 8, the games have 4"):
        VecGame(MID, 1, others=[MID.model_copy(update={"frameskip": 8})])


def test_only_whole_timesteps():
    with pytest.raises(ValueError, match="frameskip"):
        GameConfig(frameskip=6)
    assert Layout(MID).hash == Layout(MID.model_copy(update={"frameskip": 8})).hash
