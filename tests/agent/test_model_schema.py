"""Model schemas: ids, differences and refusals."""

import pytest
import torch

from five.agent.model.policy import Policy
from five.agent.model.schema import ModelSchema
from tests.agent.model_cases import SMALL, layout


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(layout(1), SMALL)


def test_json_round_trip(policy: Policy) -> None:
    schema = ModelSchema.of(policy)
    again = ModelSchema.from_json(schema.to_json())
    assert again == schema and again.id == schema.id and len(schema.id) == 16
    assert schema.differences(again) == []
    schema.check(policy.state_dict())


def test_equal_ids_are_interchangeable(policy: Policy) -> None:
    schema = ModelSchema.of(policy)
    assert ModelSchema.of(Policy(layout(1), SMALL)).id == schema.id
    half = Policy(layout(1), SMALL.model_copy(update={"precision": "bfloat16"}))
    assert ModelSchema.of(half).id == schema.id
    wider = ModelSchema.of(Policy(layout(1), SMALL.model_copy(update={"lstm": 32})))
    assert wider.id != schema.id
    assert any("core.lstm.weight_hh_l0 is float32 [128, 32] instead of float32 [96, 24]" in line
               for line in schema.differences(wider))
    clipped = ModelSchema.of(Policy(layout(1), SMALL.model_copy(update={"input_clip": 4.0})))
    assert schema.differences(clipped) == ["model.input_clip is 4.0 instead of 5.0"]
    fixed = ModelSchema.of(Policy(layout(1), SMALL.model_copy(update={"fixed_delay": True})))
    assert schema.differences(fixed) == ["model.fixed_delay is True instead of None"]
    other = ModelSchema.of(Policy(layout(5), SMALL))
    assert schema.differences(other)[0] == f"layout {other.layout} instead of {schema.layout}"


def test_wrong_tensors_are_refused(policy: Policy) -> None:
    schema = ModelSchema.of(policy)
    version = dict(policy.state_dict())
    version["value.bias"] = torch.zeros(2)
    del version["value.weight"]
    version["extra"] = torch.zeros(1)
    with pytest.raises(ValueError) as error:
        schema.check(version)
    for words in ("value.weight is missing", "extra is new", "value.bias is float32 [2] instead of float32 [1]"):
        assert words in str(error.value)
    version = {name: t.half() for name, t in policy.state_dict().items()}
    with pytest.raises(ValueError, match=r"and \d+ more"):
        schema.check(version)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tensors": [["a", 3, "x"]], "layout": "", "config": {}}',
                                  '{"tensors": [], "layout": "", "config": {"unknown": 1}}'])
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a model schema"):
        ModelSchema.from_json(text)
