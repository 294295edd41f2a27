"""Policy.act and unroll: shapes, log-probabilities, recurrent state, determinism, gradients."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dota.spaces import ActionPart, TargetType, action_parts_used
from five.agent.config import ModelConfig
from five.agent.model.native_reader import NativeReader
from five.agent.model.policy import Policy, State
from five.agent.model.recurrent_state import state_specs
from tests.agent.model_cases import SMALL, layout, random_obs

STEPS, TEAMS = 6, 3


def make(heroes: int, seed: int = 0, config: ModelConfig = SMALL) -> Policy:
    torch.manual_seed(seed)
    policy = Policy(layout(heroes), config)
    with torch.no_grad():  # large weights, because the initial policy is nearly uniform
        for parameter in policy.heads.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return policy


def see(policy: Policy, obs: dict[str, Tensor]) -> None:
    """Merge observations into the policy's statistics, as a gradient step does."""
    steps, teams = obs["shared"].shape[:2]
    actions = torch.zeros(steps, teams, policy.layout.heroes, 6, dtype=torch.int16)
    policy.update_normaliser(policy.unroll(obs, actions, policy.initial_state(teams)).observation_moments)


def play(policy: Policy, obs: dict[str, Tensor], resets: Tensor | None = None, seed: int = 1,
         state: State | None = None) -> tuple[Tensor, Tensor, Tensor, State]:
    """Act step by step with resets. Return (actions, logp, values, last state)."""
    steps, teams = obs["shared"].shape[:2]
    generator = torch.Generator().manual_seed(seed)
    state = policy.initial_state(teams) if state is None else state
    acted = []
    for t in range(steps):
        if resets is not None:
            keep = (~resets[t]).float()[:, None, None]
            state = {name: array * keep for name, array in state.items()}
        a = policy.act({name: array[t] for name, array in obs.items()}, state, generator=generator)
        acted.append(a)
        state = a.state
    return (torch.stack([a.actions for a in acted]), torch.stack([a.logp for a in acted]),
            torch.stack([a.values for a in acted]), state)


@pytest.mark.parametrize("heroes", [1, 5])
def test_shapes_and_dtypes(heroes: int) -> None:
    policy = make(heroes)
    obs = random_obs(policy.layout, STEPS, TEAMS)
    acted = policy.act({name: array[0] for name, array in obs.items()}, policy.initial_state(TEAMS))
    assert acted.actions.shape == (TEAMS, heroes, 6) and acted.actions.dtype == torch.int16
    assert acted.logp.shape == acted.values.shape == (TEAMS, heroes)
    buildings = policy.layout.observation.buildings
    assert acted.aux["win_probability"].shape == (TEAMS, heroes)
    assert acted.aux["building_events"].shape == (TEAMS, heroes, buildings)
    np.testing.assert_allclose(acted.aux["net_worth_rank"].sum(-1), np.ones((TEAMS, heroes)), rtol=1e-5)
    for name, (shape, dtype) in state_specs(policy.layout, SMALL).items():
        assert acted.state[name].shape == (TEAMS, *shape) and acted.state[name].numpy().dtype == dtype
    actions, _, _, _ = play(policy, obs)
    out = policy.unroll(obs, actions, policy.initial_state(TEAMS), torch.zeros(STEPS, TEAMS, dtype=torch.bool))
    for array in (out.logp, out.entropy, out.values, *out.entropies.values(), out.aux["win_probability"]):
        assert array.shape == (STEPS, TEAMS, heroes) and array.dtype == torch.float32
    assert out.aux["net_worth_rank"].shape == (STEPS, TEAMS, heroes, 5)


@pytest.mark.parametrize("heroes", [1, 5])
@pytest.mark.parametrize("with_resets", [False, True])
def test_unroll_repeats_the_logp_of_act(heroes: int, with_resets: bool) -> None:
    """PPO's ratio is 1 on data of the current version, also across the end of a game."""
    policy = make(heroes)
    obs = random_obs(policy.layout, STEPS, TEAMS)
    see(policy, obs)
    resets = torch.zeros(STEPS, TEAMS, dtype=torch.bool)
    if with_resets:
        resets[0, 0] = resets[3, 1] = resets[4, 1] = resets[5, 2] = True
    start = {name: torch.randn_like(array) for name, array in policy.initial_state(TEAMS).items()}
    actions, logp, values, last = play(policy, obs, resets, state=dict(start))
    assert len(actions[..., 0].unique()) > 1 and (actions[..., ActionPart.UNIT] > 0).any()
    out = policy.unroll(obs, actions, start, resets)
    np.testing.assert_allclose(out.logp.detach(), logp, atol=1e-5)
    np.testing.assert_allclose(out.values.detach(), values, atol=1e-5)
    for name, array in last.items():
        np.testing.assert_allclose(out.state[name], array, atol=1e-5, err_msg=name)


