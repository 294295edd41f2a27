"""Names of a checkpoint's tensors, their size, and checks of them."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

POLICY_PREFIX, ADAM_PREFIX, CLIP_PREFIX = "policy/", "adam/", "clip/"


def require_shapes(state: Mapping[str, Tensor], expected: Mapping[str, torch.Size]) -> None:
    """Raise ValueError naming tensors of ``state`` that are missing, unexpected, or of another shape."""
    missing, unknown = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(f"checkpoint of another model: missing {missing[:5]}, unknown {unknown[:5]}")
    for name, shape in expected.items():
        if state[name].shape != shape:
            raise ValueError(f"checkpoint of another model: {name} has shape {tuple(state[name].shape)}, "
                             f"expected {tuple(shape)}")


def require_checkpoint(state: Mapping[str, Tensor], policy: Mapping[str, Tensor],
                       parameters: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless ``state`` has the tensors of `Learner.state_dict` for this policy and its parameters."""
    expected = {POLICY_PREFIX + name: tensor.shape for name, tensor in policy.items()}
    expected |= {f"{CLIP_PREFIX}v/{name}": p.shape for name, p in parameters.items()}
    if any(name.startswith(ADAM_PREFIX) for name in state):  # absent before the first step
        expected |= {f"{ADAM_PREFIX}{kind}/{name}": p.shape if kind != "step" else torch.Size()
                     for name, p in parameters.items() for kind in ("m", "v", "step")}
    require_shapes(state, expected)


def checkpoint_bytes(policy: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> int:
    """Return the bytes of the tensors of `Learner.state_dict` for this policy and its parameters.

    Adam's tensors count. A checkpoint from before the first step lacks them.
    """
    step = torch.float32.itemsize
    moments = sum(3 * parameter.nbytes + step for parameter in parameters.values())  # the clip's v, Adam's m and v
    return sum(tensor.nbytes for tensor in policy.values()) + moments


def checksum(tensors: Iterable[Tensor]) -> int:
    """Return a 48-bit checksum of tensors of any dtype and shape on one device."""
    sums = []
    for tensor in tensors:
        bits = tensor.detach().contiguous().view(-1).view(torch.uint8 if tensor.element_size() % 4 else torch.int32)
        sums.append(bits.sum(dtype=torch.int64))
    return int(sum(torch.stack(sums).tolist())) & (1 << 48) - 1
