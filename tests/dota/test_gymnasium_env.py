"""Gymnasium's own test of the environment, and cases that it does not cover."""

import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from dota import presets
from dota.agents import split_mask
from dota.gymnasium_env import DotaEnv
from tests.dota.small_games import FORMS, MID, MID_STEPS, OBSERVATIONS, TEAM


def allowed(env, info, rng):
    """Return a valid action in any format."""
    view = env.unwrapped.team.view
    if view.mask_name == "action_mask":
        return int(rng.choice(np.flatnonzero(info["action_mask"])))
    return np.array([rng.choice(np.flatnonzero(part)) for part in split_mask(info["action_masks"], view.parts)])


@pytest.mark.parametrize("config", [MID, TEAM], ids=["1v1", "2v2"])
@pytest.mark.parametrize("actions", FORMS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_gymnasiums_own_test(observation, actions, config):
    env = DotaEnv(config=config, observation=observation, actions=actions, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that bounds are infinite, that it was not made by its id
        check_env(env, skip_render_check=True)
    assert env.observation_space.contains(env.reset(seed=1)[0])


@pytest.mark.parametrize("name", ["Five/Mid-v0", "Five/Team-v0", "dota.gymnasium_env:Five/Mid-v0"])
def test_it_is_made_by_its_id(name):
    env = gymnasium.make(name, game={"max_game_seconds": 3, "start_seconds": -1})
    preset = presets.load("laptop-5v5" if "Team" in name else "laptop-1v1")
    assert env.unwrapped.team.heroes == preset.game.heroes_per_team
    assert env.unwrapped.team.weighting.config == preset.rewards
    _, info = env.reset(seed=3)
    assert env.observation_space.contains(env.step(allowed(env, info, np.random.default_rng(0)))[0])


@pytest.mark.parametrize("actions", FORMS)
def test_a_game_to_its_end(actions):
    env, rng = DotaEnv(config=MID, actions=actions), np.random.default_rng(1)
    _, info = env.reset(seed=1)
    steps, ended = 0, False
    while not ended:
        assert info["winner"] == "" and not info["won"]
        _, _, terminated, truncated, info = env.step(allowed(env, info, rng))
        assert info["invalid_actions"] == 0 or actions == "native"  # their masks depend on the chosen slot
        steps, ended = steps + 1, terminated or truncated
    assert truncated and not terminated
    assert info["winner"] == "draw" and not info["won"]
    assert MID_STEPS == env.max_steps and steps == pytest.approx(MID_STEPS, abs=1)


@pytest.mark.parametrize(("side", "won"), [(0, False), (1, True)])
def test_infos_name_the_winner(side, won):
    """A hero walks to the enemy's tower and dies; one death loses the game."""
    env = DotaEnv(game={"kills_to_win": 1, "max_game_seconds": 300, "start_seconds": -5}, opponent="scripted")
    dead = next(n for n, e in enumerate(env.team.view.choices.entries) if e.name == "move" and e.x == e.y == 8)
    _, info = env.reset(seed=2)
    while info["winner"] == "":
        _, _, terminated, truncated, info = env.step(dead)
    assert terminated and not truncated and info["winner"] == "dire" and not info["won"]
    env.team.team_of[:] = side  # the same game, seen from either side
    _, infos = env.team.observe()
    assert bool(infos["won"][0]) is won


def test_games_of_one_seed_are_equal_and_numpys_seeds_are_taken():
    seen = []
    for seed in (5, np.int64(5), np.uint8(5), 6):
        env, rng = DotaEnv(config=TEAM), np.random.default_rng(0)
        steps = [env.reset(seed=seed)]
        for _ in range(30):
            steps.append(env.step(allowed_team(env, steps[-1][-1], rng)))
        seen.append((steps, env.reset()))
    assert data_equivalence(seen[0], seen[1]) and data_equivalence(seen[0], seen[2])
    assert not data_equivalence(seen[0], seen[3])


def allowed_team(env, info, rng):
    masks = split_mask(info[env.team.view.mask_name], env.team.view.parts)
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


@pytest.mark.parametrize(("frameskip", "shown"), [(4, False), (8, True)])
def test_action_takes_effect_four_frames_after_its_step_begins(frameskip, shown):
    """The hero has not turned nor moved after the first timestep of the step that was given the action."""
    env = DotaEnv(game={"start_seconds": -2, "frameskip": frameskip}, observation="flat")
    walk = next(n for n, e in enumerate(env.team.view.choices.entries) if e.name == "move" and (e.x, e.y) == (8, 8))
    where = env.team.view.flat.columns["units.position"][:2]
    before, _ = env.reset(seed=1)
    after, *_ = env.step(walk)
    later = [env.step(walk)[0] for _ in range(4)][-1]
    assert np.array_equal(before[where], after[where]) != shown
    assert not np.array_equal(before[where], later[where])


@pytest.mark.parametrize("action", [np.int32(1), np.int64(1), 1, np.array(1, np.int16), np.array([1], np.uint8)])
def test_whole_numbers_of_any_kind_are_taken(action):
    env = DotaEnv(config=MID)
    env.reset(seed=1)
    env.step(action)


@pytest.mark.parametrize(("actions", "action", "said"), [
    ("discrete", 1.0, "the action must be integers, not float64"),
    ("discrete", [1, 2], r"the action has shape \(2,\); expected \(\)"),
    ("discrete", -1, r"the action has -1 for choice 0 \(action\), which takes 0 to"),
    ("discrete", True, "integers, not bool"),
    ("factored", 1, r"the action has shape \(\); expected \(8,\)"),
    ("factored", [0, 0, 0, 0, 0, 9, 0, 0], r"has 9 for choice 5 \(offset_x\), which takes 0 to 8"),
    ("native", np.zeros(6), "integers, not float64"),
    ("native", [0, 0, 0, 0, 0, 70000], r"70000 for choice 5 \(offset_y\)"),
])
def test_wrong_actions_are_refused(actions, action, said):
    env = DotaEnv(config=MID, actions=actions)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=said):
        env.step(action)


def test_invalid_actions_do_nothing_and_are_counted():
    env, other = DotaEnv(config=MID), DotaEnv(config=MID)
    _, info = env.reset(seed=1)
    other.reset(seed=1)
    noop = next(n for n, e in enumerate(env.team.view.choices.entries) if e.name == "noop")
    never = int(np.flatnonzero(info["action_mask"] == 0)[0])
    for _ in range(5):
        *_, info = env.step(never)
        *_, same = other.step(noop)
        assert info["invalid_actions"] == 1 and same["invalid_actions"] == 0
    assert env.team.games.hash(0) == other.team.games.hash(0)


def test_options_of_a_reset_are_honoured():
    env = DotaEnv(game={"hero_pool": ["nevermore", "sniper"], "max_game_seconds": 5})
    for lineup in (["sniper"], ["nevermore"]), (["nevermore"], ["sniper"]):
        env.reset(seed=1, options={"lineup": lineup})
        names = env.team.games.heroes
        assert [[names[i] for i in team] for team in env.team.games.lineups[0]] == [list(t) for t in lineup]
    env.reset(options={"side": 1, "opponent": "hard"})
    assert env.team.games.controllers.tolist() == [[4, 0]]
    env.reset(options={"side": 0})
    assert env.team.games.controllers.tolist() == [[0, 4]]


@pytest.mark.parametrize(("options", "said"), [
    ({"line_up": 1}, "reset has no option 'line_up'; it has lineup, side, opponent"),
    ({"side": 2}, "side is 0"), ({"opponent": "pro"}, "unknown opponent 'pro'"), ({"opponent": "self"}, "self-play"),
    ({"lineup": [["axe"], ["nobody"]]}, "is not in patch"),
    ({"lineup": ["axe", "axe"]}, r"2 teams of 1 heroes, a list each, not \['axe', 'axe'\]"),
])
def test_other_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        DotaEnv(config=MID).reset(options=options)


@pytest.mark.parametrize(("arguments", "said"), [
    ({"opponent": "self"}, "DotaVectorEnv"), ({"opponent": "pro"}, "known: random, easy"), ({"side": 3}, "not 3"),
    ({"observation": "picture"}, "'flat', 'masked', 'dict', not 'picture'"),
    ({"actions": "words"}, "'native', 'factored', 'discrete', not 'words'"), ({"preset": "laptop1v1"}, "laptop-1v1"),
    ({"render_mode": "human"}, "not 'human'"), ({"rewards": {"lasthit": 1}}, "unknown signal 'lasthit'"),
    ({"rewards": "mine"}, "preset"), ({"game": {"heroes": 3}}, "heroes"),
    ({"preset": "rerun", "config": MID}, "not both"), ({"opponent": None}, "unknown opponent None"),
    ({"team_spirit": 1.5}, "team_spirit must be between 0 and 1, not 1.5"),
])
def test_wrong_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        DotaEnv(**arguments)


@pytest.mark.parametrize("seed", [-1, 1.5, "7"])
def test_wrong_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be"):
        DotaEnv(config=MID).reset(seed=seed)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])  # noqa: S301
