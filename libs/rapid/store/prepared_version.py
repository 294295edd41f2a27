"""A version made ready to be stored: its file's header, its pieces and the digest that it is known by."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from rapid import tensorfile
from rapid.bfloat16 import to_bfloat16
from rapid.blobs import Ref
from rapid.config import StoreConfig
from rapid.store.archive import Contents

Array = npt.NDArray[Any]


class PreparedVersion(NamedTuple):
    """Digest, file header, bytes of data, chunks (runs of pieces) and their checksums, and what it was made of."""

    version: int
    digest: str
    header: bytes
    size: int
    runs: Sequence[Sequence[memoryview]]
    sums: Sequence[str]
    contents: Contents

    def record(self, blob: Ref | None = None) -> str:
        """The JSON that the run remembers of the version; ``blob`` is where it is archived, if it is."""
        more: dict[str, Any] = {} if blob is None else {"blob": blob.digest, "blob_bytes": blob.size}
        _, meta, _ = self.contents
        if meta.get("warming"):
            more["warming"] = True
        return json.dumps({"digest": self.digest, "bytes": self.size, "created_at": time.time(), **more})


def prepare_version(version: int, contents: Contents, config: StoreConfig) -> PreparedVersion:
    """The version of these arrays, metadata and names of bfloat16 arrays; matrices are converted where
    ``store.publish_dtype`` says so. Raises ValueError for what cannot be stored."""
    if version < 0:
        raise ValueError(f"version {version}: versions count from 0")
    given, meta, carried = contents
    tensors, bfloat16 = _converted(given, carried, config)
    index = tensorfile.index_of(tensors, meta, bfloat16)
    runs = tensorfile.cut(tensorfile.pieces_of(index, tensors), config.chunk_bytes)
    header = index.header()
    sums = [checksum(run) for run in runs]
    digest = xxhash.xxh3_128_hexdigest(header + "".join(sums).encode())
    return PreparedVersion(version, digest, header, index.data_bytes, runs, sums, (tensors, meta, bfloat16))


def checksum(pieces: Sequence[memoryview]) -> str:
    """XXH3 of pieces one after another, 16 hex digits."""
    state = xxhash.xxh3_64()
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()


def _converted(tensors: Mapping[str, Array], bfloat16: Collection[str],
               config: StoreConfig) -> tuple[Mapping[str, Array], Collection[str]]:
    if config.publish_dtype == "float32":
        return tensors, bfloat16
    matrices = {n for n, a in tensors.items() if a.dtype == np.float32 and a.ndim >= 2}
    return ({n: to_bfloat16(a) if n in matrices else a for n, a in tensors.items()}, {*bfloat16, *matrices})
