"""Archived versions of a local run as policies, read from its folder."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from cli.rundir import NoRun, RunFolder
from dota.spaces import Layout
from five.model.policy import Policy
from rapid import tensorfile
from rapid.bfloat16 import from_bfloat16
from rapid.blobs import BlobMissing, BlobStore
from run.config import RunConfig
from run.load import load


class VersionNotArchived(NoRun):
    """A version that the run's blob store does not hold."""


@dataclass(frozen=True)
class ArchivedVersions:
    """The versions in the blob store of the run in ``folder``; whether the run goes on makes no difference."""

    folder: RunFolder

    @cached_property
    def config(self) -> RunConfig:
        """The configuration that the run was last started with."""
        started = self.folder.path / "cluster.yaml"
        return load(started if started.exists() else self.folder.config)

    @cached_property
    def _blobs(self) -> BlobStore:
        return BlobStore(self.config.blobs.url or str(self.folder.path / "blobs"))

    @property
    def _prefix(self) -> str:
        return f"{self.config.name}/versions/"

    def numbers(self) -> list[int]:
        """Versions that can be loaded, in order."""
        return sorted(int(name.removeprefix(self._prefix)) for name in self._blobs.refs(self._prefix))

    def load(self, version: int = -1) -> tuple[int, Policy, dict[str, Any]]:
        """A version's number, its policy on the CPU, ready to act, and its metadata; -1 is the newest one archived.

        Raises VersionNotArchived naming those that are there, ValueError for a version of another layout or model
        than the run's configuration.
        """
        known = self.numbers()
        number = known[-1] if version < 0 and known else version
        if number not in known:
            near = sorted(known, key=lambda v: abs(v - version))[:5]
            raise VersionNotArchived(f"version {version} of run {self.folder.name!r} is not archived; near it are "
                                     f"{', '.join(map(str, sorted(near))) or 'none at all'}")
        try:
            arrays, index = tensorfile.parse(self._blobs.get_array(self._blobs.ref(f"{self._prefix}{number:010d}")))
        except BlobMissing as error:
            raise VersionNotArchived(f"version {number} of run {self.folder.name!r}: {error}") from None
        layout = Layout(self.config.game)
        if index.meta.get("layout", layout.hash) != layout.hash:
            raise ValueError(f"version {number} was made for layout {index.meta['layout']}, the run's configuration "
                             f"describes {layout.hash}: it comes from before a surgery")
        policy = Policy(layout, self.config.model).eval().requires_grad_(False)
        policy.load_state_dict({name: torch.from_numpy(from_bfloat16(array) if name in index.bfloat16 else array)
                                for name, array in arrays.items()})
        return number, policy, dict(index.meta)
