"""Memory of CPU tensors as numpy arrays, the form in which the native code takes them."""

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor


def is_native(tensor: Tensor) -> bool:
    """Return whether the native code for learning reads the tensor: on a CPU, float32 or bfloat16."""
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.bfloat16)


def memory_of(tensor: Tensor) -> npt.NDArray[Any]:
    """Return the memory of a contiguous tensor without its gradient; bfloat16 as uint16."""
    detached = tensor.detach()
    return (detached.view(torch.uint16) if detached.dtype is torch.bfloat16 else detached).numpy()
