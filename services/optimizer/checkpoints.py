"""Checkpoints of the learner: safetensors in the blob store, named by version, whole or not at all."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rapid import tensorfile
from rapid.blobs import BlobStore

PREFIX = "checkpoints/"


class Checkpoints:
    """The newest ``keep`` checkpoints of a run."""

    def __init__(self, blobs: BlobStore, keep: int) -> None:
        self._blobs = blobs
        self._keep = keep

    def versions(self) -> list[int]:
        """Versions that there is a checkpoint of, in order."""
        return [int(name.removeprefix(PREFIX)) for name in self._blobs.refs(PREFIX)]

    def save(self, version: int, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
        """Stores a checkpoint, then forgets those beyond ``keep``."""
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        index = tensorfile.index_of(arrays, dict(extra))
        self._blobs.put([index.header(), *tensorfile.pieces_of(index, arrays)], f"{PREFIX}{version:012d}")
        for old in self.versions()[: -self._keep]:
            self._blobs.remove_ref(f"{PREFIX}{old:012d}")

    def load(self, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and extra values of a checkpoint. Raises BlobMissing, Corrupt, ValueError."""
        arrays, index = tensorfile.parse(self._blobs.get_array(f"{PREFIX}{version:012d}"))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta
