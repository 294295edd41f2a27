"""The LSTM cell and its gradient compared with PyTorch's element-wise operations, in both dtypes."""

from typing import Any

import numpy as np
import pytest
import torch

from five.agent.model import lstm
from five.native import _native


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("games_end", [False, True])
@pytest.mark.parametrize("width", [3, 16, 21])
def test_sequences_and_gradients_equal_pytorch(width: int, games_end: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    from_input = torch.randn(5, 4, 4 * width).mul(3).to(dtype).requires_grad_()
    weight = torch.randn(4 * width, width).to(dtype).requires_grad_()
    h, c = torch.randn(4, width, requires_grad=True), torch.randn(4, width, requires_grad=True)
    keep = (torch.rand(5, 4, 1) > 0.3).float() if games_end else None
    inputs, found = (from_input, weight, h, c), []
    for sequence in (lstm._Sequence, lstm._NativeSequence):
        results = sequence.apply(*inputs, keep)  # type: ignore[no-untyped-call]
        loss = torch.stack([(r * torch.linspace(-1.0, 1.0, r.numel()).view(r.shape)).sum() for r in results]).sum()
        found.append([*results, *torch.autograd.grad(loss, inputs)])
    rtol, atol = (1e-5, 1e-5) if dtype is torch.float32 else (0.02, 0.1)
    for theirs, ours in zip(*found, strict=True):
        assert ours.dtype is theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)


def test_nan_reaches_outputs_and_gradients() -> None:
    from_input = torch.zeros(2, 1, 4).requires_grad_()
    h = torch.tensor([[torch.nan]])
    out, _, _ = lstm.lstm_sequence(from_input, torch.ones(4, 1), h, torch.zeros(1, 1))
    assert out.isnan().all()
    gradient, = torch.autograd.grad(out.sum(), from_input)
    assert gradient.isnan().all()


def test_invalid_arrays_are_refused() -> None:
    def step(t: int, *shapes: tuple[int, ...]) -> None:
        arrays: list[Any] = [*(np.zeros(shape, np.float32) for shape in shapes), None]
        _native.lstm_step(t, *arrays)

    gates, product, states, cells = (2, 3, 8), (3, 8), (2, 3, 2), (3, 3, 2)
    with pytest.raises(IndexError, match="outside the sequence"):
        step(2, gates, product, cells, gates, cells, states, states)
    with pytest.raises(ValueError, match="wrong size of an array"):
        step(0, gates, product, states, gates, cells, states, states)
    with pytest.raises(ValueError, match="a sequence needs a step"):
        step(0, gates, product, cells, gates, (1, 3, 2), states, states)
