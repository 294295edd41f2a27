import numpy as np
import pytest

from five.agent.learning.gae import discount, gae


def reference(rewards, values, terminated, gamma, lam):
    """Return A_t = sum over l of (γλ)^l δ_{t+l}, up to the end of the game or segment."""
    steps = len(rewards)
    out = np.zeros(rewards.shape)
    for index in np.ndindex(rewards.shape[1:]):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                at = (k, *index)
                ended = terminated[k]
                bootstrap = 0.0 if ended else values[(k + 1, *index)]
                out[(t, *index)] += weight * (rewards[at] + gamma * bootstrap - values[at])
                if ended:
                    break
                weight *= gamma * lam
    return out


@pytest.fixture
def segment():
    rng = np.random.default_rng(0)
    terminated = np.zeros(24, bool)
    terminated[[7, 15]] = True
    return rng.normal(size=(24, 2, 3)), rng.normal(size=(25, 2, 3)), terminated


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.9993, 1.0])
def test_gae_matches_the_definition(segment, gamma, lam):
    rewards, values, terminated = segment
    advantages, returns = gae(rewards, values, terminated, gamma, lam)
    expected = reference(rewards, values, terminated, gamma, lam)
    np.testing.assert_allclose(advantages, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(returns, expected + values[:-1], rtol=1e-5, atol=1e-5)
    assert advantages.dtype == returns.dtype == np.float32


def test_only_unfinished_segments_bootstrap():
    rewards, values = np.ones((3, 1)), np.array([[0.0], [0.0], [0.0], [10.0]])
    cut, _ = gae(rewards, values, np.zeros(3, bool), 0.5, 1.0)
    ended, _ = gae(rewards, values, np.array([False, False, True]), 0.5, 1.0)
    assert cut[:, 0].tolist() == [1 + 0.5 + 0.25 + 0.125 * 10, 1 + 0.5 + 0.25 * 10, 1 + 0.5 * 10]
    assert ended[:, 0].tolist() == [1.75, 1.5, 1.0]


def test_advantage_does_not_cross_a_game_end(segment):
    rewards, values, terminated = segment
    before, _ = gae(rewards, values, terminated, 0.99, 0.95)
    rewards, values = rewards.copy(), values.copy()
    rewards[8:], values[8:] = 1e6, -1e6
    after, _ = gae(rewards, values, terminated, 0.99, 0.95)
    np.testing.assert_array_equal(before[:8], after[:8])
    assert not np.allclose(before[8], after[8])


def test_lambda_0_is_the_td_error(segment):
    rewards, values, terminated = segment
    advantages, _ = gae(rewards, values, terminated, 0.9, 0.0)
    expected = rewards + 0.9 * values[1:] * ~terminated[:, None, None] - values[:-1]
    np.testing.assert_allclose(advantages, expected, rtol=1e-5, atol=1e-5)


def test_gamma_0_uses_one_reward(segment):
    rewards, values, terminated = segment
    _, returns = gae(rewards, values, terminated, 0.0, 0.95)
    np.testing.assert_allclose(returns, rewards, rtol=1e-5, atol=1e-5)


def test_gamma_and_lambda_1_give_the_sum(segment):
    rewards, values, _ = segment
    _, returns = gae(rewards, values, np.zeros(24, bool), 1.0, 1.0)
    expected = rewards[::-1].cumsum(0)[::-1] + values[-1]
    np.testing.assert_allclose(returns, expected, rtol=1e-4, atol=1e-4)


def test_terminated_may_differ_per_column(segment):
    rewards, values, terminated = segment
    each = np.repeat(terminated[:, None], 2, axis=1)
    each[:, 1] = False
    advantages, _ = gae(rewards, values, each, 0.9, 0.9)
    np.testing.assert_array_equal(advantages[:, 0], gae(rewards[:, 0], values[:, 0], terminated, 0.9, 0.9)[0])
    np.testing.assert_array_equal(advantages[:, 1], gae(rewards[:, 1], values[:, 1], each[:, 1], 0.9, 0.9)[0])


def test_mismatched_shapes_are_rejected():
    with pytest.raises(ValueError, match=r"values must be \(5, 2\)"):
        gae(np.zeros((4, 2)), np.zeros((4, 2)), np.zeros(4, bool), 1, 1)
    with pytest.raises(ValueError, match="terminated"):
        gae(np.zeros((4, 2)), np.zeros((5, 2)), np.zeros(5, bool), 1, 1)


@pytest.mark.parametrize(("horizon", "gamma"), [(60, 0.997778), (180, 0.999259), (360, 0.999630), (3600, 0.999963)])
def test_discount_of_the_papers_horizons(horizon, gamma):
    assert discount(horizon) == pytest.approx(gamma, abs=5e-7)


@pytest.mark.parametrize(("horizon", "timestep"), [(0.1, 0.2), (1.0, 0.0), (1.0, -0.5), (float("nan"), 0.2),
                                                   (-1.0, -2.0)])
def test_horizon_below_a_timestep_is_rejected(horizon, timestep):
    with pytest.raises(ValueError, match="at least a timestep"):
        discount(horizon, timestep)
    with pytest.raises(ValueError, match="horizon"):
        discount(0.1)


def test_horizon_of_one_timestep_has_no_future():
    assert discount(0.5, 0.5) == 0.0 and discount(1.0, 0.5) == 0.5
