"""Small agents with synthetic trained weights and recorded samples."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dota.config import GameConfig, ObservationConfig
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec, Plan
from five.agent.surgery.check import RecordedSamples
from five.agent.surgery.fixtures import make_random_samples, make_trained_version
from tests.agent.model_cases import SMALL

SLOTS = {"allied_creeps": 5, "neutral_creeps": 2, "buildings": 4, "wards": 1, "hero_modifiers": 3, "pickups": 2,
         "minimap": 6, "nearby_map": 4, "passability": 3}


def agent(heroes: int = 1, observation: Mapping[str, Any] | None = None, model: Mapping[str, Any] | None = None,
          **game: Any) -> AgentSpec:
    """Return a small agent with these keys of its observation, model and game."""
    slots = ObservationConfig.model_validate(SLOTS | dict(observation or {}))
    kind: dict[str, Any] = {"heroes_per_team": heroes, "observation": slots.model_dump()}
    if heroes == 1:
        kind |= {"mode": "1v1_mid", "hero_pool": ["nevermore"]}
    return AgentSpec(GameConfig.model_validate(kind | game),
                     SMALL.model_validate(SMALL.model_dump() | dict(model or {})))


def trained(spec: AgentSpec, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a version with synthetic trained weights."""
    return make_trained_version(spec, seed)


def recorded(spec: AgentSpec, steps: int = 5, teams: int = 3, seed: int = 1) -> RecordedSamples:
    """Return random valid samples."""
    return make_random_samples(spec, steps, teams, seed)


def plan(spec: AgentSpec, *steps: Mapping[str, Any], name: str = "test", **more: Any) -> Plan:
    """Return a plan of these steps for the agent."""
    return Plan.from_values({"name": name, "parent": spec.schema, "steps": list(steps), **more})


def load(spec: AgentSpec, version: Mapping[str, np.ndarray]) -> Policy:
    """Return a version as a policy."""
    policy = Policy(spec.layout, spec.model)
    policy.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in version.items()})
    return policy


def kinds(of: Plan) -> Sequence[str]:
    """Return the kinds of the plan's steps."""
    return [step.kind for step in of.steps]
