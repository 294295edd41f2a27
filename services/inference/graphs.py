"""CUDA graphs of one policy's forward pass: hundreds of kernels in one launch. Launches bound small batches.

A graph reads and writes fixed memory. All versions therefore share the graphs of one policy. Before another version
plays, its parameters are copied into that policy on the device, which takes a fraction of a millisecond. There is one
graph for each of a few batch sizes. A batch is padded to the next size with team-steps in which everything is absent.
"""

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from five.services.inference.forward import flatten_outputs
from five.services.inference.models import ResidentVersion
from five.services.inference.staging import device_dtype

Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
Tensors = dict[str, torch.Tensor]
MAX_ROWS = 1024  # above it, launches are a small part of a forward pass
WARM_UPS = 2  # passes before a capture, in which libraries choose kernels and allocate memory
_capturing = threading.Lock()  # one at a time in a process


def buckets_of(max_batch: int) -> list[int]:
    """Return the batch sizes that have a graph: powers of two, and ``max_batch`` itself, up to MAX_ROWS."""
    most = min(max_batch, MAX_ROWS)
    return [*(1 << i for i in range((most - 1).bit_length())), most]


def bucket_of(rows: int, buckets: list[int]) -> int | None:
    """Return the smallest batch size that holds ``rows``, or None if all are too small."""
    return next((bucket for bucket in buckets if bucket >= rows), None)


def synchronize(device: torch.device) -> None:
    """Wait for everything that is queued on a device. A capture fails while other work is queued."""
    with _capturing:
        torch.cuda.synchronize(device)


class CannotCapture(Exception):
    """Error of a forward pass that a graph cannot hold, or that does not fit in device memory."""


class Graphs:
    """CUDA graphs of the forward pass of ``policy``.

    The policy's ``act`` must have no sizes that depend on data and must never wait for the host (`Policy.dense`). The
    thread that captures the graphs must also run them. ``observations`` and ``states`` give shape and dtype of each
    array of one team-step. On a CPU the same code runs kernel by kernel, without graphs.
    """

    def __init__(self, policy: Any, observations: Specs, states: Specs, max_batch: int, device: torch.device,
                 seed: int) -> None:
        self._policy = policy
        self._device = device
        self.buckets = buckets_of(max_batch)
        self.generator = torch.Generator(device)
        self.generator.manual_seed(seed)
        most = self.buckets[-1]
        self.inputs = {name: torch.zeros((most, *shape), dtype=device_dtype(np.dtype(dtype)), device=device)
                       for name, (shape, dtype) in observations.items()}
        # The policy reads the same memory with the layout's dtypes.
        self._seen = {name: self.inputs[name].view(torch.from_numpy(np.empty(0, dtype)).dtype)
                      for name, (_, dtype) in observations.items()}
        self.states = {name: torch.zeros((most, *shape), device=device) for name, (shape, _) in states.items()}
        self.outputs: Tensors = {}
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._loaded: Callable[[], ResidentVersion | None] = lambda: None

    def capture(self, beat: Callable[[], None] = lambda: None) -> None:
        """Capture the graphs in the stream of this thread, the largest first, so that the others fit into its memory.

        ``beat`` is called after each. Raise CannotCapture with the reason.
        """
        pool: Any = None
        for rows in reversed(self.buckets):
            for _ in range(WARM_UPS):
                self._pass(rows)
            if self._device.type == "cuda":
                graph = self._captured(rows, pool)
                pool = pool or graph.pool()
                self._graphs[rows] = graph
            beat()

    def _captured(self, rows: int, pool: Any) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.current_stream(self._device)
        with _capturing:
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            try:
                # Other threads may stage requests and load versions during the capture.
                with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                    self._pass(rows)
            except Exception as error:
                # If the end of the capture fails too, torch leaves allocations marked as the graph's.
                with contextlib.suppress(Exception):
                    torch._C._cuda_endAllocateToPool(self._device.index or 0, graph.pool())
                cause = error.__context__ if isinstance(error.__context__, Exception) else error
                raise CannotCapture(f"{rows} team-steps: {type(cause).__name__}: {cause}") from error
        return graph

    def load(self, served: ResidentVersion) -> None:
        """Copy the parameters of ``served`` into the graphs' policy for the next pass."""
        if self._loaded() is served:
            return
        self._loaded = lambda: None
        new = served.policy.state_dict()  # type: ignore[attr-defined]
        kinds: dict[tuple[torch.dtype, torch.dtype], tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
        for name, held in self._policy.state_dict().items():
            into, of = kinds.setdefault((held.dtype, new[name].dtype), ([], []))
            into.append(held)
            of.append(new[name])
        with torch.no_grad():
            for into, of in kinds.values():
                torch._foreach_copy_(into, of)  # a few kernels for all tensors of a dtype
        self._loaded = weakref.ref(served)

    def fill(self, batch: Mapping[str, torch.Tensor], rows: torch.Tensor | None, count: int) -> Tensors:
        """Copy ``count`` team-steps of a batch (``rows`` int64 [count] of it, None: all) into the graph, padded to its
        size.

        Return the tensors [count, ...] into which the states before the step must be written.
        """
        bucket = bucket_of(count, self.buckets)
        assert bucket is not None
        for name, array in batch.items():
            if rows is None:
                self.inputs[name][:count].copy_(array)
            else:
                torch.index_select(array, 0, rows, out=self.inputs[name][:count])
        if count < bucket:
            for tensor in (*self.inputs.values(), *self.states.values()):
                tensor[count:bucket].zero_()
        return {name: state[:count] for name, state in self.states.items()}

    def run(self, count: int) -> Tensors:
        """Run the graph on the ``count`` team-steps filled in. Return the outputs of `flatten_outputs`.

        They are valid until the next run.
        """
        bucket = bucket_of(count, self.buckets)
        assert bucket is not None
        graph = self._graphs.get(bucket)
        if graph is None:
            self._pass(bucket)
        else:
            graph.replay()
        return {name: out[:count] for name, out in self.outputs.items()}

    @torch.inference_mode()
    def _pass(self, rows: int) -> None:
        acted = flatten_outputs(self._policy.act({name: array[:rows] for name, array in self._seen.items()},
                                                 {name: state[:rows] for name, state in self.states.items()},
                                                 generator=self.generator))
        if not self.outputs:
            most = self.buckets[-1]
            self.outputs = {name: torch.zeros((most, *out.shape[1:]), dtype=out.dtype, device=self._device)
                            for name, out in acted.items()}
        for name, out in acted.items():
            self.outputs[name][:rows].copy_(out)
