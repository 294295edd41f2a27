import numpy as np
import pytest
import torch

from dota.vec_game import Controller, VecGame
from five.agent.surgery import AgentSpec, convert_observations
from five.agent.surgery.check import RecordedSamples, check_plan
from tests.agent.surgery.agents import agent, load, plan, recorded, trained

SLOTS = {"allied_creeps": 8, "buildings": 6, "unit_modifiers": 1}
REMOVED = ["units.position", "units.vector", "units.animation", "heroes.in_line", "allied_heroes.passability", "items",
           "minimap", "nearby_map.area_effect", "previous_action.action", "global.time", "pickups.distance"]


def game_of(spec: AgentSpec, steps: int) -> VecGame:
    game = VecGame(spec.game, 2, seed=11)
    game.controllers[:] = Controller.SCRIPTED
    for _ in range(steps):
        game.step()
    return game


@pytest.mark.parametrize("heroes", [1, 3])
def test_conversion_matches_the_core_in_the_new_layout(heroes: int) -> None:
    spec = agent(heroes, SLOTS, start_seconds=-5.0)
    of = plan(spec, {"kind": "remove_inputs", "fields": REMOVED})
    after = of.target(spec)
    full, less = game_of(spec, 200), game_of(after, 200)
    assert full.hash(0) == less.hash(0)
    for name, array in convert_observations(of, spec, full.obs).items():
        np.testing.assert_array_equal(array, less.obs[name], err_msg=name)


def test_removed_slots_are_the_least_important() -> None:
    spec = agent(1, SLOTS, start_seconds=-5.0)
    of = plan(spec, {"kind": "slots", "slots": {"allied_creeps": 3, "buildings": 4}})
    full, less = game_of(spec, 300), game_of(of.target(spec), 300)
    converted = convert_observations(of, spec, full.obs)
    assert (full.obs["shared"] != 0).sum() > (less.obs["shared"] != 0).sum()
    for name in ("shared", "private", "shared_ids", "target_mask", "available"):
        np.testing.assert_array_equal(converted[name], less.obs[name], err_msg=name)


@pytest.mark.parametrize("heroes", [1, 2])
def test_check_on_real_games(heroes: int) -> None:
    spec = agent(heroes, SLOTS | {"omit": ("items", "units.position")}, start_seconds=-5.0, scripted_actions=["glyph"])
    version = trained(spec)
    policy, game = load(spec, version), VecGame(spec.game, 2, seed=4)
    torch.manual_seed(0)
    state, kept, taken = policy.initial_state(4), [], []
    start = None
    for t in range(48):
        obs = {name: torch.from_numpy(array.copy()).flatten(0, 1) for name, array in game.obs.items()}
        if t == 32:
            start = {name: value.numpy().copy() for name, value in state.items()}
        acted = policy.act(obs, state)
        if t >= 32:
            kept.append({name: value.numpy() for name, value in obs.items()})
            taken.append(acted.actions.numpy())
        state = acted.state
        game.step(acted.actions.numpy().reshape(2, 2, heroes, 6))
    assert start is not None
    play = RecordedSamples({name: np.stack([one[name] for one in kept]) for name in kept[0]}, np.stack(taken), start,
                           np.zeros((16, 4), np.bool_))
    of = plan(spec, {"kind": "grow_lstm", "to": 48, "scale": 0.002},
              {"kind": "add_observations", "fields": ["items", "units.position"]},
              {"kind": "slots", "slots": {"allied_creeps": 10}}, {"kind": "widen", "layer": "unit_hidden", "to": 24},
              {"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 10})
    report = check_plan(of, spec, version, play)
    assert report.ok, report.problems
    assert [step.exact for step in report.steps] == [False, True, True, True, True]
    assert 0 < report.difference.mean_kl < 1e-4 and report.hero_steps == 16 * 4 * heroes
    assert check_plan(of, spec, version, recorded(spec)).ok
