"""An LSTM over a sequence with a hand-written gradient (Hochreiter and Schmidhuber 1997; Berner et al. 2019,
appendix H).

Matrix products may be in bfloat16; the cell and all element-wise operations are float32. Autocast cannot do that: it
runs the whole layer in a half-precision kernel, which flushes most gradients of a large batch's mean to zero. The
gradient of the state's weights is one product over all steps, not a sum of rounded ones.
"""

from typing import Any

import torch
from torch import Tensor

from five.agent import native_tensors
from five.agent.native_tensors import memory_of
from five.native import _native


class _Sequence(torch.autograd.Function):
    """Map the inputs' share of the gates to outputs. The gates are in the order input, forget, cell, output."""

    @staticmethod
    def forward(ctx: Any, from_input: Tensor, weight: Tensor, h: Tensor, c: Tensor, keep: Tensor | None
                ) -> tuple[Tensor, Tensor, Tensor]:
        steps, rows, width = *from_input.shape[:2], h.shape[-1]
        gates = from_input.to(torch.float32, copy=True)
        before = h.new_empty(steps, rows, width, dtype=weight.dtype)  # h in the dtype of each step's product
        cells = c.new_empty(steps + 1, rows, width)
        cells[0] = c
        cell_tanh = c.new_empty(steps, rows, width)
        outputs = h.new_empty(steps, rows, width)
        transposed = weight.t()
        for t in range(steps):
            if keep is not None:
                h = h * keep[t]
                cells[t] *= keep[t]
            before[t] = h
            now = gates[t]
            if weight.dtype == torch.float32:
                now.addmm_(before[t], transposed)
            else:
                now += before[t] @ transposed
            enter, forget, new, out = now.chunk(4, -1)
            now[:, :2 * width].sigmoid_()
            new.tanh_()
            out.sigmoid_()
            torch.addcmul(enter * new, forget, cells[t], out=cells[t + 1])
            torch.tanh(cells[t + 1], out=cell_tanh[t])
            torch.mul(out, cell_tanh[t], out=outputs[t])
            h = outputs[t]
        ctx.save_for_backward(gates, weight, before, cells, cell_tanh, *(() if keep is None else (keep,)))
        ctx.input_dtype = from_input.dtype
        return outputs, h.clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        gates, weight, before, cells, cell_tanh, *rest = ctx.saved_tensors
        (keep,) = rest or (None,)
        of_outputs, of_h, of_c = grads
        steps = len(before)
        by_gate = torch.empty_like(gates)
        dh, dc = of_h.float(), of_c.float()
        for t in reversed(range(steps)):
            enter, forget, new, out = gates[t].chunk(4, -1)
            dh = dh + of_outputs[t]
            tanh = cell_tanh[t]
            dc = torch.addcmul(dc, dh * out, 1.0 - tanh * tanh)
            here = by_gate[t]
            of_each = (dc * new * enter * (1.0 - enter), dc * cells[t] * forget * (1.0 - forget),
                       dc * enter * (1.0 - new * new), dh * tanh * out * (1.0 - out))
            torch.cat(of_each, -1, out=here)
            dh = (here.to(weight.dtype) @ weight).float()
            dc = dc * forget
            if keep is not None:
                dh = dh * keep[t]
                dc = dc * keep[t]
        of_gates = by_gate.to(weight.dtype)
        of_weight = of_gates.flatten(0, 1).t() @ before.flatten(0, 1)
        return by_gate.to(ctx.input_dtype), of_weight, dh, dc, None


class _NativeSequence(torch.autograd.Function):
    """`_Sequence` on a CPU, with one native operation a step between the products."""

    @staticmethod
    def forward(ctx: Any, from_input: Tensor, weight: Tensor, h: Tensor, c: Tensor, keep: Tensor | None
                ) -> tuple[Tensor, Tensor, Tensor]:
        steps, rows, width = *from_input.shape[:2], h.shape[-1]
        from_input = from_input.contiguous()
        gates, product = h.new_empty(from_input.shape), from_input.new_empty(rows, 4 * width)
        before = from_input.new_empty(steps + 1, rows, width)
        cells = c.new_empty(steps + 1, rows, width)
        before[0], cells[0] = (h, c) if keep is None else (h * keep[0], c * keep[0])
        cell_tanh, outputs = c.new_empty(steps, rows, width), h.new_empty(steps, rows, width)
        used = (from_input, product, before, gates, cells, cell_tanh, outputs, keep)
        arrays: list[Any] = [None if x is None else memory_of(x.contiguous()) for x in used]
        for t, state in enumerate(before[:steps].unbind()):
            torch.mm(state, weight.t(), out=product)
            _native.lstm_step(t, *arrays)
        ctx.save_for_backward(gates, weight, before, cells, cell_tanh, *(() if keep is None else (keep,)))
        ctx.set_materialize_grads(False)
        return outputs, outputs[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        gates, weight, before, cells, cell_tanh, *rest = ctx.saved_tensors
        (keep,) = rest or (None,)
        of_outputs, of_h, of_c = grads
        of_outputs = torch.zeros_like(cell_tanh) if of_outputs is None else of_outputs.contiguous()
        if of_h is not None:
            of_outputs = of_outputs.index_add(0, torch.tensor([len(cell_tanh) - 1]), of_h[None])
        dc = torch.zeros_like(cells[0]) if of_c is None else of_c.clone(memory_format=torch.contiguous_format)
        of_gates, product = before.new_empty(gates.shape), torch.zeros_like(before[0])
        used = (product, of_outputs, gates, cells, cell_tanh, of_gates, dc, keep)
        arrays: list[Any] = [None if x is None else memory_of(x.contiguous()) for x in used]
        for t, here in reversed(list(enumerate(of_gates.unbind()))):
            _native.lstm_step_gradient(t, *arrays)
            torch.mm(here, weight, out=product)
        of_weight = of_gates.flatten(0, 1).t() @ before[:-1].flatten(0, 1)
        dh = product.float()
        return of_gates, of_weight, dh if keep is None else dh * keep[0], dc, None


def lstm_sequence(from_input: Tensor, weight: Tensor, h: Tensor, c: Tensor, keep: Tensor | None = None
                  ) -> tuple[Tensor, Tensor, Tensor]:
    """Run the cell over a sequence.

    Args:
        from_input: [T, N, 4D], the inputs' and biases' share of the gates (input, forget, cell, output), float32 or
            bfloat16.
        weight: [4D, D] of the state; its dtype, float32 or bfloat16, is that of the products with the state.
        h: float32 [N, D] before the first step.
        c: float32 [N, D], the cell.
        keep: float32 [T, N, 1], 0 where a game starts at the step, else 1; None: no game starts.

    Returns (outputs [T, N, D], h [N, D], c [N, D] after the last step), float32.
    """
    native = native_tensors.is_native(weight) and from_input.dtype is weight.dtype
    result: tuple[Tensor, Tensor, Tensor] = (_NativeSequence if native else _Sequence).apply(
        from_input, weight, h, c, keep)  # type: ignore[no-untyped-call]
    return result
