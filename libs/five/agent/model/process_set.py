"""Encoders of unordered sets: two fully connected layers over each row, then a max-pool ("Process Set" in Berner et al.
2019, figure 17)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from five.agent import native_tensors
from five.agent.model.inputs import DensePool, PackedPool
from five.agent.model.packed_mlp import packed_mlp
from five.agent.native_tensors import memory_of
from five.native import _native


class _SegmentMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, owners: int) -> Tensor:
        pooled = _pool(rows, owner, owners)
        ctx.save_for_backward(rows, owner, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, pooled = ctx.saved_tensors
        gradient, out = grads[0].to(rows.dtype).contiguous(), torch.empty_like(rows)
        _native.segment_max_gradient(*map(memory_of, (rows, owner, pooled, gradient, out)))
        return out, None, None


class _PoolAndSelect(torch.autograd.Function):
    """`_SegmentMax` of units [R, H, S] by row, and units selected from the same rows, with one gradient of the rows.

    Neither index selects a unit twice.
    """

    @staticmethod
    def forward(ctx: Any, units: Tensor, owner: Tensor, owners: int, own: Tensor, target: Tensor
                ) -> tuple[Tensor, Tensor, Tensor]:
        pooled = _pool(units.flatten(1), owner, owners)
        ctx.save_for_backward(units, owner, pooled, own, target)
        each = units.flatten(0, 1)
        return pooled, each.index_select(0, own), each.index_select(0, target)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        units, owner, pooled, own, target = ctx.saved_tensors
        gradient, out = grads[0].to(units.dtype).contiguous(), torch.empty_like(units)
        _native.segment_max_gradient(*map(memory_of, (units.flatten(1), owner, pooled, gradient, out.flatten(1))))
        each = out.flatten(0, 1)
        for index, part in zip((own, target), grads[1:], strict=True):
            each.index_copy_(0, index, each.index_select(0, index).add_(part))
        return out, None, None, None, None


def pool_and_select(units: Tensor, pools: PackedPool, own: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return `segment_max` of units [R, H, S] by row, and the units of two indices int64 [M] of [R * H], [M, S] each.

    The sum of three gradients of all units would be many times as large as what is selected.
    """
    result: tuple[Tensor, Tensor, Tensor] = _PoolAndSelect.apply(  # type: ignore[no-untyped-call]
        units.contiguous(), pools.owner, pools.owners, own, target)
    return result


def _pool(rows: Tensor, owner: Tensor, owners: int) -> Tensor:
    pooled = rows.new_empty(owners, rows.shape[1])
    _native.segment_max(*map(memory_of, (rows, owner, pooled)))
    return pooled


