"""Migration of a learner's checkpoint."""

from typing import Any

import numpy as np
import pytest
import torch

from five.agent.config import LearnerConfig
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.schedules import Hyperparameters
from five.agent.surgery import AgentSpec, Plan, convert_observations, convert_state, migrate_learner
from five.agent.surgery.check import compare_policies
from tests.agent.surgery.agents import agent, plan, recorded

CONFIG = LearnerConfig(lstm_unroll_length=5, samples_per_segment=3, batch_samples=3, initial_hold_steps=0,
                       gradient_clip_warmup_steps=2)
HYPER = Hyperparameters(1e-2, 0.01, 0.3, 180.0)
EVERYTHING: tuple[dict[str, Any], ...] = (
    {"kind": "widen", "layer": "unit", "to": 11}, {"kind": "widen", "layer": "unit_hidden", "to": 15},
    {"kind": "widen", "layer": "lstm_input", "to": 24}, {"kind": "widen", "layer": "key", "to": 9},
    {"kind": "grow_lstm", "to": 40, "exact": True}, {"kind": "split_head", "head": "unit.ally"},
    {"kind": "split_head", "head": "offset.move"}, {"kind": "embedding", "space": "item", "to": 5},
    {"kind": "add_observations", "fields": ["units.position", "items"]},
    {"kind": "slots", "slots": {"neutral_creeps": 3, "allied_creeps": 7}}, {"kind": "add_ids", "rows": {"unit": 300}})


def start(heroes: int = 1) -> AgentSpec:
    return agent(heroes, {"omit": ("units.position", "items"), "neutral_creeps": 0})


def batch_of(spec: AgentSpec, seed: int = 1) -> dict[str, np.ndarray]:
    """Return a batch of recorded samples with random labels."""
    play = recorded(spec, seed=seed)
    rng = np.random.default_rng(seed)
    lead, heroes = play.actions.shape[:2], spec.layout.heroes
    per_hero = {name: rng.normal(size=(*lead, heroes)).astype(np.float32)
                for name in ("behaviour_values", "advantages", "returns")}
    return {
        **play.observation, **{f"state/{n}": a for n, a in play.state.items()}, **per_hero, "actions": play.actions,
        "resets": play.resets, "behaviour_logp": np.full((*lead, heroes), -4, np.float32),
        "mask": np.ones((*lead, heroes), np.float32), "versions": np.zeros(lead, np.int32),
        "win_label": rng.random(lead).astype(np.float32),
        "rank_label": np.full((*lead, heroes, 5), 0.2, np.float32),
        "building_label": rng.random((*lead, spec.game.observation.buildings)).astype(np.float32),
        "outcome_mask": np.zeros(lead, np.float32)}


