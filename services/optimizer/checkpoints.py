"""Checkpoints of the learner: safetensors in the blob store, named by version, whole or not at all."""

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)


class Checkpoints:
    """The newest ``keep`` checkpoints of a run. Runs may share a blob store: their names keep them apart."""

    def __init__(self, blobs: BlobStore, run: str, keep: int) -> None:
        self._blobs = blobs
        self._keep = keep
        self._prefix = f"{run}/checkpoints/"

    def versions(self) -> list[int]:
        """Versions that there is a checkpoint of, in order."""
        return [int(name.removeprefix(self._prefix)) for name in self._blobs.refs(self._prefix)]

    def save(self, version: int, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
        """Stores a checkpoint, then forgets those beyond ``keep``."""
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        index = tensorfile.index_of(arrays, dict(extra))
        self._blobs.put([index.header(), *tensorfile.pieces_of(index, arrays)], f"{self._prefix}{version:012d}")
        for old in self.versions()[: -self._keep]:
            self._blobs.remove_ref(f"{self._prefix}{old:012d}")

    def newest(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that can be read, damaged ones passed over, as version, tensors and extra values;
        None when there is none at all.

        Raises Corrupt when there are some and none can be read: going on from nothing would lose the run.
        """
        errors = []
        for version in reversed(self.versions()):
            try:
                return version, *self.load(version)
            except (Corrupt, BlobMissing, ValueError) as error:
                log.warning("the checkpoint of version %d cannot be read: %s", version, error)
                errors.append(f"version {version}: {error}")
        if errors:
            raise Corrupt(f"no checkpoint can be read: {'; '.join(errors)}")
        return None

    def load(self, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and extra values of a checkpoint. Raises BlobMissing, Corrupt, ValueError."""
        arrays, index = tensorfile.parse(self._blobs.get_array(f"{self._prefix}{version:012d}"))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta
