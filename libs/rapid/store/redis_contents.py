"""Contents of a run's versions in the params Redis: chunks of bytes, and a manifest that lists them."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import redis

from rapid import tensorfile
from rapid.config import StoreConfig
from rapid.store import bulk_transfer
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.node_cache import NodeCache
from rapid.store.prepared_version import PreparedVersion, checked_manifest, checksum
from rapid.store.rows import decode_row

Array = npt.NDArray[Any]


class RedisContents:
    """Stored contents, each identified by its version and digest: a version that lost a failover may be made again
    with others.

    Whether a run has a version is decided by its record in the state Redis (`ParameterStore`). Methods raise
    redis.RedisError when the params Redis fails.
    """

    def __init__(self, params: redis.Redis, keys: Keys, config: StoreConfig) -> None:
        self._redis = params
        self._keys = keys
        self._config = config
        self._cache = NodeCache(Path(config.node_folder), keys.run) if config.node_folder else None

    def upload(self, ready: PreparedVersion) -> None:
        """Write chunks, which expire unless the manifest follows within ``store.upload_seconds``, then the manifest.
        Change nothing if the manifest is there."""
        version, digest = ready.version, ready.digest
        if self.manifest(version, digest) is not None:
            return
        names = [self._keys.chunk(version, digest, i) for i in range(len(ready.runs))]
        bulk_transfer.set_values(self._redis, list(zip(names, ready.runs, strict=True)),
                                 int(self._config.upload_seconds * 1000))
        manifest = json.dumps({
            "version": version, "digest": digest, "bytes": ready.size, "chunk_bytes": self._config.chunk_bytes,
            "chunks": list(ready.sums), "header": ready.header[8:].decode(), "created_at": time.time()})
        pipeline: Any = self._redis.pipeline(transaction=True)
        for name in names:
            pipeline.exists(name)  # PERSIST replies 0 when it is repeated after a lost reply
        for name in names:
            pipeline.persist(name)
        pipeline.set(self._keys.manifest(version, digest), manifest)
        pipeline.zadd(self._keys.stored_versions, {f"{version}:{digest}": version})
        lost = len(names) - sum(pipeline.execute()[:len(names)])
        if lost:
            self.expire(version, digest, 0)
            raise redis.RedisError(
                f"{lost} of {len(names)} chunks of version {version} were gone before the publish ended: the params "
                "Redis evicts or restarted, or store.upload_seconds is too short")

    def expire(self, version: int, digest: str, grace_seconds: float) -> None:
        """Remove contents after their readers' grace period. They are no longer listed from now on."""
        manifest = self.manifest(version, digest)
        pipeline: Any = self._redis.pipeline(transaction=True)
        if manifest is not None:
            names = [self._keys.chunk(version, digest, i) for i in range(len(manifest["chunks"]))]
            for name in (self._keys.manifest(version, digest), *names):
                pipeline.pexpire(name, max(int(grace_seconds * 1000), 1))
        pipeline.zrem(self._keys.stored_versions, f"{version}:{digest}")
        pipeline.execute()

    def versions(self) -> list[tuple[int, str]]:
        """Return version and digest of the stored contents, in order of versions."""
        values: Any = self._redis.zrange(self._keys.stored_versions, 0, -1)
        pairs = [value.decode().split(":") for value in values]
        return [(int(version), digest) for version, digest in pairs]

    def manifest(self, version: int, digest: str) -> dict[str, Any] | None:
        """Return the checked manifest of these contents; None if they are not stored."""
        text: Any = self._redis.get(self._keys.manifest(version, digest))
        return None if text is None else decode_row(text, f"the manifest of version {version}", checked_manifest)

    def read(self, version: int, digest: str,
             buffer: npt.NDArray[np.uint8] | None = None) -> tuple[dict[str, Array], tensorfile.TensorIndex] | None:
        """Return the arrays and their index, every chunk verified; None if the contents are not stored.

        The arrays are views of ``buffer``, uint8, if it is large enough. Raises Corrupt.
        """
        manifest = self.manifest(version, digest)
        if manifest is None:
            return None
        index = tensorfile.parse_header(manifest["header"].encode(), manifest["bytes"])
        size, chunk_bytes = index.data_bytes, manifest["chunk_bytes"]
        data = np.empty(size, np.uint8) if buffer is None or buffer.size < size else buffer[:size]
        view = data.data
        chunks = [view[start:start + chunk_bytes] for start in range(0, size, chunk_bytes)]
        names = [self._keys.chunk(version, digest, i) for i in range(len(chunks))]

        def damaged() -> list[int]:
            pairs = zip(chunks, manifest["chunks"], strict=True)
            return [i for i, (chunk, expected) in enumerate(pairs) if checksum([chunk]) != expected]

        def fill() -> bool:
            if bulk_transfer.get_values(self._redis, list(zip(names, chunks, strict=True))) is not None:
                return False  # it was removed during the read
            if found := damaged():
                raise Corrupt(f"chunk {found[0]} of version {version} of run {self._keys.run} fails its checksum")
            return True

        cache = self._cache
        is_read = fill() if cache is None else cache.fill(f"{version}-{digest}", view, fill, lambda: not damaged())
        return (index.arrays(data), index) if is_read else None
