"""What the core computes in PyTorch's place: a policy's sets of rows, in the host's memory and in float32.

PyTorch's operations pass over the rows a dozen times and ask for memory each time; here a few rows at a time go through
all of it. Gradients are worked out by hand.
"""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.compute import count_extra_flops
from five.native.pooling import pool_gradient, pool_rows
from five.native.set_layers import Weights, backward, forward


def takes(*arrays: Tensor) -> bool:
    """Whether the core may compute with these: float32, in the host's memory."""
    return all(x.device.type == "cpu" and x.dtype == torch.float32 for x in arrays) and not torch.is_autocast_enabled(
        "cpu")


class _SetLayers(torch.autograd.Function):
    """Pieces get a gradient only where something is learned of them: of most of what a row holds, what the game says
    of it, nothing is."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, first_bias: Tensor, second: Tensor, second_bias: Tensor, *pieces: Tensor
                ) -> Tensor:
        weights = (first, first_bias, second, second_bias)
        hidden, out = forward([_array(x) for x in pieces], Weights(*map(_array, weights)))
        count_extra_flops(2 * len(out) * (first.numel() + second.numel()))
        ctx.save_for_backward(*weights, torch.from_numpy(hidden), *pieces)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        arrays = [_array(x) for x in ctx.saved_tensors]
        weights, hidden, learned = Weights(*arrays[:4]), arrays[4], ctx.needs_input_grad[4:]
        of_weights, of_pieces = backward(arrays[5:], learned, weights, hidden, _array(grads[0]))
        columns = sum(piece.shape[1] for piece, wanted in zip(arrays[5:], learned, strict=True) if wanted)
        count_extra_flops(2 * len(hidden) * (weights.first.size + 2 * weights.second.size + columns * hidden.shape[1]))
        return tuple(None if x is None else torch.from_numpy(x) for x in (*of_weights, *of_pieces))


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, owners: int) -> Tensor:
        pooled = rows.new_empty(owners, rows.shape[1])
        pool_rows(_array(rows), _array(owner), pooled.numpy())
        ctx.save_for_backward(rows, owner, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, pooled = map(_array, ctx.saved_tensors)
        return torch.from_numpy(pool_gradient(rows, owner, pooled, _array(grads[0]))), None, None


def set_layers(pieces: Sequence[Tensor], first: Tensor, first_bias: Tensor, second: Tensor, second_bias: Tensor
               ) -> Tensor:
    """second(relu(first(row))) of ``pieces`` [R, ...] side by side, with weights [out, in]: [R, out]. `takes` all."""
    out: Tensor = _SetLayers.apply(first, first_bias, second, second_bias, *pieces)  # type: ignore[no-untyped-call]
    return out


def pool(rows: Tensor, owner: Tensor, owners: int) -> Tensor:
    """ReLU of the maximum over the ``rows`` [R, S] of each of ``owners``, by ``owner`` int64 [R]: [owners, S]. Rows
    that share a maximum share its gradient. `takes` the rows."""
    pooled: Tensor = _Pool.apply(rows, owner, owners)  # type: ignore[no-untyped-call]
    return pooled


def _array(x: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = x.detach().contiguous().numpy()
    return array
