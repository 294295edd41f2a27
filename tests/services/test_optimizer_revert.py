"""Sources of a revert: which preserved state it continues from, what it restores, and when it is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import redis
import torch

from five.agent.config import LearnerConfig
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec
from five.run.migration import checkpoint_tensors
from five.services.optimizer import revert
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.revert import RevertSource, VersionNotPreserved
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store.lineage import LineageSegment
from rapid.store.operation_blobs import operation_checkpoint, preserved_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from tests.services.optimizer_cases import GAME, LAYOUT, MODEL

SPEC = AgentSpec(GAME, MODEL)
LEARNING = LearnerConfig(gradient_steps_per_iteration=2, initial_hold_steps=5)
STEPS = 40
"""Gradient steps of the checkpoints, unless a test says otherwise."""
OTHER_SCHEMA = f"version 4 has model schema another, the lineage says {SPEC.schema}"
Arrays = dict[str, npt.NDArray[Any]]


def tensors(value: float) -> Arrays:
    return {"policy/w": np.full(3, value, np.float32), "adam/m/w": np.full(3, value, np.float32)}


class Run:
    """A run at version 8 with its stores. Version 4 is the target of reverts."""

    target = 4

    def __init__(self, client: redis.Redis, folder: Path) -> None:
        self.state = RunState(client, "trial")
        self.record = RunRecord(**SPEC.trees(), layout=LAYOUT.hash, schema=SPEC.schema)
        self.state.create({}, "test", self.record)
        self.blobs = BlobStore(str(folder))
        self.store = ParameterStore(client, client, "trial", StoreConfig(archive_every=0))
        self.checkpoints = Checkpoints(self.blobs, "trial", 3)

    def extra(self, steps: int = STEPS, held: int = 0, **more: Any) -> dict[str, Any]:
        return {"learner": {"gradient_steps": steps, "hold_steps": held}, "schema": SPEC.schema, **more}

    def save(self, value: float, version: int = target, **extra: Any) -> Ref:
        self.checkpoints.save(version, tensors(value), self.extra(**extra))
        return self.checkpoints.ref(version)

    def preserve(self, value: float, operation: str = "op-0", **extra: Any) -> Ref:
        """Preserve a checkpoint of the target that newer ones have replaced."""
        ref = self.save(value, **extra)
        self.checkpoints.preserve(preserved_checkpoint("trial", self.target, operation), ref)
        self.blobs.remove_ref(f"trial/checkpoints/{self.target:012d}")
        return ref

    def damage(self, ref: Ref) -> None:
        (Path(self.blobs.url) / "objects" / ref.digest[:2] / ref.digest).write_bytes(b"damaged")

    def publish(self, arrays: Arrays, **meta: Any) -> None:
        self.store.publish(self.target, arrays, {"schema": SPEC.schema, **meta})

    def damage_published(self) -> None:
        record = self.store.record(self.target)
        assert record is not None
        self.state.redis.setrange(self.state.keys.chunk(self.target, record.digest, 0), 0, b"damaged")

    def source(self, version: int = target) -> RevertSource:
        return revert.source_of(self.state, self.store, self.blobs, self.checkpoints, LEARNING, version)

    def transform(self, head: int = 8, checkpoint: int = 8, warm: int = 0, **present: Any) -> dict[str, Any]:
        """Stage a revert to the target from a run with these newest versions and values of its checkpoint."""
        ref = self.save(8.0, 8, **present)
        made = {"digest": ref.digest, "bytes": ref.size, "head": head, "checkpoint": checkpoint}
        return revert.transform(self.state, self.store, self.blobs, self.checkpoints, LEARNING, {
            "made": {"checkpoint": made}, "to_version": self.target, "warm_up_versions": warm, "operation": "op-1"})

    def staged(self) -> tuple[Arrays, dict[str, Any]]:
        found, extra = checkpoint_tensors(self.blobs, self.blobs.ref(operation_checkpoint("trial", "op-1")))
        return {name: tensor.numpy() for name, tensor in found.items()}, extra


@pytest.fixture
def run(redis_client: redis.Redis, tmp_path: Path) -> Run:
    return Run(redis_client, tmp_path)


def value(source: RevertSource) -> tuple[float, float]:
    """Return the first parameter and the first of Adam's moments."""
    return float(source.tensors["policy/w"][0]), float(source.tensors["adam/m/w"][0])


