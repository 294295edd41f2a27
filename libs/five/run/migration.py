"""Migration of stored versions and checkpoints to the present model schema by the chain of applied plans.

The run's record names the applied plans by digest; a table holds their texts and the agents they started from. A
text with another digest, or one that does not follow its predecessor, is refused.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from five.agent.surgery import AgentSpec, AppliedMigration, MigrationChain, Plan, migrate_learner
from five.run.renamed_keys import migrate
from rapid import tensorfile
from rapid.blobs import BlobStore, Ref
from rapid.store.record import RunRecord


class BrokenChain(ValueError):
    """The run's plans are not those that were applied, or do not lead from an old version to the present schema."""


def checkpoint_tensors(blobs: BlobStore, ref: Ref) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and extra values of a checkpoint's blob. Raises BlobMissing, Corrupt, ValueError."""
    arrays, index = tensorfile.parse(blobs.get_array(ref))
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, index.meta


def chain_of(record: RunRecord, rows: Mapping[str, Mapping[str, Any]]) -> MigrationChain:
    """Return the chain of a record's plans. ``rows``: their texts and agents by digest. Raises BrokenChain."""
    links = []
    for digest in record.chain:
        row = rows.get(digest)
        if row is None:
            raise BrokenChain(f"the text of applied plan {digest} is missing from the run's state: versions from "
                              "before it cannot be loaded")
        try:
            links.append(AppliedMigration(Plan.from_yaml(row["plan"]), _agent_spec(row)))
        except (KeyError, ValueError) as error:
            raise BrokenChain(f"applied plan {digest} cannot be read: {error}") from None
    try:
        return MigrationChain(links, record.chain)
    except ValueError as error:
        raise BrokenChain(str(error)) from None


def _agent_spec(row: Mapping[str, Any]) -> AgentSpec:
    """Return the agent that an applied plan started from. Keys that were renamed since are migrated."""
    stored = migrate({"game": row["game"], "model": row["model"]})
    return AgentSpec.from_trees(stored["game"], stored["model"])


def newest_learner(chain: MigrationChain, state: Mapping[str, Tensor], extra: Mapping[str, Any], schema: str,
                   steps_per_version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a checkpoint's tensors and learner values in the chain's newest schema. Raises BrokenChain."""
    tensors, values = dict(state), dict(extra)
    try:
        for link in chain.migrations_from(schema):
            tensors, values = migrate_learner(link.plan, link.old, tensors, values, steps_per_version)
    except ValueError as error:
        raise BrokenChain(str(error)) from None
    return tensors, values
