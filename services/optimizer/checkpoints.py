"""Checkpoints of the learner: safetensors in the blob store, named by version and written atomically."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from five.services.optimizer.checkpoint_names import CheckpointName
from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.fencing import FencingToken
from rapid.store.operation_blobs import preserved_folder, preserved_version
from rapid.tensorfile import Array

log = logging.getLogger(__name__)
RECOVER = "services.optimizer.recover_checkpoint"


class Checkpoints:
    """The newest ``keep`` checkpoints of a run. Runs may share a blob store, because names start with the run.

    With an ``index`` a checkpoint exists once it is committed there under the token, so a file of a replaced writer, or
    of another process, is ignored. Without an index, or with an empty one after a loss of Redis, every file is a
    checkpoint. `newest` skips versions for which ``is_current`` is false, such as reverted ones. ``confirm_owner`` is
    called before every write; it raises when another run has adopted the blobs.
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
        self._preserved = preserved_folder(run)
        self._index = index
        self._fencing_token = fencing_token
        self._key = b""  # of signatures; read at the start, because Redis may be unavailable at the last checkpoint
        self._warned: set[str] = set()

    def _names(self) -> list[CheckpointName]:
        """Return the names of the files, in order of version and writer. Any other name is ignored with one warning."""
        found = []
        for name in self._blobs.refs(self._prefix):
            named = CheckpointName.parse(name.removeprefix(self._prefix))
            if named is not None:
                found.append(named)
            else:
                self._warn_once(name, f"ignored, not the name of a checkpoint: {name!r}")
        return sorted(found)

    def _warn_once(self, key: str, message: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            log.warning(message)

    def _files(self) -> dict[int, CheckpointName]:
        """Return the files by version; of several files of one version, the last writer's."""
        return {named.version: named for named in self._names()}

    def versions(self) -> list[int]:
        """Return the versions that have a checkpoint, in order."""
        committed = {} if self._index is None else self._index.all()
        return list(committed) or sorted(self._files())

    def ref(self, version: int) -> Ref:
        """Return the blob of a version's checkpoint. Raises BlobMissing."""
        committed = {} if self._index is None else self._index.all()
        if version in committed:
            return committed[version].ref
        if committed:
            raise BlobMissing(f"the run's state lists no checkpoint of version {version}")
        named = self._files().get(version, CheckpointName(version))
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

    def preserve(self, name: str, ref: Ref) -> None:
        """Preserve a checkpoint under a blob name (`preserved_checkpoint`); newer ones do not replace it. Idempotent.

        Raises FencedOut as `save`.
        """
        self._blobs.set_ref(name, ref)
        if self._index is not None:
            stored = set(self._blobs.refs(self._preserved))
            self._index.preserve(self._require_fencing_token(), name, ref, self._index.preserved().keys() - stored)

    def preserved(self, version: int) -> list[Ref]:
        """Return the preserved checkpoints of a version; without an index those that have a name in the blob store."""
        if self._index is None:
            rows = {name: self._blobs.ref(name) for name in self._blobs.refs(self._preserved)}
        else:
            rows = self._index.preserved()
        return [ref for name, ref in rows.items() if preserved_version(name) == version]

    def _commit(self, version: int, contents: Ref | list[Any]) -> None:
        self._confirm_owner()
        own = self._own_name(version)
        ref = contents if isinstance(contents, Ref) else self._blobs.put(contents)
        if self._index is not None:
            own = own.signed(self._signing_key(), ref)
        name = self._prefix + own.text()
        self._blobs.set_ref(name, ref)
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

    def _own_name(self, version: int) -> CheckpointName:
        if self._index is None:
            return CheckpointName(version)
        fencing_token = self._require_fencing_token()
        return CheckpointName(version, fencing_token.epoch, fencing_token.fence or 0)

    def _signing_key(self) -> bytes:
        assert self._index is not None
        self._key = self._key or self._index.signing_key(self._require_fencing_token())
        return self._key

    def _require_fencing_token(self) -> FencingToken:
        fencing_token = self._fencing_token()
        if fencing_token is None:
            raise FencedOut("lease", "no checkpoint is written: this optimizer does not hold the publisher's lease")
        return fencing_token

    def _remove_old(self, own: CheckpointName, kept: set[int]) -> None:
        """Remove files that are not committed, except those that a later writer may be about to commit."""
        if self._index is None:
            for old in self.versions()[:-self._keep]:
                self._blobs.remove_ref(self._prefix + CheckpointName(old).text())
            return
        names = {row.name for version, row in self._index.all().items() if version in kept}
        for named in self._names():
            name = self._prefix + named.text()
            if name not in names and named.writer <= own.writer:
                self._blobs.remove_ref(name)

    def commit_unindexed(self) -> None:
        """Commit files that the index lacks. Call it at the start, while Redis is available.

        All files, if the index is empty because of an earlier release or a loss of Redis. Otherwise the signed files
        that the previous holder of the lease wrote after the newest entry: Redis was unavailable when it ended.
        """
        if self._index is None:
            return
        committed = self._index.all()
        fencing_token = self._require_fencing_token()
        key = self._signing_key()
        previous = fencing_token.epoch, (fencing_token.fence or 0) - 1
        ignored = []
        for named in self._names() if committed else self._files().values():
            if committed and named.version <= max(committed):
                continue
            name = self._prefix + named.text()
            try:
                ref = self._blobs.ref(name)
            except (BlobMissing, Corrupt) as error:
                log.warning("checkpoint not readable version=%d: %s", named.version, error)
                continue
            if committed and not (named.writer == previous and named.is_signed(key, ref)):
                ignored.append(named.text())
                continue
            self._index.commit(fencing_token, named.version, name, ref)
            log.info("checkpoint added to the index version=%d", named.version)
        if ignored:
            log.warning("checkpoint files that the run's state does not list are ignored: %s (%s takes one)",
                        ", ".join(ignored), RECOVER)

    def recover(self, name: str, event: Callable[[str, dict[str, Any]], None]) -> None:
        """Commit the file of that name although the index does not list it; "" changes nothing. Idempotent.

        Listed checkpoints whose contents are missing leave the index. A file is not taken while a checkpoint of its
        version or a later one is readable. ``event`` receives what was taken. Raises Corrupt for an unknown file.
        """
        if not name or self._index is None:
            return
        committed, named = self._index.all(), CheckpointName.parse(name)
        missing = {version for version, row in committed.items() if not self._exists(row.ref)}
        if named is not None and any(version >= named.version for version in committed.keys() - missing):
            log.info("%s has no effect: the run has a checkpoint of version %d or later", RECOVER, named.version)
            return
        files = [other.text() for other in self._names()]
        if named is None or name not in files:
            raise Corrupt(f"{RECOVER} {name!r}: no such checkpoint in {self._blobs.url}; there are: "
                          f"{', '.join(files) or 'none'}")
        ref = self._blobs.ref(self._prefix + name)
        self._index.commit(self._require_fencing_token(), named.version, self._prefix + name, ref,
                           missing - {named.version})
        log.warning("checkpoint recovered by %s, unverified: version=%d name=%s digest=%s", RECOVER, named.version,
                    name, ref.digest)
        event("checkpoint.recovered", {"version": named.version, "name": name, "digest": ref.digest})

    def _exists(self, ref: Ref) -> bool:
        try:
            self._blobs.get_prefix(ref, 8)
        except BlobMissing:
            return False
        return True

    def newest(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """Return version, tensors and extra values of the newest readable checkpoint; None when there is none.

        Raises Corrupt when checkpoints exist and none is readable, because starting over would lose the run.
        """
        errors = []
        for version in reversed([version for version in self.versions() if self._is_current(version)]):
            try:
                return version, *self.load(version)
            except (Corrupt, BlobMissing, ValueError) as error:
                log.warning("checkpoint not readable version=%d: %s", version, error)
                errors.append(f"version {version}: {error}")
        if errors:
            raise Corrupt(f"no checkpoint is readable: {'; '.join(errors)}{self._unlisted_advice()}")
        return None

    def _unlisted_advice(self) -> str:
        """Return how to continue from a file that the index does not list; '' without such a file."""
        committed = {} if self._index is None else self._index.all()
        names = {row.name.removeprefix(self._prefix) for row in committed.values()}
        others = [text for named in self._names() if (text := named.text()) not in names] if committed else []
        return (f". After a restore, {RECOVER} continues from a file that the run's state does not list; it is not "
                f"verified: {', '.join(others)}") if others else ""

    def require(self, version: int) -> None:
        """Raise BlobMissing unless a version's checkpoint can be read."""
        self._blobs.get_prefix(self.ref(version), 8)

    def load(self, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors and extra values of a checkpoint. Raises BlobMissing, Corrupt, ValueError."""
        arrays, index = tensorfile.parse(self._blobs.get_array(self.ref(version)))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta
