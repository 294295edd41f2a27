"""Capture of a step's device work as a CUDA graph, which the host then launches as one operation.

A graph is a sequence of kernels with fixed addresses. So the sequence may not depend on data (the policy is ``dense``),
inputs are copied into fixed tensors before each replay, and each replay overwrites the results of the previous one.
"""

import contextlib
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

WARM_UP_RUNS = 2  # eager runs of a shape before capture, in which libraries and Adam allocate their state
MAX_SHAPES = 3  # batch shapes whose graphs are kept; each holds the memory of a step

Result = TypeVar("Result")


class CaptureError(RuntimeError):
    """The work cannot be captured. None of it was executed."""


@dataclass
class _ShapeGraph(Generic[Result]):
    """Graph of one batch shape. The work reads ``inputs`` and leaves ``result``."""

    inputs: dict[str, Tensor]
    runs: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    result: Result | None = None


class GraphedStep(Generic[Result]):
    """Runs ``work`` on batches: captured and replayed on a GPU, directly on a CPU.

    Args:
        work: function of a batch's tensors, which are the same memory for all batches of a shape. It may change
            tensors but no host state, because it runs on the host only for warm-up and capture.
        device: device of the tensors.
    """

    def __init__(self, work: Callable[[dict[str, Tensor]], Result], device: torch.device) -> None:
        self._work = work
        self._device = device
        self._shapes: dict[tuple[object, ...], _ShapeGraph[Result]] = {}
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, tensors: Mapping[str, Tensor]) -> Result:
        """Run the work on ``tensors``, which are copied and may be overwritten by later device work.

        The next call may overwrite the result. Raise CaptureError, and what the work raises.
        """
        key = tuple((name, tensor.dtype, *tensor.shape) for name, tensor in sorted(tensors.items()))
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) == MAX_SHAPES:
                self._synchronize()
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
            return self._warm_up(shape, self._stream)
        if shape.graph is None:
            self._capture(shape, self._stream)
        assert shape.graph is not None and shape.result is not None
        shape.graph.replay()
        return shape.result

    def reset(self) -> None:
        """Drop all graphs, because tensors that the work uses were replaced."""
        self._synchronize()
        self._shapes.clear()

    def _synchronize(self) -> None:
        """Wait for running replays before their memory is freed."""
        if self._stream is not None:
            torch.cuda.synchronize(self._device)

    def _warm_up(self, shape: _ShapeGraph[Result], stream: torch.cuda.Stream) -> Result:
        """Run the work on the capture stream, so that libraries allocate their state for that stream."""
        current = torch.cuda.current_stream(self._device)
        stream.wait_stream(current)
        try:
            with torch.cuda.stream(stream):
                return self._work(shape.inputs)
        finally:
            # After an error too: the caller repeats the work in the current stream, in the same memory.
            current.wait_stream(stream)

    def _capture(self, shape: _ShapeGraph[Result], stream: torch.cuda.Stream) -> None:
        """Capture the work without executing it. Raise CaptureError with the reason."""
        current = torch.cuda.current_stream(self._device)
        # A backward pass of another stream whose autograd graph is alive (as in FLOP counting) shares its nodes at the
        # parameters with this one, and would pull that stream into the capture.
        gc.collect()
        graph = torch.cuda.CUDAGraph()
        stream.wait_stream(current)
        try:
            # Other threads transfer the next batch meanwhile, which must not be captured.
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                shape.result = self._work(shape.inputs)
        except Exception as error:
            # The step can still run without a graph. torch leaves its stream as the current one, and allocations marked
            # as the graph's, if the end of the capture fails as well.
            torch.cuda.set_stream(current)
            with contextlib.suppress(Exception):
                torch._C._cuda_endAllocateToPool(current.device_index, graph.pool())
            shape.result = None
            cause = error.__context__ if isinstance(error.__context__, Exception) else error
            raise CaptureError(f"{type(cause).__name__}: {cause}") from error
        shape.graph = graph
