"""The native actor equals PyTorch up to rounding."""

import copy
import dataclasses

import pytest
import torch

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.native_actor import EVALUATED, NativeActor, freeze
from five.agent.model.policy import Policy, PolicyOutput
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.agent.test_model_inputs import bare_layout

SPLIT = SMALL.model_copy(update={"split_heads": ("unit.attack", "unit.enemy", "offset.move", "offset.follow")})
FIXED_DELAY = SMALL.model_copy(update={"fixed_delay": True})
WIDE = SMALL.model_copy(update={"lstm": 40, "lstm_input": 36, "key": 20, "unit": 50, "unit_hidden": 33, "set": 17})


def policy_of(of: Layout, config: ModelConfig = SMALL) -> Policy:
    """Return a policy whose choices depend on its weights, with statistics as after a batch."""
    torch.manual_seed(5)
    policy = Policy(of, config).eval().requires_grad_(False)
    for parameter in policy.parameters():
        parameter.mul_(3.0).add_(torch.randn_like(parameter), alpha=0.05)
    policy.update_normaliser(policy.normaliser.stream_moments(policy.trunk.reader(random_obs(of, 20, seed=1))))
    return policy


def state_of(policy: Policy, teams: int) -> dict[str, torch.Tensor]:
    """Return a random recurrent state."""
    return {name: 0.5 * torch.randn_like(state) for name, state in policy.initial_state(teams).items()}


def act(policy: Policy, obs: dict[str, torch.Tensor], state: dict[str, torch.Tensor], greedy: bool) -> PolicyOutput:
    return policy.act(obs, state, generator=torch.Generator().manual_seed(7), greedy=greedy)


def assert_equal(a: PolicyOutput, b: PolicyOutput) -> None:
    """Assert equal actions, and numbers within the rounding of reordered sums."""
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
    (layout(1), SMALL), (layout(5), SMALL), (layout(5), SPLIT), (layout(5), FIXED_DELAY), (layout(5), WIDE),
    (bare_layout(), WIDE)], ids=["1v1", "5v5", "split", "fixed delay", "wide", "bare"])
def test_native_actor_equals_pytorch(of: Layout, config: ModelConfig, greedy: bool, instructions: str) -> None:
    policy = policy_of(of, config)
    for teams, present in ((1, 0.4), (3, 0.0), (9, 1.0), (70, 0.4)):
        obs, state = random_obs(of, teams, seed=teams, present=present), state_of(policy, teams)
        obs["available"][0] = 0  # no action is available in the padding after a game's end
        policy.actor = None
        expected = act(policy, obs, state, greedy)
        policy.actor = NativeActor(policy, instructions)
        assert_equal(act(policy, obs, state, greedy), expected)


@pytest.mark.parametrize("instructions", ["", "avx2", "portable"])
@pytest.mark.parametrize(("minimap", "nearby_map", "filters", "omit"), [
    (2, 3, 3, ()), (3, 2, 1, ()), (5, 4, 8, ()), (6, 5, 9, ()), (10, 8, 8, ()), (9, 16, 17, ()), (10, 8, 50, ()),
    (10, 8, 8, ("nearby_map.area_effect",)), (10, 8, 8, ("minimap",)), (10, 8, 8, ("nearby_map",))])
def test_maps_of_several_sizes(minimap: int, nearby_map: int, filters: int, omit: tuple[str, ...], instructions: str
                               ) -> None:
    slots = layout(5).observation.model_copy(update={
        "minimap": minimap, "nearby_map": nearby_map, "passability": 2, "omit": omit})
    of = Layout(GameConfig(heroes_per_team=5, observation=slots))
    policy = policy_of(of, SMALL.model_copy(update={"conv_filters": filters}))
    for present in (0.05, 1.0):
        obs, state = random_obs(of, 9, seed=minimap, present=present), state_of(policy, 9)
        policy.actor = None
        expected = act(policy, obs, state, True)
        policy.actor = NativeActor(policy, instructions)
        assert_equal(act(policy, obs, state, True), expected)


def test_recurrent_state_over_several_steps() -> None:
    policy, of = policy_of(layout(5)), layout(5)
    states = [policy.initial_state(4) for _ in range(2)]
    for step in range(6):
        obs = random_obs(of, 4, seed=step)
        assert freeze(policy)
        quick = act(policy, obs, states[0], False)
        policy.actor = None
        slow = act(policy, obs, states[1], False)
        assert_equal(quick, slow)
        states = [quick.state, slow.state]
    assert quick.state["h"].abs().max() > 0.01


