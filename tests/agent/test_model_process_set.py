"""Pools over packed rows, set encoders, and the split linear layer."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from five.agent.model.inputs import PackedPool
from five.agent.model.process_set import (
    ProcessSet,
    SplitLinear,
    UnitSet,
    dense_max,
    pool_and_select,
    segment_max,
    two_layer_mlp,
)
from tests.agent.test_learning_no_host_reads import HYPER, batch_of, learner_of

Pool = Callable[[torch.Tensor, PackedPool], torch.Tensor]
BOTH = pytest.mark.parametrize("pool", [segment_max, dense_max])  # that of a CPU, and that of a GPU


def pools_of(owner: torch.Tensor, owners: int) -> PackedPool:
    """Assign each row to the next free slot of its owner, and add two empty slots."""
    slot = torch.stack([(owner[:i] == owner[i]).sum() for i in range(len(owner))]) if len(owner) else owner
    return PackedPool(owner, owners, slot, int(slot.max()) + 3 if len(owner) else 2)


def slow_max(rows: torch.Tensor, owner: torch.Tensor, owners: int) -> torch.Tensor:
    mine = [rows[owner == i] for i in range(owners)]
    return torch.stack([r.max(0).values.relu() if len(r) else rows.new_zeros(rows.shape[1]) for r in mine])


@BOTH
def test_segment_max_and_its_gradient(pool: Pool) -> None:
    torch.manual_seed(0)
    owner = torch.randint(0, 6, (40,))
    owner[owner == 2] = 3  # owner 2 has no rows
    pools = pools_of(owner, 6)
    rows = torch.randn(40, 5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(pool(rows, pools), slow_max(rows, owner, 6))
    with torch.no_grad():
        torch.testing.assert_close(pool(rows, pools), slow_max(rows, owner, 6))
    assert torch.autograd.gradcheck(lambda r: pool(r, pools), (rows,))
    fast, = torch.autograd.grad(pool(rows, pools).square().sum(), rows)
    slow, = torch.autograd.grad(slow_max(rows, owner, 6).square().sum(), rows)
    torch.testing.assert_close(fast, slow)


@BOTH
def test_equal_rows_share_a_gradient(pool: Pool) -> None:
    """Creeps of a wave can be equal in every field. Together they get the gradient once."""
    rows = torch.ones(4, 1, requires_grad=True)
    pool(rows, pools_of(torch.tensor([0, 0, 0, 1]), 2)).sum().backward()
    torch.testing.assert_close(rows.grad, torch.tensor([[1 / 3], [1 / 3], [1 / 3], [1.0]]))


@BOTH
def test_no_rows_at_all(pool: Pool) -> None:
    rows = torch.zeros(0, 3, requires_grad=True)
    pooled = pool(rows, pools_of(torch.zeros(0, dtype=torch.int64), 2))
    pooled.sum().backward()
    assert torch.equal(pooled, torch.zeros(2, 3)) and rows.grad is not None


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_dense_max_trains_like_segment_max(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pooling group by group, as on a GPU, gives the same gradients for all pools of the network."""
    from five.agent.model import process_set, trunk

    learner, batch = learner_of(precision), batch_of(2)
    learner.train_step(batch, HYPER)
    found = learner._gradient.clone()
    other = learner_of(precision)
    monkeypatch.setattr(process_set, "segment_max", dense_max)
    monkeypatch.setattr(trunk, "segment_max", dense_max)
    monkeypatch.setattr(trunk, "POOLED_BY_GROUP", ("cpu",))
    other.train_step(batch, HYPER)
    torch.testing.assert_close(found, other._gradient, rtol=1e-5, atol=1e-8)
    assert found.abs().max() > 0


def test_split_linear_equals_one_layer() -> None:
    torch.manual_seed(0)
    split, whole = SplitLinear(7, 4, 6), nn.Linear(11, 6)
    with torch.no_grad():
        whole.weight.copy_(torch.cat((split.shared.weight, split.private.weight), 1))
        whole.bias.copy_(split.shared.bias)
    shared, private = torch.randn(3, 7), torch.randn(3, 5, 4)
    joined = torch.cat((shared[:, None].expand(3, 5, 7), private), -1)
    torch.testing.assert_close(split(shared, private), whole(joined))
    # Initial weights have the scale of the layer over all inputs, not of the small half.
    assert split.private.weight.abs().max() <= 11**-0.5 and split.private.weight.std() > 0.4 * 11**-0.5


