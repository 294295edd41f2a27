import pytest
import torch

from five.agent.learning.checkpoint import checksum, require_shapes

SHAPES = {"a": torch.Size([2, 3]), "b": torch.Size([])}


def test_mismatched_tensors_are_named() -> None:
    fits = {"a": torch.zeros(2, 3), "b": torch.zeros(())}
    require_shapes(fits, SHAPES)
    with pytest.raises(ValueError, match=r"missing \['a'\], unknown \['c'\]"):
        require_shapes({"b": fits["b"], "c": fits["a"]}, SHAPES)
    with pytest.raises(ValueError, match=r"a has shape \(3, 2\), expected \(2, 3\)"):
        require_shapes(fits | {"a": torch.zeros(3, 2)}, SHAPES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_fingerprint_detects_one_bit(dtype: torch.dtype) -> None:
    one, other = torch.ones(5, 4).to(dtype), torch.ones(5, 4).to(dtype)
    assert checksum([one, one[:2]]) == checksum([other, other[:2].clone()])
    other[3, 1] = 0
    assert checksum([one]) != checksum([other])
    assert 0 <= checksum([one]) < 1 << 48
