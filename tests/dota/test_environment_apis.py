"""PettingZoo's and Gymnasium's own tests of the environment APIs, and what these do not look at."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from pettingzoo.test import parallel_api_test, parallel_seed_test

from dota.config import GameConfig, ObservationConfig
from dota.gymnasium_env import DotaVectorEnv
from dota.pettingzoo_env import DotaParallelEnv
from dota.spaces import NOOP
from dota.vec_game import Controller

SLOTS = ObservationConfig(allied_creeps=8, neutral_creeps=2, buildings=4, wards=1, hero_modifiers=3, pickups=2,
                          minimap=4, nearby_map=4, passability=4)
MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=SLOTS, start_seconds=-2,
                 max_game_seconds=10)
TEAM = GameConfig(observation=SLOTS, heroes_per_team=2, start_seconds=-2, max_game_seconds=30)


class OneGame(gymnasium.Env):
    """The vector environment's first game, as Gymnasium's checker of single environments takes it."""

    def __init__(self) -> None:
        self._games = DotaVectorEnv(1, TEAM)
        self.observation_space = self._games.single_observation_space
        self.action_space = self._games.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observations, infos = self._games.reset(seed=seed)
        return {n: a[0] for n, a in observations.items()}, {n: a[0] for n, a in infos.items()}

    def step(self, action):
        observations, earned, terminated, truncated, infos = self._games.step(action[None])
        return ({n: a[0] for n, a in observations.items()}, float(earned[0]), bool(terminated[0]),
                bool(truncated[0]), {n: a[0] for n, a in infos.items()})


def random_actions(env, rng):
    return {agent: rng.integers(0, env.action_space(agent).nvec).astype(np.int16) for agent in env.agents}


@pytest.mark.parametrize("config", [MID, TEAM], ids=["1v1", "2v2"])
def test_pettingzoos_own_tests(config):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        parallel_api_test(DotaParallelEnv(config), num_cycles=200)
    parallel_seed_test(lambda: DotaParallelEnv(config), num_cycles=50)


def test_parallel_games_of_one_seed_are_equal_and_of_another_are_not():
    """The library's own seed test stops after one step."""
    ends = []
    for seed in (5, 5, 6):
        env, rng = DotaParallelEnv(TEAM), np.random.default_rng(0)
        observations, _ = env.reset(seed=seed)
        seen = [observations]
        for _ in range(60):
            observations, earned, terminated, truncated, infos = env.step(random_actions(env, rng))
            seen.append((observations, earned, terminated, truncated, infos))
        again, _ = env.reset()
        ends.append((seen, again, env.game.hash()))
    assert data_equivalence(ends[0][0], ends[1][0])
    assert ends[0][2] == ends[1][2]  # the game after the first one, too
    assert ends[0][2] != ends[2][2]


def test_parallel_rewards_sum_to_zero_and_a_draw_is_truncated():
    env, rng = DotaParallelEnv(MID), np.random.default_rng(1)
    env.reset(seed=3)
    steps, total = 0, np.zeros(2)
    while env.agents:
        _, earned, terminated, truncated, infos = env.step(random_actions(env, rng))
        assert sum(earned.values()) == pytest.approx(0, abs=1e-5)
        total += list(earned.values())
        steps += 1
    assert steps == pytest.approx(12 / (4 / 30), abs=2)
    assert set(truncated.values()) == {True} and set(terminated.values()) == {False}
    assert {info["won"] for info in infos.values()} == {False}
    assert np.abs(total).max() > 0  # experience and gold came in


def test_a_hero_obeys_its_own_agent():
    """The heroes whose agents send them away leave; those that stand still do not."""
    env = DotaParallelEnv(TEAM)
    observations, _ = env.reset(seed=1)
    block = env.layout.blocks["units"]

    def places():
        rows = env.game.obs["shared"][:, block.span("shared")].reshape(2, block.instances, -1)
        return rows[:, :env.layout.heroes, :2].astype(np.float64)

    before = places()
    for _ in range(20):
        actions = {}
        for agent in env.agents:
            available = observations[agent]["available"].tolist()
            name = "move" if agent == "radiant_1" else "noop"
            wanted = next(a.id for a in env.layout.actions if a.name == name)
            actions[agent] = np.array([available.index(wanted), 0, 0, 0, 8, 8], np.int16)
        observations, *_ = env.step(actions)
    moved = np.linalg.norm(places() - before, axis=-1)
    assert moved[0, 1] > 10 * max(moved[0, 0], moved[1].max(), 1e-6)
    assert observations["radiant_0"]["available"][0] == NOOP


def test_gymnasiums_own_test():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is no registered environment, that bounds are infinite
        check_env(OneGame(), skip_render_check=True)


def test_vector_observations_lie_in_the_space():
    env = DotaVectorEnv(3, TEAM)
    env.action_space.seed(0)
    observations, infos = env.reset(seed=0)
    for _ in range(5):
        assert env.observation_space.contains(observations)
        assert all(len(values) == 3 for values in infos.values())
        observations, earned, terminated, truncated, infos = env.step(env.action_space.sample())
        assert earned.shape == terminated.shape == truncated.shape == (3,)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_vector_games_of_one_seed_are_equal_through_their_restarts():
    def play(seed, threads):
        env = DotaVectorEnv(3, MID, Controller.RANDOM, threads=threads)
        env.action_space.seed(9)
        seen = [env.reset(seed=seed)]
        for _ in range(100):  # a game takes 90
            seen.append(env.step(env.action_space.sample()))
        return seen

    first = play(4, 1)
    assert data_equivalence(first, play(4, 2))
    assert data_equivalence(first, play([4, 5, 6], 1))
    assert not data_equivalence(first, play(7, 1))
    ended = [i for i, step in enumerate(first[1:], 1) if step[3].any()]
    assert ended
    after = first[ended[0] + 1]
    assert (after[4]["game_time"] == MID.start_seconds).all()
    assert (after[1] == 0).all() and not after[3].any()


def test_a_mask_restarts_only_some():
    env = DotaVectorEnv(2, MID)
    env.reset(seed=1)
    for _ in range(10):
        env.step(env.action_space.sample())
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["game_time"][0] == MID.start_seconds < infos["game_time"][1]
    with pytest.raises(ValueError, match="3 seeds"):
        env.reset(seed=[1, 2, 3])


def test_gymnasiums_wrappers_take_it():
    env = RecordEpisodeStatistics(DotaVectorEnv(2, MID, Controller.EASY, side=1))
    env.reset(seed=0)
    for _ in range(95):
        _, _, terminated, truncated, infos = env.step(env.action_space.sample())
        if (terminated | truncated).any():
            break
    assert 0 < infos["episode"]["l"].max() <= 91
