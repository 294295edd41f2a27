"""Action heads compared with a slow reference, and the paths of their gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dota.spaces import ActionPart, MaskClass, TargetType, action_parts_used
from five.agent.model.head_names import OFFSET_PAIRS
from five.agent.model.heads import ActionHeads, AuxiliaryHeads, HeadOutput, batched_linear
from five.agent.model.policy import Policy
from five.agent.model.trunk import TrunkOutput
from tests.agent.model_cases import SMALL, layout, random_obs

TEAMS = 24


class Case:
    """Heads with large weights, a random trunk output and a random LSTM output."""

    def __init__(self, heroes: int, **model: object) -> None:
        torch.manual_seed(heroes)
        self.layout = layout(heroes)
        self.policy = Policy(self.layout, SMALL.model_copy(update=model))
        self.heads = self.policy.heads
        with torch.no_grad():
            for parameter in self.heads.parameters():
                parameter.normal_()
        self.obs = random_obs(self.layout, TEAMS)
        inputs = self.policy.trunk.reader(self.obs)
        self.trunk: TrunkOutput = self.policy.trunk(inputs, self.policy.normaliser(inputs), self.policy.embeddings)
        self.core = torch.randn(TEAMS, heroes, SMALL.lstm)
        self.embedding = self.policy.embeddings.table("action").detach()

    def choose(self, actions: Tensor | None = None, seed: int = 0, greedy: bool = False) -> HeadOutput:
        generator = torch.Generator().manual_seed(seed)
        chosen: HeadOutput = self.heads(self.core, self.trunk, self.obs, self.embedding, actions, generator, greedy)
        return chosen

    def reference(self, n: int, hero: int, action: Tensor) -> tuple[float, float]:
        """(log-probability, entropy) of one hero's action, written out."""
        heads, core = self.heads, self.core[n, hero]
        ids = [int(i) for i in self.obs["available"][n, hero].long() if i]
        slots = [s for s, i in enumerate(self.obs["available"][n, hero].long().tolist()) if i]
        scores = torch.stack([heads.primary(core) @ self.embedding[i] for i in ids])
        chosen = ids[slots.index(int(action[ActionPart.SLOT]))]
        total, spread = _count(scores, slots.index(int(action[ActionPart.SLOT])))
        target = self.layout.actions[chosen].target
        used = action_parts_used(target)
        parts = [_count(heads.delay(core), int(action[ActionPart.DELAY]))]
        if ActionPart.OFFSET_X in used:
            pair = {TargetType.POINT: "caster", TargetType.WARD: "ward"}.get(target, "regular")
            xy = heads.offsets(core).view(3, 2, 9)[OFFSET_PAIRS.index(pair)]
            parts += [_count(xy[0], int(action[ActionPart.OFFSET_X])),
                      _count(xy[1], int(action[ActionPart.OFFSET_Y]))]
        for part, head, row in ((ActionPart.UNIT, heads.unit, int(self.layout.actions[chosen].mask)),
                                (ActionPart.TELEPORT, heads.teleport, int(MaskClass.TELEPORT))):
            if part not in used:
                continue
            valid = [u for u in range(self.layout.units) if self.obs["target_mask"][n, hero, row, u]]
            if valid:
                gate = torch.sigmoid(heads.gate.weight[chosen])
                keys = torch.stack([self.trunk.units[self.trunk.rows[n, u], hero] * gate for u in valid])
                parts.append(_count(keys @ head(core), valid.index(int(action[part]))))
        for logp, h in parts:
            total, spread = total + logp, spread + h
        return total, spread


def _count(scores: Tensor, index: int) -> tuple[float, float]:
    logp = F.log_softmax(scores.double(), -1)
    return float(logp[index]), float(-(logp.exp() * logp).sum())


