"""The trunk ignores the order of slots, and keeps private inputs apart."""

import numpy as np
import torch
from torch import Tensor

from dota.spaces import Layout
from five.agent.model.policy import Policy
from tests.agent.model_cases import SMALL, layout, random_obs


def permute(of: Layout, obs: dict[str, Tensor], order: list[int]) -> dict[str, Tensor]:
    """Move units and the rows that belong to them: new slot i holds old slot order[i]."""
    new = {name: array.clone() for name, array in obs.items()}

    def move(array: str, block: str, rows: list[int]) -> None:
        b = of.blocks[block]
        if b.width(array):  # type: ignore[arg-type]
            source = obs[array][..., b.span(array)].unflatten(-1, (b.instances, b.width(array)))  # type: ignore
            new[array][..., b.span(array)] = source[..., rows, :].flatten(-2)  # type: ignore[arg-type]

    heroes = 2 * of.heroes
    for array in ("shared", "private", "shared_ids"):
        move(array, "units", order)
        move(array, "heroes", order[:heroes])
        move(array, "allied_heroes", order[:of.heroes])
        for block, per, owners in (("hero_modifiers", of.observation.hero_modifiers, order[:heroes]),
                                   ("abilities", 6, order[:heroes]), ("items", 16, order[:heroes]),
                                   ("unit_modifiers", of.observation.unit_modifiers,
                                    [o - heroes for o in order[heroes:]])):
            if array != "private":
                move(array, block, [o * per + i for o in owners for i in range(per)])
    new["target_mask"] = obs["target_mask"][..., order]
    return new


def test_order_within_a_group_is_ignored() -> None:
    policy = Policy(layout(5), SMALL)
    of = policy.layout
    rng = np.random.default_rng(0)
    order = list(range(of.units))
    for group in of.groups.values():
        if group.name != "allied_heroes":  # these are the controlled heroes, in order
            mixed = rng.permutation(group.count) + group.start
            order[group.start:group.start + group.count] = [int(i) for i in mixed]
    assert order != sorted(order)
    obs = random_obs(of, 6)
    state = {name: torch.randn_like(a) for name, a in policy.initial_state(6).items()}
    a = policy.act(obs, state, greedy=True)
    b = policy.act(permute(of, obs, order), state, greedy=True)
    torch.testing.assert_close(a.values, b.values)
    torch.testing.assert_close(a.logp, b.logp)
    torch.testing.assert_close(a.state["target_embedding"], b.state["target_embedding"])
    # The chosen units are the same units, at their new slots.
    targeted = (a.state["target_embedding"] != 0).any(-1)
    new_slot = torch.tensor(np.argsort(order))
    assert targeted.any()
    before, after = a.actions[..., 2:4].sum(-1).long(), b.actions[..., 2:4].sum(-1).long()
    assert torch.equal(new_slot[before][targeted], after[targeted])


def test_order_between_groups_matters() -> None:
    policy = Policy(layout(5), SMALL)
    of = policy.layout
    obs = random_obs(of, 6)
    order = list(range(of.units))
    allied, enemy = of.groups["allied_creeps"], of.groups["enemy_creeps"]
    for a, b in zip(range(allied.start, allied.start + allied.count), range(enemy.start, enemy.start + enemy.count),
                    strict=True):
        order[a], order[b] = b, a
    state = policy.initial_state(6)
    base, moved = policy.act(obs, state), policy.act(permute(of, obs, order), state)
    assert not torch.allclose(base.values, moved.values)


def test_private_inputs_reach_others_by_the_pool() -> None:
    """Private inputs of hero 0 move the others' LSTM input in its first quarter and nowhere else."""
    policy = Policy(layout(5), SMALL)
    obs = random_obs(policy.layout, 8)
    other = {name: array.clone() for name, array in obs.items()}
    other["private"][:, 0] += 1.0
    target = policy.initial_state(8)["target_embedding"]
    before, after = (policy._join(inputs, trunk, floats, target)
                     for inputs, trunk, floats, _ in (policy._encode(o) for o in (obs, other)))
    assert not torch.equal(before[:, 0, SMALL.pooled:], after[:, 0, SMALL.pooled:])
    torch.testing.assert_close(before[:, 1:, SMALL.pooled:], after[:, 1:, SMALL.pooled:])
    assert not torch.equal(before[:, 1:, :SMALL.pooled], after[:, 1:, :SMALL.pooled])


def test_each_hero_reads_its_own_embedding() -> None:
    """Swapping two allied heroes and their private inputs swaps their outputs."""
    policy = Policy(layout(5), SMALL)
    of = policy.layout
    obs = random_obs(of, 6)
    order = list(range(of.units))
    order[1], order[3] = 3, 1
    swapped = permute(of, obs, order)
    who = [0, 3, 2, 1, 4]
    for name in ("private", "private_ids", "available", "target_mask"):
        swapped[name] = swapped[name][:, who]
    a, b = (policy.act(o, policy.initial_state(6), greedy=True) for o in (obs, swapped))
    torch.testing.assert_close(a.values[:, who], b.values)
    torch.testing.assert_close(a.logp[:, who], b.logp)


def test_known_targets_do_not_change_the_gradient() -> None:
    torch.manual_seed(0)
    policy, obs = Policy(layout(5), SMALL), random_obs(layout(5), 3, 2)
    actions, resets = torch.zeros(3, 2, 5, 6, dtype=torch.int16), torch.zeros(3, 2, dtype=torch.bool)
    index = policy.index_batch(obs, actions, resets)
    assert len(index.targets.step) > 0
    gradients = []
    for known in (index, None):
        policy.zero_grad()
        unrolled = policy.unroll(obs, actions, policy.initial_state(2), resets, known)
        (unrolled.logp.sum() + unrolled.entropy.sum() + unrolled.values.square().sum()).backward()
        gradients.append({name: p.grad for name, p in policy.named_parameters() if p.grad is not None})
    torch.testing.assert_close(*gradients)