def converted(of: Plan, spec: AgentSpec, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [*spec.layout.array_specs(), "actions"]
    arrays = convert_observations(of, spec, {name: batch[name] for name in names}, "random")
    state = {n.removeprefix("state/"): a for n, a in batch.items() if n.startswith("state/")}
    new = of.target(spec)
    rest = {f"state/{n}": a for n, a in convert_state(spec, new, state).items()}
    return {**batch, **arrays, **rest}


def learned(spec: AgentSpec, steps: int = 4) -> Learner:
    torch.manual_seed(3)
    learner = Learner(Policy(spec.layout, spec.model), CONFIG)
    for i in range(steps):
        learner.train_step(batch_of(spec, seed=10 + i), HYPER)
    return learner


def continued(of: Plan, spec: AgentSpec, learner: Learner) -> Learner:
    state, extra = migrate_learner(of, spec, learner.state_dict(), learner.extra())
    new = of.target(spec)
    after = Learner(Policy(new.layout, new.model), CONFIG)
    after.load_state_dict(state, extra)
    return after


def scores(learner: Learner, batch: dict[str, np.ndarray], names: list[str]) -> dict[str, torch.Tensor]:
    state = {n.removeprefix("state/"): torch.from_numpy(a) for n, a in batch.items() if n.startswith("state/")}
    policy = learner.policy
    assert isinstance(policy, Policy)
    return policy.scores({n: torch.from_numpy(batch[n]) for n in names}, torch.from_numpy(batch["actions"]), state,
                         torch.from_numpy(batch["resets"]))


@pytest.mark.parametrize("heroes", [1, 5])
def test_held_step_keeps_the_function(heroes: int) -> None:
    """Input statistics update equally before and after the surgery, and no parameter moves."""
    spec = start(heroes)
    of = plan(spec, *EVERYTHING, warm_up_versions=1)
    before = learned(spec)
    after = continued(of, spec, before)
    assert after.hold_steps == 32
    old, new = batch_of(spec, 77), converted(of, spec, batch_of(spec, 77))
    parameters = {n: p.detach().clone() for n, p in after.policy.named_parameters()}
    before.hold_steps = 1
    held = before.train_step(old, HYPER), after.train_step(new, HYPER)
    assert [m["learning_rate"] for m in held] == [0.0, 0.0] and [m["skipped"] for m in held] == [0.0, 0.0]
    assert all(torch.equal(parameters[n], p) for n, p in after.policy.named_parameters())
    for name in ("policy_loss", "value_loss", "entropy"):
        if name in held[0]:
            assert held[1][name] == pytest.approx(held[0][name], rel=1e-4, abs=1e-5)
    fresh = batch_of(spec, 99)
    names = list(spec.layout.array_specs())
    one = scores(before, fresh, names)
    two = scores(after, converted(of, spec, fresh), names)
    difference = compare_policies(one, two, spec, of.target(spec))
    assert difference.max_logit_change < 1e-4 and difference.max_value_change < 1e-4


def test_old_moments_are_kept_and_new_ones_are_zero() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "grow_lstm", "to": 40}, {"kind": "widen", "layer": "unit_hidden", "to": 15})
    learner = learned(spec)
    old, (new, _) = learner.state_dict(), migrate_learner(of, spec, learner.state_dict(), learner.extra())
    assert old["adam/m/core.lstm.weight_hh_l0"].any() and old["clip/v/core.lstm.weight_hh_l0"].any()
    for kind in ("adam/m/", "adam/v/", "clip/v/"):
        recurrent = old[kind + "core.lstm.weight_hh_l0"].view(4, 24, 24)
        grown = new[kind + "core.lstm.weight_hh_l0"].view(4, 40, 40)
        assert torch.equal(grown[:, :24, :24], recurrent)
        assert not grown[:, 24:].any() and not grown[:, :, 24:].any()
        second = "trunk.towers.allied_heroes.second.weight"
        assert torch.equal(new[kind + second][:, :12], old[kind + second])
        assert not new[kind + second][:, 12:].any()
        assert torch.equal(new[kind + "heads.offsets.bias"], old[kind + "heads.offsets.bias"])
    policy = new["policy/core.lstm.weight_hh_l0"].view(4, 40, 40)
    assert torch.equal(policy[:, :24, :24], old["policy/core.lstm.weight_hh_l0"].view(4, 24, 24))
    small = torch.cat([policy[:, 24:].flatten(), policy[:, :24, 24:].flatten()])
    assert (small != 0).all() and small.abs().max() <= 0.002
    assert (new["policy/core.lstm.bias_ih_l0"].view(4, 40)[1, 24:] == 1).all()
    assert all(torch.equal(new[name], old[name]) for name in old if name.startswith("adam/step/"))


