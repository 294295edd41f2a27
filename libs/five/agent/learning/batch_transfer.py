"""Transfer of batches to the device; on a GPU in a copy stream that overlaps with the running step."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.learning.samples import Array

BATCHES_IN_FLIGHT = 2  # the batch of the running step and the next one


class MovableIndex(Protocol):
    """Indices that a policy computed from a batch on the host (five.agent.model.batch_index.BatchIndex)."""

    def tensors(self) -> tuple[Tensor, ...]: ...

    def moved(self, tensors: tuple[Tensor, ...]) -> Any: ...


@dataclass
class _DeviceSlot:
    """Memory of one batch on the device. ``last_read``: event at the end of the last step that read it."""

    tensors: dict[str, Tensor]
    last_read: torch.cuda.Event | None = None


@dataclass(frozen=True)
class DeviceBatch:
    """A batch on the device, or in transfer to it: ``tensors`` by name and ``index``, the policy's indices.

    Call ``acquire`` before the batch is read, and ``release`` after the work that reads it was launched.
    """

    tensors: dict[str, Tensor]
    index: Any
    acquire: Callable[[], None] = lambda: None
    release: Callable[[], None] = lambda: None


class BatchTransfer:
    """Copies batches to a device, in order, on one thread.

    On a GPU the copies run in a separate stream into one of two slots. A slot is reused once the step that read it has
    finished, so the next batch is copied during a step. Source arrays should be page-locked, and may be overwritten
    after `wait`. On a CPU nothing is copied.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copies: deque[torch.cuda.Event] = deque()
        self._slots = deque(_DeviceSlot({}) for _ in range(BATCHES_IN_FLIGHT))
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a zeroed source array, in page-locked memory if the device is a GPU."""
        if self._stream is None:
            return np.zeros(shape, dtype)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array: Array = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)
        return array

    def wait(self, in_flight: int = BATCHES_IN_FLIGHT - 1) -> None:
        """Wait until at most ``in_flight`` batches are being copied; the arrays of the others may be overwritten."""
        while len(self._copies) > in_flight:
            self._copies.popleft().synchronize()

    def start(self, arrays: Mapping[str, Array | Tensor], index: MovableIndex | None) -> DeviceBatch:
        """Start to copy ``arrays`` and ``index``. Return at once if the arrays are page-locked."""
        tensors = {name: array if isinstance(array, Tensor) else torch.from_numpy(array)
                   for name, array in arrays.items()}
        if self._stream is None:
            return DeviceBatch({name: tensor.to(self._device) for name, tensor in tensors.items()}, index)
        return self._copy(self._stream, tensors, index)

    def _copy(self, stream: torch.cuda.Stream, tensors: dict[str, Tensor], index: MovableIndex | None
              ) -> DeviceBatch:
        slot = self._slots[0]
        self._slots.rotate(-1)
        with torch.cuda.stream(stream):
            if slot.last_read is not None:
                stream.wait_event(slot.last_read)
            for name in slot.tensors.keys() - tensors.keys():
                del slot.tensors[name]
            for name, tensor in tensors.items():
                target = slot.tensors.get(name)
                if target is None or target.shape != tensor.shape or target.dtype != tensor.dtype:
                    target = slot.tensors[name] = torch.empty_like(tensor, device=self._device)
                target.copy_(tensor, non_blocking=True)
            indices: tuple[Tensor, ...] = ()
            if index is not None:
                # Their sizes differ between batches, so they are not copied into the slot.
                indices = tuple(t.pin_memory().to(self._device, non_blocking=True) for t in index.tensors())
                index = index.moved(indices)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record(stream)
        self._copies.append(copied)

        def acquire() -> None:
            reading = torch.cuda.current_stream(self._device)
            reading.wait_event(copied)
            for tensor in (*slot.tensors.values(), *indices):
                tensor.record_stream(reading)

        def release() -> None:
            slot.last_read = torch.cuda.Event()  # type: ignore[no-untyped-call]
            slot.last_read.record(torch.cuda.current_stream(self._device))

        return DeviceBatch(dict(slot.tensors), index, acquire, release)
