"""Element-wise gradient clip to ± 5 √v (Berner et al. 2019, section 3.2).

v is the bias-corrected running second moment of the unclipped gradient, without the present step, so a gradient cannot
widen its own bound. The first ``warmup_steps`` steps only update v.
"""

import torch
from torch import Tensor

from five.agent import native_tensors
from five.agent.native_tensors import memory_of
from five.native import _native


class ElementClip:
    """Clip of one flat gradient vector.

    Args:
        size: number of elements.
        factor: multiple of √v, 5 in the paper. 0 disables the clip, and v is updated all the same.
        decay: decay of v per step.
        warmup_steps: steps before the clip begins.
        device: device of the gradient.
    """

    def __init__(self, size: int, factor: float, decay: float, warmup_steps: int, device: torch.device) -> None:
        self.factor = factor
        self.decay = decay
        self.warmup_steps = warmup_steps
        self._steps = torch.zeros((), dtype=torch.float64, device=device)
        self.v = torch.zeros(size, device=device)

    @property
    def steps(self) -> int:
        """Number of gradients in v. Waits for the device."""
        return int(self._steps)

    @steps.setter
    def steps(self, steps: int) -> None:
        self._steps.fill_(steps)

    @torch.no_grad()
    def apply_(self, gradient: Tensor, usable: Tensor | None = None) -> Tensor:
        """Clip ``gradient`` [size] in place, and update v with the unclipped gradient.

        ``usable`` bool []: if False, the gradient is all zeros and v does not change. None means usable. Returns the
        share of clipped elements, a scalar tensor. Elements whose v is 0, which never had a gradient, are not clipped.
        Nothing here makes the host wait for a GPU. A CPU runs native code.
        """
        if native_tensors.is_native(gradient):
            return self._apply_native(gradient, usable)
        share = torch.zeros((), device=gradient.device)
        bound = None
        if self.factor > 0:
            # Only the device knows the number of steps, because skipped ones do not count. A replayed step runs the
            # same operations during and after the warm-up. Comparisons are written as floats, because on a CPU those
            # into bools take several times as long.
            settled = self._steps >= max(self.warmup_steps, 1)
            scale = torch.where(settled, self.factor**2 / (1.0 - torch.pow(self.decay, self._steps)), 0.0)
            bound = (self.v * scale).sqrt_()
            # Elements without v are not bounded.
            bound.add_(torch.eq(bound, 0.0, out=torch.empty_like(bound)), alpha=torch.finfo(bound.dtype).max)
        counted = torch.ones_like(self._steps) if usable is None else usable.double()
        self.v.mul_(torch.where(counted > 0, self.decay, 1.0)).addcmul_(gradient, gradient, value=1.0 - self.decay)
        self._steps += counted
        if bound is not None:
            over = gradient.abs()
            share = torch.gt(over, bound, out=over).mean()
            torch.clamp(gradient, -bound, bound, out=gradient)
        return share

    def _apply_native(self, gradient: Tensor, usable: Tensor | None) -> Tensor:
        if usable is not None and not usable:
            return torch.zeros(())
        steps = float(self._steps)
        settled = self.factor > 0 and steps >= max(self.warmup_steps, 1)
        scale = self.factor**2 / (1.0 - self.decay**steps) if settled else 0.0
        clipped = _native.clip_elements(memory_of(gradient), memory_of(self.v), scale, self.decay, 1.0 - self.decay)
        self._steps += 1.0
        return torch.tensor(clipped / max(len(gradient), 1))
