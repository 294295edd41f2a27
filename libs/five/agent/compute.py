"""How products are computed, and floating point operations counted rather than estimated."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch.utils.flop_counter import FlopCounterMode

from five.agent.config import ComputeConfig

_extra_flops: ContextVar[list[int] | None] = ContextVar("beside", default=None)


def apply_compute_config(config: ComputeConfig) -> None:
    """Sets what this process's GPU products are computed in. A CPU computes in full precision whatever it says."""
    torch.backends.cuda.matmul.allow_tf32 = config.float32_products == "tf32"
    torch.backends.cudnn.allow_tf32 = config.float32_products == "tf32"
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = config.bfloat16_sums == "bfloat16"


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """What this process computes on the CPU within it is computed on ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def uses_cuda_graphs(device: torch.device, config: ComputeConfig, here: bool = True) -> bool:
    """Whether what is computed on ``device`` is recorded as CUDA graphs; ``here``: whether the service wants them."""
    return config.cuda_graphs and here and device.type == "cuda"


def count_flops(step: Callable[[], object]) -> int:
    """Floating point operations of what ``step`` does, backward passes included: matrix products and convolutions,
    a multiplication and an addition counting as two. What is element-wise is not counted, a few percent."""
    counter, beside = FlopCounterMode(display=False), [0]
    before = _extra_flops.set(beside)
    # The fused LSTMs of CPU and GPU are one operation each that the counter does not look into.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False), counter:
                step()
        finally:
            _extra_flops.reset(before)
    return int(counter.get_total_flops()) + beside[0]


def count_extra_flops(flops: int) -> None:
    """Tells a count under way, if there is one, of operations that are none of PyTorch's."""
    beside = _extra_flops.get()
    if beside is not None:
        beside[0] += flops
