"""The native reader equals `InputReader` and `Normaliser` bit for bit."""

import copy
import dataclasses

import pytest
import torch

from dota.spaces import Layout
from five.agent.model.native_reader import NativeReader
from five.agent.model.policy import Policy
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.agent.test_model_inputs import bare_layout


def policy_of(of: Layout) -> Policy:
    """Return a policy with statistics as after some batches, different in every field."""
    policy = Policy(of, SMALL).eval()
    for seed in (1, 2):
        inputs = policy.trunk.reader(random_obs(of, 20, seed=seed))
        policy.update_normaliser(policy.normaliser.stream_moments(inputs))
    return policy


@pytest.mark.parametrize("present", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("of", [layout(1), layout(5), bare_layout()], ids=["1v1", "5v5", "bare"])
def test_native_reads_are_bit_exact(of: Layout, present: float) -> None:
    policy, obs = policy_of(of), random_obs(of, 7, seed=3, present=present)
    obs["shared"][0, :9] = torch.tensor([0.0, -0.0, 6e-8, -6e-8, 1e-4, 65504, -65504, 1.0, 3.1])
    inputs, floats, moments = NativeReader(policy.trunk.reader)(obs, policy.normaliser, moments=True)
    expected = policy.trunk.reader(obs)
    standard = policy.normaliser(expected)
    assert floats.keys() == standard.keys()
    # PyTorch sums in float32.
    assert moments is not None
    others = policy.normaliser.stream_moments(expected)
    assert torch.equal(moments[0], others[0])
    torch.testing.assert_close(moments[1:], others[1:], rtol=1e-5, atol=1e-3)
    for name, values in standard.items():
        assert floats[name].shape == values.shape
        assert torch.equal(floats[name], values), name
    for field in dataclasses.fields(inputs):
        if field.name == "floats":
            continue
        mine, other = getattr(inputs, field.name), getattr(expected, field.name)
        if isinstance(other, torch.Tensor):
            assert torch.equal(mine, other), field.name
        elif field.name == "ids":
            assert mine.keys() == other.keys()
            assert all(torch.equal(mine[name], other[name]) for name in other)
        elif field.name == "sets":
            assert mine.keys() == other.keys()
            for name, rows in other.items():
                assert torch.equal(mine[name].owner, rows.owner) and torch.equal(mine[name].slot, rows.slot), name
                assert (mine[name].owners, mine[name].slots) == (rows.owners, rows.slots), name
        else:
            assert mine == other, field.name


@pytest.mark.parametrize("of", [layout(1), layout(5), bare_layout()], ids=["1v1", "5v5", "bare"])
def test_search_equals_the_input_reader(of: Layout) -> None:
    policy, obs = policy_of(of), random_obs(of, 7, seed=8)
    reader = policy.trunk.reader
    read, presence = NativeReader(reader), reader.presence(obs["shared"], obs["shared_ids"].long())
    found, is_present = read.search(obs)
    expected = reader.search(presence)
    assert torch.equal(found.column, expected.column) and torch.equal(found.step, expected.step)
    assert found.ends == expected.ends and torch.equal(is_present, reader.units_of(presence))
    given, searched = (read(obs, policy.normaliser, present) for present in (found, None))
    assert all(torch.equal(given.floats[name], values) for name, values in searched.floats.items())
    assert torch.equal(given.inputs.unit_row, searched.inputs.unit_row) and given.moments is None


@pytest.mark.parametrize("of", [layout(1), layout(5)], ids=["1v1", "5v5"])
def test_unroll_equals_pytorchs_reader(of: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, obs = policy_of(of), random_obs(of, 3, 4, seed=9)
    state = policy.initial_state(4)
    steps = [policy.act({n: a[t] for n, a in obs.items()}, state, generator=torch.Generator().manual_seed(t)).actions
             for t in range(3)]
    actions, resets = torch.stack(steps), torch.zeros(3, 4, dtype=torch.bool)

    def learned() -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor]:
        policy.zero_grad()
        unrolled = policy.unroll(obs, actions, state, resets, policy.index_batch(obs, actions, resets))
        (unrolled.logp.sum() + unrolled.entropy.sum() + unrolled.values.square().sum()).backward()
        return unrolled.logp.detach(), {n: p.grad.clone() for n, p in policy.named_parameters() if p.grad is not None
                                        }, unrolled.observation_moments

    mine = learned()
    monkeypatch.setattr(NativeReader, "accepts", staticmethod(lambda obs: False))
    other = learned()
    assert torch.equal(mine[0], other[0]) and mine[1].keys() == other[1].keys()
    assert all(torch.equal(mine[1][name], gradient) for name, gradient in other[1].items())
    torch.testing.assert_close(mine[2], other[2], rtol=1e-5, atol=1e-3)


def test_act_equals_pytorchs_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, obs = policy_of(layout(5)), random_obs(layout(5), 6, seed=4)
    state = policy.initial_state(6)
    read: list[int] = []
    by_host = NativeReader.__call__
    monkeypatch.setattr(NativeReader, "__call__", lambda *a: read.append(1) or by_host(*a))
    mine = policy.act(obs, state, generator=torch.Generator().manual_seed(5))
    assert read == [1]
    monkeypatch.setattr(NativeReader, "accepts", staticmethod(lambda obs: False))
    other = policy.act(obs, state, generator=torch.Generator().manual_seed(5))
    assert read == [1]
    for name in ("actions", "logp", "values"):
        assert torch.equal(getattr(mine, name), getattr(other, name))
    assert all(torch.equal(mine.state[name], other.state[name]) for name in other.state)


def test_other_dtypes_are_left_to_pytorch() -> None:
    obs = random_obs(layout(1), 2)
    assert NativeReader.accepts(obs)
    assert not NativeReader.accepts({**obs, "shared": obs["shared"].float()})
    assert not NativeReader.accepts({**obs, "shared_ids": obs["shared_ids"].long()})


def test_views_of_larger_arrays_are_read() -> None:
    policy, obs = policy_of(layout(1)), random_obs(layout(1), 2, 6, seed=5)
    read = NativeReader(policy.trunk.reader)
    floats = read({n: a[:, 1] for n, a in obs.items()}, policy.normaliser).floats
    same = read({n: a[:, 1].clone() for n, a in obs.items()}, policy.normaliser).floats
    assert all(torch.equal(floats[name], same[name]) for name in same)


def test_a_deep_copy_can_read() -> None:
    policy, obs = policy_of(layout(1)), random_obs(layout(1), 2)
    twin = copy.deepcopy(policy)
    assert torch.equal(twin.act(obs, twin.initial_state(2), greedy=True).actions,
                       policy.act(obs, policy.initial_state(2), greedy=True).actions)


def test_wrong_widths_are_refused() -> None:
    policy, obs = policy_of(layout(1)), random_obs(layout(5), 2)
    with pytest.raises(ValueError, match="widths of layout"):
        policy.act(obs, policy.initial_state(2))
