"""The recurrent core: one LSTM layer with one state per hero."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from five.agent.model.lstm import lstm_sequence


class RecurrentCore(nn.Module):
    """Single-layer LSTM (Berner et al. 2019, appendix H) over [T, B, H], where games may end within the sequence."""

    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.lstm = nn.LSTM(width, units)
        _, _, input_bias, state_bias = self.lstm.parameters()
        with torch.no_grad():
            # Open forget gates let gradients cross the unroll from the first training step on.
            input_bias[units:2 * units].fill_(1.0)
            state_bias.zero_()

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate one step: x [B, H, I], h and c [B, H, D] -> (h, c). The output is the new h.

        It evaluates the cell itself: library kernels rearrange their weights at each call, which does not pay for
        one step.
        """
        from_input, from_state, input_bias, state_bias = self.lstm.parameters()
        gates = F.linear(x, from_input, input_bias) + F.linear(h, from_state, state_bias)
        input_gate, forget_gate, cell_gate, out = gates.float().chunk(4, -1)
        c = forget_gate.sigmoid() * c + input_gate.sigmoid() * cell_gate.tanh()
        return out.sigmoid() * c.tanh(), c

    def forward(self, x: Tensor, h: Tensor, c: Tensor, resets: Tensor | None = None,
                starts: list[int] | None = None, step_by_step: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Unroll x [T, B, H, I] from h and c [B, H, D] with resets bool [T, B] or None -> (outputs [T, B, H, D], h, c).

        Where resets[t, b] is set, the state of team b is zero before step t. ``starts`` are 0 and the other steps with
        a reset, if the host knows them. ``step_by_step`` runs the same sequence of kernels for any resets. Under
        autocast only products are in its dtype: cell, state and outputs are float32.
        """
        kind = x.device.type
        if torch.is_autocast_enabled(kind):
            with torch.autocast(kind, enabled=False):
                return self._unroll_steps(x, h, c, resets, torch.get_autocast_dtype(kind))
        if step_by_step:
            return self._unroll_steps(x, h, c, resets, torch.float32)
        return self._unroll_segments(x, h, c, resets, starts)

    def _unroll_steps(self, x: Tensor, h: Tensor, c: Tensor, resets: Tensor | None, dtype: torch.dtype
                      ) -> tuple[Tensor, Tensor, Tensor]:
        """Unroll with products in ``dtype``; autocast would also run the library kernel's cell and gradients in
        bfloat16."""
        steps, teams, heroes, _ = x.shape
        from_input, from_state, input_bias, state_bias = self.lstm.parameters()
        gates = F.linear(x.flatten(1, 2).to(dtype), from_input.to(dtype), (input_bias + state_bias).to(dtype))
        keep = None if resets is None else (~resets).repeat_interleave(heroes, 1)[..., None].float()
        out, h, c = lstm_sequence(gates, from_state.to(dtype), h.flatten(0, 1).float(), c.flatten(0, 1).float(), keep)
        return (out.view(steps, teams, heroes, -1), h.view(teams, heroes, -1), c.view(teams, heroes, -1))

    def _unroll_segments(self, x: Tensor, h: Tensor, c: Tensor, resets: Tensor | None, starts: list[int] | None
                         ) -> tuple[Tensor, Tensor, Tensor]:
        """Unroll with the library kernel, called once for each segment between resets."""
        steps, teams, heroes, _ = x.shape
        flat = x.flatten(1, 2)
        state = (h.reshape(1, teams * heroes, -1), c.reshape(1, teams * heroes, -1))
        if resets is None:
            starts = [0]
        elif starts is None:
            starts = [0, *(t for t in resets.any(1).nonzero().squeeze(1).tolist() if t > 0)]
        outputs = []
        for start, end in zip(starts, [*starts[1:], steps], strict=True):
            if resets is not None:
                keep = (~resets[start]).repeat_interleave(heroes)[None, :, None]
                state = (state[0] * keep, state[1] * keep)
            out, state = self.lstm(flat[start:end], state)
            outputs.append(out)
        whole = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return (whole.view(steps, teams, heroes, -1), state[0].view(teams, heroes, -1),
                state[1].view(teams, heroes, -1))
