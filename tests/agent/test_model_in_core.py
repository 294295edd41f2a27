"""What the core computes for PyTorch: the same as PyTorch's operators, which who watches them still sees."""

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from five.agent.compute import count_flops
from five.agent.model import in_core
from five.agent.model.inputs import Rows
from five.agent.model.process_set import ProcessSet


def set_of(rows: int = 150) -> tuple[ProcessSet, list[Tensor], Rows]:
    torch.manual_seed(0)
    owner = torch.randint(0, 9, (rows,))
    return ProcessSet(12, 24, 20), [torch.randn(rows, 7), torch.randn(rows, 5, requires_grad=True)], Rows(
        owner, 9, torch.zeros_like(owner), rows)


def test_a_set_and_its_gradients_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    module, pieces, pools = set_of()
    weights = torch.randn(9, 20)

    def learned() -> list[Tensor]:
        out = module(pieces, pools)
        return [out, *torch.autograd.grad((out * weights).sum(), [*module.parameters(), pieces[1]])]

    assert in_core.takes(*pieces)
    mine = learned()
    monkeypatch.setattr(in_core, "takes", lambda *arrays: False)
    for ours, theirs in zip(mine, learned(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_what_is_not_for_the_core() -> None:
    x = torch.zeros(2, 2)
    assert in_core.takes(x, x) and not in_core.takes(x, x.double()) and not in_core.takes(x.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not in_core.takes(x)


def test_who_counts_operations_hears_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products forward; backward two for the weights, one for the hidden layer, one for what is learned."""
    module, pieces, pools = set_of(100)

    def count() -> int:
        return count_flops(lambda: module(pieces, pools).sum().backward())

    assert count() == 2 * 100 * (2 * 12 * 24 + 3 * 24 * 20 + 24 * 5)
    pieces[0].requires_grad_()
    mine = count()
    monkeypatch.setattr(in_core, "takes", lambda *arrays: False)
    assert mine == count()


def test_what_is_no_number_shows() -> None:
    module, pieces, pools = set_of()
    pieces[0][3, 2] = torch.nan
    out = module(pieces, pools)
    assert out[pools.owner[3]].isnan().all()
    out.sum().backward()
    assert any(p.grad is not None and p.grad.isnan().any() for p in module.parameters())


def test_nothing_is_kept_when_a_step_is_over() -> None:
    class Seen(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 1.0

    module, pieces, pools = set_of()
    gc.disable()
    try:
        rows = Seen()(pieces[1])
        gone = weakref.ref(rows)
        module([pieces[0], rows], pools).sum().backward()
        del rows
        assert gone() is None
    finally:
        gc.enable()


def test_weights_that_were_changed_meanwhile_are_told() -> None:
    module, pieces, pools = set_of()
    out = module(pieces, pools).sum()
    with torch.no_grad():
        module.first.weight.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
