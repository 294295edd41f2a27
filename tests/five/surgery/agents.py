"""Small agents, policies that look trained, and recorded play, for the tests of surgery."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dota.config import GameConfig, ObservationConfig
from five.model.policy import Policy
from five.surgery import AgentSpec, Plan
from five.surgery.check import Recorded
from tests.five.model_cases import SMALL, random_arrays

SLOTS = {"allied_creeps": 5, "neutral_creeps": 2, "buildings": 4, "wards": 1, "hero_modifiers": 3, "pickups": 2,
         "minimap": 6, "nearby_map": 4, "passability": 3}


def agent(heroes: int = 1, observation: Mapping[str, Any] | None = None, model: Mapping[str, Any] | None = None,
          **game: Any) -> AgentSpec:
    """A small agent; keys of its observation, model and game as given."""
    slots = ObservationConfig.model_validate(SLOTS | dict(observation or {}))
    kind: dict[str, Any] = {"heroes_per_team": heroes, "observation": slots.model_dump()}
    if heroes == 1:
        kind |= {"mode": "1v1_mid", "hero_pool": ["nevermore"]}
    return AgentSpec(GameConfig.model_validate(kind | game),
                     SMALL.model_validate(SMALL.model_dump() | dict(model or {})))


def trained(spec: AgentSpec, seed: int = 0) -> dict[str, np.ndarray]:
    """A version whose weights are no initial ones: heads with opinions, gates, statistics of inputs. A slip of one
    weight would show."""
    torch.manual_seed(seed)
    policy = Policy(spec.layout, spec.model)
    rng = np.random.default_rng(seed)
    version = {name: tensor.numpy().copy() for name, tensor in policy.state_dict().items()}
    for name, array in version.items():
        if name.startswith("heads.") or name.startswith("value"):
            array *= 10 if name.endswith(("weight", "bias")) else 1
        if name == "heads.gate.weight":
            array[1:] = rng.normal(size=array[1:].shape)
        elif name.startswith("core."):
            array += rng.normal(size=array.shape) * 0.3 / array.shape[-1] ** 0.5
    width = version["normaliser.mean"].shape
    version["normaliser.count"][:] = 1e5
    version["normaliser.mean"][:] = rng.normal(size=width) * 0.5
    version["normaliser.squares"][:] = 1e5 * rng.uniform(0.2, 3.0, width)
    return version


def recorded(spec: AgentSpec, steps: int = 5, teams: int = 3, seed: int = 1) -> Recorded:
    """Random but valid play: observations, actions that were available, states, a game that begins in the middle."""
    rng = np.random.default_rng(seed)
    layout, model = spec.layout, spec.model
    arrays = random_arrays(layout, steps, teams, seed=seed)
    actions = np.zeros((steps, teams, layout.heroes, 6), np.int16)
    actions[..., 0] = rng.integers(0, 100, actions.shape[:-1]) % (arrays["available"] != 0).sum(-1)
    actions[..., 1] = rng.integers(0, 4, actions.shape[:-1])
    for part in (2, 3):
        actions[..., part] = rng.integers(0, layout.units, actions.shape[:-1])
    for part in (4, 5):
        actions[..., part] = rng.integers(0, 9, actions.shape[:-1])
    resets = np.zeros((steps, teams), np.bool_)
    resets[steps // 2, 0] = True
    state = {name: rng.normal(size=(teams, layout.heroes, width)).astype(np.float32) * 0.5
             for name, width in {"h": model.lstm, "c": model.lstm, "target_embedding": model.key}.items()}
    return Recorded(arrays, actions, state, resets)


def plan(spec: AgentSpec, *steps: Mapping[str, Any], name: str = "test", **more: Any) -> Plan:
    """A plan of these steps for the agent."""
    return Plan.from_values({"name": name, "parent": spec.schema, "steps": list(steps), **more})


def load(spec: AgentSpec, version: Mapping[str, np.ndarray]) -> Policy:
    """A version as a policy."""
    policy = Policy(spec.layout, spec.model)
    policy.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in version.items()})
    return policy


def kinds(of: Plan) -> Sequence[str]:
    """The kinds of its steps."""
    return [step.kind for step in of.steps]
