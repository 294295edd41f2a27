"""Element-wise gradient clip (Berner et al. 2019, section 3.2): each element to ± 5 √v.

v is the running second moment of the *unclipped* gradient, bias-corrected, and as it stood before the present step: a
gradient cannot widen its own bound. The first ``warmup_steps`` only fill v.
"""

import torch
from torch import Tensor


class ElementClip:
    """The clip of one flat gradient vector.

    Args:
        size: elements.
        factor: the 5; 0 turns the clip off (v is kept all the same).
        decay: of v, a step.
        warmup_steps: steps before the clip begins.
        device: where the gradient is.
    """

    def __init__(self, size: int, factor: float, decay: float, warmup_steps: int, device: torch.device) -> None:
        self.factor = factor
        self.decay = decay
        self.warmup_steps = warmup_steps
        self._steps = torch.zeros((), dtype=torch.float64, device=device)
        self.v = torch.zeros(size, device=device)

    @property
    def steps(self) -> int:
        """Gradients that v was made of; on a GPU the host waits for the answer."""
        return int(self._steps)

    @steps.setter
    def steps(self, steps: int) -> None:
        self._steps.fill_(steps)

    @torch.no_grad()
    def apply_(self, gradient: Tensor, usable: Tensor | None = None) -> Tensor:
        """Clips ``gradient`` [size] in place, after updating v with it as it came.

        ``usable`` bool []: where it is False the gradient, which is all zeros then, leaves v as it is; None: it is
        usable. Returns the share of elements that were clipped, a scalar tensor. Elements whose v is 0, those that
        never had a gradient, pass unclipped. Nothing here makes the host wait for the device.
        """
        share = torch.zeros((), device=gradient.device)
        bound = None
        if self.factor > 0:
            # How many steps were taken is known on the device alone: those that were skipped do not count. And a
            # step that is replayed is the same operations during the warm-up as after it. Comparisons are written as
            # numbers: on a CPU those into bools take several times as long.
            settled = self._steps >= max(self.warmup_steps, 1)
            scale = torch.where(settled, self.factor**2 / (1.0 - torch.pow(self.decay, self._steps)), 0.0)
            bound = (self.v * scale).sqrt_()
            # None where there is no v yet.
            bound.add_(torch.eq(bound, 0.0, out=torch.empty_like(bound)), alpha=torch.finfo(bound.dtype).max)
        taken = torch.ones_like(self._steps) if usable is None else usable.double()
        self.v.mul_(torch.where(taken > 0, self.decay, 1.0)).addcmul_(gradient, gradient, value=1.0 - self.decay)
        self._steps += taken
        if bound is not None:
            over = gradient.abs()
            share = torch.gt(over, bound, out=over).mean()
            torch.clamp(gradient, -bound, bound, out=gradient)
        return share
