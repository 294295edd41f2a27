"""A version prepared for storage: header, chunks, checksums and the digest that identifies it."""

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
    """Digest, file header, size of the data, chunks with their checksums, and the contents."""

    version: int
    digest: str
    header: bytes
    size: int
    runs: Sequence[Sequence[memoryview]]
    sums: Sequence[str]
    contents: Contents

    def record(self, blob: Ref | None = None) -> str:
        """Return the JSON record of the version in the run's state; ``blob`` is its archived copy, if any."""
        more: dict[str, Any] = {} if blob is None else {"blob": blob.digest, "blob_bytes": blob.size}
        _, meta, _ = self.contents
        if meta.get("warming"):
            more["warming"] = True
        return json.dumps({"digest": self.digest, "bytes": self.size, "created_at": time.time(), **more})


def prepare_version(version: int, contents: Contents, config: StoreConfig) -> PreparedVersion:
    """Prepare arrays, metadata and the names of bfloat16 arrays as a version.

    Matrices are converted when ``store.publish_dtype`` is bfloat16. Raises ValueError for contents that cannot be
    stored.
    """
    if version < 0:
        raise ValueError(f"version {version}: versions count from 0")
    given, meta, carried = contents
    tensors, bfloat16 = _convert(given, carried, config)
    index = tensorfile.index_of(tensors, meta, bfloat16)
    runs = tensorfile.split_chunks(tensorfile.pieces_of(index, tensors), config.chunk_bytes)
    header = index.header()
    sums = [checksum(run) for run in runs]
    digest = xxhash.xxh3_128_hexdigest(header + "".join(sums).encode())
    return PreparedVersion(version, digest, header, index.data_bytes, runs, sums, (tensors, meta, bfloat16))


def checksum(pieces: Sequence[memoryview]) -> str:
    """Return the XXH3 of consecutive pieces, 16 hex digits."""
    state = xxhash.xxh3_64()
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()


def _convert(tensors: Mapping[str, Array], bfloat16: Collection[str],
             config: StoreConfig) -> tuple[Mapping[str, Array], Collection[str]]:
    if config.publish_dtype == "float32":
        return tensors, bfloat16
    matrices = {n for n, a in tensors.items() if a.dtype == np.float32 and a.ndim >= 2}
    return ({n: to_bfloat16(a) if n in matrices else a for n, a in tensors.items()}, {*bfloat16, *matrices})


def checked_manifest(row: Any) -> dict[str, Any]:
    """Return a manifest. Raise ValueError, KeyError or TypeError unless its chunks hold the arrays of its header."""
    index = tensorfile.parse_header(row["header"].encode(), row["bytes"])
    step, chunks = int(row["chunk_bytes"]), row["chunks"]
    if step < 1 or len(chunks) != -(-index.data_bytes // step):
        raise ValueError(f"{len(chunks)} chunks of {step} bytes where the arrays need {index.data_bytes}")
    return {**row, "digest": str(row["digest"]), "chunk_bytes": step}
