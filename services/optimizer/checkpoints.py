"""Checkpoints of the learner: safetensors in the blob store, named by version and written atomically."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.fencing import FencingToken
from rapid.tensorfile import Array

log = logging.getLogger(__name__)


class _CheckpointName(NamedTuple):
    """Parts of a checkpoint's name: its version and the writer's epoch and fence (0: written without a fencing
    token)."""

    version: int
    epoch: int = 0
    fence: int = 0

    @classmethod
    def parse(cls, name: str) -> "_CheckpointName":
        return cls(*map(int, name.split(".")))

    def text(self) -> str:
        """Return the name. Names of different writers differ, so no writer overwrites another's file."""
        return f"{self.version:012d}" + (f".{self.epoch:06d}.{self.fence:08d}" if self.fence else "")


class Checkpoints:
    """The newest ``keep`` checkpoints of a run. Runs may share a blob store, because names start with the run.

    With an ``index`` a checkpoint exists once it is committed there under the token, so a file of a replaced writer
    is ignored. Without an index, or with an empty one after a loss of Redis, every file is a checkpoint. `newest` skips
    versions for which ``is_current`` is false, such as reverted ones. ``confirm_owner`` is called before every write;
    it raises when another run has adopted the blobs.
    """

    def __init__(self, blobs: BlobStore, run: str, keep: int, index: CheckpointIndex | None = None,
                 fencing_token: Callable[[], FencingToken | None] = lambda: None,
                 is_current: Callable[[int], bool] = lambda version: True,
                 confirm_owner: Callable[[], None] = lambda: None) -> None:
        self._confirm_owner = confirm_owner
        self._is_current = is_current
        self._blobs = blobs
        self._keep = keep
        self._prefix = f"{run}/checkpoints/"
        self._index = index
        self._fencing_token = fencing_token

    def _files(self) -> dict[int, _CheckpointName]:
        """Return the files by version; of several files of one version, the last writer's."""
        names = self._blobs.refs(self._prefix)
        found = sorted(_CheckpointName.parse(name.removeprefix(self._prefix)) for name in names)
        return {named.version: named for named in found}

    def versions(self) -> list[int]:
        """Return the versions that have a checkpoint, in order."""
        committed = {} if self._index is None else self._index.all()
        return list(committed) or sorted(self._files())

    def ref(self, version: int) -> Ref:
        """Return the blob of a version's checkpoint. Raises BlobMissing."""
        committed = None if self._index is None else self._index.all().get(version)
        if committed is not None:
            return committed.ref
        named = self._files().get(version, _CheckpointName(version))
        return self._blobs.ref(self._prefix + named.text())

    def save(self, version: int, tensors: Mapping[str, Array | Tensor], extra: Mapping[str, Any]) -> None:
        """Store a checkpoint of arrays or CPU tensors, then remove those beyond ``keep``.

        Raises FencedOut when another process publishes or the run is in another epoch; earlier checkpoints stay.
        """
        arrays = {name: np.asarray(tensor) for name, tensor in tensors.items()}
        index = tensorfile.index_of(arrays, dict(extra))
        self._commit(version, [index.header(), *tensorfile.pieces_of(index, arrays)])

    def adopt(self, version: int, ref: Ref) -> None:
        """Make a blob of the store the checkpoint of a version. Idempotent. Raises BlobMissing, or FencedOut as
        `save`."""
        self._blobs.get_prefix(ref, 8)
        self._commit(version, ref)

    def staged_ref(self, name: str) -> Ref:
        """Return the blob that an operation staged under a name. Raises BlobMissing."""
        return self._blobs.ref(name)

    def _commit(self, version: int, contents: Ref | list[Any]) -> None:
        self._confirm_owner()
        own = self._own_name(version)
        name = self._prefix + own.text()
        if isinstance(contents, Ref):
            self._blobs.set_ref(name, contents)
            ref = contents
        else:
            ref = self._blobs.put(contents, name)
        kept = {version}
        if self._index is not None:
            committed = sorted({*self._index.all(), version})
            kept = set(committed[-self._keep:])
            try:
                self._index.commit(self._require_fencing_token(), version, name, ref, set(committed) - kept)
            except FencedOut:
                self._blobs.remove_ref(name)
                raise
        self._remove_old(own, kept)

    def _own_name(self, version: int) -> _CheckpointName:
        if self._index is None:
            return _CheckpointName(version)
        fencing_token = self._require_fencing_token()
        return _CheckpointName(version, fencing_token.epoch, fencing_token.fence or 0)

    def _require_fencing_token(self) -> FencingToken:
        fencing_token = self._fencing_token()
        if fencing_token is None:
            raise FencedOut("lease", "no checkpoint is written: this optimizer does not hold the publisher's lease")
        return fencing_token

    def _remove_old(self, own: _CheckpointName, kept: set[int]) -> None:
        """Remove files that are not committed, except those that a later writer may be about to commit."""
        if self._index is None:
            for old in self.versions()[:-self._keep]:
                self._blobs.remove_ref(self._prefix + _CheckpointName(old).text())
            return
        names = {row.name for version, row in self._index.all().items() if version in kept}
        for name in self._blobs.refs(self._prefix):
            named = _CheckpointName.parse(name.removeprefix(self._prefix))
            if name not in names and (named.epoch, named.fence) <= (own.epoch, own.fence):
                self._blobs.remove_ref(name)

    def commit_unindexed(self) -> None:
        """Commit files that the index lacks.

        All files, if the index is empty because of an earlier release or a loss of Redis. Otherwise the files that the
        previous holder of the lease wrote after the newest entry: Redis was unavailable when it ended.
        """
        if self._index is None:
            return
        committed = self._index.all()
        fencing_token = self._require_fencing_token()
        previous = fencing_token.epoch, (fencing_token.fence or 0) - 1
        for version, named in self._files().items():
            if committed and (version <= max(committed) or (named.epoch, named.fence) != previous):
                continue
            name = self._prefix + named.text()
            self._index.commit(fencing_token, version, name, self._blobs.ref(name))
            log.info("checkpoint added to the index version=%d", version)

    def newest(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """Return version, tensors and extra values of the newest readable checkpoint; None when there is none.

        Raises Corrupt when checkpoints exist and none is readable, because starting over would lose the run.
        """
        errors = []
        current = [version for version in self.versions() if self._is_current(version)]
        # A restored Redis may list only removed checkpoints; then the files that it does not list are tried.
        for version in [*reversed(current), *sorted(self._files().keys() - set(self.versions()), reverse=True)]:
            try:
                return version, *self.load(version)
            except (Corrupt, BlobMissing, ValueError) as error:
                log.warning("checkpoint not readable version=%d: %s", version, error)
                errors.append(f"version {version}: {error}")
        if errors:
            raise Corrupt(f"no checkpoint is readable: {'; '.join(errors)}")
        return None

    def require(self, version: int) -> None:
        """Raise BlobMissing unless a version's checkpoint can be read."""
        self._blobs.get_prefix(self.ref(version), 8)

    def load(self, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors and extra values of a checkpoint. Raises BlobMissing, Corrupt, ValueError."""
        arrays, index = tensorfile.parse(self._blobs.get_array(self.ref(version)))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta
