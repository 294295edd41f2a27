"""Loading of versions from the parameter store into policies on a device."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from dota.spaces import Layout
from five.agent.compute import uses_bfloat16
from five.agent.config import ModelConfig
from five.agent.model.native_actor import freeze, is_supported
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec, MigrationChain
from five.run.migration import BrokenChain, chain_of
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

log = logging.getLogger(__name__)
REDUCED = (nn.Linear, nn.Conv2d, nn.LSTM)  # layers that compute in bfloat16 under autocast, whatever their weights are


class OlderVersions:
    """Versions with earlier schemas of the run, migrated to the current schema by its chain of surgery plans.

    Nothing is written: inference may mount the blob store read-only.
    """

    def __init__(self, chain: MigrationChain, schema: str, layout: str) -> None:
        self._chain = chain
        self._schema = schema
        self._layout = layout

    @classmethod
    def of(cls, state: RunState, record: RunRecord, spec: AgentSpec) -> "OlderVersions | None":
        """Return the older versions of a run, or None if no plan was applied to it. Raise BrokenChain."""
        if not record.chain:
            return None
        return cls(chain_of(record, PlanStore(state).all()), spec.schema, spec.layout.hash)

    def has(self, meta: Mapping[str, Any]) -> bool:
        """Return whether a version with that metadata has an earlier schema."""
        return str(meta.get("schema", self._schema)) != self._schema

    def fetch(self, store: ParameterStore, version: int) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        """Fetch a version and migrate it to the current schema. Raise BrokenChain, and what the store raises."""
        tensors, meta = store.fetch(version)
        try:
            migrated = self._chain.migrate_to_newest(tensors, str(meta["schema"]))
        except ValueError as error:
            raise BrokenChain(f"version {version}: {error}") from None
        log.info("version %d was migrated from schema %s to %s", version, meta.get("schema"), self._schema)
        return migrated, {**meta, "schema": self._schema, "layout": self._layout}


class StoreSource:
    """Version source that reads a ParameterStore.

    ``pinned``: arrays arrive in page-locked memory, one buffer for each thread, valid until that thread's next fetch.
    ``older`` migrates versions with earlier schemas.
    """

    def __init__(self, store: ParameterStore, pinned: bool, older: OlderVersions | None = None) -> None:
        self._store = store
        self._pinned = pinned
        self._older = older
        self._local = threading.local()

    def head(self) -> int | None:
        return self._store.head()

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        records = {version: self._store.record(version) for version in versions}
        return {version: record.digest for version, record in records.items() if record is not None}

    def fetch(self, version: int) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        if self._older is not None and self._older.has(self._store.fetch_meta(version)):
            return self._older.fetch(self._store, version)
        if not self._pinned:
            return self._store.fetch(version, keep_bfloat16=True)
        record = self._store.record(version)
        size = 0 if record is None else record.bytes
        buffer: torch.Tensor | None = getattr(self._local, "buffer", None)
        if buffer is None or buffer.numel() < size:
            buffer = self._local.buffer = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return self._store.fetch(version, keep_bfloat16=True, buffer=buffer.numpy())


class PolicyLoader:
    """Factory of policies of one layout and configuration, which also loads versions into them.

    If the device computes the model in bfloat16, past versions store the weights of their layers in bfloat16. That
    halves their memory and gives the same products as weights that are rounded at each step. Where the native actor
    supports the model, they stay in float32 for it. On a GPU, versions are copied in a separate stream, so that neither
    the copy nor the wait for it delays a batch.
    """

    def __init__(self, layout: Layout, config: ModelConfig, device: torch.device) -> None:
        self._layout = layout
        self._config = config
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def create(self, past: bool = False) -> Policy:
        """Create a policy that a version can be loaded into."""
        policy = Policy(self._layout, self._config).to(self._device).eval()
        if past and uses_bfloat16(self._config, self._device) and not is_supported(policy):
            for module in policy.modules():
                if isinstance(module, REDUCED):
                    module.to(torch.bfloat16)
        if self._device.type == "cuda":
            # Another stream fills it. Waiting for the whole device would break a capture of graphs.
            torch.cuda.current_stream(self._device).synchronize()
        return policy.requires_grad_(False)

    def create_dense(self) -> Policy:
        """Create a policy that CUDA graphs can run: it computes all slots, with weights in the smallest dtype."""
        policy = self.create(past=True)
        policy.dense = True
        return policy

    def nbytes(self, policy: Any) -> int:
        """Return the bytes of the policy's tensors and of its native actor."""
        actor = 0 if policy.actor is None else policy.actor.nbytes
        tensors = sum(t.numel() * t.element_size() for t in (*policy.parameters(), *policy.buffers()))
        return int(tensors + actor)

    def load(self, policy: Any, tensors: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Overwrite all tensors of a policy. Raise ValueError if the version has another layout or model."""
        layout = meta.get("layout", self._layout.hash)
        if layout != self._layout.hash:
            raise ValueError(f"the version was made for layout {layout}, this server has {self._layout.hash}: the "
                             "run's game configuration changed; migrate the version with a surgery plan")
        targets: dict[str, torch.Tensor] = policy.state_dict()
        if targets.keys() != tensors.keys():
            differ = sorted(targets.keys() ^ tensors.keys())
            raise ValueError(f"{len(differ)} tensor names of the version and the model differ: "
                             f"{', '.join(differ[:5])}; use the model configuration that the version was made with")
        carried = set(meta.get("bfloat16", ()))
        with torch.no_grad(), torch.cuda.stream(self._stream):
            for name, target in targets.items():
                target.copy_(_tensor(name, tensors[name], name in carried, target.shape), non_blocking=True)
        if self._stream is not None:
            self._stream.synchronize()
        freeze(policy)


def _tensor(name: str, array: npt.NDArray[Any], bfloat16: bool, shape: torch.Size) -> torch.Tensor:
    if tuple(array.shape) != tuple(shape):
        raise ValueError(f"tensor {name!r} of the version has shape {list(array.shape)}, the model {list(shape)}")
    if not array.flags.writeable:
        array = array.copy()
    tensor = torch.from_numpy(np.asarray(array).view(np.int16) if bfloat16 else np.asarray(array))
    return tensor.view(torch.bfloat16) if bfloat16 else tensor
