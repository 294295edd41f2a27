"""The surgery worker: which jobs it refuses or fails, what it records of a cut-over, and its loop."""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.agent.schedules import hyperparameters_at
from five.services.optimizer import surgery_worker
from five.services.optimizer.surgery_worker import JobRefused, SurgeryWorker, bounded, finite
from rapid.store.fencing import FencingToken
from rapid.store.jobs import Job, JobState
from rapid.store.operation_blobs import operation_checkpoint
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore
from tests.services.optimizer_cases import LAYOUT, feed
from tests.services.test_optimizer_surgery_jobs import NEW, OLD, PAYLOAD, PLAN, Bench

LIMITS = {"mean_kl": 0.25, "mean_value_change": 3.0}


def test_approved_bounds_replace_those_of_the_plan() -> None:
    found = bounded(PLAN, {"bounds": LIMITS})
    assert (found.bounds.mean_kl, found.bounds.mean_value_change) == (0.25, 3.0)
    assert found.model_copy(update={"bounds": PLAN.bounds}) == PLAN
    for none in ({}, {"bounds": None}, {"bounds": {}}):
        assert bounded(PLAN, none) is PLAN


@pytest.mark.parametrize("bounds", [{"mean_kl": "much"}, {"invented": 1.0}])
def test_unreadable_bounds_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(JobRefused, match="approved bounds are not readable"):
        bounded(PLAN, {"bounds": bounds})


def test_numbers_without_a_value_in_json_become_text() -> None:
    value = {"a": [1.5, float("inf"), {"b": float("-inf")}], "c": float("nan"), "d": 3, "e": None, "f": "x"}
    assert finite(value) == {"a": [1.5, "inf", {"b": "-inf"}], "c": "nan", "d": 3, "e": None, "f": "x"}


def test_loop_survives_errors_and_rests_without_a_job(monkeypatch: pytest.MonkeyPatch,
                                                      caplog: pytest.LogCaptureFixture) -> None:
    """It asks again at once after a job, and after half a second otherwise. An outage is logged once."""
    slept: list[float] = []
    monkeypatch.setattr(surgery_worker, "time", SimpleNamespace(sleep=slept.append, time=time.time))
    down = ConnectionError("no server")
    results: list[bool | Exception] = [True, False, down, down, True, down, True]

    class Worker(SurgeryWorker):
        def __init__(self) -> None:
            """Nothing is read of a run."""

        def run_once(self) -> bool:
            result = results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

    with caplog.at_level(logging.WARNING):
        Worker().run(lambda: not results)
    assert slept == [0.5] * 4 and not results
    assert [record.getMessage() for record in caplog.records] == ["cannot read jobs: no server"] * 2


@pytest.fixture
def bench(redis_client: redis.Redis, tmp_path: Path) -> Iterator[Bench]:
    """A run at version 0, which the store does not archive by itself."""
    bench = Bench(redis_client, tmp_path, archive_every=0)
    bench.client.playing = False
    feed(bench.training, 4)
    yield bench
    assert bench.publisher is not None
    bench.publisher.release()


def done(job: Job) -> dict[str, Any]:
    assert job.state is JobState.DONE, job.error
    return job.answer


REVERT = {"to_version": 0, "warm_up_versions": 0, "operation": "op-2"}
"""Changes of a payload that make its operation a revert to the run's first version."""


def test_checkpoint_preserves_the_version_before_the_operation(bench: Bench) -> None:
    """A second operation at the same version leaves the pin's reason as it is."""
    record = bench.store.record(0)
    assert record is not None and record.blob is None
    found = done(bench.order("checkpoint"))
    ref = bench.training.checkpoints.ref(0)
    assert found == {"checkpoint": 0, "digest": ref.digest, "bytes": ref.size, "head": 0, "gradient_steps": 0}
    assert bench.store.pins() == {0: "the version before operation op-1"}
    assert bench.training.checkpoints.preserved(0) == [ref]
    done(bench.order("checkpoint", 2, operation="op-2", **{"to_version": 0}))
    assert bench.store.pins() == {0: "the version before operation op-1"}