def test_two_layers_and_their_gradients() -> None:
    """Only some of the pieces need a gradient."""
    torch.manual_seed(0)
    first, second = nn.Linear(9, 6), nn.Linear(6, 5)
    pieces = [torch.randn(20, 3), torch.randn(20, 4, requires_grad=True), torch.randn(20, 2, requires_grad=True)]
    wanted = [*first.parameters(), *second.parameters(), *pieces[1:]]
    found = []
    for out in (two_layer_mlp(pieces, first.weight, first.bias, second), second(first(torch.cat(pieces, -1)).relu())):
        found.append([out, *torch.autograd.grad((out * torch.arange(5.0)).square().sum(), wanted)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)
    out = two_layer_mlp(pieces[:1], first.weight[:, :3], first.bias, second)  # only the weights get a gradient
    out.sum().backward()
    assert first.weight.grad is not None and first.weight.grad[:, :3].any() and not first.weight.grad[:, 3:].any()


def test_unit_set_of_one_hero_equals_many() -> None:
    torch.manual_seed(0)
    units, shared, private = UnitSet(4, 2, 8, 6), torch.randn(20, 4), torch.randn(20, 1, 2)
    found = []
    for heroes in (1, 3):
        out = units([shared], [private.expand(20, heroes, 2)])[:, :1]
        found.append([out, *torch.autograd.grad(out.square().sum(), list(units.parameters()))])
    for one, many in zip(*found, strict=True):
        torch.testing.assert_close(one, many)


def test_nan_in_a_row_reaches_its_pool_and_the_gradients() -> None:
    torch.manual_seed(0)
    values, owner = torch.randn(20, 4), torch.randint(0, 3, (20,))
    values[3, 2] = torch.nan
    module = ProcessSet(4, 8, 6)
    out = module([values], pools_of(owner, 3))
    assert out[owner[3]].isnan().all()
    out.sum().backward()
    assert any(p.grad is not None and p.grad.isnan().any() for p in module.parameters())


def test_sets_ignore_the_order_of_rows() -> None:
    torch.manual_seed(0)
    values, owner = torch.randn(20, 4), torch.randint(0, 3, (20,))
    order = torch.randperm(20)
    shared = ProcessSet(4, 8, 6)
    torch.testing.assert_close(shared([values], pools_of(owner, 3)),
                               shared([values[order]], pools_of(owner[order], 3)))
    units, private = UnitSet(4, 2, 8, 6), torch.randn(20, 5, 2)
    a = segment_max(units([values], [private]).flatten(1), pools_of(owner, 3))
    b = segment_max(units([values[order]], [private[order]]).flatten(1), pools_of(owner[order], 3))
    torch.testing.assert_close(a, b)


def test_pool_before_relu_equals_after() -> None:
    torch.manual_seed(0)
    values, owner = torch.randn(20, 4), torch.randint(0, 3, (20,))
    s = ProcessSet(4, 8, 6)
    activated = s.second(s.first(values).relu()).relu()
    torch.testing.assert_close(s([values], pools_of(owner, 3)), slow_max(activated, owner, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_selected_units_share_the_gradient_of_the_pools(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    units = torch.randn(9, 2, 4).to(dtype).requires_grad_()
    pools = PackedPool(torch.tensor([0, 0, 1, 1, 1, 3, 3, 0, 1]), 4, torch.zeros(9, dtype=torch.int64), 9)
    own, target = torch.tensor([0, 3, 4]), torch.tensor([17, 3, 8, 0])
    weights = [torch.randn(shape).to(dtype) for shape in ((4, 8), (3, 4), (4, 4))]
    expected = segment_max(units.flatten(1), pools), units.flatten(0, 1)[own], units.flatten(0, 1)[target]
    found = pool_and_select(units, pools, own, target)
    gradients = []
    for outputs in (expected, found):
        sum((x * weight).sum() for x, weight in zip(outputs, weights, strict=True)).backward()
        gradients.append(units.grad)
        units.grad = None
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    torch.testing.assert_close(gradients[1], gradients[0])