# Choice of the source.

def test_preserved_checkpoint_is_preferred_to_the_newest(run: Run) -> None:
    """It is the one that the operation before the version left; a resumed run may have written another one since."""
    run.preserve(1.0)
    run.save(2.0)
    source = run.source()
    assert value(source) == (1.0, 1.0) and source.complete
    assert source.record == run.record and source.spec == SPEC


def test_unreadable_checkpoints_are_skipped(run: Run) -> None:
    run.damage(run.preserve(1.0, "op-0"))
    run.preserve(2.0, "op-1")
    assert value(run.source()) == (2.0, 2.0)
    run.damage(run.checkpoints.preserved(run.target)[1])
    run.save(3.0)
    assert value(run.source()) == (3.0, 3.0)


def test_missing_blob_of_a_checkpoint_is_skipped(run: Run) -> None:
    ref = run.preserve(1.0)
    (Path(run.blobs.url) / "objects" / ref.digest[:2] / ref.digest).unlink()
    run.save(2.0)
    assert value(run.source()) == (2.0, 2.0)


def test_checkpoint_of_another_schema_is_refused(run: Run) -> None:
    run.save(1.0, schema="another")
    with pytest.raises(VersionNotPreserved, match=OTHER_SCHEMA):
        run.source()


def test_checkpoint_of_an_earlier_release_has_the_runs_schema(run: Run) -> None:
    run.checkpoints.save(run.target, tensors(1.0), {"learner": {"gradient_steps": STEPS}})
    source = run.source()
    assert value(source) == (1.0, 1.0) and source.schedules is None


def test_version_older_than_the_lineage_is_refused(run: Run) -> None:
    segment = LineageSegment(3, 2, run.record)
    run.state.redis.delete(run.state.keys.lineage)
    run.state.redis.hset(run.state.keys.lineage, "3", segment.to_json())
    run.save(1.0)
    assert run.source().complete
    with pytest.raises(VersionNotPreserved, match="version 2 is older than the run's lineage"):
        run.source(2)


# The version itself, without a checkpoint.

def policy_arrays() -> Arrays:
    torch.manual_seed(7)
    return {name: tensor.numpy() for name, tensor in Policy(LAYOUT, MODEL).state_dict().items()}


@pytest.mark.parametrize("meta", [{"gradient_steps": 30}, {}], ids=["counted steps", "steps of an earlier release"])
def test_version_without_a_checkpoint_starts_with_new_moments(run: Run, meta: dict[str, Any]) -> None:
    arrays = policy_arrays()
    run.publish(arrays, **meta)
    source = run.source()
    assert not source.complete and source.schedules is None
    assert source.learner["gradient_steps"] == meta.get("gradient_steps", 0)
    for name, array in arrays.items():
        np.testing.assert_array_equal(source.tensors[f"policy/{name}"].numpy(), array)
    assert not any(name.startswith("adam/") for name in source.tensors)


def test_version_of_another_schema_is_refused(run: Run) -> None:
    run.publish(policy_arrays(), schema="another")
    with pytest.raises(VersionNotPreserved, match=OTHER_SCHEMA):
        run.source()


@pytest.mark.parametrize("published", [False, True], ids=["never published", "damaged"])
def test_version_that_is_not_preserved_is_refused(run: Run, published: bool) -> None:
    if published:
        run.publish(tensors(1.0))
        run.damage_published()
    with pytest.raises(VersionNotPreserved, match="version 4: neither its checkpoint nor its parameters"):
        run.source()


# Steps after the version.

@pytest.mark.parametrize("published", [
    {}, {"gradient_steps": STEPS}, {"gradient_steps": 38, "schema": "another"},
    {"gradient_steps": 38, "arrays": {"w": np.full(3, 9.0, np.float32), "more": np.zeros(1, np.float32)}}],
    ids=["of an earlier release", "same step", "another schema", "other parameters"])
def test_checkpoint_is_unchanged_unless_it_is_past_its_version(run: Run, published: dict[str, Any]) -> None:
    run.save(1.0)
    run.publish(published.pop("arrays", {"w": np.full(3, 9.0, np.float32)}), **published)
    source = run.source()
    assert value(source) == (1.0, 1.0) and source.learner["gradient_steps"] == STEPS


