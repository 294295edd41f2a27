"""The cross-hero pool and its gradient."""

import torch

from five.agent.model.cross_hero import cross_hero_pool


def test_only_the_first_quarter_is_pooled() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 5, 16)
    y = cross_hero_pool(x, 4)
    assert torch.equal(y[..., :4], x[..., :4].amax(1, keepdim=True).expand(4, 5, 4))
    assert torch.equal(y[..., 4:], x[..., 4:])


def test_gradient_goes_to_the_hero_with_the_maximum() -> None:
    x = torch.tensor([[[3.0, 1.0], [2.0, 1.0]]], requires_grad=True)
    cross_hero_pool(x, 1)[0, 1].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


def test_one_hero_or_no_pool_changes_nothing() -> None:
    x = torch.randn(4, 1, 16)
    assert torch.equal(cross_hero_pool(x, 4), x)
    y = torch.randn(4, 5, 16)
    assert torch.equal(cross_hero_pool(y, 0), y)
