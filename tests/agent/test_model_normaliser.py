"""Running statistics compared with numpy over all data."""

import numpy as np
import pytest
import torch

from five.agent.model.inputs import InputReader
from five.agent.model.normaliser import EPSILON, Normaliser, RewardStatistics, RunningStatistics
from tests.agent.model_cases import layout, random_obs


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_batches_give_the_statistics_of_all_data(offset: float) -> None:
    rng = np.random.default_rng(0)
    batches = [rng.normal(offset + i, 1 + i, (n, 4)) for i, n in enumerate((3, 50, 1, 200))]
    running = RunningStatistics(4)
    for batch in batches:
        running.merge(running.moments(torch.from_numpy(batch)))
    everything = np.concatenate(batches)
    np.testing.assert_allclose(running.mean, everything.mean(0))
    scale, shift = running.scale_and_shift()
    np.testing.assert_allclose(scale, 1 / np.sqrt(everything.var(0) + EPSILON), rtol=1e-6)
    np.testing.assert_allclose(shift, -everything.mean(0) / np.sqrt(everything.var(0) + EPSILON), rtol=1e-6)


def test_moments_of_processes_add_up() -> None:
    torch.manual_seed(0)
    together, apart = RunningStatistics(3), RunningStatistics(3)
    for _ in range(3):
        parts = [torch.randn(n, 3) * 2 + 7 for n in (5, 9)]
        together.merge(together.moments(torch.cat(parts)))
        apart.merge(sum((apart.moments(p) for p in parts), torch.zeros(3, 3)))
    # A batch is summed in float32.
    torch.testing.assert_close(apart.mean, together.mean, rtol=2e-6, atol=0.0)
    torch.testing.assert_close(apart.squares, together.squares, rtol=2e-6, atol=0.0)


def test_sums_in_float32_do_not_drift() -> None:
    """The mean is not a float32 and the deviation far below it, over many batches of float16."""
    rng = np.random.default_rng(1)
    batches = [rng.normal(1000.0, 4.0, (700, 2)).astype(np.float16) for _ in range(60)]
    running = RunningStatistics(2)
    for batch in batches:
        running.merge(running.moments(torch.from_numpy(batch)))
    everything = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(running.mean, everything.mean(0), rtol=1e-7)
    np.testing.assert_allclose(running.squares / running.count, everything.var(0), rtol=1e-5)


def test_without_data_values_are_unchanged() -> None:
    scale, shift = RunningStatistics(2).scale_and_shift()
    assert scale.tolist() == [1.0, 1.0] and shift.tolist() == [0.0, 0.0]
    running = RunningStatistics(2)
    running.merge(running.moments(torch.zeros(0, 2)))
    assert running.count.tolist() == [0.0, 0.0] and torch.isfinite(running.scale_and_shift()[0]).all()


def test_streams_are_standardised_by_group() -> None:
    lay = layout(5)
    reader = InputReader(lay)
    normaliser = Normaliser(reader.widths(), 5.0)
    for seed in range(3):
        obs = random_obs(lay, 40, seed=seed)
        obs["shared"] = obs["shared"] * 3 + 2
        inputs = reader(obs)
        normaliser.merge(normaliser.stream_moments(inputs))
    normal = normaliser(inputs)
    assert normal.keys() == inputs.floats.keys()
    for name, values in normal.items():
        assert values.dtype == torch.float32 and values.abs().max() <= 5.0, name
    # Each unit group has its own statistics: shifting one group leaves the others unchanged.
    rows = np.cumsum([0, *inputs.group_rows])
    moved = reader(obs)
    moved.floats["units"][rows[2]:rows[3]] += 100.0
    for _ in range(200):
        normaliser.merge(normaliser.stream_moments(moved))
    after = normaliser(moved)["units"]
    assert after[rows[2]:rows[3]].mean().abs() < 0.5
    assert (after[rows[3]:] - normal["units"][rows[3]:]).abs().mean() < 0.3


def test_slots_of_a_group_share_statistics() -> None:
    """The count is of rows, not of team-steps."""
    lay = layout(5)
    reader = InputReader(lay)
    normaliser = Normaliser(reader.widths(), 5.0)
    inputs = reader(random_obs(lay, 10))
    normaliser.merge(normaliser.stream_moments(inputs))
    start, groups, fields = normaliser.columns["units"]
    count = normaliser.count[start:start + groups * fields].view(groups, fields)
    assert count[:, 0].tolist() == inputs.group_rows
    start, _, fields = normaliser.columns["minimap"]
    assert normaliser.count[start:start + fields].unique().item() == 10 * lay.observation.minimap**2
    start, groups, fields = normaliser.columns["units/private"]
    assert normaliser.count[start].item() == inputs.group_rows[0] * lay.heroes


def test_reward_standard_deviation() -> None:
    rng = np.random.default_rng(1)
    rewards = RewardStatistics()
    assert rewards.std() == 1.0
    seen = [rng.normal(0.3, 2.0, n) for n in (100, 7, 1000)]
    for r in seen:
        rewards.merge_sums(torch.tensor([len(r), r.sum(), (r * r).sum()]))
    assert rewards.std() == pytest.approx(np.concatenate(seen).std())
    constant = RewardStatistics()
    constant.merge_sums(torch.tensor([4.0, 0.0, 0.0]))
    assert constant.std() == 1.0


def test_reward_prior_bounds_the_deviation() -> None:
    rewards = RewardStatistics(prior=1000.0)
    assert rewards.std() == 1.0
    rewards.merge_sums(torch.tensor([1000.0, 0.0, 0.0]))
    assert rewards.std() == pytest.approx(0.5**0.5)
    rewards.merge_sums(torch.tensor([1e9, 0.0, 4e9]))
    assert rewards.std() == pytest.approx(2.0, rel=1e-4)
