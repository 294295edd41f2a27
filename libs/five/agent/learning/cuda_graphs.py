"""A step's work on a GPU, recorded once as a CUDA graph and replayed: the host asks for one thing instead of thousands.

What is recorded is a sequence of kernels with the addresses that they read and write. So nothing of it may depend on
the data (the policy is `dense`), what changes from step to step has a place of its own that is filled before a replay,
and what it leaves is overwritten by the next one.
"""

import contextlib
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

WARM_UP_RUNS = 2  # steps of each shape that are taken before one is recorded: libraries and Adam make what they keep
MAX_SHAPES = 3  # of batches whose graphs are kept: each holds the memory of a step

Result = TypeVar("Result")


class CaptureError(RuntimeError):
    """The work cannot be recorded, or not be done this way; nothing of it was done."""


@dataclass
class _ShapeGraph(Generic[Result]):
    """``inputs`` are where the work reads a batch, ``result`` is what the graph leaves."""

    inputs: dict[str, Tensor]
    runs: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    result: Result | None = None


class GraphedStep(Generic[Result]):
    """Does ``work`` on batches: recorded and replayed on a GPU, as it is on a CPU.

    Args:
        work: of a batch's tensors, in memory that is the same for all batches of a shape. It may change tensors, but
            nothing on the host, which sees only the runs before a recording and the recording itself.
        device: where the tensors are.
    """

    def __init__(self, work: Callable[[dict[str, Tensor]], Result], device: torch.device) -> None:
        self._work = work
        self._device = device
        self._shapes: dict[tuple[object, ...], _ShapeGraph[Result]] = {}
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, tensors: Mapping[str, Tensor]) -> Result:
        """The work on ``tensors``, which are copied, so that they may be overwritten by what is asked for after it.

        What it returns may be overwritten by the next call. Raises CannotRecord, and what the work raises.
        """
        key = tuple((name, tensor.dtype, *tensor.shape) for name, tensor in sorted(tensors.items()))
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) == MAX_SHAPES:
                self._settle()
                del self._shapes[next(iter(self._shapes))]
            inputs = {name: torch.empty_like(tensor, memory_format=torch.contiguous_format)
                      for name, tensor in tensors.items()}
            shape = self._shapes[key] = _ShapeGraph(inputs)
        for name, tensor in tensors.items():
            shape.inputs[name].copy_(tensor)
        if self._stream is None:
            return self._work(shape.inputs)
        if shape.graph is None and shape.runs < WARM_UP_RUNS:
            shape.runs += 1
            return self._aside(shape, self._stream)
        if shape.graph is None:
            self._record(shape, self._stream)
        assert shape.graph is not None and shape.result is not None
        shape.graph.replay()
        return shape.result

    def forget(self) -> None:
        """Lets go of what was recorded: tensors that the work reads or writes are others now."""
        self._settle()
        self._shapes.clear()

    def _settle(self) -> None:
        """Waits for replays under way, whose memory is given back."""
        if self._stream is not None:
            torch.cuda.synchronize(self._device)

    def _aside(self, shape: _ShapeGraph[Result], stream: torch.cuda.Stream) -> Result:
        """On the stream on which it will be recorded, so that what libraries keep for a stream is there."""
        present = torch.cuda.current_stream(self._device)
        stream.wait_stream(present)
        with torch.cuda.stream(stream):
            result = self._work(shape.inputs)
        present.wait_stream(stream)
        return result

    def _record(self, shape: _ShapeGraph[Result], stream: torch.cuda.Stream) -> None:
        """Records the work; none of it is done. Raises CannotRecord with the reason."""
        present = torch.cuda.current_stream(self._device)
        # A backward pass of another stream whose graph is still somewhere (that of counted operations, say) shares its
        # nodes at the parameters with this one, and would draw that stream into the recording.
        gc.collect()
        graph = torch.cuda.CUDAGraph()
        stream.wait_stream(present)
        try:
            # Other threads bring the next batch to the device meanwhile; what they do is not part of it.
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                shape.result = self._work(shape.inputs)
        except Exception as error:
            # Whatever broke it off, the step can be taken without. torch leaves its stream as the present one, and
            # allocations marked as the graph's, if the end of the recording fails as well.
            torch.cuda.set_stream(present)
            with contextlib.suppress(Exception):
                torch._C._cuda_endAllocateToPool(present.device_index, graph.pool())
            shape.result = None
            cause = error.__context__ if isinstance(error.__context__, Exception) else error
            raise CaptureError(f"{type(cause).__name__}: {cause}") from error
        shape.graph = graph
