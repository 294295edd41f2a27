"""Pools over rows and their gradients compared with PyTorch, in both dtypes."""

import numpy as np
import pytest
import torch
from torch import Tensor

from five.agent.native_tensors import memory_of
from five.native import _native

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def pool(rows: Tensor, owner: Tensor, owners: int) -> Tensor:
    pooled = torch.full((owners, rows.shape[1]), torch.nan, dtype=rows.dtype)
    _native.segment_max(memory_of(rows), memory_of(owner), memory_of(pooled))
    return pooled


def gradient_of(rows: Tensor, owner: Tensor, pooled: Tensor, gradient: Tensor) -> Tensor:
    out = torch.full_like(rows, torch.nan)
    _native.segment_max_gradient(*map(memory_of, (rows, owner, pooled, gradient, out)))
    return out


@DTYPES
@pytest.mark.parametrize("width", [1, 7, 16, 37])
def test_pools_and_gradients_equal_pytorch(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    owner = torch.randint(0, 9, (60,))
    owner[owner == 4] = 5  # owner 4 has no rows
    rows, gradient = torch.randn(60, width).mul(4).round().clamp(max=3.0).to(dtype), torch.randn(9, width).to(dtype)
    pooled = pool(rows, owner, 9)
    index = owner[:, None].expand_as(rows)
    assert torch.equal(pooled, rows.new_zeros(9, width).scatter_reduce_(0, index, rows, "amax"))
    winner = (rows == pooled[owner]).to(dtype)
    winners = torch.zeros_like(pooled).index_add_(0, owner, winner)
    assert winners.max() > 1
    share = gradient / winners.clamp_min(1.0) * pooled.sign()
    assert torch.equal(gradient_of(rows, owner, pooled, gradient), winner * share[owner])


@DTYPES
@pytest.mark.parametrize("nan", [torch.nan, -torch.nan])
def test_nan_propagates_to_its_pool_and_gradients(nan: float, dtype: torch.dtype) -> None:
    rows = torch.arange(20.0).view(10, 2).to(dtype)
    rows[3, 1] = torch.copysign(torch.tensor(torch.nan), torch.tensor(nan)).to(dtype)
    owner = torch.tensor([0, 1] * 5)
    pooled = pool(rows, owner, 2)
    assert pooled.isnan().tolist() == [[False, False], [False, True]]
    found = gradient_of(rows, owner, pooled, torch.ones(2, 2, dtype=dtype))
    assert found.isnan().nonzero().tolist() == [[row, 1] for row in range(1, 10, 2)]


def test_infinity_is_a_maximum() -> None:
    rows = torch.tensor([[torch.inf], [1.0]])
    assert pool(rows, torch.tensor([0, 0]), 1).tolist() == [[torch.inf]]


def test_invalid_arrays_are_refused() -> None:
    rows, owner = np.zeros((3, 4), np.float32), np.array([0, 1, 1])
    for bad in (owner - 1, owner + 1):
        with pytest.raises(IndexError, match="outside the pools"):
            _native.segment_max(rows, bad, np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match="differ in length"):
        _native.segment_max(rows, owner[:2], np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match="differ in width"):
        _native.segment_max(rows, owner, np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="wrong size of a gradient"):
        _native.segment_max_gradient(rows, owner, np.zeros((2, 4), np.float32), np.zeros((1, 4), np.float32), rows)
    with pytest.raises(TypeError):
        _native.segment_max(rows, owner, np.zeros((2, 4)))
