"""Encoders of unordered sets: two fully connected layers over each row, then a max-pool ("Process Set" in Berner et al.
2019, figure 17)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from five.agent.model.inputs import DensePool, PackedPool


class _SegmentMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, owners: int) -> Tensor:
        pooled = _pool(rows, owner, owners)
        ctx.save_for_backward(rows, owner, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, pooled = ctx.saved_tensors
        # Rows that share the maximum share its gradient. No row reached a pool at its floor of zero. Comparisons write
        # numbers, because comparisons into bools take several times as long on a CPU.
        winner = pooled.index_select(0, owner)
        torch.eq(rows, winner, out=winner)
        winners = torch.zeros_like(pooled).index_add_(0, owner, winner)
        share = grads[0].to(rows.dtype) / winners.clamp_min_(1.0) * pooled.sign()
        return winner.mul_(share.index_select(0, owner)), None, None


def _pool(rows: Tensor, owner: Tensor, owners: int) -> Tensor:
    return rows.new_zeros(owners, rows.shape[1]).scatter_reduce_(0, owner[:, None].expand_as(rows), rows, "amax")


class _DenseMax(torch.autograd.Function):
    """`_SegmentMax` without a scatter: it gathers each pool's rows, absent ones as zeros, which is the floor."""

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

    Pooling before the activation is the same function as after it, with one activation per pool and not per row. A CPU
    scatters, which is two to three times as fast there as a reduction. On a GPU a scatter of 10^5 rows is an atomic
    operation for each value, so `dense_max` gathers the rows of an owner instead.
    """
    if isinstance(pools, DensePool):
        return slot_max(rows, pools)
    if rows.device.type == "cuda":
        return dense_max(rows, pools)
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
        encoded: Tensor = self.second(F.relu_(first(torch.cat(list(shared), -1), torch.cat(list(private), -1))))
        return encoded
