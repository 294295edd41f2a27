"""Named tensors of a checkpoint: whether they fit, and whether two sets of them are the same."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


def require_shapes(state: Mapping[str, Tensor], expected: Mapping[str, torch.Size]) -> None:
    """Raises ValueError naming tensors of ``state`` that are missing, not ``expected``, or of another shape."""
    missing, unknown = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(f"the checkpoint is of another model: it lacks {missing[:5]} and has {unknown[:5]}")
    for name, shape in expected.items():
        if state[name].shape != shape:
            raise ValueError(f"the checkpoint is of another model: {name} is {tuple(state[name].shape)} there "
                             f"and {tuple(shape)} here")


def fingerprint_tensors(tensors: Iterable[Tensor]) -> int:
    """A number of 48 bits made of all bits of the tensors, which are on one device; of any dtype and shape."""
    sums = []
    for tensor in tensors:
        bits = tensor.detach().contiguous().view(-1).view(torch.uint8 if tensor.element_size() % 4 else torch.int32)
        sums.append(bits.sum(dtype=torch.int64))
    return int(sum(torch.stack(sums).tolist())) & (1 << 48) - 1
