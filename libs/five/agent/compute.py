"""Numeric precision of GPU products, and counting of floating point operations."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.utils.flop_counter import FlopCounterMode

from five.agent.config import ComputeConfig


def apply_compute_config(config: ComputeConfig) -> None:
    """Set the precision of this process's GPU products. A CPU always computes in full precision."""
    torch.backends.cuda.matmul.allow_tf32 = config.float32_matmul_precision == "tf32"
    torch.backends.cudnn.allow_tf32 = config.float32_matmul_precision == "tf32"
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = config.bfloat16_accumulation == "bfloat16"


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Limit CPU operations in the ``with`` block to ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def uses_cuda_graphs(device: torch.device, config: ComputeConfig, here: bool = True) -> bool:
    """Whether work on ``device`` is captured as CUDA graphs; ``here`` is the service's own setting."""
    return config.cuda_graphs and here and device.type == "cuda"


def count_flops(step: Callable[[], object]) -> int:
    """Return the floating point operations of ``step``, backward passes included.

    Matrix products and convolutions count, with two operations for a multiplication and an addition. Element-wise
    operations, a few percent, do not.
    """
    counter = FlopCounterMode(display=False)
    # The counter does not see into the fused LSTM operations of CPU and GPU.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False), counter:
            step()
    return int(counter.get_total_flops())
