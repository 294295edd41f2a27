"""Checkpoints of the learner: safetensors in the blob store, named by version, whole or not at all."""

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


class _Named(NamedTuple):
    """What a file's name says: its version, and the epoch and fence number of who wrote it (0: before there were)."""

    version: int
    epoch: int = 0
    fence: int = 0

    @classmethod
    def parse(cls, name: str) -> "_Named":
        return cls(*map(int, name.split(".")))

    def text(self) -> str:
        """Names of different writers differ, so that none touches another's file."""
        return f"{self.version:012d}" + (f".{self.epoch:06d}.{self.fence:08d}" if self.fence else "")


class Checkpoints:
    """The newest ``keep`` checkpoints of a run. Runs may share a blob store: their names keep them apart.

    With an ``index`` a checkpoint counts once it is committed there under the ``authority``: a file that a group wrote
    after another had replaced it is passed over. Without one (or where the index is empty, its Redis having been lost)
    the files count as they are. ``counts`` says whether to go on from a version: one that was reverted is only kept.
    """

    def __init__(self, blobs: BlobStore, run: str, keep: int, index: CheckpointIndex | None = None,
                 authority: Callable[[], FencingToken | None] = lambda: None,
                 counts: Callable[[int], bool] = lambda version: True) -> None:
        self._counts = counts
        self._blobs = blobs
        self._keep = keep
        self._prefix = f"{run}/checkpoints/"
        self._index = index
        self._authority = authority

    def _named(self) -> dict[int, _Named]:
        """The files by version; of several of one version the last writer's."""
        found = sorted(_Named.parse(name.removeprefix(self._prefix)) for name in self._blobs.refs(self._prefix))
        return {named.version: named for named in found}

    def versions(self) -> list[int]:
        """Versions that there is a checkpoint of, in order."""
        committed = {} if self._index is None else self._index.all()
        return list(committed) or sorted(self._named())

    def ref(self, version: int) -> Ref:
        """The contents of a version's checkpoint. Raises BlobMissing."""
        committed = None if self._index is None else self._index.all().get(version)
        if committed is not None:
            return committed.ref
        named = self._named().get(version, _Named(version))
        return self._blobs.ref(self._prefix + named.text())

    def save(self, version: int, tensors: Mapping[str, Array | Tensor], extra: Mapping[str, Any]) -> None:
        """Stores a checkpoint, of arrays or tensors on the CPU, then forgets those beyond ``keep``. Raises FencedOut
        when another publishes by now, or the run is in another epoch; what counted before does so still."""
        arrays = {name: np.asarray(tensor) for name, tensor in tensors.items()}
        index = tensorfile.index_of(arrays, dict(extra))
        self._commit(version, [index.header(), *tensorfile.pieces_of(index, arrays)])

    def adopt(self, version: int, ref: Ref) -> None:
        """Makes contents that are in the blob store already the checkpoint of a version; again changes nothing.

        Raises BlobMissing when they are not there, FencedOut as ``save``.
        """
        self._blobs.get_start(ref, 8)
        self._commit(version, ref)

    def staged(self, name: str) -> Ref:
        """Contents that lie beside the run's own under a name. Raises BlobMissing."""
        return self._blobs.ref(name)

    def _commit(self, version: int, contents: Ref | list[Any]) -> None:
        mine = self._named_by_me(version)
        name = self._prefix + mine.text()
        if isinstance(contents, Ref):
            self._blobs.set_ref(name, contents)
            ref = contents
        else:
            ref = self._blobs.put(contents, name)
        kept = {version}
        if self._index is not None:
            counting = sorted({*self._index.all(), version})
            kept = set(counting[-self._keep:])
            try:
                self._index.commit(self._authority_held(), version, name, ref, set(counting) - kept)
            except FencedOut:
                self._blobs.remove_ref(name)
                raise
        self._forget(mine, kept)

    def _named_by_me(self, version: int) -> _Named:
        if self._index is None:
            return _Named(version)
        authority = self._authority_held()
        return _Named(version, authority.epoch, authority.fence or 0)

    def _authority_held(self) -> FencingToken:
        authority = self._authority()
        if authority is None:
            raise FencedOut("lease", "no checkpoint is written: this optimizer does not hold the publisher's lease")
        return authority

    def _forget(self, mine: _Named, kept: set[int]) -> None:
        """Removes files that count no more; what a later writer may be about to commit stays."""
        if self._index is None:
            for old in self.versions()[:-self._keep]:
                self._blobs.remove_ref(self._prefix + _Named(old).text())
            return
        names = {row.name for version, row in self._index.all().items() if version in kept}
        for name in self._blobs.refs(self._prefix):
            named = _Named.parse(name.removeprefix(self._prefix))
            if name not in names and (named.epoch, named.fence) <= (mine.epoch, mine.fence):
                self._blobs.remove_ref(name)

    def commit_unindexed(self) -> None:
        """Commits the files of a run whose index is empty: one of an earlier release, or one whose Redis was lost."""
        if self._index is None or self._index.all():
            return
        for version, named in self._named().items():
            name = self._prefix + named.text()
            self._index.commit(self._authority_held(), version, name, self._blobs.ref(name))

    def newest(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that can be read, damaged ones passed over, as version, tensors and extra values;
        None when there is none at all.

        Raises Corrupt when there are some and none can be read: going on from nothing would lose the run.
        """
        errors = []
        counting = [version for version in self.versions() if self._counts(version)]
        # Where none that counts is there any more (a restored Redis knows old ones), the files are gone by.
        for version in [*reversed(counting), *sorted(self._named().keys() - set(self.versions()), reverse=True)]:
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
        arrays, index = tensorfile.parse(self._blobs.get_array(self.ref(version)))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta
