"""Two layers over packed rows equal PyTorch's own layers, with their gradients, at every number of rows."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from five.agent.model import packed_mlp as module
from five.agent.model.packed_mlp import filled_up, packed_mlp


def test_few_numbers_of_rows_and_little_to_fill() -> None:
    filled = [filled_up(rows) for rows in range(1, 40_000)]
    assert all(a >= b for a, b in zip(filled, range(1, 40_000), strict=True)) and filled == sorted(filled)
    assert max(a / b for a, b in list(zip(filled, range(1, 40_000), strict=True))[127:]) <= 1.125
    assert len(set(filled)) < 8 * 16
    assert filled_up(0) > 0


def plain(shared: list[Tensor], private: list[Tensor], weights: list[Tensor], second: nn.Linear) -> Tensor:
    hidden = F.linear(torch.cat(shared, -1), weights[0], weights[1])
    if private:
        hidden = F.linear(torch.cat(private, -1), weights[2]) + hidden[:, None]
    out: Tensor = second(hidden.relu())
    return out


def arguments(rows: int, heroes: int) -> tuple[list[Tensor], list[Tensor], list[Tensor], nn.Linear]:
    """Return pieces, of which some need a gradient, and weights. ``heroes`` 0: without private pieces."""
    torch.manual_seed(rows)
    shared = [torch.randn(rows, 3), torch.randn(rows, 4, requires_grad=True), torch.randn(rows, 2),
              torch.randn(rows, 5, requires_grad=True)]
    private = [torch.randn(rows, heroes, 6), torch.randn(rows, heroes, 2, requires_grad=True)] if heroes else []
    weights = [torch.randn(7, 14, requires_grad=True), torch.randn(7, requires_grad=True)]
    if heroes:
        weights.append(torch.randn(7, 8, requires_grad=True))
    return shared, private, weights, nn.Linear(7, 9)


@pytest.mark.parametrize("heroes", [0, 1, 5])
@pytest.mark.parametrize("rows", [0, 1, 20, 130])
@pytest.mark.parametrize("bfloat16", [False, True])
def test_results_and_gradients_are_those_of_two_layers(rows: int, heroes: int, bfloat16: bool) -> None:
    shared, private, weights, second = arguments(rows, heroes)
    wanted = [*weights, *second.parameters(), *(p for p in (*shared, *private) if p.requires_grad)]
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        ours = packed_mlp(shared, private, weights[0], weights[2] if heroes else None, weights[1], second)
        theirs = plain(shared, private, weights, second)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    spread = torch.randn(9)
    for a, b in zip([ours, *torch.autograd.grad((ours.float() * spread).sum(), wanted)],
                    [theirs, *torch.autograd.grad((theirs.float() * spread).sum(), wanted)], strict=True):
        assert a.dtype == b.dtype
        if bfloat16:
            assert (a - b).float().norm() <= 0.02 * b.float().norm() + 1e-6
        else:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_rows_that_fill_up_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows fill up the matrices, results and gradients stay."""
    shared, private, weights, second = arguments(20, 5)
    found = []
    for more in (0, 12, 300):
        monkeypatch.setattr(module, "filled_up", lambda rows, more=more: rows + more)
        with torch.autocast("cpu", torch.bfloat16):
            out = packed_mlp(shared, private, weights[0], weights[2], weights[1], second)
        found.append([out, *torch.autograd.grad(out.float().square().sum(), [*weights, *second.parameters()])])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=0.01, atol=0.01)


def test_frozen_weights_get_no_gradient() -> None:
    shared, private, weights, second = arguments(20, 5)
    for frozen in (weights[0].requires_grad_(False), second.weight.requires_grad_(False)):
        packed_mlp(shared, private, weights[0], weights[2], weights[1], second).sum().backward()
        assert frozen.grad is None
    assert weights[2].grad is not None and second.bias.grad is not None and shared[1].grad is not None