def test_parameters_of_the_version_replace_those_of_later_steps(run: Run) -> None:
    """A checkpoint that was requested during a pause may contain steps towards the next version."""
    run.save(1.0)
    run.publish({"w": np.full(3, 9.0, np.float32)}, gradient_steps=38)
    source = run.source()
    assert value(source) == (9.0, 1.0) and source.learner == {"gradient_steps": 38, "hold_steps": 0}
    assert source.complete


def test_checkpoint_is_used_when_its_version_is_damaged(run: Run) -> None:
    run.save(1.0)
    run.publish({"w": np.full(3, 9.0, np.float32)}, gradient_steps=38)
    run.damage_published()
    assert value(run.source()) == (1.0, 1.0)


# The staged checkpoint.

def test_progress_of_the_run_is_not_reverted(run: Run) -> None:
    then: dict[str, Any] = {"pacer": "old", "buffer": "old", "hero_steps": 1, "flop": 1.0,
                            "schedules": {"then": 1}}
    now: dict[str, Any] = {"pacer": "new", "buffer": "new", "hero_steps": 2, "flop": 2.0,
                           "schedules": {"now": 1}}
    run.preserve(1.0, **then)
    made = run.transform(**now)
    arrays, extra = run.staged()
    assert extra == {
        "pacer": "new", "buffer": "new", "hero_steps": 2, "flop": 2.0, "schedules": {"then": 1},
        "learner": {"gradient_steps": STEPS, "hold_steps": 0}, "schema": SPEC.schema, "warm_up_until": 9,
        "operation": "op-1"}
    assert arrays.keys() == tensors(1.0).keys() and all((arrays[name] == 1.0).all() for name in arrays)
    assert made == {
        "version": 9, "to_version": 4, "warm_up_until": 9, "schema": SPEC.schema, "layout": LAYOUT.hash,
        "checkpoint": run.blobs.ref(operation_checkpoint("trial", "op-1"))._asdict(), "complete": True,
        "gradient_steps": STEPS, "schedules": {"then": 1}}


def test_values_that_no_checkpoint_has_are_left_out(run: Run) -> None:
    run.preserve(1.0)
    assert run.transform()["schedules"] is None
    assert run.staged()[1].keys() == {"learner", "schema", "warm_up_until", "operation"}


@pytest.mark.parametrize(("head", "checkpoint", "version"), [(8, 8, 9), (8, 6, 9), (6, 8, 9)])
def test_versions_continue_after_the_newest(run: Run, head: int, checkpoint: int, version: int) -> None:
    run.preserve(1.0)
    made = run.transform(head, checkpoint, warm=3)
    assert (made["version"], made["warm_up_until"]) == (version, version + 3)
    assert run.staged()[1]["warm_up_until"] == version + 3


@pytest.mark.parametrize(("complete", "left", "warm", "hold"), [
    (True, 0, 0, 0), (True, 0, 3, 6), (True, 7, 0, 7), (True, 7, 3, 7), (False, 0, 0, 5), (False, 0, 2, 5),
    (False, 0, 3, 6)])
def test_learning_rate_is_held_until_moments_have_settled(run: Run, complete: bool, left: int, warm: int, hold: int
                                                          ) -> None:
    """For the warm-up's versions, for what the target still holds, and without Adam's moments as in a new run."""
    if complete:
        run.preserve(1.0, held=left)
    else:
        run.publish(policy_arrays(), gradient_steps=30)
    assert run.transform(warm=warm)["complete"] is complete
    assert run.staged()[1]["learner"]["hold_steps"] == hold


@pytest.mark.parametrize(("head", "refused"), [(3, True), (4, True), (5, False)])
def test_target_must_be_older_than_the_newest_version(run: Run, head: int, refused: bool) -> None:
    run.preserve(1.0)
    if refused:
        with pytest.raises(VersionNotPreserved, match=f"to_version 4: must be older than the newest version {head}"):
            run.transform(head)
        assert run.blobs.refs("trial/operations/") == [], "a refused revert leaves nothing"
    else:
        assert run.transform(head)["version"] == 9
