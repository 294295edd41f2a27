"""Checkpoints from before a surgery: the staged one that a cut-over has made the run's, and ones of older schemas."""

import logging
from collections.abc import Callable
from typing import Any

from torch import Tensor

from rapid.blobs import BlobMissing, Ref
from rapid.store.applied import Plans
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from run.migration import chain_of, newest_learner
from services.optimizer.checkpoints import Checkpoints

log = logging.getLogger(__name__)


def commit_staged(state: RunState, record: RunRecord, checkpoints: Checkpoints,
                  event: Callable[[str, dict[str, Any]], None]) -> None:
    """Makes the checkpoint that the last surgery staged the run's, if nothing newer is there; again changes nothing.
    ``event`` is told of it.

    Where its contents are gone the newest checkpoint from before is brought over instead: what was learned between the
    two is then in the published version only.
    """
    row = Plans(state).get(record.chain[-1]) if record.chain else None
    if row is None:
        return
    version = int(row["version"])
    if any(known >= version for known in checkpoints.versions()):
        return
    try:
        checkpoints.adopt(version, Ref(str(row["checkpoint"]["digest"]), int(row["checkpoint"]["size"])))
    except BlobMissing as error:
        log.warning("the checkpoint that plan %r has staged is gone: %s", row["name"], error)
        return
    event("checkpoint.committed", {
        "version": version, "epoch": record.epoch, "operation": row["operation"], "plan": row["name"]})
    log.info("the checkpoint of version %d, made by plan %r, is the run's", version, row["name"])


class OlderCheckpoints:
    """Brings checkpoints of earlier schemas to the present one, through the chain of plans of a run's record."""

    def __init__(self, state: RunState, record: RunRecord, schema: str, steps_per_version: int) -> None:
        self._state = state
        self._record = record
        self._schema = schema
        self._steps = steps_per_version

    def bring(self, tensors: dict[str, Tensor], extra: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """A checkpoint's tensors and values in the present schema. Raises run.migration.BrokenChain."""
        schema = str(extra.get("schema", self._schema))
        if schema == self._schema or not self._record.chain:
            return tensors, extra
        chain = chain_of(self._record, Plans(self._state).all())
        made, learner = newest_learner(chain, tensors, extra["learner"], schema, self._steps)
        log.info("the checkpoint was brought from schema %s to %s", schema, self._schema)
        return made, {**extra, "learner": learner, "schema": self._schema}
