"""Numeric precision of products, and counting of floating point operations."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from five.agent.config import ComputeConfig, ModelConfig


def apply_compute_config(config: ComputeConfig) -> None:
    """Set the precision of this process's GPU products. A CPU's float32 products are always in full precision."""
    torch.backends.cuda.matmul.allow_tf32 = config.float32_matmul_precision == "tf32"
    torch.backends.cudnn.allow_tf32 = config.float32_matmul_precision == "tf32"
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = config.bfloat16_accumulation == "bfloat16"


def require_device(device: str, key: str, processes: int = 1) -> None:
    """Raise ValueError, which names the configuration's ``key``, for a GPU that this machine does not have.

    ``processes``: number of this machine's processes that need a GPU each.
    """
    if not device.startswith("cuda"):
        return
    if torch.cuda.is_available():
        _require_gpus(device, key, processes)
        return
    why = (f"this PyTorch ({torch.__version__}) is built without CUDA: use the image whose tag ends in -cuda, or "
           "install a PyTorch for CUDA" if torch.version.cuda is None else
           "no GPU is visible: check the driver, and the container's GPUs")
    raise ValueError(f"{key} {device!r}: {why}; or set {key}=cpu")


def _require_gpus(device: str, key: str, processes: int) -> None:
    visible, number = torch.cuda.device_count(), torch.device(device).index
    if number is not None and number >= visible:
        raise ValueError(f"{key} {device!r}: the visible GPUs are cuda:0 to cuda:{visible - 1}")
    if number is not None and processes > 1:
        raise ValueError(f"{key} {device!r}: {processes} processes on this machine need a GPU each: set {key}=cuda")
    if processes > visible:
        raise ValueError(f"{key} {device!r}: {processes} processes on this machine need a GPU each (GPUs visible: "
                         f"{visible}): start fewer processes")


@cache
def _has_bfloat16_products(device_type: str) -> bool:
    """Whether products of bfloat16 numbers are faster than those of float32 on a device of this type.

    A CPU without AVX512-BF16 or AMX emulates them at a fraction of float32's speed. CPUs other than x86 are not
    measured and count as without.
    """
    if device_type != "cpu":
        return True
    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))


def uses_bfloat16(config: ModelConfig, device: torch.device) -> bool:
    """Whether the model's layers run in bfloat16 on the device: where it is configured, and faster."""
    return config.precision == "bfloat16" and _has_bfloat16_products(device.type)


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