def test_clone_gets_its_parents_moments() -> None:
    spec = agent(1, {"neutral_creeps": 0})
    of = plan(spec, {"kind": "split_head", "head": "unit.ally"}, {"kind": "split_head", "head": "offset.move"},
              {"kind": "slots", "slots": {"neutral_creeps": 2}})
    learner = learned(spec)
    old, (new, _) = learner.state_dict(), migrate_learner(of, spec, learner.state_dict(), learner.extra())
    for kind in ("policy/", "adam/m/", "adam/v/", "clip/v/", "adam/step/"):
        assert torch.equal(new[kind + "heads.unit_splits.ally.weight"], old[kind + "heads.unit.weight"])
    for kind in ("policy/", "adam/m/", "clip/v/"):
        caster = old[kind + "heads.offsets.weight"].view(3, 18, 24)[1]
        assert torch.equal(new[kind + "heads.offsets.weight"].view(4, 18, 24)[3], caster)
    tower = "trunk.towers.neutrals.first.shared.weight"
    assert float(new["adam/step/" + tower]) == 0 and not new["adam/v/" + tower].any() and new["policy/" + tower].any()
    assert float(new["adam/step/value.weight"]) == 4
    after = continued(of, spec, learner)
    after.hold_steps = 0
    batch = converted(of, spec, batch_of(spec, 5))
    after.train_step(batch, HYPER)
    assert float(after.state_dict()["adam/step/" + tower]) == 1


def test_gradient_reaches_every_new_entry() -> None:
    """Symmetric or dead weights would never learn. After a few steps every new entry with data has changed."""
    spec = agent(5)
    of = plan(spec, {"kind": "widen", "layer": "unit_hidden", "to": 18}, {"kind": "grow_lstm", "to": 32, "exact": True},
              {"kind": "widen", "layer": "lstm_input", "to": 20}, {"kind": "widen", "layer": "key", "to": 8},
              warm_up_versions=0)
    after = continued(of, spec, learned(spec))
    assert after.hold_steps == 0
    start_state = after.state_dict()
    for i in range(3):
        after.train_step(converted(of, spec, batch_of(spec, 50 + i)), HYPER)
    end = after.state_dict()
    moved = {n.removeprefix("policy/"): (end[n] != start_state[n]) for n in end if n.startswith("policy/")}
    assert moved["core.lstm.weight_hh_l0"].view(4, 32, 32)[:, 24:].float().mean() > 0.9
    assert moved["core.lstm.weight_hh_l0"].view(4, 32, 32)[:, :24, 24:].float().mean() > 0.9
    assert moved["core.lstm.weight_ih_l0"].float().mean() > 0.9
    assert moved["trunk.towers.allied_units.second.weight"][:, 12:].float().mean() > 0.5
    assert moved["heads.unit.weight"][6:].float().mean() > 0.9
    columns = end["policy/trunk.towers.allied_units.second.weight"][:, 12:]
    assert len(torch.unique(columns, dim=1)[0]) == columns.shape[1], "new units that stay alike"


def test_initial_checkpoint_has_no_moments() -> None:
    spec = agent(1)
    learner = Learner(Policy(spec.layout, spec.model), CONFIG)
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 9}, warm_up_versions=3)
    state, extra = migrate_learner(of, spec, learner.state_dict(), {**learner.extra(), "hold_steps": 500})
    assert not any(name.startswith("adam/") for name in state)
    assert extra["hold_steps"] == 500, "what is still to be held is not cut short"
    assert migrate_learner(of, spec, learner.state_dict(), learner.extra(), 10)[1]["hold_steps"] == 30
    continued(of, spec, learner)


def test_arguments_are_kept_and_a_wrong_state_rejected() -> None:
    spec = agent(1)
    learner = learned(spec, steps=1)
    state, extra = learner.state_dict(), learner.extra()
    copies = {n: t.clone() for n, t in state.items()}
    of = plan(spec, {"kind": "remove_inputs", "fields": ["units.position"], "constants": {"units.position": 0.5}})
    made, _ = migrate_learner(of, spec, state, extra)
    assert all(torch.equal(copies[n], t) for n, t in state.items()) and extra == learner.extra()
    bias = "trunk.towers.allied_heroes.first.shared.bias"
    assert not torch.equal(made[f"policy/{bias}"], state[f"policy/{bias}"])
    assert torch.equal(made[f"adam/m/{bias}"], state[f"adam/m/{bias}"])
    with pytest.raises(ValueError, match=r"value\.bias is missing"):
        migrate_learner(of, spec, {n: t for n, t in state.items() if n != "policy/value.bias"}, extra)
    with pytest.raises(ValueError, match="derive the plan again"):
        migrate_learner(of, of.target(spec), made, extra)
