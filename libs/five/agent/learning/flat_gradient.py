"""Gradients of all parameters as views of one vector, so that averaging and clipping are one operation each."""

from collections.abc import Mapping

import torch
from torch import Tensor

_ALIGNMENT = 16  # elements; the gradient of a parameter starts at a multiple of it


class FlatGradient:
    """Assigns each parameter's ``grad`` to a view of ``vector``."""

    def __init__(self, parameters: Mapping[str, torch.nn.Parameter], device: torch.device) -> None:
        self._parameters = dict(parameters)
        self._offsets: dict[str, int] = {}
        size = 0
        for name, parameter in self._parameters.items():
            self._offsets[name] = size
            size += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        self.vector = torch.zeros(size, device=device)
        for name, parameter in self._parameters.items():
            parameter.grad = self.view(self.vector, name)

    def view(self, flat: Tensor, name: str) -> Tensor:
        """Return the part of ``flat``, which has the layout of ``vector``, that belongs to a parameter."""
        parameter, start = self._parameters[name], self._offsets[name]
        return flat[start : start + parameter.numel()].view(parameter.shape)

    def spans(self) -> list[tuple[torch.nn.Parameter, int, int]]:
        """Return (parameter, start, end) of each part, in order."""
        return [(parameter, self._offsets[name], self._offsets[name] + parameter.numel())
                for name, parameter in self._parameters.items()]
