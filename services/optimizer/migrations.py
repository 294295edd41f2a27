"""Checkpoints made before a surgery: commit of the staged checkpoint and migration of earlier schemas."""

import logging
from collections.abc import Callable
from typing import Any

from torch import Tensor

from five.run.migration import chain_of, newest_learner
from five.services.optimizer.checkpoints import Checkpoints
from rapid.blobs import BlobMissing, Ref
from rapid.store.errors import Corrupt
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

log = logging.getLogger(__name__)


def commit_staged_checkpoint(state: RunState, record: RunRecord, checkpoints: Checkpoints,
                             event: Callable[[str, dict[str, Any]], None]) -> None:
    """Commit the checkpoint that the last surgery or revert staged, unless there is a newer one. Idempotent.

    ``event`` receives what was committed. When a surgery's blob is missing, the newest earlier checkpoint is migrated
    on resume instead, and the steps since then are only in the published version. Raises Corrupt when a revert's blob
    is missing, because the newest checkpoint belongs to the abandoned branch.
    """
    staged = _staged_checkpoint(state, record, checkpoints)
    if staged is None:
        return
    version, ref, details = staged
    if any(known >= version for known in checkpoints.versions()):
        return
    try:
        checkpoints.adopt(version, ref)
    except BlobMissing as error:
        if "to_version" in details:
            raise Corrupt(f"the run was reverted to version {details['to_version']}, but the staged checkpoint is "
                          f"missing: {error}. Revert to that version again") from None
        log.warning("staged checkpoint missing operation=%s: %s", details["operation"], error)
        return
    event("checkpoint.committed", {"version": version, "epoch": record.epoch, **details})
    log.info("staged checkpoint committed version=%d operation=%s", version, details["operation"])


def _staged_checkpoint(state: RunState, record: RunRecord, checkpoints: Checkpoints) -> tuple[int, Ref,
                                                                                              dict[str, Any]] | None:
    """Return version, blob and origin of the checkpoint that the last cut-over staged."""
    segments = state.lineage().segments
    reverts = [s for s in segments if s.operation and s.parent != s.first - 1]
    row = PlanStore(state).get(record.chain[-1]) if record.chain else None
    if reverts and (row is None or reverts[-1].first > int(row["version"])):
        last = reverts[-1]
        if any(known >= last.first for known in checkpoints.versions()):
            return None
        ref = last.checkpoint or Ref("0" * 64, 0)  # no blob has this digest
        return last.first, ref, {"operation": last.operation, "to_version": last.parent}
    if row is None:
        return None
    ref = Ref.parse(row["checkpoint"]["digest"], row["checkpoint"]["size"])
    return int(row["version"]), ref, {"operation": row["operation"], "plan": row["name"]}


class CheckpointMigrations:
    """Migrates checkpoints of earlier schemas to the present one by the plans in the run's record."""

    def __init__(self, state: RunState, record: RunRecord, schema: str, steps_per_version: int) -> None:
        self._state = state
        self._record = record
        self._schema = schema
        self._steps = steps_per_version

    def migrate(self, tensors: dict[str, Tensor], extra: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return a checkpoint's tensors and values in the present schema. Raises run.migration.BrokenChain."""
        schema = str(extra.get("schema", self._schema))
        if schema == self._schema or not self._record.chain:
            return tensors, extra
        chain = chain_of(self._record, PlanStore(self._state).all())
        migrated, learner = newest_learner(chain, tensors, extra["learner"], schema, self._steps)
        log.info("checkpoint migrated from_schema=%s to_schema=%s", schema, self._schema)
        return migrated, {**extra, "learner": learner, "schema": self._schema}
