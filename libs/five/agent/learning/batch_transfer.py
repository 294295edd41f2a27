"""The way of a batch to the device: on a GPU through a copy stream of its own, beside the step under way."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.learning.samples import Array

BATCHES_IN_FLIGHT = 2  # batches under way at most: the one that is learned from, and the next


class TransferableRows(Protocol):
    """What was found in a batch beforehand (five.agent.model.found.Found)."""

    def tensors(self) -> tuple[Tensor, ...]: ...

    def moved(self, tensors: tuple[Tensor, ...]) -> Any: ...


@dataclass
class _DeviceSlot:
    """Memory of one batch on the device. ``left``: when the step that read it last is over."""

    tensors: dict[str, Tensor]
    left: torch.cuda.Event | None = None


@dataclass(frozen=True)
class DeviceBatch:
    """A batch on its device, or on its way there: ``tensors`` by name, ``found`` as the policy found it.

    `arrive` has to be called before it is read, `leave` after the work that reads it was asked for.
    """

    tensors: dict[str, Tensor]
    found: Any
    arrive: Callable[[], None] = lambda: None
    leave: Callable[[], None] = lambda: None


class BatchTransfer:
    """Brings batches to a device, in order, on any one thread.

    On a GPU the copies go through a stream of their own into one of two places, each reused once the step that read it
    is over: the next batch is copied while a step is computed, and neither waits for the host. Source arrays should
    be page-locked, and may be filled again as `settle` says. On a CPU nothing is copied.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copied: deque[torch.cuda.Event] = deque()
        self._places = deque(_DeviceSlot({}) for _ in range(BATCHES_IN_FLIGHT))
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A zeroed array to bring from: in page-locked memory when the device is a GPU."""
        if self._stream is None:
            return np.zeros(shape, dtype)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array: Array = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)
        return array

    def settle(self, under_way: int = BATCHES_IN_FLIGHT - 1) -> None:
        """Waits until at most so many of the batches begun last are still being copied: the arrays of the others may
        be filled again."""
        while len(self._copied) > under_way:
            self._copied.popleft().synchronize()

    def begin(self, arrays: Mapping[str, Array | Tensor], found: TransferableRows | None) -> DeviceBatch:
        """Begins to copy ``arrays`` and what was found in them. Returns at once where the arrays are page-locked."""
        tensors = {name: array if isinstance(array, Tensor) else torch.from_numpy(array)
                   for name, array in arrays.items()}
        if self._stream is None:
            return DeviceBatch({name: tensor.to(self._device) for name, tensor in tensors.items()}, found)
        return self._copy(self._stream, tensors, found)

    def _copy(self, stream: torch.cuda.Stream, tensors: dict[str, Tensor], found: TransferableRows | None) -> DeviceBatch:
        place = self._places[0]
        self._places.rotate(-1)
        with torch.cuda.stream(stream):
            if place.left is not None:
                stream.wait_event(place.left)
            for name in place.tensors.keys() - tensors.keys():
                del place.tensors[name]
            for name, tensor in tensors.items():
                target = place.tensors.get(name)
                if target is None or target.shape != tensor.shape or target.dtype != tensor.dtype:
                    target = place.tensors[name] = torch.empty_like(tensor, device=self._device)
                target.copy_(tensor, non_blocking=True)
            indices: tuple[Tensor, ...] = ()
            if found is not None:
                # Their sizes are those of what is present: each batch's own.
                indices = tuple(t.pin_memory().to(self._device, non_blocking=True) for t in found.tensors())
                found = found.moved(indices)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record(stream)
        self._copied.append(copied)

        def arrive() -> None:
            reading = torch.cuda.current_stream(self._device)
            reading.wait_event(copied)
            for tensor in (*place.tensors.values(), *indices):
                tensor.record_stream(reading)

        def leave() -> None:
            place.left = torch.cuda.Event()  # type: ignore[no-untyped-call]
            place.left.record(torch.cuda.current_stream(self._device))

        return DeviceBatch(dict(place.tensors), found, arrive, leave)