@pytest.mark.parametrize("heroes", [1, 5])
def test_heads_equal_the_slow_reference(heroes: int) -> None:
    case = Case(heroes)
    seen = set()
    with torch.no_grad():
        for seed in range(3):
            chosen = case.choose(seed=seed)
            again = case.choose(chosen.actions)
            torch.testing.assert_close(again.logp, chosen.logp)
            spread = torch.stack(list(again.entropies.values())).sum(0)
            for n in range(TEAMS):
                for hero in range(heroes):
                    logp, entropy = case.reference(n, hero, chosen.actions[n, hero])
                    assert math.isclose(chosen.logp[n, hero], logp, abs_tol=1e-4)
                    assert math.isclose(spread[n, hero], entropy, abs_tol=1e-4)
                    slot = chosen.actions[n, hero, ActionPart.SLOT]
                    seen.add(case.layout.actions[int(case.obs["available"][n, hero, slot])].target)
    assert seen == set(TargetType) or heroes == 1


def test_only_valid_actions_are_chosen() -> None:
    case = Case(5)
    with torch.no_grad():
        for seed in range(30):
            chosen = case.choose(seed=seed, greedy=seed == 29)
            slot = chosen.actions[..., :1]
            ids = case.obs["available"].long().gather(-1, slot)[..., 0]
            assert (ids != 0).all()
            for n, hero in torch.cartesian_prod(torch.arange(TEAMS), torch.arange(5)).tolist():
                action = case.layout.actions[int(ids[n, hero])]
                used = action_parts_used(action.target)
                a = chosen.actions[n, hero]
                assert 0 <= a[ActionPart.DELAY] < 4
                assert (a[4:] >= 0).all() and (a[4:] < 9).all()
                for part, row in ((ActionPart.UNIT, action.mask), (ActionPart.TELEPORT, MaskClass.TELEPORT)):
                    valid = case.obs["target_mask"][n, hero, int(row)]
                    if part in used and valid.any():
                        assert valid[a[part]]
                    else:
                        assert a[part] == 0
                if ActionPart.OFFSET_X not in used:
                    assert a[4:].tolist() == [4, 4]


def test_logp_ignores_a_missing_target() -> None:
    case = Case(1)
    case.obs["target_mask"].zero_()
    chosen = case.choose()
    assert not chosen.entropies and (chosen.target == -1).all()
    assert (case.choose(chosen.actions).entropies["unit"] == 0).all()
    assert (chosen.actions[..., [ActionPart.UNIT, ActionPart.TELEPORT]] == 0).all()
    chosen.logp.sum().backward()
    assert case.heads.unit.weight.grad is None or (case.heads.unit.weight.grad == 0).all()


@pytest.mark.parametrize("target", list(TargetType))
def test_unread_heads_get_no_gradient(target: TargetType) -> None:
    case = Case(5)
    ids = [a.id for a in case.layout.actions if a.target is target and a.id > 0]
    case.obs["available"].zero_()
    case.obs["available"][..., 0], case.obs["available"][..., 1] = ids[0], ids[-1]
    chosen = case.choose(case.choose().actions)
    (chosen.logp.sum() + sum(e.sum() for e in chosen.entropies.values())).backward()
    used = action_parts_used(target)
    pair = {TargetType.POINT: 1, TargetType.WARD: 2}.get(target, 0)

    def learns(head: torch.nn.Linear) -> bool:
        return head.weight.grad is not None and bool((head.weight.grad != 0).any())

    assert learns(case.heads.delay)
    assert learns(case.heads.unit) == (ActionPart.UNIT in used)
    assert learns(case.heads.teleport) == (ActionPart.TELEPORT in used)
    gradient = case.heads.offsets.weight.grad
    assert gradient is not None
    for i, rows in enumerate(gradient.view(3, -1)):
        assert bool((rows != 0).any()) == (ActionPart.OFFSET_X in used and i == pair)


