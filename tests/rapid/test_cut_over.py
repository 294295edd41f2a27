"""Atomic cut-over to the next epoch: after a death at any command, readers see the state before or after."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.embedded_redis import RunningRedis
from rapid.store.errors import FencedOut, VersionConflict, VersionMissing
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.head_version import HeadVersion, StagedVersion
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status
from tests.rapid.conftest import same, tensors
from tests.rapid.failing_redis import Breaking


class Run:
    """A run in surgery: version 0 is published, version 1 is to be staged and cut over to."""

    def __init__(self, database: redis.Redis, config: StoreConfig, blobs: BlobStore) -> None:
        self.state = RunState(database, "r")
        self.store = ParameterStore(database, database, "r", config, blobs)
        self.state.create({}, "test", RunRecord(game={"a": 1}, model={"lstm": 8}, schema="old"))
        self.fencing_token = PublisherLease(database, "r", "optimizer-0", 60.0).acquire()
        self.store.publish(0, tensors(0), {"v": 0}, fencing_token=self.fencing_token)
        for status in (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING):
            self.state.transition(status, "test")
        record = self.state.record()
        assert record is not None
        self.before = record
        self.after = record.changed(new_epoch=True, model={"lstm": 16}, schema="new", chain=("f" * 64,))

    def stage(self, store: ParameterStore | None = None) -> StagedVersion:
        return (store or self.store).stage(1, tensors(1), {"v": 1})

    def cut_over(self, staged: StagedVersion, state: RunState | None = None, **changes: Any) -> FencingToken:
        options: dict[str, Any] = {"fencing_token": self.fencing_token, "before": self.before, "after": self.after,
                                   **changes}
        return (state or self.state).cut_over(
            options["fencing_token"], staged, options["before"], options["after"], Status.WARMING, "ada",
            {"plan": "widen"})

    def seen(self) -> tuple[Any, ...]:
        """Return everything that a cut-over changes, as readers see it."""
        now, record = self.state.snapshot()
        assert now is not None and record is not None
        cut = [e.details["epoch"] for e in self.state.events.read() if e.what == "run.cut_over"]
        return (now.status, record, self.store.head_digest(), [r.version for r in self.store.records()], cut)


@pytest.fixture
def run(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> Run:
    return Run(database, store_config, blobs)


def test_staged_version_is_visible_only_after_cut_over(run: Run, blobs: BlobStore) -> None:
    before = run.seen()
    staged = run.stage()
    assert run.seen() == before and run.store.stored() == [0]
    with pytest.raises(VersionMissing):
        run.store.fetch(1)
    fencing_token = run.cut_over(staged)
    assert run.seen() == (Status.WARMING, run.after, HeadVersion(1, staged.digest), [0, 1], [2])
    same(run.store.fetch(1)[0], tensors(1))
    record = run.store.record(1)
    assert record is not None and record.blob is not None  # archived before it became visible
    # The same lease in the new epoch; the old token is invalid.
    run.store.publish(2, tensors(2), {}, fencing_token=fencing_token)
    with pytest.raises(FencedOut, match="publishing version 3 is refused: the run has left epoch 1"):
        run.store.publish(3, tensors(3), {}, fencing_token=run.fencing_token)
    assert blobs.refs("r/staged") == [] and "r/versions/0000000001" in blobs.refs("r/versions/")


def test_cut_over_survives_loss_of_params_redis(run: Run, database: redis.Redis) -> None:
    run.cut_over(run.stage())
    database.delete(*database.scan_iter("five:r:params:*"))
    same(run.store.fetch(1)[0], tensors(1))


def test_abandoned_staged_version_frees_its_number(run: Run, blobs: BlobStore) -> None:
    run.stage()
    run.store.publish(1, tensors(7), {"v": 7}, fencing_token=run.fencing_token)
    same(run.store.fetch(1)[0], tensors(7))
    assert blobs.refs("r/staged") == []
    same(ParameterStore(redis.Redis(unix_socket_path="/nowhere"), run.state.redis, "r", StoreConfig(), blobs)
         ._from_blobs(1)[0], tensors(7))  # type: ignore[index]


def test_staging_is_idempotent_and_refuses_published_versions(run: Run) -> None:
    assert run.stage().digest == run.stage().digest
    with pytest.raises(VersionConflict):
        run.store.stage(0, tensors(5), {})


def moved_epoch(run: Run) -> None:
    run.state.redis.set(run.state.keys.record, run.after.to_json())


def moved_revision(run: Run) -> None:
    run.state.set_record(run.before, run.before.changed(new_epoch=False, game={"a": 2}), "ada", "record.set", {})


def moved_lease(run: Run) -> None:
    run.state.redis.delete(run.state.keys.publisher)
    PublisherLease(run.state.redis, "r", "optimizer-0 of another", 60.0).acquire()


def moved_status(run: Run) -> None:
    run.state.transition(Status.PAUSED, "ada", "cancelled")


def moved_head(run: Run) -> None:
    run.store.publish(4, tensors(4), {}, fencing_token=run.fencing_token)


@pytest.mark.parametrize("move", [moved_epoch, moved_revision, moved_lease, moved_status, moved_head])
def test_cut_over_is_refused_after_any_change(run: Run, move: Callable[[Run], None]) -> None:
    staged = run.stage()
    move(run)
    before = run.seen()
    with pytest.raises(FencedOut, match=r"(cut-over to epoch 2|not behind the head)"):
        run.cut_over(staged)
    assert run.seen() == before


@pytest.mark.parametrize("key", ["status", "record"])
def test_cut_over_is_refused_without_a_run(run: Run, key: str) -> None:
    staged, head = run.stage(), run.store.head_digest()
    run.state.redis.delete(getattr(run.state.keys, key))
    with pytest.raises(FencedOut) as refused:
        run.cut_over(staged)
    assert refused.value.reason == "moved" and run.store.head_digest() == head


@pytest.mark.parametrize("head", ["1:other", "2:other"])
def test_cut_over_is_refused_unless_the_head_is_older(run: Run, head: str) -> None:
    staged = run.stage()
    run.state.redis.set(run.state.keys.head, head)
    before = run.state.snapshot()
    with pytest.raises(FencedOut) as refused:
        run.cut_over(staged)
    assert refused.value.reason == "moved" and run.state.snapshot() == before
    assert run.state.redis.get(run.state.keys.head) == head.encode()


def test_first_version_of_a_run_can_be_a_cut_over(run: Run) -> None:
    staged = run.stage()
    run.state.redis.delete(run.state.keys.head)
    run.cut_over(staged)
    assert run.state.record() == run.after and run.store.head_digest() == HeadVersion(1, staged.digest)


@pytest.mark.parametrize("revision", [(2, 1), (3, 2), (2, 3), (1, 2), (1, 1)])
def test_cut_over_rejects_a_record_that_does_not_follow(run: Run, revision: tuple[int, int]) -> None:
    """The next record has revision 2 and epoch 2."""
    after, before = replace(run.after, revision=revision[0], epoch=revision[1]), run.seen()
    with pytest.raises(ValueError, match="does not follow"):
        run.cut_over(run.stage(), after=after)
    assert run.seen() == before


@pytest.mark.parametrize("epoch", [0, 2])
def test_cut_over_rejects_a_token_of_another_epoch(run: Run, epoch: int) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        run.cut_over(run.stage(), fencing_token=replace(run.fencing_token, epoch=epoch))


def broken(run: Run, redis_server: RunningRedis, breaking: Breaking, act: Callable[[ParameterStore, RunState], Any],
           blobs: BlobStore, config: StoreConfig, retries: int = 0) -> Any:
    client = breaking.client(redis_server.url.removeprefix("unix://"), retries)
    hasty = config.model_copy(update={"reconnect_seconds": 0.0})
    return act(ParameterStore(client, client, "r", hasty, blobs), RunState(client, "r"))


@pytest.mark.parametrize("answer", [False, True], ids=["before sending", "before the answer"])
def test_cut_over_is_atomic_under_a_kill_at_each_command(
        database: redis.Redis, store_config: StoreConfig, tmp_path: Path, redis_server: RunningRedis,
        answer: bool) -> None:
    """The connection fails at the first command of staging and cut-over, then at the second, and so on."""
    sides = []
    for at in range(1, 100):
        database.flushall()
        blobs = BlobStore(str(tmp_path / str(at)))
        run = Run(database, store_config, blobs)
        before = run.seen()
        breaking = Breaking(at, answer)

        def surgery(store: ParameterStore, state: RunState, run: Run = run) -> None:
            run.cut_over(run.stage(store), state)

        try:
            broken(run, redis_server, breaking, surgery, blobs, store_config)
        except redis.ConnectionError:
            pass
        if not breaking.broken:
            break  # beyond the last command
        staged = run.stage() if run.seen() == before else None
        after = (Status.WARMING, run.after, HeadVersion(1, staged.digest if staged else ""), [0, 1], [2])
        if staged is None:
            found = run.seen()
            assert found[:2] + found[3:] == after[:2] + after[3:], f"half a cut-over after command {at}"
            same(run.store.fetch(1)[0], tensors(1))
        else:
            run.cut_over(staged)
            assert run.seen() == after
        sides.append("before" if staged else "after")
    assert len(sides) > 5 and sides[0] == "before"
    # Before the one atomic command nothing has changed, after it everything has.
    assert sides == sorted(sides, key=["before", "after"].index)
    assert ("after" in sides) == answer


def test_cut_over_with_lost_response_happens_once(
        database: redis.Redis, store_config: StoreConfig, tmp_path: Path, redis_server: RunningRedis) -> None:
    """The retries of real connections hide a broken connection at any command."""
    for at in range(1, 100):
        database.flushall()
        blobs = BlobStore(str(tmp_path / str(at)))
        run = Run(database, store_config, blobs)
        staged = run.stage()
        breaking = Breaking(at, answer=True)
        broken(run, redis_server, breaking, lambda store, state, run=run, staged=staged:  # type: ignore[misc]
               run.cut_over(staged, state), blobs, store_config, retries=3)
        assert run.seen() == (Status.WARMING, run.after, HeadVersion(1, staged.digest), [0, 1], [2])
        if not breaking.broken:
            break
    assert at > 2


def test_repeated_cut_over_changes_nothing(run: Run) -> None:
    staged = run.stage()
    first = run.cut_over(staged)
    events = len(run.state.events.read())
    assert run.cut_over(staged) == first and len(run.state.events.read()) == events


@pytest.mark.parametrize("head", ["0:older", "1:other", "2:newer"])
def test_repeated_cut_over_is_refused_after_the_head_has_moved(run: Run, head: str) -> None:
    """Its result is no longer the newest version."""
    staged = run.stage()
    run.cut_over(staged)
    run.state.redis.set(run.state.keys.head, head)
    before = run.state.snapshot()
    with pytest.raises(FencedOut):
        run.cut_over(staged)
    assert run.state.snapshot() == before


@pytest.mark.parametrize("lstm", [4, 16, 32])
def test_repeated_cut_over_is_refused_after_the_record_has_moved(run: Run, lstm: int) -> None:
    staged = run.stage()
    run.cut_over(staged)
    moved = run.after.changed(new_epoch=False, model={"lstm": lstm})
    run.state.set_record(run.after, moved, "ada", "record.set", {})
    with pytest.raises(FencedOut):
        run.cut_over(staged)
    assert run.state.record() == moved


def test_cut_over_keeps_the_pause_and_reports_its_reason(run: Run) -> None:
    paused, staged = run.state.status(), run.stage()
    assert paused is not None
    run.state.cut_over(run.fencing_token, staged, run.before, run.after, Status.WARMING, "ada",
                       {"reason": "a wider model", "operation": "op-1"})
    now, event, segment = run.state.status(), run.state.events.last(1)[0], run.state.lineage().segments[-1]
    assert now is not None
    assert (now.status, now.who, now.reason, now.pause) == (Status.WARMING, "ada", "a wider model", paused.pause)
    assert event.details == {"reason": "a wider model", "operation": "op-1", "epoch": 2, "version": 1,
                             "digest": staged.digest, "status": "warming"}
    assert (segment.first, segment.parent, segment.operation) == (1, 0, "op-1")


def test_staging_stores_the_same_arrays_as_publishing(run: Run) -> None:
    contents = {"e": np.zeros((0, 3), np.float32), "ids": np.arange(3, dtype=np.uint16)}
    run.cut_over(run.store.stage(1, contents, {"x": [1]}))
    arrays, meta = run.store.fetch(1)
    same(arrays, contents)
    assert meta == {"x": [1]}
