"""The forward pass on a GPU. The host waits only for the results."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from five.services.inference.forward import Forward, HostForward, VersionRows, flatten_outputs, policy_debug
from five.services.inference.graphs import Graphs, Specs, bucket_of, synchronize
from five.services.inference.models import ResidentVersion
from five.services.inference.requests import Arrays, Request
from five.services.inference.sessions import SessionTable
from five.services.inference.staging import StagedArrays, Stager, to_device

log = logging.getLogger(__name__)
Tensors = dict[str, torch.Tensor]


class DeviceForward:
    """Forward passes on a device.

    Requests are staged as they arrive. Batches run in their own CUDA stream, as CUDA graphs where ``graphs`` provides
    them. Results are copied through page-locked memory with one wait for all of them. ``dtypes`` are those of the
    observations. Greedy and replayed rows run kernel by kernel, because they are few. On a CPU (in tests) the same
    code runs without streams.
    """

    packed = True

    def __init__(self, table: SessionTable, device: torch.device, seed: int, dtypes: Mapping[str, npt.DTypeLike],
                 graphs: Callable[[], Graphs] | None = None) -> None:
        self._table = table
        self._device = device
        self._dtypes = {name: torch.from_numpy(np.empty(0, dtype)).dtype for name, dtype in dtypes.items()}
        self._generator = torch.Generator(device)
        self._generator.manual_seed(seed)
        self._create_graphs = graphs
        self._graphs: Graphs | None = None
        self._stager = Stager(device)
        self._cuda = device.type == "cuda"

    def prepare(self, beat: Callable[[], None]) -> None:
        """Capture the graphs. If that fails, log it once and run batches kernel by kernel."""
        if self._cuda:
            synchronize(self._device)  # the table was created in another stream
            self._take_stream()
        if self._create_graphs is None:
            return
        try:
            graphs = self._create_graphs()
            beat()
            graphs.capture(beat)
        except Exception as error:
            log.warning("capturing CUDA graphs failed (%s: %s). Batches run kernel by kernel, which is slower for "
                        "small ones. compute.cuda_graphs=false disables the attempt", type(error).__name__, error)
            if self._cuda:
                self._take_stream()  # a new stream has no trace of the failed capture
            return
        self._graphs = graphs
        log.info("forward passes of up to %d team-steps run as CUDA graphs", graphs.buckets[-1])

    def _take_stream(self) -> None:
        """Give this thread a CUDA stream of its own."""
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        for storage in self._table.storage.values():
            storage.record_stream(stream)  # otherwise its memory would be reused too early when the table grows
        torch.cuda.set_stream(stream)

    def stage(self, request: Request) -> None:
        """Begin to copy the observations of a request to the device, and release the host's arrays."""
        request.staged = self._stager.stage(request.observations)
        request.observations = {}

    def join(self, requests: Sequence[Request]) -> Tensors:
        """Return the arrays of the batch on the device."""
        staged: list[StagedArrays] = [request.staged for request in requests if request.staged is not None]
        with torch.inference_mode():
            return self._stager.join(staged)

    def launch(self, served: ResidentVersion, batch: Tensors, part: VersionRows) -> Callable[[], Arrays]:
        """Queue the forward pass on the device. The returned function waits for the results."""
        count = len(part.slots)
        with torch.inference_mode():
            index = to_device(part.slots, self._device)
            rows = None if part.rows is None else to_device(part.rows, self._device)
            graphs = self._graphs
            if (graphs is not None and not part.greedy and part.replayed is None
                    and bucket_of(count, graphs.buckets) is not None):
                graphs.load(served)
                before = self._table.gather_at(index, graphs.fill(batch, rows, count))
                acted = graphs.run(count)
            else:
                before = self._table.gather_at(index)
                acted = self._run_eagerly(served, batch, rows, before, part)
            wanted: Tensors = {"results": _pack_results(acted)}
            if part.want.any():
                of = to_device(np.flatnonzero(part.want), self._device)
                wanted |= {f"state/{name}": state.index_select(0, of) for name, state in before.items()}
                wanted |= {name: head.index_select(0, of) for name, head in acted.items() if name.startswith("aux/")}
            if part.want_debug.any():
                of = to_device(np.flatnonzero(part.want_debug), self._device)
                wanted |= {f"debug/{name}": shown.half() for name, shown in policy_debug(acted, of).items()}
            self._table.scatter_at(index, {name[6:]: state for name, state in acted.items()
                                           if name.startswith("state/")})
            return self._fetch(wanted)

    def _run_eagerly(self, served: ResidentVersion, batch: Tensors, rows: torch.Tensor | None, before: Tensors,
                     part: VersionRows) -> Tensors:
        """Run one forward pass without a CUDA graph."""
        if rows is not None:
            batch = {name: array.index_select(0, rows) for name, array in batch.items()}
        seen = {name: array.view(self._dtypes[name]) for name, array in batch.items()}
        replay = None if part.replayed is None else to_device(part.replayed, self._device)
        return flatten_outputs(served.policy.act(seen, before, generator=self._generator, greedy=part.greedy,
                                                 replay=replay))

    def _fetch(self, wanted: Tensors) -> Callable[[], Arrays]:
        host = {name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=self._cuda)
                for name, tensor in wanted.items()}
        for name, tensor in wanted.items():
            host[name].copy_(tensor, non_blocking=True)
        done: torch.cuda.Event | None = None
        if self._cuda:
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(torch.cuda.current_stream(self._device))

        def arrays() -> Arrays:
            if done is not None:
                done.synchronize()
            out = {name: tensor.numpy() for name, tensor in host.items()}
            return out | _unpack_results(out.pop("results"))

        return arrays


def forward_on(device: torch.device, table: SessionTable, seed: int, observations: Specs, states: Specs, max_batch: int,
               dense: Callable[[], Any] | None) -> Forward:
    """Create the forward pass of a server on ``device``.

    ``observations`` and ``states`` give shape and dtype of each array of one team-step. ``dense`` creates the policy
    that CUDA graphs run; None disables graphs.
    """
    if device.type != "cuda":
        return HostForward(table, seed)

    def graphs() -> Graphs:
        assert dense is not None
        return Graphs(dense(), observations, states, max_batch, device, seed + 1)

    return DeviceForward(table, device, seed, {name: dtype for name, (_, dtype) in observations.items()},
                         None if dense is None else graphs)


def _pack_results(acted: Tensors) -> torch.Tensor:
    """Pack log-probabilities, values and actions bit for bit into int32 [n, H, 5], so that one copy transfers them."""
    one = (acted["logp"].float().view(torch.int32)[..., None], acted["values"].float().view(torch.int32)[..., None],
           acted["actions"].contiguous().view(torch.int32))
    return torch.cat(one, -1)


def _unpack_results(words: npt.NDArray[np.int32]) -> Arrays:
    """Unpack the words that `_pack_results` packed."""
    return {"logp": np.ascontiguousarray(words[..., 0]).view(np.float32),
            "values": np.ascontiguousarray(words[..., 1]).view(np.float32),
            "actions": np.ascontiguousarray(words[..., 2:]).view(np.int16)}
