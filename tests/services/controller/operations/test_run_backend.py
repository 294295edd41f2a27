"""The engine's view of a run in real Redis and a real blob store: what is stale, published, staged, and not renewed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, new_operation
from five.services.controller.operations.run_backend import RunBackend, stale
from five.services.controller.run.reconcile import NEEDED
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.jobs import JobQueue, JobState
from rapid.store.operation_blobs import operation_checkpoint, operation_folder, pin_reason, preserved_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status
from rapid.store.surgery_plans import PlanChecks

SCHEMA, PLAN = "p" * 16, "d" * 64
REQUEST = OperationRequest(plan="name: wider", digest=PLAN, name="wider", parent=SCHEMA, epoch=1, to_version=None,
                           bounds={"mean_kl": 0.1})


class Run:
    """A run with a parameter store and a publisher's lease."""

    def __init__(self, client: redis.Redis, folder: Path) -> None:
        self.state = RunState(client, "trial")
        self.blobs = BlobStore(str(folder / "blobs"))
        self.store = ParameterStore(client, client, "trial", StoreConfig(archive_every=1), self.blobs)
        self.limits = StepLimits({"pause": 5.0}, attempts=2)
        self.backend = RunBackend(self.state, self.store, self.blobs, self.limits, lambda record: f"of {record.epoch}")
        self.state.create({}, "test", RunRecord(schema=SCHEMA))
        self.token = PublisherLease(client, "trial", "optimizer-0", 60.0).acquire()

    def publish(self, version: int) -> None:
        self.store.publish(version, {"w": np.full(3, version, np.float32)}, {}, fencing_token=self.token)

    def cut_over(self, version: int, **record: Any) -> FencingToken:
        """Begin the next epoch with a new version, as a surgery or, with ``operation``, a revert."""
        operation = record.pop("operation", "")
        for to in (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING):
            self.state.transition(to, "test")
        before = self.state.record()
        assert before is not None
        staged = self.store.stage(version, {"w": np.zeros(3, np.float32)}, {})
        self.token = self.state.cut_over(self.token, staged, before, before.changed(new_epoch=True, **record),
                                         Status.WARMING, "optimizer-0", {"operation": operation})
        return self.token

    def commit_checkpoint(self, version: int) -> None:
        ref = self.blobs.put([b"checkpoint"], f"trial/checkpoints/{version}")
        CheckpointIndex(self.state.redis, "trial").commit(self.token, version, f"trial/checkpoints/{version}", ref)


@pytest.fixture
def run(redis_client: redis.Redis, tmp_path: Path) -> Run:
    return Run(redis_client, tmp_path)


def operation(kind: OperationKind = OperationKind.SURGERY, identity: str = "op-1", **request: Any) -> Operation:
    return new_operation(identity, kind, "ada", REQUEST.model_copy(update=request), 0.0, "running")


def test_backend_reads_and_changes_the_run(run: Run) -> None:
    assert run.backend.limits == run.limits
    assert run.backend.head() == -1
    run.publish(0)
    run.publish(1)
    assert run.backend.head() == 1
    run.backend.transition(Status.RUNNING, "operation op-1")
    status = run.backend.status()
    assert status is not None and (status.status, status.who, status.reason) == (
        Status.RUNNING, "controller", "operation op-1")
    assert abs(run.backend.now() - status.since) < 60.0
    assert run.backend.not_idle() == []
    run.state.lease("rollout", "3", 60.0).renew()
    run.backend.transition(Status.PAUSING, "operation op-1")
    assert run.backend.not_idle() == ["rollout/3"]


def test_plan_fits_only_its_schema_and_epoch() -> None:
    record = RunRecord(revision=3, epoch=2, schema=SCHEMA)

    def of_record(record: RunRecord) -> str:
        return f"of epoch {record.epoch}"

    assert stale(record, SCHEMA, 2, of_record) == ""
    assert stale(None, SCHEMA, 2, of_record) == "the run has no record"
    for epoch in (1, 3):
        assert f"checked in epoch {epoch}, the run is in epoch 2" in stale(record, SCHEMA, epoch, of_record)
    for other in ("a", "q"):
        assert f"starts from model schema {other}, the run has pppp" in stale(record, other, 2, of_record)
    unknown = RunRecord(revision=3, epoch=2)
    assert stale(unknown, "of epoch 2", 2, of_record) == ""
    assert "the run has of epoch 2" in stale(unknown, SCHEMA, 2, of_record)


