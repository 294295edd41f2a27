"""Checks of a checkpoint's named tensors."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


def require_shapes(state: Mapping[str, Tensor], expected: Mapping[str, torch.Size]) -> None:
    """Raise ValueError naming tensors of ``state`` that are missing, unexpected, or of another shape."""
    missing, unknown = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(f"checkpoint of another model: missing {missing[:5]}, unknown {unknown[:5]}")
    for name, shape in expected.items():
        if state[name].shape != shape:
            raise ValueError(f"checkpoint of another model: {name} has shape {tuple(state[name].shape)}, "
                             f"expected {tuple(shape)}")


def fingerprint_tensors(tensors: Iterable[Tensor]) -> int:
    """Return a 48-bit checksum of tensors of any dtype and shape on one device."""
    sums = []
    for tensor in tensors:
        bits = tensor.detach().contiguous().view(-1).view(torch.uint8 if tensor.element_size() % 4 else torch.int32)
        sums.append(bits.sum(dtype=torch.int64))
    return int(sum(torch.stack(sums).tolist())) & (1 << 48) - 1