def test_sample_frequencies_match_logp() -> None:
    policy = policy_of(layout(1))
    freeze(policy)
    one, state = random_obs(layout(1), 1, seed=3), policy.initial_state(1)
    many = {name: array.expand(4000, *array.shape[1:]) for name, array in one.items()}
    done = act(policy, many, {name: array.expand(4000, *array.shape[1:]) for name, array in state.items()}, False)
    assert done.primary is not None
    slots = done.actions[:, 0, 0].long()
    shares = torch.bincount(slots, minlength=30) / 4000
    torch.testing.assert_close(shares, done.primary[0, 0].exp(), atol=0.03, rtol=0.0)


def test_random_numbers_of_zero_choose_what_pytorch_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(layout(5))
    obs, state = random_obs(layout(5), 9, seed=3), state_of(policy, 9)
    obs["available"][..., 1:] = 0  # one action and nothing else to choose
    uniform = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *size, **options: uniform(*size, **options).mul_(0.0))
    expected = act(policy, obs, state, False)
    freeze(policy)
    assert_equal(act(policy, obs, state, False), expected)
    assert not expected.actions[..., 0].any() and expected.logp.min() > -1000


def test_replay_is_left_to_pytorch() -> None:
    policy = policy_of(layout(5))
    obs, state = random_obs(layout(5), 3, seed=2), state_of(policy, 3)
    played = act(policy, obs, state, False)
    freeze(policy)
    again = policy.act(obs, state, replay=played.actions)
    assert torch.equal(again.actions, played.actions)
    torch.testing.assert_close(again.logp, played.logp)


def test_parameters_are_copied_at_freeze() -> None:
    policy = policy_of(layout(1))
    obs, state = random_obs(layout(1), 5, seed=2), state_of(policy, 5)
    freeze(policy)
    before = act(policy, obs, state, True)
    policy.value.bias.add_(1.0)
    assert_equal(act(policy, obs, state, True), before)
    freeze(policy)
    torch.testing.assert_close(act(policy, obs, state, True).values, before.values + 1.0)


def test_large_policies_are_not_frozen() -> None:
    policy = Policy(layout(1), SMALL.model_copy(update={"lstm": 2048})).eval()
    assert not freeze(policy) and policy.actor is None


def test_a_bfloat16_policy_acts_in_float32() -> None:
    single = policy_of(layout(1))
    reduced = Policy(layout(1), SMALL.model_copy(update={"precision": "bfloat16"})).eval()
    reduced.load_state_dict(single.state_dict())
    assert freeze(single) and freeze(reduced)
    obs, state = random_obs(layout(1), 2, seed=2), state_of(single, 2)
    assert_equal(act(reduced, obs, state, True), act(single, obs, state, True))


def test_several_threads_are_left_to_pytorch() -> None:
    policy, threads = policy_of(layout(1)), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert not freeze(policy)
    finally:
        torch.set_num_threads(threads)


def test_a_deep_copy_keeps_its_actor() -> None:
    policy = policy_of(layout(1))
    freeze(policy)
    obs, state = random_obs(layout(1), 2, seed=2), state_of(policy, 2)
    assert_equal(act(copy.deepcopy(policy), obs, state, True), act(policy, obs, state, True))


def test_wrong_arrays_are_refused() -> None:
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
    strange = obs["private_ids"].clone()
    strange[2, 4, layout(5).blocks["nearby_map"].offset["private_ids"] + 5] = 60_000
    with pytest.raises(IndexError):
        policy.act(obs | {"private_ids": strange}, state)
    assert dataclasses.is_dataclass(policy.act(obs, state))  # a refused call changes nothing


@pytest.mark.parametrize("of", [layout(1), layout(5), bare_layout()], ids=["1v1", "5v5", "bare"])
def test_the_actor_evaluates_every_module(of: Layout) -> None:
    for config in (SMALL, SPLIT):
        policy = policy_of(of, config)
        NativeActor(policy)
        assert [name for name, module in policy.named_modules() if not isinstance(module, EVALUATED)] == []


@pytest.mark.parametrize("module", [torch.nn.Linear(2, 2), torch.nn.Dropout(0.1), torch.nn.LayerNorm(4)])
def test_a_missing_module_is_named(module: torch.nn.Module) -> None:
    policy = policy_of(layout(1))
    policy.heads.add_module("extra", module)
    with pytest.raises(ValueError, match=r"heads\.extra"):
        freeze(policy)
