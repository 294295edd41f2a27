"""Floating point operations of learning, counted rather than estimated."""

import warnings
from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode


def count_flops(step: Callable[[], object]) -> int:
    """Floating point operations of what ``step`` does, backward passes included: matrix products and convolutions,
    a multiplication and an addition counting as two. What is element-wise is not counted, a few percent."""
    counter = FlopCounterMode(display=False)
    # The fused LSTMs of CPU and GPU are one operation each that the counter does not look into.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False), counter:
            step()
    return int(counter.get_total_flops())