def test_revert_is_stale_in_another_epoch_whatever_the_schema(run: Run) -> None:
    assert run.backend.stale_reason(operation()) == ""
    assert "model schema other" in run.backend.stale_reason(operation(parent="other"))
    assert run.backend.stale_reason(operation(OperationKind.REVERT, parent="other")) == ""
    for epoch in (0, 2):
        other = operation(OperationKind.REVERT, epoch=epoch)
        assert f"requested in epoch {epoch}, but the run is in another one" in run.backend.stale_reason(other)
    run.state.redis.delete(run.state.keys.record)
    assert run.backend.stale_reason(operation()) == "the run has no record"
    assert "the run is in another one" in run.backend.stale_reason(operation(OperationKind.REVERT))


def test_surgery_is_published_once_a_later_epoch_names_its_plan(run: Run) -> None:
    surgery, revert = operation(), operation(OperationKind.REVERT, "revert-1")
    run.publish(0)
    assert not run.backend.published(surgery) and not run.backend.published(revert)
    run.cut_over(1, chain=(PLAN,))
    assert run.backend.published(surgery)
    assert not run.backend.published(operation(digest="e" * 64))
    for epoch in (2, 3):  # the same plan again, decided after that
        assert not run.backend.published(operation(epoch=epoch))
    assert not run.backend.published(revert)
    run.state.redis.delete(run.state.keys.record)
    assert not run.backend.published(surgery)


def test_revert_is_published_once_the_lineage_names_it(run: Run) -> None:
    run.publish(0)
    run.cut_over(1, operation="revert-1")
    assert run.backend.published(operation(OperationKind.REVERT, "revert-1"))
    for other in ("revert-0", "revert-2"):
        assert not run.backend.published(operation(OperationKind.REVERT, other))
    assert not run.backend.published(operation())


def test_jobs_are_submitted_withdrawn_and_removed_by_operation(run: Run) -> None:
    queue = JobQueue(run.state)
    for identity in ("op-1/check/1", "op-1/transform/1", "op-10/check/1"):
        assert run.backend.job(identity, "check", {"of": identity}) == queue.get(identity)
    assert run.backend.job("op-1/check/1", "check", {}).payload == {"of": "op-1/check/1"}
    run.backend.withdraw_jobs(operation())

    def states() -> dict[str, JobState | None]:
        found = {i: queue.get(i) for i in ("op-1/check/1", "op-1/transform/1", "op-10/check/1")}
        return {i: None if job is None else job.state for i, job in found.items()}

    assert list(states().values()) == [JobState.CANCELLED, JobState.CANCELLED, JobState.WAITING]
    run.backend.remove_jobs(operation())
    assert list(states().values()) == [None, None, JobState.WAITING]


def staged_by(run: Run, identity: str, version: int) -> list[str]:
    """Stage a checkpoint for an operation, preserve another one and pin a version. Return the blobs' names."""
    names = [operation_checkpoint("trial", identity), operation_folder("trial", identity) + "moments",
             preserved_checkpoint("trial", version, identity)]
    for name in names:
        run.blobs.put([name.encode()], name)
    run.publish(version)
    run.store.pin(version, pin_reason(identity))
    return names


def test_failed_operation_leaves_no_blobs_or_pins(run: Run) -> None:
    staged_by(run, "op-1", 0)
    others = staged_by(run, "op-2", 1)
    for version, reason in ((2, "rating reference"), (3, "a person")):
        run.publish(version)
        run.store.pin(version, reason)
    versions = [f"trial/versions/{v:010d}" for v in range(4)]
    run.backend.discard_staged(operation())
    assert run.blobs.refs("trial") == sorted([*others, *versions])
    assert run.store.pins() == {1: pin_reason("op-2"), 2: "rating reference", 3: "a person"}
    run.backend.discard_staged(operation())  # repeated after a crash


