"""The hand-written LSTM equals the library's, and keeps the scale of gradients in bfloat16."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from five.agent.model.lstm import lstm_sequence
from five.agent.model.recurrent_core import RecurrentCore

STEPS, ROWS, INPUT, WIDTH = 7, 5, 6, 8


def inputs(requires_grad: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = ((STEPS, ROWS, INPUT), (ROWS, WIDTH), (ROWS, WIDTH))
    x, h, c = (torch.randn(shape, generator=generator) for shape in shapes)
    return x.requires_grad_(requires_grad), h.requires_grad_(requires_grad), c.requires_grad_(requires_grad)


def by_library(lstm: nn.LSTM, x: Tensor, h: Tensor, c: Tensor, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Evaluate one step at a time and zero the state where ``keep`` is 0."""
    outputs, state = [], (h[None], c[None])
    for t in range(len(x)):
        state = (state[0] * keep[t], state[1] * keep[t])
        out, state = lstm(x[t:t + 1], state)
        outputs.append(out)
    return torch.cat(outputs), state[0][0], state[1][0]


@pytest.mark.parametrize("games_end", [False, True])
def test_outputs_and_gradients_equal_the_librarys(games_end: bool) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(INPUT, WIDTH)
    keep = torch.ones(STEPS, ROWS, 1)
    if games_end:
        keep[0, 1] = keep[3, 0] = keep[3, 4] = keep[6, 2] = 0.0
    found = []
    for by_hand in (False, True):
        x, h, c = inputs(requires_grad=True)
        lstm.zero_grad()
        if by_hand:
            from_input, from_state, input_bias, state_bias = lstm.parameters()
            results = lstm_sequence(F.linear(x, from_input, input_bias + state_bias), from_state, h, c,
                                    keep if games_end else None)
        else:
            results = by_library(lstm, x, h, c, keep)
        weights = [torch.linspace(-1.0, 1.0, r.numel()).view(r.shape) for r in results]
        torch.stack([(r * w).sum() for r, w in zip(results, weights, strict=True)]).sum().backward()
        parameters = [p.grad.clone() for p in lstm.parameters() if p.grad is not None]
        found.append([*(r.detach() for r in results), x.grad, h.grad, c.grad, *parameters])
    assert len(found[0]) == len(found[1]) == 10
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def gradients(scale: float, precision: torch.dtype | None) -> dict[str, Tensor]:
    torch.manual_seed(1)
    core = RecurrentCore(32, 64)
    x = torch.randn(16, 24, 1, 32)
    zero = torch.zeros(24, 1, 64)
    target = torch.randn(16, 24, 1, 64)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision is not None):
        out = core(x, zero, zero)[0]
        assert out.dtype == torch.float32
        loss = ((out - target).square() * scale).sum()
    loss.backward()
    return {name: p.grad for name, p in core.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_small_gradients_survive_bfloat16(scale: float) -> None:
    """A mean over the batch of the paper weighs each step with some 1e-7: products of such a weight with gradients of
    single gates lie below 6e-5, half precision's smallest normal number, and would lose their digits there."""
    exact, reduced = gradients(scale, None), gradients(scale, torch.bfloat16)
    for name, gradient in exact.items():
        error = (reduced[name] - gradient).norm() / gradient.norm()
        assert error < 0.02, (name, error)
        cosine = F.cosine_similarity(reduced[name].flatten(), gradient.flatten(), 0)
        assert cosine > 0.999, name


def test_a_slowly_growing_cell_keeps_growing() -> None:
    """In bfloat16 a cell near 8 cannot take in less than 0.03 a step: 64 steps of 0.01 would leave it where it is."""
    width, steps = 1, 64
    gates = torch.tensor([-4.6, 30.0, 30.0, 30.0]).repeat(steps, 1, 1).bfloat16()  # the cell grows by 0.01 a step
    weight = torch.zeros(4 * width, width, dtype=torch.bfloat16)
    _, _, c = lstm_sequence(gates, weight, torch.zeros(1, width), torch.full((1, width), 8.0))
    added = steps * float(torch.sigmoid(gates[0, 0, 0].float()))
    assert float(c) == pytest.approx(8.0 + added, rel=1e-4)
    assert added > 0.5
