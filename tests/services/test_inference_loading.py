"""Loading of versions into a policy: past ones take half the memory and play the same."""

import copy

import numpy as np
import pytest
import torch

from five.agent.model.policy import Policy
from five.services.inference.loading import PolicyLoader
from tests.agent.model_cases import SMALL, layout, random_obs

TEAMS = 4


def version_of(policy: Policy) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy() for name, tensor in policy.state_dict().items()}


def acted(policy: Policy) -> tuple[torch.Tensor, ...]:
    obs = random_obs(policy.layout, TEAMS)
    state, out = policy.initial_state(TEAMS), []
    for _ in range(3):
        answer = policy.act(obs, state, generator=torch.Generator().manual_seed(1))
        state = answer.state
        out += [answer.actions, answer.logp, answer.values, *state.values()]
    return tuple(out)


@pytest.mark.parametrize("heroes", [1, 2])
def test_past_version_in_bfloat16_equals_float32(heroes: int) -> None:
    """Autocast rounds the layers' weights at each step anyway."""
    torch.manual_seed(0)
    config = SMALL.model_copy(update={"precision": "bfloat16"})
    loader, made = PolicyLoader(layout(heroes), config, torch.device("cpu")), Policy(layout(heroes), config)
    newest, past = loader.create(), loader.create(past=True)
    for policy in (newest, past):
        loader.load(policy, version_of(made), {})
    layers = sum(p.numel() for n, p in made.named_parameters() if "tables" not in n and "gate" not in n)
    assert loader.nbytes(newest) - loader.nbytes(past) == 2 * layers
    with torch.no_grad():
        for one, other in zip(acted(newest), acted(past), strict=True):
            assert torch.equal(one, other)


def test_float32_model_stores_past_versions_in_float32() -> None:
    loader = PolicyLoader(layout(1), SMALL, torch.device("cpu"))
    assert loader.nbytes(loader.create(past=True)) == loader.nbytes(loader.create())
    assert not copy.copy(loader).create(past=True).training
