"""Weights of new LSTM units."""

import numpy as np
import pytest

from five.agent.surgery import migrate_policy
from tests.agent.surgery.agents import agent, plan, trained


def gates(version: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return a tensor of the LSTM by gate: input, forget, cell and output."""
    return version[f"core.lstm.{name}"].reshape(4, -1, *version[f"core.lstm.{name}"].shape[1:])


@pytest.mark.parametrize("exact", [False, True])
def test_new_forget_gates_start_open(exact: bool) -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "grow_lstm", "to": 40, "scale": 0.002, "exact": exact})
    version = trained(spec)
    made = migrate_policy(of, spec, version)
    scale = 40**-0.5 if exact else 0.002
    for name in ("bias_ih_l0", "bias_hh_l0", "weight_ih_l0", "weight_hh_l0"):
        columns = slice(24) if name == "weight_hh_l0" else slice(None)
        np.testing.assert_array_equal(gates(made, name)[:, :24][..., columns], gates(version, name)[..., columns])
    new = gates(made, "bias_ih_l0")[:, 24:]
    assert (new[1] == 1).all() and new[[0, 2, 3]].all() and np.abs(new[[0, 2, 3]]).max() <= scale
    assert not gates(made, "bias_hh_l0")[:, 24:].any()
    for name in ("weight_ih_l0", "weight_hh_l0"):
        rows = gates(made, name)[:, 24:]
        assert rows.all() and 0.9 * scale < np.abs(rows).max() <= scale, name


@pytest.mark.parametrize("exact", [False, True])
def test_readers_of_new_units_have_small_or_zero_weights(exact: bool) -> None:
    spec = agent(1)
    version = trained(spec)
    made = migrate_policy(plan(spec, {"kind": "grow_lstm", "to": 40, "exact": exact}), spec, version)
    for name in ("core.lstm.weight_hh_l0", "value.weight", "heads.primary.weight", "auxiliary.net_worth_rank.0.weight"):
        rows = version[name].shape[0]
        new = (gates(made, "weight_hh_l0")[:, :24] if name.startswith("core") else made[name][:rows])[..., 24:]
        assert new.any() != exact, name
        assert exact or (new.all() and np.abs(new).max() <= 0.002), name


def test_seeds_give_other_weights() -> None:
    spec = agent(1)
    one, two = (migrate_policy(plan(spec, {"kind": "grow_lstm", "to": 30, "seed": seed}), spec, trained(spec))
                for seed in (1, 2))
    assert (gates(one, "weight_ih_l0")[:, 24:] != gates(two, "weight_ih_l0")[:, 24:]).all()
