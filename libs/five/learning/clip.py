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
        self.steps = 0
        self.v = torch.zeros(size, device=device)

    @torch.no_grad()
    def apply_(self, gradient: Tensor) -> Tensor:
        """Clips ``gradient`` [size] in place, after updating v with it as it came.

        Returns the share of elements that were clipped, a scalar tensor. Elements whose v is 0, those that never had a
        gradient, pass unclipped.
        """
        share = torch.zeros((), device=gradient.device)
        bound = None
        if self.factor > 0 and self.steps >= self.warmup_steps:
            correction = 1.0 - self.decay**self.steps
            bound = (self.v * (self.factor**2 / correction)).sqrt_()
            bound.masked_fill_(bound == 0, torch.inf)
        self.v.mul_(self.decay).addcmul_(gradient, gradient, value=1.0 - self.decay)
        self.steps += 1
        if bound is not None:
            share = (gradient.abs() > bound).float().mean()
            torch.clamp(gradient, -bound, bound, out=gradient)
        return share
