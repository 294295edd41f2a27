"""Versions that a plan does not fit, and migration step by step."""

import numpy as np
import pytest

from five.agent.surgery import migrate_policy
from five.agent.surgery.migrate import migrate_stepwise, require_version_tensors
from tests.agent.surgery.agents import agent, plan, trained


def test_version_is_returned_after_each_step() -> None:
    spec = agent(1)
    version = trained(spec)
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 9}, {"kind": "widen", "layer": "unit", "to": 11},
              {"kind": "game", "values": {"neutrals": False}})
    versions = migrate_stepwise(of, spec, version)
    shapes = [spec.tensor_shapes(), *(stage.after.tensor_shapes() for stage in of.stages(spec))]
    assert [{name: array.shape for name, array in made.items()} for made in versions] == shapes
    for name, array in migrate_policy(of, spec, version).items():
        np.testing.assert_array_equal(array, versions[-1][name], err_msg=name)


@pytest.mark.parametrize(("count", "more"), [(1, ""), (5, ""), (6, " and 1 more"), (8, " and 3 more")])
def test_five_wrong_tensors_are_named(count: int, more: str) -> None:
    spec = agent(1)
    gone = list(spec.labels)[:count]
    with pytest.raises(ValueError, match=f"schema {spec.schema}") as error:
        require_version_tensors(spec, {n: a for n, a in trained(spec).items() if n not in gone})
    assert [name in str(error.value) for name in gone] == [i < 5 for i in range(count)]
    assert str(error.value).endswith(f"{gone[min(count, 5) - 1]} is missing{more}")


@pytest.mark.parametrize("shape", [(1, 2), (1, 25), (2, 24), (24,)])
def test_tensor_of_another_shape_is_named(shape: tuple[int, ...]) -> None:
    spec = agent(1)
    with pytest.raises(ValueError, match=r"value\.weight has shape .*, expected \[1, 24\]"):
        require_version_tensors(spec, {**trained(spec), "value.weight": np.zeros(shape, np.float32)})


def test_unknown_tensor_is_named() -> None:
    spec = agent(1)
    with pytest.raises(ValueError, match=r"schema .*: value\.more is unknown$"):
        require_version_tensors(spec, {**trained(spec), "value.more": np.zeros(1, np.float32)})