def test_fixed_delay_is_neither_chosen_nor_learned() -> None:
    case, free = Case(5, fixed_delay=True), Case(5)
    chosen, other = case.choose(), free.choose()
    assert not chosen.actions[..., ActionPart.DELAY].any() and other.actions[..., ActionPart.DELAY].any()
    rest = [part for part in ActionPart if part is not ActionPart.DELAY]
    assert torch.equal(chosen.actions[..., rest], other.actions[..., rest])
    delay = free.heads.delay(free.core).log_softmax(-1).gather(-1, other.actions[..., [ActionPart.DELAY]])[..., 0]
    torch.testing.assert_close(chosen.logp, other.logp - delay)
    again = case.choose(chosen.actions)
    torch.testing.assert_close(again.logp, chosen.logp)
    assert not again.entropies["delay"].any() and not again.max_entropies["delay"].any()
    (again.logp.sum() + sum(e.sum() for e in again.entropies.values())).backward()
    assert case.heads.delay.weight.grad is not None and not case.heads.delay.weight.grad.any()
    small = case.heads.scores(case.core, case.trunk, case.obs, case.embedding, chosen.actions)["small"]
    assert (small[..., 0, :] == -torch.inf).all()


def test_first_policy_is_close_to_uniform() -> None:
    policy = Policy(layout(5), SMALL)
    obs = random_obs(policy.layout, TEAMS)
    acted = policy.act(obs, policy.initial_state(TEAMS))
    out = policy.unroll({n: a[None] for n, a in obs.items()}, acted.actions[None], policy.initial_state(TEAMS))
    uniform = (obs["available"] != 0).sum(-1).float().log()
    assert (out.entropies["action"][0] > 0.9 * uniform - 1e-4).all()


def test_max_entropies_are_those_of_uniform_heads() -> None:
    """With zero weights every head is uniform over its valid entries."""
    case = Case(5)
    for parameter in case.heads.parameters():
        parameter.data.zero_()
    case.trunk.units.zero_()
    with torch.no_grad():
        out = case.choose(case.choose().actions)
    assert out.entropies.keys() == out.max_entropies.keys() == {"action", "delay", "offset", "unit"}
    for head, entropy in out.entropies.items():
        torch.testing.assert_close(entropy, out.max_entropies[head])
    assert out.max_entropies["delay"].unique().tolist() == pytest.approx([math.log(4)])
    assert out.max_entropies["offset"].unique().tolist() == pytest.approx([0.0, 2 * math.log(9)])
    assert out.max_entropies["unit"].max() > math.log(2)


def test_each_head_is_its_own_module() -> None:
    heads = ActionHeads(layout(1), SMALL)
    assert {name.split(".")[0] for name in heads.state_dict()} == {
        "primary", "unit", "teleport", "gate", "delay", "offsets"}


def test_only_win_probability_shapes_the_lstm() -> None:
    heads = AuxiliaryHeads(layout(5), SMALL)
    for name, stopped in (("win_probability", False), ("net_worth_rank", True), ("building_events", True)):
        core = torch.randn(2, 5, SMALL.lstm, requires_grad=True)
        logits = heads(core)[name]
        heads.zero_grad()
        logits.square().sum().backward()
        assert (core.grad is None) == stopped, name
        head = getattr(heads, name)
        assert all(p.grad is not None and (p.grad != 0).any() for p in head.parameters()), name


def test_batched_linear_equals_the_layers() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(7, out) for out in (3, 1, 5)]
    parameters = [p for layer in layers for p in layer.parameters()]
    x = torch.randn(4, 2, 7, requires_grad=True)
    found = []
    for outputs in ([layer(x) for layer in layers], batched_linear(x, layers)):
        total = torch.stack([(out * (i + 1)).square().sum() for i, out in enumerate(outputs)]).sum()
        found.append([*outputs, *torch.autograd.grad(total, [x, *parameters])])
    for apart, together in zip(*found, strict=True):
        torch.testing.assert_close(together, apart)
