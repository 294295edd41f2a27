"""Lookup in an embedding table, and its gradient."""

import torch
import torch.nn.functional as F

from five.agent.model.embeddings import lookup


def test_lookup_and_gradient_equal_pytorch() -> None:
    torch.manual_seed(0)
    ids, weights = torch.randint(0, 6, (40, 3)), torch.randn(40, 3, 4)
    gradients = []
    for look_up in (lookup, lambda table, ids: F.embedding(ids, table, padding_idx=0)):
        table = torch.nn.Parameter(torch.arange(32.0).view(8, 4))  # no id is 6 or 7
        rows = look_up(table, ids)
        assert torch.equal(rows, table.detach()[ids])
        (rows * weights).sum().backward()
        gradients.append(table.grad)
    torch.testing.assert_close(*gradients)
    assert not gradients[0][[0, 6, 7]].any() and gradients[0][1:6].all()


def test_lookup_of_no_ids() -> None:
    table = torch.nn.Parameter(torch.ones(4, 2))
    lookup(table, torch.zeros(0, dtype=torch.int64)).sum().backward()
    assert torch.equal(table.grad, torch.zeros(4, 2))