class _DenseMax(torch.autograd.Function):
    """`_SegmentMax` in operations of PyTorch: it gathers each pool's rows, absent ones as zeros, which is the floor.

    Rows that share the maximum share its gradient. No row reached a pool at its floor of zero.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, table: Tensor) -> Tensor:
        pooled = _gather_slots(rows, table).amax(1).clamp_min_(0.0)
        ctx.save_for_backward(rows, owner, table, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, table, pooled = ctx.saved_tensors
        winner = ((rows == pooled.index_select(0, owner)) & (rows > 0)).to(rows.dtype)
        share = grads[0].to(rows.dtype) / _gather_slots(winner, table).sum(1).clamp_min_(1.0)
        return winner.mul_(share.index_select(0, owner)), None, None


def _gather_slots(rows: Tensor, table: Tensor) -> Tensor:
    """Gather [R, S] by int64 [owners, slots] -> [owners, slots, S]; index R is a row of zeros."""
    return torch.cat((rows, rows.new_zeros(1, rows.shape[1])))[table]


def dense_max(rows: Tensor, pools: PackedPool) -> Tensor:
    """Compute `segment_max` by a masked reduction over all slots of each owner."""
    table = torch.full((pools.owners * pools.slots,), len(rows), device=rows.device)
    table[pools.owner * pools.slots + pools.slot] = torch.arange(len(rows), device=rows.device)
    pooled: Tensor = _DenseMax.apply(  # type: ignore[no-untyped-call]
        rows, pools.owner, table.view(pools.owners, pools.slots))
    return pooled


class _SlotMax(torch.autograd.Function):
    """`_SegmentMax` of dense rows [owners, slots, steps, S] with the mask bool [owners, slots, steps, 1]."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, is_present: Tensor) -> Tensor:
        rows = rows.masked_fill(~is_present, 0.0)  # the floor, so it gets no gradient
        pooled = rows.amax(1).clamp_min_(0.0)
        ctx.save_for_backward(rows, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        rows, pooled = ctx.saved_tensors
        winner = ((rows == pooled[:, None]) & (rows > 0)).to(rows.dtype)
        share = grads[0].to(rows.dtype) / winner.sum(1).clamp_min_(1.0)
        return winner.mul_(share[:, None]), None


def slot_max(rows: Tensor, pools: DensePool) -> Tensor:
    """Compute `segment_max` of dense rows over all slots of each owner."""
    side_by_side = (-1, pools.slots, pools.steps)
    pooled: Tensor = _SlotMax.apply(  # type: ignore[no-untyped-call]
        rows.view(*side_by_side, rows.shape[1]), pools.is_present.view(*side_by_side, 1))
    return pooled.flatten(0, 1)


def segment_max(rows: Tensor, pools: PackedPool | DensePool) -> Tensor:
    """ReLU of the maximum over the rows of each owner: [R, S] -> [owners, S]; 0 for an owner without rows.

    Pooling before the activation is the same function as after it, with one activation per pool and not per row. On a
    CPU, float32 and bfloat16 have native code, which reads each row once. On a GPU a scatter of 10^5 rows is an atomic
    operation for each value, so `dense_max` gathers the rows of an owner instead.
    """
    if isinstance(pools, DensePool):
        return slot_max(rows, pools)
    if not native_tensors.is_native(rows):
        return dense_max(rows, pools)
    rows = rows.contiguous()
    if not (torch.is_grad_enabled() and rows.requires_grad):
        return _pool(rows, pools.owner, pools.owners)
    pooled: Tensor = _SegmentMax.apply(rows, pools.owner, pools.owners)  # type: ignore[no-untyped-call]
    return pooled


class SplitLinear(nn.Module):
    """Linear layer on [shared; private], as Ws shared + Wp private; the shared half is computed once per team."""

    def __init__(self, shared: int, private: int, out: int) -> None:
        super().__init__()
        self.shared = nn.Linear(shared, out)
        self.private = nn.Linear(private, out, bias=False)
        # Initialise both halves like one layer over the concatenation.
        bound = (shared + private) ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, shared: Tensor, private: Tensor) -> Tensor:
        """Map [..., Fs] and [..., H, Fp] -> [..., H, out]."""
        output: Tensor = self.private(private)
        return output.add_(self.shared(shared).unsqueeze(-2))


def two_layer_mlp(pieces: Sequence[Tensor], first: Tensor, first_bias: Tensor, second: nn.Linear) -> Tensor:
    """Return ``second`` of the ReLU of a linear layer over the concatenated ``pieces`` [R, ...]: [R, out]."""
    if native_tensors.is_native(pieces[0]):
        return packed_mlp(pieces, [], first, None, first_bias, second)
    encoded: Tensor = second(F.relu_(F.linear(torch.cat(list(pieces), -1), first, first_bias)))
    return encoded


class ProcessSet(nn.Module):
    """A set whose rows look alike to all heroes of the team."""

    def __init__(self, features: int, hidden: int, out: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, out)

    def forward(self, values: Sequence[Tensor], rows: PackedPool | DensePool) -> Tensor:
        """Encode and pool ``values`` [R, ...], together the features -> [owners, out]."""
        return segment_max(two_layer_mlp(values, self.first.weight, self.first.bias, self.second), rows)


class UnitSet(nn.Module):
    """Units, whose private part (vector to the hero, ...) differs from hero to hero.

    The caller pools, because it also needs the rows before the pool.
    """

    def __init__(self, shared: int, private: int, hidden: int, out: int) -> None:
        super().__init__()
        self.first = SplitLinear(shared, private, hidden)
        self.second = nn.Linear(hidden, out)

    def forward(self, shared: Sequence[Tensor], private: Sequence[Tensor]) -> Tensor:
        """Encode ``shared`` [R, ...] and ``private`` [R, H, ...], together the features -> [R, H, out]."""
        first = self.first
        if private[0].shape[1] == 1:  # with one hero the two halves are one layer
            weight = torch.cat((first.shared.weight, first.private.weight), 1)
            pieces = [*shared, *(x[:, 0] for x in private)]
            return two_layer_mlp(pieces, weight, first.shared.bias, self.second)[:, None]
        if native_tensors.is_native(shared[0]):
            return packed_mlp(shared, private, first.shared.weight, first.private.weight, first.shared.bias,
                              self.second)
        encoded: Tensor = self.second(F.relu_(first(torch.cat(list(shared), -1), torch.cat(list(private), -1))))
        return encoded