def test_two_halves_equal_one_unroll() -> None:
    policy = make(5)
    obs = random_obs(policy.layout, STEPS, TEAMS)
    actions, _, _, _ = play(policy, obs)
    resets = torch.zeros(STEPS, TEAMS, dtype=torch.bool)
    resets[4, 0] = True
    whole = policy.unroll(obs, actions, policy.initial_state(TEAMS), resets)
    first = policy.unroll({n: a[:3] for n, a in obs.items()}, actions[:3], policy.initial_state(TEAMS), resets[:3])
    second = policy.unroll({n: a[3:] for n, a in obs.items()}, actions[3:], first.state, resets[3:])
    np.testing.assert_allclose(torch.cat((first.logp, second.logp)).detach(), whole.logp.detach(), atol=1e-5)


def test_a_reset_clears_the_recurrent_state() -> None:
    """It clears the LSTM and the target's embedding."""
    policy = make(5)
    obs = random_obs(policy.layout, STEPS, TEAMS)
    other = random_obs(policy.layout, STEPS, TEAMS, seed=9)
    mixed = {name: torch.cat((other[name][:3], array[3:])) for name, array in obs.items()}
    actions, _, _, _ = play(policy, obs)
    mixed_actions, _, _, _ = play(policy, mixed)
    resets = torch.zeros(STEPS, TEAMS, dtype=torch.bool)
    resets[3] = True
    mixed_actions = torch.cat((mixed_actions[:3], actions[3:]))
    a = policy.unroll(obs, actions, policy.initial_state(TEAMS), resets)
    b = policy.unroll(mixed, mixed_actions, policy.initial_state(TEAMS), resets)
    np.testing.assert_allclose(a.values[3:].detach(), b.values[3:].detach(), atol=1e-6)
    np.testing.assert_allclose(a.logp[3:].detach(), b.logp[3:].detach(), atol=1e-6)
    without = policy.unroll(mixed, mixed_actions, policy.initial_state(TEAMS))
    assert not torch.allclose(a.values[3:], without.values[3:])


def test_the_next_step_sees_the_target() -> None:
    policy = make(1)
    obs = random_obs(policy.layout, 2, TEAMS)
    actions, _, _, _ = play(policy, obs)
    state = policy.initial_state(TEAMS)
    base = policy.unroll(obs, actions, state)
    state["target_embedding"] += 1.0
    shown = policy.unroll(obs, actions, state)
    assert not torch.allclose(base.values[0], shown.values[0])
    zero = play(policy, {n: a[:1] for n, a in obs.items()})[3]["target_embedding"]
    reads = _reads(policy, obs["available"][0], actions[0], ActionPart.UNIT, ActionPart.TELEPORT)
    shown_target = zero.abs().sum(-1) > 0
    assert shown_target.any() and not (shown_target & ~reads).any()


def _reads(policy: Policy, available: Tensor, actions: Tensor, *parts: ActionPart) -> Tensor:
    ids = available.long().gather(-1, actions[..., :1].long())[..., 0]
    used = torch.tensor([any(p in action_parts_used(a.target) for p in parts) for a in policy.layout.actions])
    return used[ids]


