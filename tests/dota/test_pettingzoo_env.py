"""PettingZoo's own tests of the environment, and cases that they do not cover."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import parallel_api_test, parallel_seed_test

from dota.pettingzoo_env import DotaParallelEnv
from tests.dota.small_games import FORMS, MID, OBSERVATIONS, TEAM


def random_actions(env, observations, rng):
    return {agent: int(rng.choice(np.flatnonzero(seen["action_mask"]))) for agent, seen in observations.items()}


@pytest.mark.parametrize("actions", FORMS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_pettingzoos_own_tests(observation, actions):
    def make():
        return DotaParallelEnv(config=TEAM, observation=observation, actions=actions)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "reset has no option 'options'")  # the test gives one
        parallel_api_test(make(), num_cycles=30)
    parallel_seed_test(make, num_cycles=5)


def test_games_of_one_seed_are_equal_and_of_another_are_not():
    """The library's own seed test stops after one step."""
    ends = []
    for seed in (5, np.int64(5), 6):
        env, rng = DotaParallelEnv(config=TEAM), np.random.default_rng(0)
        observations, _ = env.reset(seed=seed)
        seen = [observations]
        for _ in range(40):
            observations, *rest = env.step(random_actions(env, observations, rng))
            seen.append((observations, *rest))
        again, _ = env.reset()
        ends.append((seen, again, env.game.hash()))
    assert data_equivalence(ends[0][0], ends[1][0])
    assert ends[0][2] == ends[1][2]  # the game after the first one, too
    assert ends[0][2] != ends[2][2]


def test_rewards_sum_to_zero_and_a_draw_is_truncated():
    env, rng = DotaParallelEnv(config=MID), np.random.default_rng(1)
    observations, _ = env.reset(seed=3)
    steps, total = 0, np.zeros(2)
    while env.agents:
        observations, earned, terminated, truncated, infos = env.step(random_actions(env, observations, rng))
        assert sum(earned.values()) == pytest.approx(0, abs=1e-5)
        total += list(earned.values())
        steps += 1
    assert steps == pytest.approx(env.max_steps, abs=1)
    assert set(truncated.values()) == {True} and set(terminated.values()) == {False}
    assert {(info["won"], info["winner"]) for info in infos.values()} == {(False, "draw")}
    assert np.abs(total).max() > 0  # experience and gold came in


def test_a_hero_obeys_its_own_agent():
    """Heroes whose agents order them away leave; the others stay."""
    env = DotaParallelEnv(config=TEAM)
    env.reset(seed=1)
    entries = env.view.choices.entries
    noop = next(n for n, e in enumerate(entries) if e.name == "noop")
    walk = next(n for n, e in enumerate(entries) if e.name == "move" and (e.x, e.y) == (8, 8))
    block = env.layout.blocks["units"]

    def places():
        rows = env.game.obs["shared"][:, block.span("shared")].reshape(2, block.instances, -1)
        return rows[:, :env.layout.heroes, :2].astype(np.float64)

    before = places()
    for _ in range(20):
        env.step({agent: walk if agent == "radiant_1" else noop for agent in env.agents})
    moved = np.linalg.norm(places() - before, axis=-1)
    assert moved[0, 1] > 10 * max(moved[0, 0], moved[1].max(), 1e-6)


def test_the_state_joins_both_teams_observations():
    env = DotaParallelEnv(config=TEAM)
    observations, _ = env.reset(seed=1)
    state = env.state()
    assert env.state_space.contains(state)
    shared = env.layout.shared
    assert np.array_equal(state[:shared], observations["radiant_0"]["observation"][:shared])
    assert np.array_equal(state[len(state) // 2 :][:shared], observations["dire_1"]["observation"][:shared])


def test_strangers_are_named():
    env = DotaParallelEnv(config=TEAM)
    env.reset(seed=1)
    for ask in (env.action_space, env.observation_space, lambda agent: env.step({agent: 0})):
        with pytest.raises(KeyError, match="unknown agent 'hero_7'; known: radiant_0, radiant_1, dire_0, dire_1"):
            ask("hero_7")


@pytest.mark.parametrize(("action", "said"), [
    (0.5, "the action of dire_1 must be integers, not float64"),
    ([1, 2], r"the action of dire_1 has shape \(2,\)"),
    (10**6, "the action of dire_1 has 1000000"),
])
def test_wrong_actions_are_refused_by_name(action, said):
    env = DotaParallelEnv(config=TEAM)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=said):
        env.step({"dire_1": action})


def test_an_invalid_choice_is_reported_to_its_agent():
    env = DotaParallelEnv(config=TEAM)
    observations, _ = env.reset(seed=1)
    never = int(np.flatnonzero(observations["dire_0"]["action_mask"] == 0)[0])
    *_, infos = env.step({"dire_0": never})
    assert {agent: info["invalid_actions"] for agent, info in infos.items()} == {
        "radiant_0": 0, "radiant_1": 0, "dire_0": 1, "dire_1": 0}


def test_options_and_seeds_of_a_reset():
    env = DotaParallelEnv(config=TEAM)
    env.reset(seed=1, options={"lineup": [["lion", "sven"], ["viper", "sniper"]]})
    block = env.layout.blocks["allied_heroes"].field("build")
    assert block.array == "shared_ids"
    names = env.game._vec.heroes
    assert [[names[i] for i in team] for team in env.game.lineup] == [["lion", "sven"], ["viper", "sniper"]]
    with pytest.warns(UserWarning, match="no option 'line_up'; it has lineup"):
        env.reset(options={"line_up": 1})
    with pytest.raises(ValueError, match="a lineup is 2 teams of 2 heroes"):
        env.reset(options={"lineup": [["lion"], ["viper"]]})
    with pytest.raises(ValueError, match="seed must be"):
        env.reset(seed=0.5)
    with pytest.raises(ValueError, match="not both"):
        DotaParallelEnv("laptop-1v1", config=TEAM)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])  # noqa: S301
def test_a_copy_goes_on_as_the_original(copied):
    env, rng = DotaParallelEnv(config=TEAM), np.random.default_rng(0)
    observations, _ = env.reset(seed=1)
    for _ in range(10):
        observations, *_ = env.step(random_actions(env, observations, rng))
    other = copied(env)
    assert data_equivalence(env.state(), other.state())
    for _ in range(10):
        actions = random_actions(env, observations, rng)
        mine = env.step(actions)
        assert data_equivalence(mine, other.step(actions))
        observations = mine[0]
    assert data_equivalence(env.reset(), other.reset())


def test_a_picture():
    env = DotaParallelEnv(config=MID, render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (520, 520, 3)
    assert DotaParallelEnv(config=MID).render() is None
