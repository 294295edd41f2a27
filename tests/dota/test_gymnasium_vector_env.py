"""Vector environment: spaces, seeds, restarts, self-play."""

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from dota.gymnasium_env import DotaEnv
from dota.gymnasium_vector_env import DotaVectorEnv
from tests.dota.small_games import FORMS, MID, OBSERVATIONS, TEAM


def masked(infos, rng):
    """Return a valid action for each row."""
    mask = infos["action_mask"]
    return (rng.random(mask.shape) * mask).argmax(-1)


@pytest.mark.parametrize("actions", FORMS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_observations_lie_in_the_space(observation, actions):
    env = DotaVectorEnv(3, config=TEAM, observation=observation, actions=actions)
    env.action_space.seed(0)
    observations, infos = env.reset(seed=0)
    for _ in range(3):
        assert env.observation_space.contains(observations)
        assert all(len(values) == 3 for values in infos.values())
        observations, earned, terminated, truncated, infos = env.step(env.action_space.sample())
        assert earned.shape == terminated.shape == truncated.shape == (3,)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_a_row_is_the_game_of_the_single_environment():
    """The same seed and actions, the same observations and rewards."""
    many, one = DotaVectorEnv(2, config=MID), DotaEnv(config=MID)
    seen, infos = many.reset(seed=[3, 4])
    assert np.array_equal(one.reset(seed=4)[0], seen[1])
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = masked(infos, rng)
        seen, earned, _, _, infos = many.step(actions)
        alone, reward, *_ = one.step(actions[1])
        assert np.array_equal(alone, seen[1]) and reward == earned[1]


def test_games_of_one_seed_are_equal_through_their_restarts():
    def play(seed, threads):
        env, rng = DotaVectorEnv(3, config=MID, opponent="random", threads=threads), np.random.default_rng(9)
        seen = [env.reset(seed=seed)]
        for _ in range(100):  # a game takes 90
            seen.append(env.step(masked(seen[-1][-1], rng)))
        return seen

    first = play(4, 1)
    assert data_equivalence(first, play(np.int64(4), 2))
    assert data_equivalence(first, play([4, 5, 6], 1))
    assert not data_equivalence(first, play(7, 1))
    ended = [i for i, step in enumerate(first[1:], 1) if step[3].any()]
    assert ended and (first[ended[0]][4]["winner"] == 3).all()
    after = first[ended[0] + 1]
    assert (after[4]["game_time"] == MID.start_seconds).all()
    assert (after[1] == 0).all() and not after[3].any()


@pytest.mark.parametrize("mode", ["same_step", AutoresetMode.SAME_STEP])
def test_restart_in_the_step_that_ends_a_game(mode):
    next_step, same_step = DotaVectorEnv(2, config=MID), DotaVectorEnv(2, config=MID, autoreset=mode)
    assert same_step.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert DotaVectorEnv.metadata.get("autoreset_mode") is None  # of one environment, not of all
    rng, infos = np.random.default_rng(0), next_step.reset(seed=1)[1]
    same_step.reset(seed=1)
    for _ in range(95):
        actions = masked(infos, rng)
        last, _, _, truncated, infos = next_step.step(actions)
        seen, _, _, same, others = same_step.step(actions)
        if truncated.any():
            break
        assert np.array_equal(last, seen) and "final_obs" not in others
    assert truncated.all() and same.all() and others["_final_obs"].all()
    assert np.array_equal(np.stack(list(others["final_obs"])), last)
    assert np.array_equal(others["final_info"]["game_time"], infos["game_time"])
    begun, *_ = next_step.step(actions)
    assert np.array_equal(begun, seen) and (others["game_time"] == MID.start_seconds).all()


def test_without_restarts_a_game_stays_over():
    env = DotaVectorEnv(2, config=MID, autoreset="disabled")
    rng, infos = np.random.default_rng(0), env.reset(seed=1)[1]
    for _ in range(95):
        _, earned, _, truncated, infos = env.step(masked(infos, rng))
    assert truncated.all() and not earned.any()
    _, infos = env.reset(options={"reset_mask": np.array([False, True])})
    assert infos["winner"].tolist() == [3, 0]


def test_a_mask_restarts_only_some():
    env = DotaVectorEnv(2, config=MID)
    env.reset(seed=1)
    for _ in range(10):
        env.step(env.action_space.sample())
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["game_time"][0] == MID.start_seconds < infos["game_time"][1]
    with pytest.raises(ValueError, match="3 seeds for 2 rows"):
        env.reset(seed=[1, 2, 3])
    for mask, kind in (([True], r"bool \(1,\)"), (np.array([0, 1]), r"int64 \(2,\)")):  # not the rows' numbers
        with pytest.raises(ValueError, match=rf"reset_mask must be bool \(2,\), not {kind}"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="no option 'mask'; it has reset_mask, lineup, opponent"):
        env.reset(options={"mask": 1})


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_lineup_holds_for_all_later_games(autoreset):
    """For those that follow by themselves, and for those of later resets, until another lineup is given."""
    env = DotaVectorEnv(2, game={"hero_pool": ["nevermore", "sniper"], "max_game_seconds": 5, "start_seconds": -1},
                        autoreset=autoreset)

    def lineups():
        names = env.team.games.heroes
        return [[[names[i] for i in team] for team in game] for game in env.team.games.lineups.tolist()]

    def play_next_games():
        for _ in range(100):
            _, _, _, truncated, infos = env.step(masked(env.team.observe()[1], rng))
            if truncated.any():
                break
        assert truncated.all()
        if autoreset == "next_step":
            env.step(masked(infos, rng))
        assert (env.team.games.game_time < 0).all()

    rng, mirrored = np.random.default_rng(0), [["sniper"], ["sniper"]]
    env.reset(seed=1, options={"lineup": mirrored})
    for _ in range(4):
        assert lineups() == [mirrored] * 2
        play_next_games()
    env.reset(seed=2)
    assert lineups() == [mirrored] * 2
    other = [["nevermore"], ["sniper"]]
    env.reset(options={"lineup": other, "reset_mask": np.array([False, True])})
    assert lineups() == [mirrored, other]
    play_next_games()
    assert lineups() == [other] * 2
    env.reset(options={"lineup": None})  # heroes are sampled again
    seen = set()
    for seed in range(10):
        env.reset(seed=seed)
        seen |= {str(lineup) for lineup in lineups()}
    assert len(seen) > 1


def test_step_before_the_first_reset_is_refused():
    env = DotaVectorEnv(2, config=MID)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset before step"):
        env.step(env.action_space.sample())


def test_refused_lineup_does_not_hold():
    env = DotaVectorEnv(2, config=MID)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="'nobody' is not in patch"):
        env.reset(options={"lineup": [["nevermore"], ["nobody"]]})
    _, infos = env.reset()
    assert (infos["game_time"] == MID.start_seconds).all()


