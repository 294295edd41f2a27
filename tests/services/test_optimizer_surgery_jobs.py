"""Surgery jobs of the optimizer on a real Redis, blob store and learner."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import torch

from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec, AppliedMigration, MigrationChain, derive_plan
from five.run.migration import BrokenChain, chain_of
from five.services.inference.loading import OlderVersions
from five.services.optimizer import background_writer
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.leased_publisher import LeasedPublisher
from five.services.optimizer.migrations import CheckpointMigrations, commit_staged_checkpoint
from five.services.optimizer.sample_recordings import SampleRecordings
from five.services.optimizer.surgery_worker import SurgeryWorker
from five.services.optimizer.training import Training
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.fencing import PublisherLease
from rapid.store.jobs import Job, JobQueue, JobState
from rapid.store.operation_blobs import operation_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status
from rapid.store.surgery_plans import PlanStore
from tests.services.optimizer_cases import GAME, LAYOUT, LEARNING, MODEL, StateInMemory, feed, intake, until
from tests.waiting import eventually

OLD = AgentSpec(GAME, MODEL)
NEW = AgentSpec(GAME.model_copy(update={"observation": GAME.observation.model_copy(update={"pickups": 2})}),
                MODEL.model_copy(update={"lstm": 16}))
PLAN = derive_plan(OLD, NEW, "wider").model_copy(update={"warm_up_versions": 2})
PAYLOAD: dict[str, Any] = {
    "operation": "op-1", "plan": PLAN.to_yaml(), "digest": PLAN.digest, "parent": PLAN.parent, "epoch": 1, "who": "ada",
    "bounds": {"mean_kl": 1.0, "mean_value_change": 10.0}, "made": {}}


class Bench:
    """A run with one optimizer and its stores."""

    def __init__(self, client: redis.Redis, folder: Path, archive_every: int = 1) -> None:
        self.state = RunState(client, "trial")
        self.state.create({}, "test", RunRecord(**OLD.trees(), layout=LAYOUT.hash, schema=OLD.schema))
        for status in (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING):
            self.state.transition(status, "test")
        self.blobs = BlobStore(str(folder / "blobs"))
        self.store = ParameterStore(client, client, "trial", StoreConfig(archive_every=archive_every), self.blobs)
        self.jobs = JobQueue(self.state)
        self.client = StateInMemory()
        self.publisher: LeasedPublisher | None = None
        self.training = self.optimizer(OLD)
        assert self.publisher is not None
        self.worker = self.carries_out(self.training, self.publisher, OLD)
        self.made: dict[str, dict[str, Any]] = {}

    def optimizer(self, spec: AgentSpec) -> Training:
        """Start the next optimizer after the previous one has ended."""
        if self.publisher is not None:
            self.publisher.release()
        record = self.state.record()
        assert record is not None
        publisher = LeasedPublisher(self.store, PublisherLease(self.state.redis, "trial", "optimizer 0", 30.0),
                                    record.epoch, lambda why: None)
        assert publisher.acquire(lambda why: True, 3600.0)
        torch.manual_seed(3)
        training = Training(
            Learner(Policy(spec.layout, spec.model), LEARNING, "cpu"), intake(), LEARNING, publisher,
            Checkpoints(self.blobs, "trial", 3), self.client, {"schema": spec.schema, "layout": spec.layout.hash},
            checkpoint_every=1, migrations=CheckpointMigrations(self.state, record, spec.schema, 2))
        commit_staged_checkpoint(self.state, record, training.checkpoints, self.noted)
        training.start()
        self.publisher = publisher
        return training

    def carries_out(self, training: Training, publisher: LeasedPublisher, spec: AgentSpec) -> SurgeryWorker:
        recordings = SampleRecordings(training.intake.buffer, self.blobs, "trial", spec.layout.hash, 4)
        return SurgeryWorker(self.state, self.store, self.blobs, training, spec, recordings,
                             lambda: publisher.fencing_token)

    def noted(self, what: str, details: dict[str, Any]) -> None:
        self.state.events.append("optimizer-0", what, details)

    def learn(self, versions: int) -> None:
        feed(self.training, 12, first=100 * versions)
        until(self.training, self.training.version + versions)
        self.client.playing = False  # the run is paused

    def order(self, kind: str, attempt: int = 1, **changes: Any) -> Job:
        """Submit a job, run it and return it with its result."""
        identity = f"op-1/{kind}/{attempt}"
        self.jobs.submit(identity, kind, {**PAYLOAD, "made": self.made, **changes})
        if kind == "checkpoint":
            # The training loop writes it.
            thread = threading.Thread(target=self.worker.run_once)
            thread.start()
            left = [400]

            def stop() -> bool:
                left[0] -= 1
                return not thread.is_alive() or left[0] < 0

            self.training.run(stop)
            thread.join()
        else:
            assert self.worker.run_once()
        found = self.jobs.get(identity)
        assert found is not None
        if found.state is JobState.DONE:
            self.made[kind] = found.answer
        return found

    def everything(self) -> tuple[Any, ...]:
        """Return everything that other processes read of the run."""
        return (self.store.head_digest(), self.state.record(), self.state.status(),
                self.training.checkpoints.versions(), [r.digest for r in self.store.records()])


@pytest.fixture
def bench(redis_client: redis.Redis, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(redis_client, tmp_path)
    bench.learn(2)
    yield bench
    assert bench.publisher is not None
    bench.publisher.release()


def through(bench: Bench) -> None:
    for kind in ("check", "checkpoint", "transform", "publish"):
        found = bench.order(kind)
        assert found.state is JobState.DONE, f"{kind}: {found.error}"


def test_surgery_jobs_change_nothing_before_the_cut_over(bench: Bench) -> None:
    before = bench.everything()
    checked = bench.order("check")
    assert checked.state is JobState.DONE, checked.error
    assert checked.answer["ok"], checked.answer["why"]
    assert (checked.answer["version"], checked.answer["samples"]) == (2, 4)
    assert bench.everything() == before
    buffer = bench.training.intake.buffer.statistics()
    written = bench.order("checkpoint")
    assert written.answer["checkpoint"] == 2
    assert bench.store.pins() == {2: "the version before operation op-1"}
    made = bench.order("transform")
    assert (made.answer["version"], made.answer["warm_up_until"]) == (3, 5)
    assert made.answer["schema"] == NEW.schema
    assert bench.everything() == before, "staging changes nothing that others read"
    assert bench.training.intake.buffer.statistics() == buffer

    published = bench.order("publish")
    assert published.state is JobState.DONE, published.error
    record, status = bench.state.record(), bench.state.status()
    assert record is not None and status is not None
    assert (record.epoch, record.chain, record.schema, record.layout) == (2, (PLAN.digest,), NEW.schema,
                                                                          NEW.layout.hash)
    assert AgentSpec.from_trees(record.game, record.model) == NEW
    assert status.status is Status.WARMING
    tensors, meta = bench.store.fetch(3)
    assert bench.store.head() == 3
    assert (meta["schema"], meta["layout"], meta["warming"]) == (NEW.schema, NEW.layout.hash, True)
    assert tensors["core.lstm.weight_hh_l0"].shape == (64, 16)
    # The old optimizer belongs to the previous epoch.
    with pytest.raises(Exception, match="epoch"):
        bench.training.publisher.publish(4, {}, {})


@pytest.mark.parametrize("method", ["claim", "complete"])
def test_job_survives_an_outage_of_redis(bench: Bench, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The reply to a claim is lost, or a completion is not written."""
    jobs = bench.worker.jobs
    real = getattr(jobs, method)

    def lost(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(jobs, method, real)
        if method == "claim":
            assert real(*arguments, **options) is not None
        raise redis.ConnectionError("gone")

    bench.jobs.submit("op-1/check/1", "check", {**PAYLOAD, "made": {}})
    monkeypatch.setattr(jobs, method, lost)
    with pytest.raises(redis.ConnectionError):
        bench.worker.run_once()
    assert bench.worker.run_once()
    found = bench.jobs.get("op-1/check/1")
    assert found is not None and found.state is JobState.DONE and found.attempt == 1
    assert not bench.worker.run_once()


def test_cancelled_job_ends_the_wait_for_its_checkpoint(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow store may take longer than any fixed time; the controller cancels the job at its deadline. An outage of
    Redis does not end the wait."""
    asked = threading.Event()

    def unavailable(job: Job) -> bool:
        asked.set()
        raise redis.ConnectionError("gone")

    monkeypatch.setattr(background_writer, "WANTED_SECONDS", 0.01)
    bench.jobs.submit("op-1/checkpoint/1", "checkpoint", {**PAYLOAD, "made": {}})
    thread = threading.Thread(target=bench.worker.run_once, daemon=True)
    thread.start()
    eventually(lambda: bool(bench.training._requests))
    with monkeypatch.context() as outage:
        outage.setattr(bench.worker.jobs, "is_held", unavailable)
        assert asked.wait(10.0)
    thread.join(0.1)
    assert thread.is_alive()
    bench.jobs.cancel("op-1/")
    thread.join(10.0)
    assert not thread.is_alive()


def test_next_optimizer_resumes_from_the_staged_checkpoint(bench: Bench) -> None:
    through(bench)
    training = bench.optimizer(NEW)
    assert training.version == 3
    assert training.checkpoints.versions()[-1] == 3
    assert training.learner.hold_steps == 2 * LEARNING.gradient_steps_per_iteration
    assert training.warm_up_until == 5
    assert [e.what for e in bench.state.events.last(1)] == ["checkpoint.committed"]
    policy = {n: t.clone() for n, t in training.learner.policy.state_dict().items()}
    published, _ = bench.store.fetch(3)
    for name, tensor in policy.items():
        np.testing.assert_array_equal(tensor.numpy(), published[name])
    # A restart finds the same checkpoint.
    again = bench.optimizer(NEW)
    assert again.version == 3
    assert again.learner.hold_steps == training.learner.hold_steps


def test_missing_staged_checkpoint_is_replaced_by_migration(bench: Bench) -> None:
    through(bench)
    bench.blobs.remove_ref(operation_checkpoint("trial", "op-1"))
    training = bench.optimizer(NEW)
    assert training.version == 3  # after the head
    assert training.learner.hold_steps == PLAN.warm_up_versions * LEARNING.gradient_steps_per_iteration
    training.learner.state_dict()


def test_inference_migrates_earlier_version_without_writes(bench: Bench) -> None:
    through(bench)
    record = bench.state.record()
    assert record is not None
    rows = PlanStore(bench.state).all()
    older = OlderVersions.of(bench.state, record, NEW)
    assert older is not None and older.has(bench.store.fetch_meta(1))
    before = bench.blobs.refs()
    made, meta = older.fetch(bench.store, 1)
    assert meta["schema"] == NEW.schema
    Policy(NEW.layout, NEW.model).load_state_dict({n: torch.from_numpy(a) for n, a in made.items()})
    again, _ = older.fetch(bench.store, 1)  # on another server
    np.testing.assert_array_equal(again["core.lstm.weight_hh_l0"], made["core.lstm.weight_hh_l0"])
    assert bench.blobs.refs() == before
    newer = AgentSpec(NEW.game, NEW.model.model_copy(update={"lstm": 32}))
    other = MigrationChain([AppliedMigration(derive_plan(NEW, newer, "wider-still"), NEW)])
    with pytest.raises(BrokenChain, match=f"version 1: schema {OLD.schema} is not in this run's chain"):
        OlderVersions(other, newer.schema, newer.layout.hash).fetch(bench.store, 1)

    edited = {PLAN.digest: {**rows[PLAN.digest], "plan": rows[PLAN.digest]["plan"].replace("to: 16", "to: 20")}}
    with pytest.raises(BrokenChain, match="edited or replaced"):
        chain_of(record, edited)
    with pytest.raises(BrokenChain, match="missing"):
        chain_of(record, {})


def test_repeated_surgery_jobs_change_nothing(bench: Bench) -> None:
    for kind in ("check", "checkpoint", "transform"):
        first, second = bench.order(kind, 1), bench.order(kind, 2)
        assert first.answer == second.answer, kind
    assert bench.order("publish").state is JobState.DONE
    after = bench.everything()
    identity = "op-1/publish/2"
    bench.jobs.submit(identity, "publish", {**PAYLOAD, "made": bench.made})
    # The same process runs the jobs again, as after a lost result.
    assert bench.worker.run_once()
    found = bench.jobs.get(identity)
    assert found is not None
    assert found.answer == {"version": 3}
    assert bench.everything() == after


def fail(*_: Any) -> Any:
    raise ConnectionError("the store is down")


def test_invalid_jobs_are_refused_and_errors_fail(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.order("check", 1, digest="0" * 64).state is JobState.REFUSED
    stale = bench.order("check", 2, plan=PLAN.model_copy(update={"parent": "0" * 16}).to_yaml(),
                        digest=PLAN.model_copy(update={"parent": "0" * 16}).digest)
    assert stale.state is JobState.REFUSED
    assert "the run has" in stale.error
    assert bench.order("check", 3, plan="no: plan").state is JobState.REFUSED
    assert bench.order("invent", 4).state is JobState.REFUSED
    bench.order("checkpoint")
    tight = bench.order("transform", 5, bounds={"mean_value_change": 0.0, "max_logit_change": 0.0})
    assert tight.state is JobState.REFUSED
    assert "outside the approved bounds" in tight.error

    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "fetch", fail)
        assert bench.order("check", 6).state is JobState.FAILED
    assert bench.order("check", 7).state is JobState.DONE


def test_cut_over_outside_an_operation_is_refused(bench: Bench) -> None:
    for kind in ("check", "checkpoint", "transform"):
        bench.order(kind)
    bench.state.transition(Status.PAUSED, "test")
    before = bench.everything()
    refused = bench.order("publish")
    assert refused.state is JobState.REFUSED
    assert bench.everything() == before


def test_optimizer_without_lease_claims_no_jobs(bench: Bench) -> None:
    bench.jobs.submit("op-1/check/1", "check", PAYLOAD)
    assert bench.publisher is not None
    bench.publisher.release()
    assert not bench.worker.run_once()
    other = replace(bench.worker, fencing_token=lambda: None)
    assert not other.run_once()