def test_a_generator_makes_act_deterministic() -> None:
    policy = make(5)
    obs = random_obs(policy.layout, STEPS, TEAMS)
    first, again, other = (play(policy, obs, seed=s)[0] for s in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    step = {name: array[0] for name, array in obs.items()}
    greedy = [policy.act(step, policy.initial_state(TEAMS), greedy=True) for _ in range(2)]
    assert torch.equal(greedy[0].actions, greedy[1].actions)


def test_teams_of_a_batch_are_independent() -> None:
    policy = make(5)
    obs = random_obs(policy.layout, TEAMS)
    state = {name: torch.randn_like(a) for name, a in policy.initial_state(TEAMS).items()}
    together = policy.act(obs, state, greedy=True)
    for i in range(TEAMS):
        alone = policy.act({n: a[i:i + 1] for n, a in obs.items()}, {n: a[i:i + 1] for n, a in state.items()},
                           greedy=True)
        assert torch.equal(alone.actions[0], together.actions[i])
        np.testing.assert_allclose(alone.logp[0], together.logp[i], atol=1e-5)


def test_absent_rows_have_no_influence() -> None:
    """Values in the slots of absent units, modifiers, abilities, items and pickups are never read."""
    policy = make(5)
    lay = policy.layout
    obs = random_obs(lay, STEPS, TEAMS)
    actions, _, _, _ = play(policy, obs)
    base = policy.unroll(obs, actions, policy.initial_state(TEAMS))
    dirty = {name: array.clone() for name, array in obs.items()}

    def spoil(array: str, block: str, absent: Tensor) -> None:
        b = lay.blocks[block]
        view = dirty[array][..., b.span(array)].unflatten(-1, (b.instances, b.width(array)))
        view[absent.expand(*view.shape[:-2], -1) if array == "private" else absent] = 77.0

    def ids(block: str) -> Tensor:
        b = lay.blocks[block]
        span = obs["shared_ids"][..., b.span("shared_ids")].to(torch.int64)
        return span.unflatten(-1, (b.instances, b.width("shared_ids")))[..., 0]

    spoiled = 0
    for block in ("hero_modifiers", "unit_modifiers", "abilities", "items", "units"):
        absent = ids(block) == 0
        spoiled += int(absent.sum())
        spoil("shared", block, absent)
        if block == "units":
            spoil("private", block, absent[..., None, :])
            spoil("shared", "heroes", absent[..., :2 * lay.heroes])
            spoil("private", "heroes", absent[..., None, :2 * lay.heroes])
            dirty["target_mask"] |= absent[..., None, None, :].to(torch.uint8)
    assert spoiled > 100
    out = policy.unroll(dirty, actions, policy.initial_state(TEAMS))
    # A mask that lists absent units changes nothing either.
    np.testing.assert_allclose(out.values.detach(), base.values.detach(), atol=1e-6)
    np.testing.assert_allclose(out.logp.detach(), base.logp.detach(), atol=1e-6)


def test_an_empty_team_step_is_finite() -> None:
    """Padding after a game's end: no unit, no available action."""
    policy = make(5)
    obs = {name: torch.from_numpy(array) for name, array in policy.layout.allocate(2, TEAMS).items()}
    actions, logp, values, _ = play(policy, obs)
    out = policy.unroll(obs, actions, policy.initial_state(TEAMS))
    assert (out.logp == 0).all() and (out.entropy == 0).all() and (logp == 0).all()
    (out.logp.sum() + out.entropy.sum() + out.values.sum()).backward()
    assert torch.isfinite(out.logp).all() and torch.isfinite(values).all() and torch.isfinite(logp).all()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


def test_wrong_widths_are_refused_by_name() -> None:
    policy = make(1)
    obs = random_obs(policy.layout, 2)
    obs["shared"] = obs["shared"][:, :-1]
    with pytest.raises(ValueError, match=policy.layout.hash):
        policy.act(obs, policy.initial_state(2))


@pytest.mark.parametrize("heroes", [1, 5])
def test_bfloat16_is_close_to_float32(heroes: int) -> None:
    config = SMALL.model_copy(update={"precision": "bfloat16"})
    single, half = make(heroes), make(heroes, config=config)
    half.load_state_dict(single.state_dict())
    obs = random_obs(single.layout, STEPS, TEAMS)
    actions, _, _, _ = play(single, obs)
    a = single.unroll(obs, actions, single.initial_state(TEAMS))
    b = half.unroll(obs, actions, half.initial_state(TEAMS))
    assert b.logp.dtype == b.values.dtype == torch.float32
    (b.logp.sum() + b.values.sum()).backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in half.parameters())
    np.testing.assert_allclose(a.values.detach(), b.values.detach(), atol=0.1)
    state = half.act({n: x[0] for n, x in obs.items()}, half.initial_state(TEAMS)).state
    assert all(array.dtype == torch.float32 for array in state.values())


def test_overfits_a_small_target() -> None:
    """Behaviour cloning of random actions and values on one batch."""
    policy = make(5)
    obs = random_obs(policy.layout, 4, 2)
    see(policy, obs)
    actions, _, _, _ = play(policy, obs, seed=3)
    target = torch.randn(4, 2, 5, generator=torch.Generator().manual_seed(4))
    optimiser = torch.optim.Adam(policy.parameters(), 0.02)
    losses = []
    for _ in range(40):
        out = policy.unroll(obs, actions, policy.initial_state(2))
        loss = (out.values - target).square().mean() - out.logp.mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 3.0 and losses[-1] < 0.5


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_unroll_returns_observation_moments(precision: str) -> None:
    policy = make(5, config=SMALL.model_copy(update={"precision": precision}))
    see(policy, random_obs(policy.layout, STEPS, TEAMS, seed=5))  # moves the means away from zero
    obs = random_obs(policy.layout, STEPS, TEAMS)
    actions = torch.zeros(STEPS, TEAMS, 5, 6, dtype=torch.int16)
    out = policy.unroll(obs, actions, policy.initial_state(TEAMS))
    flat = {name: array.flatten(0, 1) for name, array in obs.items()}
    expected = policy.normaliser.stream_moments(policy.trunk.reader(flat))
    assert out.observation_moments.dtype == torch.float64 and not out.observation_moments.requires_grad
    torch.testing.assert_close(out.observation_moments, expected, rtol=1e-5, atol=1e-3)  # both sum in float32


