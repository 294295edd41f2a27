"""Commit of the checkpoint that a cut-over staged, and migration of checkpoints with an earlier schema."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import torch

from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.migrations import CheckpointMigrations, commit_staged_checkpoint
from rapid.blobs import BlobStore, Ref
from rapid.store.errors import Corrupt
from rapid.store.lineage import LineageSegment
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

MISSING = Ref("1" * 64, 9)
SURGERY = "a" * 64


class Staged:
    """A run with checkpoints of versions 1 and 2, and a blob that an operation staged."""

    def __init__(self, client: redis.Redis, folder: Path) -> None:
        self.state = RunState(client, "trial")
        self.state.create({}, "test", RunRecord())
        blobs = BlobStore(str(folder / "blobs"))
        self.checkpoints = Checkpoints(blobs, "trial", 5)
        self.save(1)
        self.save(2)
        self.blob = blobs.put(b"what an operation staged")
        self.events: list[tuple[str, dict[str, Any]]] = []

    def save(self, version: int) -> None:
        self.checkpoints.save(version, {"w": np.zeros(3, np.float32)}, {})

    def apply_plan(self, version: int, blob: Ref) -> None:
        PlanStore(self.state).put(SURGERY, {
            "version": version, "checkpoint": blob._asdict(), "operation": "op-1", "name": "wider"})

    def revert(self, first: int, parent: int, blob: Ref | None, operation: str = "op-2") -> None:
        segment = LineageSegment(first, parent, RunRecord(), operation=operation, checkpoint=blob)
        self.state.redis.hset(self.state.keys.lineage, str(first), segment.to_json())

    def commit(self, *chain: str) -> list[int]:
        """Commit what is staged; return the versions that have a checkpoint."""
        commit_staged_checkpoint(self.state, RunRecord(epoch=4, chain=chain), self.checkpoints,
                                 lambda what, details: self.events.append((what, details)))
        return self.checkpoints.versions()


@pytest.fixture
def staged(redis_client: redis.Redis, tmp_path: Path) -> Staged:
    return Staged(redis_client, tmp_path)


def test_run_without_operations_has_nothing_staged(staged: Staged) -> None:
    assert staged.commit() == [1, 2] and staged.commit("b" * 64) == [1, 2]  # also without the plan's row
    assert staged.events == []


def test_checkpoint_of_a_surgery_is_committed_once(staged: Staged) -> None:
    staged.apply_plan(3, staged.blob)
    assert staged.commit("0" * 64, SURGERY) == [1, 2, 3]
    assert staged.checkpoints.ref(3) == staged.blob
    details = {"version": 3, "epoch": 4, "operation": "op-1", "plan": "wider"}
    assert staged.events == [("checkpoint.committed", details)]
    assert staged.commit("0" * 64, SURGERY) == [1, 2, 3] and len(staged.events) == 1


@pytest.mark.parametrize("version", [1, 2])
def test_newer_checkpoint_is_not_replaced(staged: Staged, version: int) -> None:
    staged.apply_plan(version, staged.blob)
    assert staged.commit(SURGERY) == [1, 2] and staged.events == []
    assert staged.checkpoints.ref(version) != staged.blob


def test_missing_checkpoint_of_a_surgery_is_logged(staged: Staged, caplog: pytest.LogCaptureFixture) -> None:
    staged.apply_plan(3, MISSING)
    with caplog.at_level(logging.WARNING):
        assert staged.commit(SURGERY) == [1, 2] and staged.events == []
    assert "op-1" in caplog.text


def test_checkpoint_of_a_revert_is_committed(staged: Staged) -> None:
    staged.revert(3, 1, staged.blob)
    assert staged.commit() == [1, 2, 3] and staged.checkpoints.ref(3) == staged.blob
    details = {"version": 3, "epoch": 4, "operation": "op-2", "to_version": 1}
    assert staged.events == [("checkpoint.committed", details)]


@pytest.mark.parametrize("blob", [MISSING, None])
def test_missing_checkpoint_of_a_revert_is_an_error(staged: Staged, blob: Ref | None) -> None:
    staged.revert(3, 1, blob)
    with pytest.raises(Corrupt, match="reverted to version 1, but the staged checkpoint is missing"):
        staged.commit()
    staged.save(3)
    assert staged.commit() == [1, 2, 3] and staged.events == []


@pytest.mark.parametrize(("reverted", "surgery", "committed"), [(3, 5, 5), (5, 3, 5), (4, 4, 4)])
def test_last_cut_over_decides(staged: Staged, reverted: int, surgery: int, committed: int) -> None:
    other = staged.checkpoints.ref(1)
    staged.apply_plan(surgery, staged.blob if surgery == committed else other)
    staged.revert(reverted, 1, staged.blob if reverted > surgery else other)
    assert staged.commit(SURGERY) == [1, 2, committed] and staged.checkpoints.ref(committed) == staged.blob


@pytest.mark.parametrize(("parent", "operation"), [(2, "op-2"), (1, "")])
def test_segment_that_continues_is_no_revert(staged: Staged, parent: int, operation: str) -> None:
    """It continues from the version before it, or no operation began it."""
    staged.revert(3, parent, staged.blob, operation)
    assert staged.commit() == [1, 2]


def test_last_of_several_reverts_is_committed(staged: Staged) -> None:
    staged.revert(3, 1, MISSING)
    staged.revert(4, 2, staged.blob)
    assert staged.commit() == [1, 2, 4] and staged.events[0][1]["to_version"] == 2


@pytest.mark.parametrize(("chain", "extra"), [((), {"schema": "old"}), ((SURGERY,), {"schema": "new"}),
                                              ((SURGERY,), {})])
def test_checkpoint_of_the_present_schema_is_not_changed(staged: Staged, chain: tuple[str, ...],
                                                         extra: dict[str, Any]) -> None:
    migrations = CheckpointMigrations(staged.state, RunRecord(chain=chain), "new", 2)
    tensors = {"w": torch.zeros(3)}
    found = migrations.migrate(tensors, extra)
    assert found[0] is tensors and found[1] is extra
