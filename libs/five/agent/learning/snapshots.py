"""Asynchronous copies of device tensors to the host, concurrent with the steps that change them."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from five.agent.learning.samples import Array


class Snapshot:
    """Copies of tensors at one point of the device's work. `arrays` may be called on any thread."""

    def __init__(self, copies: Mapping[str, Tensor], fetch: Callable[[Mapping[str, Tensor]], dict[str, Array]]) -> None:
        self._copies = dict(copies)
        self._fetch = fetch
        self._arrays: dict[str, Array] | None = None
        self.nbytes = sum(tensor.nbytes for tensor in self._copies.values())

    def arrays(self) -> dict[str, Array]:
        """Return the tensors on the host, by name. Repeated calls return the same arrays.

        On a GPU the next snapshot of the same `SnapshotCopier` overwrites them.
        """
        if self._arrays is None:
            self._arrays = self._fetch(self._copies)
            self._copies.clear()  # frees the device memory
        return self._arrays


class SnapshotCopier:
    """Copies tensors on the device, and later to the host; one snapshot at a time.

    On a GPU the device copies run in the order of the device's work. The host copies run in a separate stream into
    page-locked memory that is reused. Neither delays a step. On a CPU the copies are host memory already.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: dict[str, Tensor] = {}
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def copy(self, tensors: Mapping[str, Tensor]) -> Snapshot:
        """Return a snapshot of ``tensors``, copied in the current stream."""
        return self.from_copies({name: tensor.detach().clone() for name, tensor in tensors.items()})

    def from_copies(self, copies: Mapping[str, Tensor]) -> Snapshot:
        """Return a snapshot of ``copies``, which must not change afterwards."""
        stream = self._stream
        if stream is None:
            return Snapshot(copies, lambda tensors: {name: tensor.numpy() for name, tensor in tensors.items()})
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record(torch.cuda.current_stream(self._device))
        return Snapshot(copies, lambda tensors: self._fetch(tensors, stream, copied))

    def _fetch(self, tensors: Mapping[str, Tensor], stream: torch.cuda.Stream, copied: torch.cuda.Event
               ) -> dict[str, Array]:
        with torch.cuda.stream(stream):
            stream.wait_event(copied)
            for name in self._memory.keys() - tensors.keys():
                del self._memory[name]
            for name, tensor in tensors.items():
                target = self._memory.get(name)
                if target is None or target.shape != tensor.shape or target.dtype != tensor.dtype:
                    target = self._memory[name] = torch.empty(tensor.shape, dtype=tensor.dtype,
                                                              pin_memory=self._device.type == "cuda")
                target.copy_(tensor, non_blocking=True)
            fetched = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            fetched.record(stream)
        fetched.synchronize()  # sleeps, so that the training thread has the processor
        return {name: self._memory[name].numpy() for name in tensors}