def test_checkpoint_is_preserved_before_the_head_is_archived(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archiving may take longer than the next checkpoint, which replaces this one unless it is preserved."""
    archive, preserved = bench.store.archive, list[int]()

    def slow(version: int) -> Any:
        preserved.append(len(bench.training.checkpoints.preserved(version)))
        return archive(version)

    monkeypatch.setattr(bench.store, "archive", slow)
    done(bench.order("checkpoint"))
    assert preserved == [1]


def test_cut_over_is_recorded_with_its_operation(bench: Bench) -> None:
    bench.training.learner.gradient_steps = 12
    made = {kind: done(bench.order(kind)) for kind in ("checkpoint", "transform")}["transform"]
    before = bench.state.record()
    assert before is not None
    assert (made["version"], made["warm_up_until"], made["schema"], made["layout"]) == (
        1, 3, NEW.schema, NEW.layout.hash)
    assert done(bench.order("publish")) == {"version": 1}
    meta = bench.store.fetch_meta(1)
    hyper = hyperparameters_at(bench.client.plan, 1, 0).as_dict()
    assert meta == {"schema": NEW.schema, "layout": NEW.layout.hash, "warming": True, "operation": "op-1",
                    "gradient_steps": 12, "hyperparameters": hyper,
                    "reward_std": bench.training.learner.policy.rewards.std()}
    (event,) = [e for e in bench.state.events.last(9) if e.what == "run.cut_over"]
    assert event.who == "ada" and event.details == event.details | {
        "operation": "op-1", "plan": "wider", "plan_digest": PLAN.digest, "schema": NEW.schema, "warm_up_until": 3}
    row = PlanStore(bench.state).get(PLAN.digest)
    assert row is not None and abs(row.pop("at") - time.time()) < 60
    assert row == {
        "plan": PLAN.to_yaml(), "name": "wider", "parent": OLD.schema, "schema": NEW.schema,
        "layout": NEW.layout.hash, "game": dict(before.game), "model": dict(before.model), "epoch": 2, "version": 1,
        "warm_up_until": 3, "checkpoint": bench.blobs.ref(operation_checkpoint("trial", "op-1"))._asdict(),
        "operation": "op-1", "who": "ada"}


@pytest.mark.parametrize("changes", [{}, REVERT], ids=["surgery", "revert"])
def test_cancelled_job_does_not_cut_the_run_over(bench: Bench, changes: dict[str, Any],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    staged = {"version": 1, "checkpoint": bench.training.checkpoints.ref(0)._asdict()}
    stage = bench.store.stage

    def cancel(*arguments: Any) -> Any:
        bench.jobs.cancel("op-1/")
        return stage(*arguments)

    head = bench.store.head()
    made = {"transform": {**staged, "warm_up_until": 1, "schema": OLD.schema, "layout": LAYOUT.hash}}
    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "stage", cancel)
        patched.setattr(bench.worker, "_version", lambda *_: bench.store.fetch(0))
        assert bench.order("publish", made=made, **changes).state is JobState.CANCELLED
    record = bench.state.record()
    assert bench.store.head() == head and record is not None and record.epoch == 1


@pytest.mark.parametrize("changes", [{}, REVERT], ids=["surgery", "revert"])
def test_cut_over_of_a_run_without_a_record_is_refused(bench: Bench, changes: dict[str, Any]) -> None:
    bench.made["transform"] = {"version": 1, "checkpoint": bench.training.checkpoints.ref(0)._asdict()}
    bench.state.redis.delete(bench.state.keys.record)
    found = bench.order("publish", **changes)
    assert (found.state, found.error) == (JobState.REFUSED, "the run has no record")


@pytest.mark.parametrize("changes", [{}, REVERT], ids=["surgery", "revert"])
def test_unknown_kind_of_job_is_refused(bench: Bench, changes: dict[str, Any]) -> None:
    found = bench.order("invent", **changes)
    assert (found.state, found.error) == (JobState.REFUSED, "job kind 'invent' is unknown to this release")


def test_check_needs_a_published_version(bench: Bench) -> None:
    bench.state.redis.delete(bench.state.keys.head)
    bench.store = type(bench.store)(bench.state.redis, bench.state.redis, "trial", bench.store._config, bench.blobs)
    bench.worker.store = bench.store
    found = bench.order("check")
    assert (found.state, found.error) == (JobState.FAILED, "no version is published yet")


def test_error_without_a_text_is_reported_by_its_type(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(bench.worker, "check_plan", fail)
    found = bench.order("check")
    assert (found.state, found.error) == (JobState.FAILED, "AssertionError")


def test_jobs_need_the_publishers_lease(redis_client: redis.Redis) -> None:
    """A token without a fence is that of a process which does not hold the lease."""
    state = RunState(redis_client, "trial")
    state.create({}, "test")
    unused: Any = None
    worker = SurgeryWorker(state, unused, unused, unused, OLD, unused, lambda: FencingToken("optimizer 0", 1, None))
    worker.jobs.submit("op-1/check/1", "check", PAYLOAD)
    assert not worker.run_once() and not replace(worker, fencing_token=lambda: None).run_once()
    job = worker.jobs.get("op-1/check/1")
    assert job is not None and job.state is JobState.WAITING
