"""Revert jobs of the optimizer on a real Redis, blob store and learner, also across a surgery."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import torch

from five.agent.surgery import AgentSpec
from rapid.store.errors import Corrupt
from rapid.store.jobs import Job, JobState
from rapid.store.operation_blobs import operation_checkpoint, preserved_checkpoint
from rapid.store.state import Status
from tests.services.optimizer_cases import LEARNING, feed, until
from tests.services.test_optimizer_surgery_jobs import NEW, OLD, PLAN, Bench
from tests.waiting import eventually


class Reverting(Bench):
    """Bench that gives each operation a new name."""

    operation = ""

    def placed(self, kind: str, **changes: Any) -> Job:
        return self.order(kind, int(self.operation.rpartition("-")[2]) * 10, operation=self.operation, **changes)

    def revert(self, operation: str, target: int, warm: int = 0) -> Job:
        """Run all jobs of a revert; return the last one, or the first that was refused."""
        self.operation, self.made = operation, {}
        for kind in ("checkpoint", "transform", "publish"):
            done = self.placed(kind, to_version=target, warm_up_versions=warm)
            if done.state is not JobState.DONE:
                return done
        return done

    def go_on(self, spec: AgentSpec, versions: int = 0) -> None:
        """Start the optimizer under the new record, train it and start the next operation."""
        self.training = self.optimizer(spec)
        assert self.publisher is not None
        self.worker = self.carries_out(self.training, self.publisher, spec)
        for status in (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING):
            self.state.transition(status, "test")
        if versions:
            self.more(versions)

    def more(self, versions: int) -> None:
        self.client.playing = True
        for version in range(self.training.version + 1, self.training.version + versions + 1):
            feed(self.training, 6, first=1000 * version)
            until(self.training, version)
        self.client.playing = False

    def keep(self, operation: str) -> Job:
        """Run the job with which an anneal preserves a checkpoint."""
        self.jobs.submit(f"{operation}/keep/1", "keep", {"operation": operation, "made": {}})
        thread = threading.Thread(target=self.worker.run_once)
        thread.start()
        self.training.run(lambda: not thread.is_alive())
        thread.join()
        found = self.jobs.get(f"{operation}/keep/1")
        assert found is not None and found.state is JobState.DONE, found
        return found

    def tensors(self, version: int) -> dict[str, np.ndarray[Any, Any]]:
        return self.store.fetch(version)[0]


@pytest.fixture
def bench(redis_client: redis.Redis, tmp_path: Path) -> Iterator[Reverting]:
    bench = Reverting(redis_client, tmp_path)
    bench.learn(2)
    yield bench
    assert bench.publisher is not None
    bench.publisher.release()


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(np.asarray(a[n]), np.asarray(b[n])) for n in a)


def test_revert_restores_parameters_and_moments(bench: Reverting) -> None:
    kept = bench.keep("anneal-1")
    assert (kept.answer["checkpoint"], kept.answer["head"]) == (2, 2)
    state = bench.training.learner.state_dict()
    steps = bench.training.learner.gradient_steps
    bench.more(5)
    assert bench.training.checkpoints.versions() == [5, 6, 7], "version 2 is kept by its name alone"
    before, hero_steps = bench.state.record(), bench.training.intake.hero_steps
    done = bench.revert("revert-1", 2)
    assert done.state is JobState.DONE, done.error
    made = bench.made["transform"]
    assert (made["version"], made["to_version"], made["complete"]) == (8, 2, True)
    assert made["gradient_steps"] == steps

    record, now = bench.state.record(), bench.state.status()
    assert record is not None and before is not None and now is not None
    assert record == before.changed(new_epoch=True) and now.status is Status.WARMING
    assert same(bench.tensors(8), bench.tensors(2)) and not same(bench.tensors(7), bench.tensors(2))
    assert bench.state.lineage().branches(8) == [range(3, 8)]
    assert bench.store.fetch(5)[0], "the reverted branch remains available"

    bench.go_on(OLD)
    learner = bench.training.learner
    assert same(learner.state_dict(), state) and learner.gradient_steps == steps and learner.hold_steps == 0
    assert bench.training.version == 8 and bench.training.intake.hero_steps == hero_steps
    assert [e.what for e in bench.state.events.last(9)].count("checkpoint.committed") == 1
    bench.more(2)
    assert bench.store.head() == 10 and not same(bench.tensors(10), bench.tensors(8))


def test_anneal_begins_at_the_preserved_version(bench: Reverting) -> None:
    """Learning goes on while the checkpoint is written."""
    save = bench.training.checkpoints.save

    def slow_save(version: int, *arguments: Any) -> None:
        if version == 2:
            bench.client.playing = True
            eventually(lambda: bench.store.head() != version)
        save(version, *arguments)

    bench.training.checkpoints.save = slow_save  # type: ignore[method-assign]
    feed(bench.training, 8, first=1000)
    kept = bench.keep("anneal-1")
    assert bench.store.head() != 2
    assert (kept.answer["checkpoint"], kept.answer["head"]) == (2, 2)
    assert bench.store.pins() == {2: "the version before operation anneal-1"}


def test_revert_drops_steps_taken_after_the_version(bench: Reverting) -> None:
    learner = bench.training.learner
    steps = learner.gradient_steps
    with torch.no_grad():  # a step of the next iteration, which a pause interrupts
        for parameter in learner.policy.parameters():
            parameter.add_(0.25)
    learner.gradient_steps += 1
    bench.keep("anneal-1")
    bench.more(2)
    assert bench.revert("revert-1", 2).state is JobState.DONE
    assert same(bench.tensors(5), bench.tensors(2))
    bench.go_on(OLD)
    assert bench.training.learner.gradient_steps == steps


def test_revert_of_a_revert(bench: Reverting) -> None:
    bench.more(3)
    assert bench.revert("revert-1", 3).state is JobState.DONE
    bench.go_on(OLD, 2)
    assert bench.store.head() == 8
    # Back to the newest version of the abandoned branch, whose checkpoint the first revert preserved.
    assert bench.revert("revert-2", 5).state is JobState.DONE
    assert bench.made["transform"]["complete"]
    bench.go_on(OLD)
    assert bench.training.version == 9 and same(bench.tensors(9), bench.tensors(5))
    lineage = bench.state.lineage()
    assert lineage.branches(9) == [range(6, 9)] and lineage.is_ancestor(5, 9) and not lineage.is_ancestor(8, 9)


def test_revert_across_a_surgery_restores_the_schema(bench: Reverting) -> None:
    first = bench.state.record()
    bench.operation = "surgery-1"
    for kind in ("check", "checkpoint", "transform", "publish"):
        assert bench.placed(kind).state is JobState.DONE
    bench.go_on(NEW)
    assert bench.store.head() == 3
    done = bench.revert("revert-2", 2, warm=1)
    assert done.state is JobState.DONE, done.error
    record = bench.state.record()
    assert record is not None and first is not None
    assert (record.epoch, record.revision) == (3, 3)
    assert (record.game, record.model, record.layout, record.schema, record.chain) == (
        first.game, first.model, first.layout, first.schema, ())
    assert same(bench.tensors(4), bench.tensors(2))
    assert bench.store.fetch_meta(4)["schema"] == OLD.schema and bench.store.fetch_meta(4)["warming"]
    bench.go_on(OLD)
    assert bench.training.version == 4 and bench.training.warm_up_until == 5
    assert bench.training.learner.hold_steps == LEARNING.gradient_steps_per_iteration
    # And forward again to the version of the other schema.
    assert bench.revert("revert-3", 3).state is JobState.DONE
    again = bench.state.record()
    assert again is not None and again.chain == (PLAN.digest,) and again.schema == NEW.schema
    bench.go_on(NEW)
    assert bench.training.version == 5 and same(bench.tensors(5), bench.tensors(3))


def test_revert_without_checkpoint_resets_moments(bench: Reverting) -> None:
    bench.more(5)
    done = bench.revert("revert-1", 3, warm=2)
    assert done.state is JobState.DONE, done.error
    assert not bench.made["transform"]["complete"] and bench.made["transform"]["schedules"] is None
    bench.go_on(OLD)
    state = bench.training.learner.state_dict()
    assert same({n.removeprefix("policy/"): t for n, t in state.items() if n.startswith("policy/")}, bench.tensors(3))
    assert all(not torch.as_tensor(t).any() for n, t in state.items() if n.startswith("adam/"))
    assert bench.training.learner.hold_steps == 2 * LEARNING.gradient_steps_per_iteration


def test_revert_to_a_missing_version_is_refused(bench: Reverting) -> None:
    bench.more(5)
    bench.store._archive.prune(4)  # type: ignore[union-attr]
    bench.state.redis.hset(bench.state.keys.versions, "3", b'{"digest": "x", "bytes": 1, "created_at": 1.0}')
    bench.blobs.remove_ref("trial/versions/0000000003")
    before = bench.state.record(), bench.store.head_digest()
    for target, said in ((3, "version 3: neither"), (7, "to_version 7"),
                         (99, "version 99: neither")):
        done = bench.revert(f"revert-{target}", target)
        assert done.state is JobState.REFUSED and said in done.error, done.error
    assert (bench.state.record(), bench.store.head_digest()) == before


def test_repeated_revert_jobs_change_nothing(bench: Reverting) -> None:
    bench.more(3)
    assert bench.revert("revert-1", 3).state is JobState.DONE
    record, head = bench.state.record(), bench.store.head_digest()
    bench.jobs.submit("revert-1/publish/2", "publish", {
        "operation": "revert-1", "to_version": 3, "made": bench.made, "who": "ada", "warm_up_versions": 0})
    assert bench.worker.run_once()
    again = bench.jobs.get("revert-1/publish/2")
    assert again is not None and again.state is JobState.DONE and again.answer == {"version": 6}
    assert (bench.state.record(), bench.store.head_digest()) == (record, head)


def test_resume_without_the_reverted_checkpoint_is_refused(bench: Reverting) -> None:
    bench.more(3)
    assert bench.revert("revert-1", 3).state is JobState.DONE
    name = operation_checkpoint("trial", "revert-1")
    bench.blobs.remove_ref(name)
    bench.blobs.put(b"forged by another process", name)
    with pytest.raises(Corrupt, match="reverted to version 3"):
        bench.go_on(OLD)
    assert bench.blobs.ref(preserved_checkpoint("trial", 5, "revert-1"))
