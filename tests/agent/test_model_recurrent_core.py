"""Recurrent state across samples and resets."""

import pytest
import torch
from torch import Tensor, nn

from five.agent.model.recurrent_core import RecurrentCore


class Counting(nn.Module):
    """An LSTM stub whose state and output count the steps since a reset."""

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        counts = state[0] + torch.arange(1, len(x) + 1)[:, None, None]
        return counts, (counts[-1:], state[1] + 10 * len(x))


def counting_core() -> RecurrentCore:
    core = RecurrentCore(3, 1)
    core.lstm = Counting()  # type: ignore[assignment]
    return core


def slow_counts(steps: int, start: Tensor, resets: Tensor) -> Tensor:
    counts = torch.zeros(steps, *start.shape)
    state = start.clone()
    for t in range(steps):
        for team in range(start.shape[0]):
            if resets[t, team]:
                state[team] = 0
        state += 1
        counts[t] = state
    return counts


@pytest.mark.parametrize("seed", range(4))
def test_state_is_reset_at_game_starts(seed: int) -> None:
    steps, teams, heroes = 9, 4, 2
    generator = torch.Generator().manual_seed(seed)
    resets = torch.rand(steps, teams, generator=generator) < 0.15 * seed
    start = torch.arange(teams * heroes, dtype=torch.float32).view(teams, heroes, 1)
    out, h, c = counting_core()(torch.zeros(steps, teams, heroes, 3), start, start * 0, resets)
    expected = slow_counts(steps, start, resets)
    assert torch.equal(out, expected) and torch.equal(h, expected[-1])
    # Both halves of the state are reset: c counts tens.
    assert torch.equal(c, torch.where(resets.any(0)[:, None, None], 10 * h, torch.full_like(h, 10.0 * steps)))


def test_state_is_carried_across_samples() -> None:
    """16 samples of 16 steps count to 256."""
    core, h, c = counting_core(), torch.zeros(2, 1, 1), torch.zeros(2, 1, 1)
    for sample in range(16):
        out, h, c = core(torch.zeros(16, 2, 1, 3), h, c, torch.zeros(16, 2, dtype=torch.bool))
        assert out[0, 0, 0, 0] == 16 * sample + 1
    assert h.unique().item() == 256


def test_without_resets_it_is_one_sequence() -> None:
    calls = []

    class Watched(Counting):
        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            calls.append(len(x))
            return super().forward(x, state)

    core = RecurrentCore(3, 1)
    core.lstm = Watched()  # type: ignore[assignment]
    zero = torch.zeros(2, 1, 1)
    core(torch.zeros(16, 2, 1, 3), zero, zero, torch.zeros(16, 2, dtype=torch.bool))
    resets = torch.zeros(16, 2, dtype=torch.bool)
    resets[0, 0] = resets[5, 1] = True
    core(torch.zeros(16, 2, 1, 3), zero, zero, resets)
    assert calls == [16, 5, 11]


def test_single_steps_equal_the_sequence() -> None:
    torch.manual_seed(0)
    core = RecurrentCore(5, 7)
    x, h, c = torch.randn(6, 3, 2, 5), torch.randn(3, 2, 7), torch.randn(3, 2, 7)
    out, last_h, last_c = core(x, h, c)
    for t in range(6):
        h, c = core.step(x[t], h, c)
        torch.testing.assert_close(h, out[t])
    torch.testing.assert_close(h, last_h)
    torch.testing.assert_close(c, last_c)


def test_no_gradient_crosses_a_reset() -> None:
    torch.manual_seed(0)
    core = RecurrentCore(5, 7)
    x = torch.randn(6, 2, 1, 5, requires_grad=True)
    resets = torch.zeros(6, 2, dtype=torch.bool)
    resets[3, 0] = True
    zero = torch.zeros(2, 1, 7)
    core(x, zero, zero, resets)[0][5].sum().backward()
    assert x.grad is not None
    assert (x.grad[:3, 0] == 0).all() and (x.grad[3:, 0] != 0).any() and (x.grad[:3, 1] != 0).any()
