"""Constants of removed inputs that biases take over."""

import numpy as np
import pytest

from five.agent.surgery import migrate_policy
from tests.agent.surgery.agents import agent, plan, trained

LAYER = "join.shared"


def change_of_bias(version: dict[str, np.ndarray], constant: float) -> np.ndarray:
    """Return the change of the bias in units of the weights on the removed input."""
    spec = agent(1)
    of = plan(spec, {"kind": "remove_inputs", "fields": ["global.time"], "constants": {"global.time": constant}})
    made = migrate_policy(of, spec, version)
    column = spec.labels[f"{LAYER}.weight"].axes[1].labels.index("global.time[0]")
    return (made[f"{LAYER}.bias"] - version[f"{LAYER}.bias"]) / version[f"{LAYER}.weight"][:, column]


@pytest.mark.parametrize(("count", "mean", "squares", "constant", "expected"), [
    (0.0, 9.0, 9.0, 0.75, 0.75), (0.0, 9.0, 9.0, -3.0, -3.0), (0.0, 0.0, 0.0, 40.0, 5.0),
    (100.0, 2.0, 400.0, 5.0, 1.5), (100.0, 2.0, 400.0, 2.0, 0.0), (100.0, 2.0, 400.0, -40.0, -5.0),
    (100.0, 2.0, 400.0, 40.0, 5.0), (0.5, 2.0, 4.0, 4.0, 1.0), (100.0, 0.0, 0.0, 0.001, 1.0)])
def test_constant_is_normalised_and_clipped(count: float, mean: float, squares: float, constant: float,
                                            expected: float) -> None:
    """Without data an input passes unchanged; the clip is 5, and the variance has a least value of 1e-6."""
    version = trained(agent(1))
    for name, value in (("count", count), ("mean", mean), ("squares", squares)):
        version[f"normaliser.{name}"][:] = value
    np.testing.assert_allclose(change_of_bias(version, constant), expected, rtol=1e-3, atol=1e-3)


def test_other_biases_stay() -> None:
    spec = agent(1)
    version = trained(spec)
    of = plan(spec, {"kind": "remove_inputs", "fields": ["global.time"], "constants": {"global.time": 3.0}})
    made = migrate_policy(of, spec, version)
    changed = {name for name in version if made[name] is not version[name]}
    assert changed == {f"{LAYER}.bias", f"{LAYER}.weight", "normaliser.count", "normaliser.mean", "normaliser.squares"}
    assert made[f"{LAYER}.bias"].dtype == np.float32
