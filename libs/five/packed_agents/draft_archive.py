"""Archive of one version made from a packed agent, with draft tables in the user's cache folder."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from five.agent.model.policy import Policy
from five.local.run_folder import RunFolder
from five.packed_agents.folder import PackedAgent
from five.run.config import RunConfig
from rapid.blobs import BlobStore


@dataclass(frozen=True)
class AgentArchive:
    """Archive of a packed agent's only version. It has the part of the interface of
    `five.evaluation.archived_versions.ArchivedVersions` that drafts need."""

    agent: PackedAgent

    @property
    def config(self) -> RunConfig:
        """Configuration of the agent."""
        return self.agent.config

    @cached_property
    def folder(self) -> RunFolder:
        """Folder of tables computed from the agent, below ``$XDG_CACHE_HOME`` or ``~/.cache``."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return RunFolder(cache / "five" / "agents" / f"{self.agent.card.name}-{self.agent.card.weights_sha256[:16]}")

    @cached_property
    def blobs(self) -> BlobStore:
        """Blob store of the agent's draft tables."""
        return BlobStore(str(self.folder.path / "blobs"))

    def numbers(self) -> list[int]:
        """Return the number of the agent's version, as a list."""
        return [self.agent.card.training.version]

    def load(self, version: int = -1) -> tuple[int, Policy, dict[str, Any]]:
        """Return the agent's version, its policy and its metadata. ``version`` is ignored."""
        return self.agent.card.training.version, self.agent.policy(), {"schema": self.agent.card.model_schema}
