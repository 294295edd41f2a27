"""The way of tensors from the device to the host, beside the steps that change them."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from five.agent.learning.samples import Array


class Snapshot:
    """Tensors as they were when it was taken. `arrays` may be called on another thread than the one that took it."""

    def __init__(self, copies: Mapping[str, Tensor], bring: Callable[[Mapping[str, Tensor]], dict[str, Array]]) -> None:
        self._copies = dict(copies)
        self._bring = bring
        self._arrays: dict[str, Array] | None = None
        self.nbytes = sum(tensor.nbytes for tensor in self._copies.values())

    def arrays(self) -> dict[str, Array]:
        """The tensors on the host, by name and in their shapes and dtypes; called again, the same arrays.

        On a GPU they lie in memory that the next snapshot taken by the same `SnapshotCopier` is brought to.
        """
        if self._arrays is None:
            self._arrays = self._bring(self._copies)
            self._copies.clear()  # the device has its memory back
        return self._arrays


class SnapshotCopier:
    """Takes tensors as they are, and brings them to the host later: one snapshot at a time.

    On a GPU they are copied in the order of the device's work, which the host does not wait for, and brought through a
    stream of their own into page-locked memory that is kept: neither holds up a step. On a CPU the copies are brought
    already.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: dict[str, Tensor] = {}
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def take(self, tensors: Mapping[str, Tensor]) -> Snapshot:
        """The tensors as they are now, in the work of this thread's stream."""
        return self.keep({name: tensor.detach().clone() for name, tensor in tensors.items()})

    def keep(self, copies: Mapping[str, Tensor]) -> Snapshot:
        """As `take`, of tensors that are copies already, which nobody changes any more."""
        stream = self._stream
        if stream is None:
            return Snapshot(copies, lambda tensors: {name: tensor.numpy() for name, tensor in tensors.items()})
        taken = torch.cuda.Event()  # type: ignore[no-untyped-call]
        taken.record(torch.cuda.current_stream(self._device))
        return Snapshot(copies, lambda tensors: self._bring(tensors, stream, taken))

    def _bring(self, tensors: Mapping[str, Tensor], stream: torch.cuda.Stream, taken: torch.cuda.Event
               ) -> dict[str, Array]:
        with torch.cuda.stream(stream):
            stream.wait_event(taken)
            for name in self._memory.keys() - tensors.keys():
                del self._memory[name]
            for name, tensor in tensors.items():
                place = self._memory.get(name)
                if place is None or place.shape != tensor.shape or place.dtype != tensor.dtype:
                    place = self._memory[name] = torch.empty(tensor.shape, dtype=tensor.dtype,
                                                             pin_memory=self._device.type == "cuda")
                place.copy_(tensor, non_blocking=True)
            brought = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            brought.record(stream)
        brought.synchronize()  # by sleeping: what learns has the processor
        return {name: self._memory[name].numpy() for name in tensors}
