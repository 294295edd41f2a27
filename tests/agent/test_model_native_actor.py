"""Acting by one call of the core: what PyTorch's operations choose and say, but for rounding."""

import copy
import dataclasses

import pytest
import torch

from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.native_actor import EVALUATED, NativeActor, freeze
from five.agent.model.policy import Policy, PolicyOutput
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.agent.test_model_inputs import bare_layout

SPLIT = SMALL.model_copy(update={"split_heads": ("unit.attack", "unit.enemy", "offset.move", "offset.follow")})
WIDE = SMALL.model_copy(update={"lstm": 40, "lstm_input": 36, "key": 20, "unit": 50, "unit_hidden": 33, "set": 17})


def policy_of(of: Layout, config: ModelConfig = SMALL) -> Policy:
    """Weights large enough that choices depend on them, statistics as after a batch."""
    torch.manual_seed(5)
    policy = Policy(of, config).eval().requires_grad_(False)
    for parameter in policy.parameters():
        parameter.mul_(3.0).add_(torch.randn_like(parameter), alpha=0.05)
    policy.update_normaliser(policy.normaliser.stream_moments(policy.trunk.reader(random_obs(of, 20, seed=1))))
    return policy


def state_of(policy: Policy, teams: int) -> dict[str, torch.Tensor]:
    """As in mid-game."""
    return {name: 0.5 * torch.randn_like(state) for name, state in policy.initial_state(teams).items()}


def acted(policy: Policy, obs: dict[str, torch.Tensor], state: dict[str, torch.Tensor], greedy: bool) -> PolicyOutput:
    return policy.act(obs, state, generator=torch.Generator().manual_seed(7), greedy=greedy)