def test_a_copy_goes_on_as_the_original(copied):
    env, rng = DotaEnv(config=TEAM, opponent="scripted"), np.random.default_rng(3)
    info = env.reset(seed=4)[1]
    for _ in range(20):
        info = env.step(allowed_team(env, info, rng))[-1]
    other = copied(env)
    for _ in range(20):
        action = allowed_team(env, info, rng)
        mine, its = env.step(action), other.step(action)
        assert data_equivalence(mine, its)
        info = mine[-1]
    assert env.team.games.hash(0) == other.team.games.hash(0)
    assert data_equivalence(env.reset(), other.reset())


def test_rewards_as_they_are_weighed():
    """Only weighted signals count; without zero_sum the enemy's share is not subtracted."""
    def earned(**arguments):
        env, rng = DotaEnv(config=TEAM, team_spirit=0.0, **arguments), np.random.default_rng(0)
        info, total = env.reset(seed=1)[1], []
        for _ in range(200):
            _, reward, _, _, info = env.step(allowed_team(env, info, rng))
            total.append(reward)
        return np.array(total)

    gold = earned(rewards={"gold": 1.0}, zero_sum=False)
    assert gold.max() > 0 and gold.min() >= 0
    assert np.allclose(earned(rewards={"gold": 2.0}, zero_sum=False), 2 * gold)
    assert not earned(rewards={"megas": 1.0}).any()
    assert (earned(rewards={"gold": 1.0}) <= gold + 1e-5).all()


def test_a_picture():
    env = gymnasium.make("Five/Mid-v0", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert picture.shape == (520, 520, 3) and picture.dtype == np.uint8 and len(np.unique(picture)) > 5
    assert DotaEnv(config=MID).render() is None


def test_the_mask_as_sb3_asks_for_it():
    env = DotaEnv(config=MID)
    _, info = env.reset(seed=1)
    assert env.action_masks().dtype == bool
    assert np.array_equal(env.action_masks(), info["action_mask"] == 1)
