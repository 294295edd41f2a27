"""Two fully connected layers over packed rows on a CPU, as one function with its own gradient.

Every batch has another number of rows. oneDNN, which multiplies PyTorch's bfloat16 matrices, compiles a kernel for
each new shape: a quarter of a gradient step of `laptop-5v5` (torch 2.13.0, AMD EPYC). So rows are filled up with zeros
to one of few numbers, for which earlier batches have left their kernels. Pieces are concatenated, converted and filled
up in one pass, and only columns that need a gradient get one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SMALLEST = 16


def filled_up(rows: int) -> int:
    """Return the number of rows that a matrix of ``rows`` has for bfloat16: at least as many and at most an eighth
    more (from 128 rows on), eight numbers for each power of two."""
    step = max(_SMALLEST, 1 << max(rows.bit_length() - 4, 0))
    return max(-(-rows // step), 1) * step


class _Layout(NamedTuple):
    """Shapes of a call. ``shared``: number of shared pieces, which the private ones follow; ``rows``: of the pieces;
    ``filled``: of the matrices; ``heroes``: rows of the private pieces for each of those."""

    shared: int
    rows: int
    filled: int
    heroes: int


class _PackedMlp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layout: _Layout, dtype: torch.dtype, first_shared: Tensor, first_private: Tensor | None,
                first_bias: Tensor, second: Tensor, second_bias: Tensor, *pieces: Tensor) -> Tensor:
        shared = _matrix(pieces[:layout.shared], layout.rows, layout.filled, dtype)
        first_shared, second = first_shared.to(dtype), second.to(dtype)
        hidden = F.linear(shared, first_shared, first_bias.to(dtype))
        private = None
        if first_private is not None:
            first_private = first_private.to(dtype)
            private = _matrix(pieces[layout.shared:], layout.rows * layout.heroes, layout.filled * layout.heroes, dtype)
            own = F.linear(private, first_private)
            hidden = own.view(layout.filled, layout.heroes, len(first_bias)).add_(hidden[:, None]).flatten(0, 1)
        hidden = hidden.relu_()
        out = F.linear(hidden, second, second_bias.to(dtype))
        ctx.layout = layout
        ctx.widths = [piece.shape[-1] for piece in pieces]
        ctx.piece_dtypes = [piece.dtype for piece in pieces]
        ctx.save_for_backward(shared, private, hidden, first_shared, first_private, second)
        return out[:layout.rows * layout.heroes]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        layout: _Layout = ctx.layout
        shared, private, hidden, first_shared, first_private, second = ctx.saved_tensors
        out = _matrix([grads[0]], layout.rows * layout.heroes, len(hidden), hidden.dtype)
        needs = ctx.needs_input_grad[2:]
        below = torch.ops.aten.threshold_backward(out @ second, hidden, 0)
        own = below
        if private is not None:
            below = below.view(layout.filled, layout.heroes, below.shape[1]).sum(1, dtype=torch.float32).to(below.dtype)
        parameters = [below.t() @ shared if needs[0] else None,
                      own.t() @ private if private is not None and needs[1] else None,
                      below.sum(0) if needs[2] else None,
                      out.t() @ hidden if needs[3] else None,
                      out.sum(0) if needs[4] else None]
        split = layout.shared
        pieces = _piece_gradients(below, first_shared, ctx.widths[:split], needs[5:5 + split], layout.rows)
        if private is not None:
            pieces += _piece_gradients(own, first_private, ctx.widths[split:], needs[5 + split:],
                                       layout.rows * layout.heroes)
        return (None, None, *(None if p is None else p.float() for p in parameters),
                *(None if p is None else p.to(dtype) for p, dtype in zip(pieces, ctx.piece_dtypes, strict=True)))


def _matrix(pieces: Sequence[Tensor], rows: int, filled: int, dtype: torch.dtype) -> Tensor:
    """Return the concatenated pieces [rows, ...], followed by rows of zeros."""
    matrix = torch.empty(filled, sum(piece.shape[-1] for piece in pieces), dtype=dtype)
    at = 0
    for piece in pieces:
        matrix[:rows, at:at + piece.shape[-1]] = piece
        at += piece.shape[-1]
    matrix[rows:] = 0
    return matrix


def _piece_gradients(out: Tensor, weight: Tensor, widths: Sequence[int], needs: Sequence[bool], rows: int
                     ) -> list[Tensor | None]:
    """Return the gradient of each piece that needs one, from that of the layer's outputs. Pieces without a gradient
    before the first and after the last that needs one cost nothing."""
    ends = [sum(widths[:i + 1]) for i in range(len(widths))]
    wanted = [i for i, need in enumerate(needs) if need]
    if not wanted:
        return [None] * len(widths)
    start, end = ends[wanted[0]] - widths[wanted[0]], ends[wanted[-1]]
    inputs = (out @ weight[:, start:end])[:rows]
    return [inputs[:, ends[i] - widths[i] - start:ends[i] - start] if needs[i] else None for i in range(len(widths))]


def packed_mlp(shared: Sequence[Tensor], private: Sequence[Tensor], first_shared: Tensor, first_private: Tensor | None,
               first_bias: Tensor, second: nn.Linear) -> Tensor:
    """Return ``second`` of the ReLU of a linear layer over the concatenated pieces.

    ``shared`` pieces are [R, ...] and ``private`` ones [R, H, ...], with one weight for each kind; without private
    pieces the result is [R, out], else [R, H, out]. It has the type of the present autocast, otherwise that of the
    weights. Float32 needs no filling up: its products come from a library without compiled shapes.
    """
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else first_bias.dtype
    rows = len(shared[0])
    heroes = private[0].shape[1] if private else 1
    layout = _Layout(len(shared), rows, rows if dtype is torch.float32 else filled_up(rows), heroes)
    pieces = [*shared, *(piece.flatten(0, 1) for piece in private)]
    encoded: Tensor = _PackedMlp.apply(  # type: ignore[no-untyped-call]
        layout, dtype, first_shared, first_private, first_bias, second.weight, second.bias, *pieces)
    return encoded.view(rows, heroes, second.out_features) if private else encoded
