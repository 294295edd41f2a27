"""Sampling at another temperature: logits of all action heads are divided, everything else stays."""

import numpy as np
import pytest
import torch

from five.agent.model.policy import Policy
from five.agent.model.temperature import at_temperature
from tests.agent.model_cases import SMALL, layout, random_obs
from tests.agent.test_model_heads import Case


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_logits_of_every_head_are_divided(temperature: float) -> None:
    case = Case(5, split_heads=["unit.attack", "offset.move"])
    actions = case.choose().actions
    before = case.heads.scores(case.core, case.trunk, case.obs, case.embedding, actions)
    tensors = {f"heads.{name}": tensor.detach().numpy() for name, tensor in case.heads.state_dict().items()}
    case.heads.load_state_dict({name.removeprefix("heads."): torch.from_numpy(array)
                                for name, array in at_temperature(tensors, temperature).items()})
    after = case.heads.scores(case.core, case.trunk, case.obs, case.embedding, actions)
    for name, logits in before.items():
        some = (logits > -torch.inf).any(-1)
        expected = (logits[some] / temperature).softmax(-1)
        assert (expected - logits[some].softmax(-1)).abs().max() > 0.01, name
        torch.testing.assert_close(after[name][some].softmax(-1), expected)


def test_values_and_predictions_stay() -> None:
    torch.manual_seed(0)
    policy, other = (Policy(layout(5), SMALL).eval().requires_grad_(False) for _ in range(2))
    tensors = {name: tensor.numpy() for name, tensor in policy.state_dict().items()}
    other.load_state_dict({name: torch.from_numpy(array) for name, array in at_temperature(tensors, 0.5).items()})
    obs, state = random_obs(policy.layout, 16), policy.initial_state(16)
    before, after = (p.act(obs, state) for p in (policy, other))
    torch.testing.assert_close(after.values, before.values)
    for name, value in before.aux.items():
        torch.testing.assert_close(after.aux[name], value)


def test_given_tensors_stay() -> None:
    tensors = {"heads.primary.weight": np.ones((2, 2), np.float32), "value.weight": np.ones(2, np.float32)}
    changed = at_temperature(tensors, 0.5)
    assert (changed["heads.primary.weight"] == 2).all() and changed["heads.primary.weight"].dtype == np.float32
    assert (tensors["heads.primary.weight"] == 1).all() and changed["value.weight"] is tensors["value.weight"]


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_without_a_distribution_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        at_temperature({}, temperature)
