"""Recordings of games in the blob store, as written by the evaluator."""

import json
import logging
from collections.abc import Callable
from typing import Any

from rapid.blobs import BlobMissing, BlobStore
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)
SUFFIX = ".view"
FACTS = ".json"
MAX_FACTS = 16 << 10
MAX_RECORDING = 256 << 20


class RecordingReader:
    """The recordings of one run, which are below ``<run>/replays/``. Blocking."""

    def __init__(self, blobs: Callable[[], BlobStore | None], run: str) -> None:
        self._blob_store = blobs
        self._folder = f"{run}/replays/"
        self._facts: dict[str, dict[str, Any]] = {}  # by digest

    @property
    def _blobs(self) -> BlobStore | None:
        return self._blob_store()

    def all(self) -> list[dict[str, Any]]:
        """Return ``name``, ``bytes`` and ``facts`` of each recording, newest first."""
        if self._blobs is None:
            return []
        found = []
        for name in self._blobs.refs(self._folder):
            if not name.endswith(SUFFIX):
                continue
            try:
                size = self._blobs.ref(name).size
                facts = self._read_facts(name.removesuffix(SUFFIX) + FACTS)
            except BlobMissing:
                continue  # removed concurrently
            except (Corrupt, ValueError) as error:
                log.warning("recording not listed: %s", error)
                continue
            found.append({"name": name.removeprefix(self._folder).removesuffix(SUFFIX), "bytes": size, "facts": facts})
        return sorted(found, key=lambda entry: -_number(entry["facts"].get("at")))

    def read(self, name: str) -> bytes:
        """Return a recording's bytes. Raise BlobMissing."""
        if self._blobs is None:
            raise BlobMissing("this controller has no blob store (blobs.url)")
        ref = self._blobs.ref(f"{self._folder}{name}{SUFFIX}")
        if ref.size > MAX_RECORDING:
            raise BlobMissing(f"recording {name!r} has {ref.size} bytes: at most {MAX_RECORDING} are allowed")
        return self._blobs.get(ref)

    def _read_facts(self, name: str) -> dict[str, Any]:
        assert self._blobs is not None
        try:
            ref = self._blobs.ref(name)
            if ref.digest not in self._facts:
                facts = json.loads(self._blobs.get_prefix(ref, MAX_FACTS))
                json.dumps(facts, allow_nan=False, ensure_ascii=False).encode()  # no NaN and no lone surrogates
                if len(self._facts) > 2000:
                    self._facts.clear()
                self._facts[ref.digest] = facts if isinstance(facts, dict) else {}
            return self._facts[ref.digest]
        except (BlobMissing, Corrupt, ValueError, RecursionError):
            return {}


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0
