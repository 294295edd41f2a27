"""Archived versions of a local run as policies, read from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from dota.spaces import Layout
from five.agent.model.policy import Policy
from five.agent.model.temperature import at_temperature
from five.agent.surgery import AgentSpec
from five.evaluation.match import freeze_for_matches
from five.evaluation.saved_state import SavedRecord, load_record
from five.local.run_folder import RunFolder, RunUnavailable
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load_stored
from rapid import tensorfile
from rapid.bfloat16 import from_bfloat16
from rapid.blobs import BlobMissing, BlobStore


class VersionNotArchived(RunUnavailable):
    """A version that the run's blob store does not hold."""


class VersionUnreadable(RunUnavailable):
    """A version of a schema that the run's record does not have, as of another release."""


@dataclass(frozen=True)
class ArchivedVersions:
    """Versions in the blob store of the run in ``folder``, whether it is running or not."""

    folder: RunFolder

    @cached_property
    def config(self) -> RunConfig:
        """Configuration of the run's last start, with its record's game and model."""
        started = self.folder.path / "cluster.yaml"
        config = load_stored(started if started.exists() else self.folder.config)
        saved = self._saved_record()
        return config if saved is None else overlay(config, saved.record)

    def _saved_record(self) -> SavedRecord | None:
        """Return the run's record in its folder, None without one. Raises RunUnavailable for a damaged file."""
        try:
            return load_record(self.folder.record)
        except ValueError as error:
            raise RunUnavailable(f"{error}; `five report` writes it again while the run is running") from None

    @cached_property
    def blobs(self) -> BlobStore:
        """Blob store of the run: the configured one, otherwise the folder's own, also after the folder was moved."""
        named = load_stored(self.folder.config).blobs.url if self.folder.config.exists() else self.config.blobs.url
        return BlobStore(named or str(self.folder.path / "blobs"))

    @property
    def _prefix(self) -> str:
        return f"{self.config.name}/versions/"

    def numbers(self) -> list[int]:
        """Return the numbers of the archived versions, ascending."""
        names = (name.removeprefix(self._prefix) for name in self.blobs.refs(self._prefix))
        return sorted(int(name) for name in names if len(name) == 10 and name.isascii() and name.isdigit())

    def load(self, version: int = -1, temperature: float = 1.0) -> tuple[int, Policy, dict[str, Any]]:
        """Return a version's number, its policy on the CPU in evaluation mode, and its metadata; -1 is the newest
        version. The policy samples at ``temperature`` (`five.agent.model.temperature`).

        A version older than a surgery is migrated. Raises VersionNotArchived naming the nearest archived ones, and
        VersionUnreadable.
        """
        known = self.numbers()
        if not known:
            raise VersionNotArchived(f"run {self.folder.name!r} has no archived versions: those whose number is a "
                                     f"multiple of store.archive_every ({self.config.store.archive_every}) are "
                                     "archived while the run trains")
        number = known[-1] if version < 0 else version
        if number not in known:
            near = sorted(known, key=lambda v: abs(v - version))[:5]
            raise VersionNotArchived(f"version {version} of run {self.folder.name!r} is not archived; nearest "
                                     f"archived versions: {', '.join(map(str, sorted(near)))}")
        try:
            arrays, index = tensorfile.parse(self.blobs.get_array(self.blobs.ref(f"{self._prefix}{number:010d}")))
        except BlobMissing as error:
            raise VersionNotArchived(f"version {number} of run {self.folder.name!r}: {error}") from None
        layout = Layout(self.config.game)
        tensors = {name: from_bfloat16(array) if name in index.bfloat16 else array for name, array in arrays.items()}
        tensors = at_temperature(self._in_present_schema(number, tensors, index.meta), temperature)
        policy = Policy(layout, self.config.model).eval().requires_grad_(False)
        policy.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
        freeze_for_matches(policy)
        return number, policy, dict(index.meta)

    def _in_present_schema(self, number: int, tensors: dict[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors in the present schema: a version older than a surgery is migrated by the run's plans."""
        spec = AgentSpec(self.config.game, self.config.model)
        schema = meta.get("schema", spec.schema)
        if schema == spec.schema:
            return tensors
        saved = self._saved_record()
        if saved is None or schema not in saved.chain.schemas:
            raise VersionUnreadable(
                f"version {number} was made for layout {meta.get('layout')} and model schema {schema}, the run's "
                f"record describes {spec.layout.hash} and {spec.schema}: `five report` brings "
                f"{self.folder.record.name} up to date while the run is running")
        return saved.chain.migrate_to_newest(tensors, schema)