def test_published_operation_keeps_its_pin_and_preserved_checkpoint(run: Run) -> None:
    *_, preserved = staged_by(run, "op-1", 0)
    run.backend.remove_staged(operation())
    assert run.blobs.refs("trial") == sorted([preserved, "trial/versions/0000000000"])
    assert run.store.pins() == {0: pin_reason("op-1")}


def test_result_of_a_check_is_stored_by_plan(run: Run) -> None:
    run.backend.save_check(operation(), {"ok": True, "version": 4})
    row = PlanChecks(run.state).get(PLAN)
    assert row is not None and abs(row.pop("at") - run.backend.now()) < 60.0
    assert row == {"digest": PLAN, "plan": "name: wider", "name": "wider", "parent": SCHEMA, "epoch": 1,
                   "bounds": {"mean_kl": 0.1}, "operation": "op-1", "who": "ada",
                   "result": {"ok": True, "version": 4}}


def test_revert_restores_the_schedules_of_its_checkpoint(run: Run) -> None:
    revert = operation(OperationKind.REVERT, "revert-1", to_version=3)
    assert run.backend.restore(revert) == {"schedules": [], "anneal": ""}
    then = SchedulesConfig(learning_rate=ScheduleConfig(initial=0.5))
    transformed = revert.with_step("transform", result={"schedules": dump_schedules(then)})
    assert run.backend.restore(transformed) == {"schedules": ["learning_rate"], "anneal": ""}
    assert run.state.schedules()["learning_rate"] == dump_schedules(then)["learning_rate"]
    assert run.backend.restore(transformed) == {"schedules": [], "anneal": ""}  # repeated after a crash


def test_anneal_needs_a_kept_checkpoint(run: Run) -> None:
    anneal = operation(OperationKind.ANNEAL, "anneal-1", anneal={"id": "patch-1"})
    assert run.backend.begin_anneal(anneal) == "the run has no version to revert to yet"
    assert run.backend.begin_anneal(operation()) == "the run has no version to revert to yet"


def test_every_needed_service_must_have_restarted(run: Run) -> None:
    run.publish(0)
    run.cut_over(1, chain=(PLAN,))
    published = operation().with_step("publish", result={"version": 1})
    absent = [f"{kind}, of which no instance is live" for kind in NEEDED]
    checkpoint = "the optimizer, to resume from the checkpoint of version 1"
    assert run.backend.not_renewed(published) == [checkpoint, *absent]
    assert "the optimizer, to resume from the checkpoint of version 0" in run.backend.not_renewed(
        operation().with_step("publish", result={"version": 0}))
    record = run.state.record()
    assert record is not None
    leases = {kind: run.state.lease(kind, "0", 60.0) for kind in (*NEEDED, "play")}
    leases["optimizer"].renew(epoch=2, revision=record.revision)
    assert run.backend.not_renewed(published) == [checkpoint, absent[0], absent[2]]
    leases["optimizer"].renew(epoch=3, revision=record.revision + 1)  # of a record that is newer than the one read
    assert run.backend.not_renewed(published) == ["optimizer/0", checkpoint, absent[0], absent[2]]
    for lease in leases.values():
        lease.renew(epoch=1, revision=record.revision - 1)
    assert run.backend.not_renewed(published) == [
        "inference/0", "optimizer/0", "play/0", "rollout/0", checkpoint]
    leases["rollout"].renew(epoch=2, revision=record.revision - 1)
    leases["play"].renew(epoch=2, revision=record.revision)
    assert run.backend.not_renewed(published) == ["inference/0", "optimizer/0", "rollout/0", checkpoint]
    for lease in leases.values():
        lease.renew(epoch=2, revision=record.revision)
    run.commit_checkpoint(0)
    assert run.backend.not_renewed(published) == [checkpoint]
    run.commit_checkpoint(1)
    assert run.backend.not_renewed(published) == []
    assert run.backend.not_renewed(operation()) == []  # its publish step has no result yet
    run.state.redis.delete(run.state.keys.record)
    assert run.backend.not_renewed(published) == ["the run's record, which is missing"]