def test_observations_are_read_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make(5)
    reads = 0

    def count(*_: object) -> None:
        nonlocal reads
        reads += 1

    read = NativeReader.__call__
    monkeypatch.setattr(NativeReader, "__call__", lambda *a: count() or read(*a))
    policy.trunk.reader.register_forward_hook(count)
    see(policy, random_obs(policy.layout, STEPS, TEAMS))
    assert reads == 1 and policy.normaliser.count.sum() > 0


def test_state_dict_is_flat_and_complete() -> None:
    policy = make(5)
    policy.rewards.merge_sums(torch.tensor([10.0, 5.0, 30.0]))
    see(policy, random_obs(policy.layout, 4, 1))
    version = policy.state_dict()
    assert all(isinstance(t, Tensor) for t in version.values())
    assert any(name.startswith("normaliser.") for name in version)
    other = make(5, seed=1)
    other.load_state_dict(version)
    assert other.reward_std == policy.reward_std != 1.0
    obs = random_obs(policy.layout, TEAMS)
    a, b = (p.act(obs, p.initial_state(TEAMS), greedy=True) for p in (policy, other))
    assert torch.equal(a.logp, b.logp) and torch.equal(a.actions, b.actions)


def test_every_parameter_gets_a_gradient() -> None:
    policy = make(5)
    with torch.no_grad():
        policy.heads.gate.weight.normal_()
    obs = random_obs(policy.layout, 12, 8)
    actions, _, _, _ = play(policy, obs)
    kinds = {a.target for a in policy.layout.actions}
    assert kinds == set(TargetType)
    out = policy.unroll(obs, actions, policy.initial_state(8))
    loss = out.logp.sum() + out.entropy.sum() + out.values.sum() + sum(a.square().sum() for a in out.aux.values())
    loss.backward()
    silent = [n for n, p in policy.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert silent == []


def test_gradients_are_bit_equal_on_two_threads() -> None:
    """A resumed run takes the same next step only if no sum's order depends on the threads."""
    policy = make(5, config=SMALL.model_copy(update={"key": 8}))
    obs = random_obs(policy.layout, 16, 32)
    actions = torch.zeros(16, 32, 5, 6, dtype=torch.int16)
    actions[..., 0] = 1
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        gradients = []
        for _ in range(4):
            policy.zero_grad()
            out = policy.unroll(obs, actions, policy.initial_state(32))
            (out.logp.mean() + out.entropy.mean() + out.values.mean()).backward()
            gradients.append({n: p.grad.clone() for n, p in policy.named_parameters() if p.grad is not None})
    finally:
        torch.set_num_threads(threads)
    differing = {n for g in gradients[1:] for n, grad in g.items() if not torch.equal(grad, gradients[0][n])}
    assert differing == set()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_act_and_unroll_on_a_gpu(precision: str) -> None:
    config = SMALL.model_copy(update={"precision": precision})
    policy = make(5, config=config)
    on_gpu = make(5, config=config).cuda()
    obs = random_obs(policy.layout, STEPS, TEAMS)
    resets = torch.zeros(STEPS, TEAMS, dtype=torch.bool)
    resets[3, 1] = True
    actions, _, _, _ = play(policy, obs)
    gpu_obs = {name: array.cuda() for name, array in obs.items()}
    state = on_gpu.initial_state(TEAMS)
    acted = on_gpu.act({n: a[0] for n, a in gpu_obs.items()}, state,
                       generator=torch.Generator("cuda").manual_seed(0))
    again = on_gpu.unroll({n: a[:1] for n, a in gpu_obs.items()}, acted.actions[None], state)
    tolerance = 1e-4 if precision == "float32" else 0.1
    torch.testing.assert_close(again.logp[0], acted.logp, atol=tolerance, rtol=tolerance)
    here = policy.unroll(obs, actions, policy.initial_state(TEAMS), resets)
    out = on_gpu.unroll(gpu_obs, actions.cuda(), state, resets.cuda())
    torch.testing.assert_close(out.logp.cpu(), here.logp, atol=tolerance * 3, rtol=tolerance)
    torch.testing.assert_close(out.values.cpu(), here.values, atol=tolerance * 3, rtol=tolerance)
    (out.logp.sum() + out.values.sum()).backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in on_gpu.parameters())