def same(a: PolicyOutput, b: PolicyOutput) -> None:
    """Equal actions, and numbers as near as sums in another order come."""
    assert a.actions.dtype == b.actions.dtype
    assert torch.equal(a.actions, b.actions)
    for field in ("logp", "values", "primary", "unit"):
        mine, other = getattr(a, field), getattr(b, field)
        assert mine.shape == other.shape and mine.dtype == other.dtype, field
        torch.testing.assert_close(mine, other, atol=2e-4, rtol=1e-4)
    for mine, other in ((a.state, b.state), (a.aux, b.aux)):
        assert mine.keys() == other.keys()
        for name in other:
            assert mine[name].shape == other[name].shape and mine[name].dtype == other[name].dtype, name
            torch.testing.assert_close(mine[name], other[name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("instructions", ["", "avx2", "portable"])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize(("of", "config"), [
    (layout(1), SMALL), (layout(5), SMALL), (layout(5), SPLIT), (layout(5), WIDE), (bare_layout(), WIDE)],
    ids=["1v1", "5v5", "split", "wide", "bare"])
def test_as_the_operations_one_by_one(of: Layout, config: ModelConfig, greedy: bool, instructions: str) -> None:
    policy = policy_of(of, config)
    for teams, present in ((1, 0.4), (3, 0.0), (9, 1.0), (70, 0.4)):
        obs, state = random_obs(of, teams, seed=teams, present=present), state_of(policy, teams)
        obs["available"][0] = 0  # nothing is possible in the padding after a game's end
        policy.actor = None
        expected = acted(policy, obs, state, greedy)
        policy.actor = NativeActor(policy, instructions)
        same(acted(policy, obs, state, greedy), expected)


def test_a_state_goes_on_from_step_to_step() -> None:
    policy, of = policy_of(layout(5)), layout(5)
    states = [policy.initial_state(4) for _ in range(2)]
    for step in range(6):
        obs = random_obs(of, 4, seed=step)
        assert freeze(policy)
        quick = acted(policy, obs, states[0], False)
        policy.actor = None
        slow = acted(policy, obs, states[1], False)
        same(quick, slow)
        states = [quick.state, slow.state]
    assert quick.state["h"].abs().max() > 0.01


def test_what_it_draws_is_of_its_distribution() -> None:
    """The likelihoods it tells are those by which it draws."""
    policy = policy_of(layout(1))
    freeze(policy)
    one, state = random_obs(layout(1), 1, seed=3), policy.initial_state(1)
    many = {name: array.expand(4000, *array.shape[1:]) for name, array in one.items()}
    done = acted(policy, many, {name: array.expand(4000, *array.shape[1:]) for name, array in state.items()}, False)
    assert done.primary is not None
    slots = done.actions[:, 0, 0].long()
    shares = torch.bincount(slots, minlength=30) / 4000
    torch.testing.assert_close(shares, done.primary[0, 0].exp(), atol=0.03, rtol=0.0)


def test_what_is_replayed_is_left_to_the_operations() -> None:
    policy = policy_of(layout(5))
    obs, state = random_obs(layout(5), 3, seed=2), state_of(policy, 3)
    played = acted(policy, obs, state, False)
    freeze(policy)
    again = policy.act(obs, state, replay=played.actions)
    assert torch.equal(again.actions, played.actions)
    torch.testing.assert_close(again.logp, played.logp)


def test_parameters_are_those_of_the_moment() -> None:
    policy = policy_of(layout(1))
    obs, state = random_obs(layout(1), 5, seed=2), state_of(policy, 5)
    freeze(policy)
    before = acted(policy, obs, state, True)
    policy.value.bias.add_(1.0)
    same(acted(policy, obs, state, True), before)
    freeze(policy)
    torch.testing.assert_close(acted(policy, obs, state, True).values, before.values + 1.0)


@pytest.mark.parametrize("change", [{"precision": "bfloat16"}, {"lstm": 2048}])
def test_what_it_does_not_suit(change: dict[str, object]) -> None:
    policy = Policy(layout(1), SMALL.model_copy(update=change)).eval()
    assert not freeze(policy) and policy.actor is None


def test_threads_have_their_own_product() -> None:
    policy, threads = policy_of(layout(1)), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert not freeze(policy)
    finally:
        torch.set_num_threads(threads)


def test_a_copy_acts_as_well() -> None:
    policy = policy_of(layout(1))
    freeze(policy)
    obs, state = random_obs(layout(1), 2, seed=2), state_of(policy, 2)
    same(acted(copy.deepcopy(policy), obs, state, True), acted(policy, obs, state, True))


def test_arrays_that_do_not_fit_are_refused() -> None:
    policy = policy_of(layout(5))
    obs, state = random_obs(layout(5), 3, seed=2), state_of(policy, 3)
    freeze(policy)
    with pytest.raises(ValueError, match="layout"):
        policy.act(obs | {"shared": obs["shared"][:, 1:]}, state)
    with pytest.raises(ValueError, match="target_mask"):
        policy.act(obs | {"target_mask": obs["target_mask"][:2]}, state)
    with pytest.raises(ValueError, match="array h"):
        policy.act(obs, state | {"h": state["h"][:2]})
    strange = obs["shared_ids"].clone()
    units = layout(5).blocks["units"]
    strange[0, units.offset["shared_ids"] + units.field("unit").offset] = 60_000
    with pytest.raises(IndexError):
        policy.act(obs | {"shared_ids": strange}, state)
    assert dataclasses.is_dataclass(policy.act(obs, state))  # it goes on


@pytest.mark.parametrize("of", [layout(1), layout(5), bare_layout()], ids=["1v1", "5v5", "bare"])
def test_the_actor_evaluates_every_module(of: Layout) -> None:
    for config in (SMALL, SPLIT):
        policy = policy_of(of, config)
        NativeActor(policy)
        assert [name for name, module in policy.named_modules() if not isinstance(module, EVALUATED)] == []


@pytest.mark.parametrize("module", [torch.nn.Linear(2, 2), torch.nn.Dropout(0.1), torch.nn.LayerNorm(4)])
def test_a_module_that_the_actor_lacks_is_named(module: torch.nn.Module) -> None:
    policy = policy_of(layout(1))
    policy.heads.add_module("extra", module)
    with pytest.raises(ValueError, match=r"heads\.extra"):
        freeze(policy)
