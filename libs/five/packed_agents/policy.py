"""Policy of a packed agent's tensors."""

from collections.abc import Mapping
from typing import Any

import torch

from dota.spaces import Layout
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec
from five.evaluation.match import freeze_for_matches


def policy_of(spec: AgentSpec, tensors: Mapping[str, Any]) -> Policy:
    """Return a policy on the CPU, in evaluation mode and float32.

    ``tensors`` are a version's by name: float32 parameters and float64 statistics.
    """
    model = spec.model.model_copy(update={"precision": "float32"})
    policy = Policy(Layout(spec.game), model).eval().requires_grad_(False)
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
    freeze_for_matches(policy)
    return policy
