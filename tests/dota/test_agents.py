"""Observation and action formats of agents, independent of a library."""

import numpy as np
import pytest

from dota.agents import AgentView, Weighting, controller_of, parse_seed, reset_options, split_mask
from dota.config import RewardConfig
from dota.rewards import SIGNALS
from dota.vec_game import Controller, VecGame
from tests.dota.small_games import FORMS, OBSERVATIONS, TEAM


@pytest.mark.parametrize("heroes", [1, 2])
@pytest.mark.parametrize("actions", FORMS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_observations_have_the_announced_shapes(observation, actions, heroes):
    games = VecGame(TEAM, 3, seed=1)
    view = AgentView(TEAM, games.layout, observation, actions, heroes)
    arrays = {name: array[:, 0] if name.startswith("shared") else array[:, 0, :heroes]
              for name, array in games.obs.items()}
    mask = view.mask(arrays)
    seen = view.observe(arrays, mask)
    seen = {"observation": seen} if observation == "flat" else seen
    assert {name: (array.shape, array.dtype) for name, array in seen.items()} == {
        name: ((3, *shape), np.dtype(dtype)) for name, (shape, dtype) in view.array_shapes().items()}
    assert (view.mask_name == "action_mask") == (actions == "discrete" and heroes == 1)
    assert mask.shape == (3, sum(view.parts)) and len(split_mask(mask, view.parts)) == len(view.parts)
    before = {name: array.copy() for name, array in seen.items()}
    games.controllers[:] = Controller.SCRIPTED
    for _ in range(30):
        games.step()
    assert all(np.array_equal(before[name], seen[name]) for name in seen)  # not the core's own memory


def test_a_mask_is_taken_apart_in_order():
    parts = split_mask(np.arange(12).reshape(2, 6), (1, 3, 2))
    assert [part.tolist() for part in parts] == [[[0], [6]], [[1, 2, 3], [7, 8, 9]], [[4, 5], [10, 11]]]


def test_weights_by_signal_leave_the_others_out_and_time():
    signals = np.zeros((2, 2, 2, len(SIGNALS)), np.float32)
    signals[:, 0, 0, SIGNALS.index("last_hit")] = 1
    signals[:, 0, 1, SIGNALS.index("gold")] = 100
    weigh = Weighting({"last_hit": 3.0}, 0.0, zero_sum=False)
    assert weigh(signals, np.array([0.0, 3000.0])).tolist() == [[[3.0, 0.0], [0.0, 0.0]]] * 2
    assert Weighting("gist", 0.3, True).config == RewardConfig(preset="gist")
    assert Weighting(None, 0.3, True).config == RewardConfig()
    own = RewardConfig(weights={"gold": 1.0})
    assert Weighting(own, 0.3, True).config is own


def test_opponents_by_name_and_number():
    assert controller_of("hard") is controller_of(4) is controller_of(Controller.HARD) is Controller.HARD
    assert controller_of(np.int64(1)) is Controller.RANDOM
    for wrong in ("policy", 0, 9, "self", None):
        with pytest.raises(ValueError, match="known: random, easy, scripted, hard"):
            controller_of(wrong)


def test_seeds_and_options():
    assert [parse_seed(s) for s in (None, 3, np.int64(4), np.uint16(5))] == [None, 3, 4, 5]
    assert reset_options(None, ("a",)) == {} and reset_options({"a": 1}, ("a", "b")) == {"a": 1}
    with pytest.raises(ValueError, match="no option 'c'; it has a, b"):
        reset_options({"c": 1}, ("a", "b"))