def test_self_play_moves_both_sides():
    """Rows are the sides of a game: rewards sum to zero, both move, both end, at most one wins."""
    env = DotaVectorEnv(4, "laptop-1v1", game={"max_game_seconds": 20, "start_seconds": -2}, rewards="gist",
                        opponent="self", observation="flat")
    walk = next(n for n, e in enumerate(env.team.view.choices.entries) if e.name == "move" and (e.x, e.y) == (8, 8))
    where = env.team.view.flat.columns["units.position"][:2]
    before, infos = env.reset(seed=1)
    for _ in range(20):
        seen, *_, infos = env.step(np.full(4, walk))
    assert (np.linalg.norm(seen[:, where] - before[:, where], axis=-1) > 0.02).all()
    rng, total = np.random.default_rng(0), np.zeros(4)
    for _ in range(120):
        _, earned, _, truncated, infos = env.step(masked(infos, rng))
        assert np.allclose(earned[0::2] + earned[1::2], 0, atol=1e-5)
        assert np.array_equal(truncated[0::2], truncated[1::2])
        total += np.abs(earned)
    assert (total > 0).all()


def test_self_play_refuses_halves_of_games():
    with pytest.raises(ValueError, match="must be even, not 3"):
        DotaVectorEnv(3, config=MID, opponent="self")
    env = DotaVectorEnv(4, config=MID, opponent="self")
    with pytest.raises(ValueError, match="one side of a game"):
        env.reset(options={"reset_mask": np.array([True, False, False, False])})
    with pytest.raises(ValueError, match="self-play"):
        env.reset(options={"opponent": "easy"})


@pytest.mark.parametrize(("actions", "said"), [
    (np.zeros(2, np.float32), "actions must be integers, not float32"), (0, r"actions has shape \(\)"),
    (np.zeros(3, np.int64), r"shape \(3,\); expected \(2,\)"), ([0, 10**6], "1000000 for choice 0"),
])
def test_wrong_actions_are_refused(actions, said):
    env = DotaVectorEnv(2, config=MID)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=said):
        env.step(actions)


def test_it_is_made_by_its_id_and_gymnasiums_wrappers_take_it():
    env = RecordEpisodeStatistics(gymnasium.make_vec(
        "Five/Mid-v0", num_envs=2, opponent="easy", side=1, game={"max_game_seconds": 10, "start_seconds": -2},
        render_mode="rgb_array"))
    _, infos = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(95):
        _, _, terminated, truncated, infos = env.step(masked(infos, rng))
        if (terminated | truncated).any():
            break
    assert 0 < infos["episode"]["l"].max() <= 91
    assert [picture.shape for picture in env.render()] == [(520, 520, 3)] * 2


def test_a_copy_goes_on_as_the_original():
    env, rng = DotaVectorEnv(2, config=MID, opponent="self"), np.random.default_rng(0)
    infos = env.reset(seed=1)[1]
    for _ in range(70):
        infos = env.step(masked(infos, rng))[-1]
    other = copy.deepcopy(env)
    for _ in range(30):  # over the end of a game
        actions = masked(infos, rng)
        mine = env.step(actions)
        assert data_equivalence(mine, other.step(actions))
        infos = mine[-1]


@pytest.mark.parametrize(("arguments", "said"), [({"num_envs": 0}, "1 or more"), ({"autoreset": "later"}, "later")])
def test_wrong_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        DotaVectorEnv(**{"config": MID, **arguments})
