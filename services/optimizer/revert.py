"""Revert to an earlier version: stage its checkpoint, or what is preserved of it, as the next one.

A revert restores what was learned: parameters, Adam's moments, the clip's second moments and the step counters. Version
numbers, played hero-steps and the pacing of samples continue from the present.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from torch import Tensor

from five.agent.config import LearnerConfig
from five.agent.learning.checkpoint import POLICY_PREFIX
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec
from five.run.migration import checkpoint_tensors
from five.services.optimizer.checkpoints import Checkpoints
from rapid import tensorfile
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.operation_blobs import operation_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState

log = logging.getLogger(__name__)
CONTINUED = ("pacer", "buffer", "hero_steps", "flop")  # values of a checkpoint that are not reverted


class VersionNotPreserved(ValueError):
    """The target version of a revert is not preserved; the message says what is."""


class RevertSource(NamedTuple):
    """State from which a revert continues. Unless ``complete``, Adam's moments start at zero."""

    record: RunRecord
    spec: AgentSpec
    tensors: dict[str, Tensor]
    learner: dict[str, Any]
    schedules: Any
    complete: bool


def record_of(state: RunState, version: int) -> RunRecord:
    """Return the run's record at a version. Raises VersionNotPreserved."""
    segment = state.lineage().segment(version)
    if segment is None:
        raise VersionNotPreserved(f"version {version} is older than the run's lineage")
    return segment.record


def source_of(state: RunState, store: ParameterStore, blobs: BlobStore, checkpoints: Checkpoints,
              learning: LearnerConfig, version: int) -> RevertSource:
    """Return a version's preserved or newest checkpoint, else the archived version itself. Raises
    VersionNotPreserved."""
    record = record_of(state, version)
    spec = AgentSpec.from_trees(record.game, record.model)
    refs = checkpoints.preserved(version)
    try:
        refs.append(checkpoints.ref(version))
    except BlobMissing:
        pass
    for ref in refs:
        try:
            tensors, extra = checkpoint_tensors(blobs, ref)
        except (BlobMissing, Corrupt, ValueError) as error:
            log.warning("checkpoint not readable version=%d: %s", version, error)
            continue
        if str(extra.get("schema", spec.schema)) != spec.schema:
            raise VersionNotPreserved(f"the checkpoint of version {version} has model schema {extra['schema']}, the "
                                      f"lineage says {spec.schema}")
        tensors, learner = _at_version(store, version, spec, tensors, extra["learner"])
        return RevertSource(record, spec, tensors, learner, extra.get("schedules"), True)
    try:
        arrays, meta = store.fetch(version)
    except (VersionMissing, Corrupt) as error:
        raise VersionNotPreserved(f"version {version}: neither its checkpoint nor its parameters are preserved: {error}"
                                  ) from None
    if str(meta.get("schema", spec.schema)) != spec.schema:
        raise VersionNotPreserved(f"version {version} has model schema {meta['schema']}, the lineage says "
                                  f"{spec.schema}")
    policy = Policy(spec.layout, spec.model)
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    fresh = Learner(policy, learning, "cpu")
    extra = {**fresh.extra(), "gradient_steps": int(meta.get("gradient_steps", 0))}
    return RevertSource(record, spec, fresh.state_dict(), extra, None, False)


def _at_version(store: ParameterStore, version: int, spec: AgentSpec, tensors: dict[str, Tensor],
                learner: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a checkpoint's tensors and counters with the parameters of the published version.

    A checkpoint that was made during a pause may contain gradient steps towards the next version. The version itself
    may have expired; then the checkpoint is returned as it is.
    """
    try:
        arrays, meta = store.fetch(version)
    except (VersionMissing, Corrupt):
        return tensors, learner
    steps = meta.get("gradient_steps")
    published = {POLICY_PREFIX + name: torch.from_numpy(array) for name, array in arrays.items()}
    names = {name for name in tensors if name.startswith(POLICY_PREFIX)}
    if steps in (None, learner["gradient_steps"]) or meta.get("schema") != spec.schema or published.keys() != names:
        return tensors, learner
    log.info("checkpoint is past its version version=%d steps=%d", version, learner["gradient_steps"] - steps)
    return tensors | published, {**learner, "gradient_steps": steps}


def transform(state: RunState, store: ParameterStore, blobs: BlobStore, checkpoints: Checkpoints,
              learning: LearnerConfig, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Stage the checkpoint from which the run continues and return the job's result. Raises VersionNotPreserved."""
    made, target = payload["made"]["checkpoint"], int(payload["to_version"])
    source = source_of(state, store, blobs, checkpoints, learning, target)
    _, present = checkpoint_tensors(blobs, Ref.parse(made["digest"], made["bytes"]))
    version = max(int(made["head"]), int(made["checkpoint"])) + 1
    if target >= int(made["head"]):
        raise VersionNotPreserved(f"to_version {target}: must be older than the newest version {made['head']}")
    warm = int(payload["warm_up_versions"])
    # The source's own steps at learning rate 0 stay: those left of a warm-up, or without Adam's moments a new run's.
    held = max(int(source.learner["hold_steps"]), warm * learning.gradient_steps_per_iteration)
    learner = {**source.learner, "hold_steps": held}
    extra = {**{key: present[key] for key in CONTINUED if key in present}, "learner": learner,
             "schema": source.spec.schema, "warm_up_until": version + warm, "operation": payload["operation"],
             **({} if source.schedules is None else {"schedules": source.schedules})}
    arrays: dict[str, npt.NDArray[Any]] = {n: t.detach().cpu().numpy() for n, t in source.tensors.items()}
    index = tensorfile.index_of(arrays, extra)
    ref = blobs.put([index.header(), *tensorfile.pieces_of(index, arrays)],
                    operation_checkpoint(state.run, payload["operation"]))
    return {"version": version, "to_version": target, "warm_up_until": version + warm, "schema": source.spec.schema,
            "layout": source.spec.layout.hash, "checkpoint": ref._asdict(), "complete": source.complete,
            "gradient_steps": learner["gradient_steps"], "schedules": source.schedules}
