"""Checkpoint files that the run's state does not list: forged ones are ignored, and recovering one is a decision."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
import torch

from five.run.config import RunConfig, ServicesConfig
from five.run.config.optimizer import OptimizerConfig
from five.services.optimizer.__main__ import complete_index
from five.services.optimizer.checkpoints import Checkpoints
from rapid.blobs import BlobStore
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.keys import Keys
from rapid.store.operation_blobs import preserved_checkpoint
from rapid.store.state import RunState

RUN = "trial"
FOLDER = f"{RUN}/checkpoints/"
FORGED = 9.0


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    run = RunState(redis_client, RUN)
    run.create({}, "test")
    return run


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def writer(state: RunState, blobs: BlobStore, *versions: int) -> tuple[Checkpoints, FencingToken]:
    """Return the checkpoints of the next lease holder, which has saved ``versions``."""
    lease = state.keys.publisher
    held = state.redis.get(lease)
    if held is not None:
        state.redis.set(lease, held.replace(b'"released":false', b'"released":true'))  # type: ignore[union-attr]
    token = PublisherLease(state.redis, RUN, "optimizer 0", 30.0).acquire()
    checkpoints = Checkpoints(blobs, RUN, 2, CheckpointIndex(state.redis, RUN), lambda: token)
    for version in versions:
        checkpoints.save(version, {"w": torch.full((3,), float(version))}, {})
    return checkpoints, token


def plant(blobs: BlobStore, name: str) -> None:
    """Write a checkpoint file as a process with access to the volume only."""
    outside = BlobStore(blobs.url)
    Checkpoints(outside, "mine", 2).save(0, {"w": torch.full((3,), FORGED)}, {})
    outside.set_ref(FOLDER + name, outside.ref("mine/checkpoints/000000000000"))


def remove_listed(checkpoints: Checkpoints, blobs: BlobStore) -> None:
    for version in checkpoints.versions():
        digest = checkpoints.ref(version).digest
        (Path(blobs.url) / "objects" / digest[:2] / digest).unlink()


def newest(checkpoints: Checkpoints) -> float:
    found = checkpoints.newest()
    assert found is not None
    return float(found[1]["w"][0])


@pytest.mark.parametrize("name", ["000000000007", "000000000007.000001.00000001", "000000000007.000001.00000099"])
def test_forged_file_does_not_replace_missing_checkpoints(state: RunState, blobs: BlobStore, name: str) -> None:
    checkpoints, _ = writer(state, blobs, 1, 2)
    plant(blobs, name)
    remove_listed(checkpoints, blobs)
    successor, _ = writer(state, blobs)
    successor.commit_unindexed()
    with pytest.raises(Corrupt, match=f"services.optimizer.recover_checkpoint.*{name}"):
        successor.newest()


@pytest.mark.parametrize("signature", ["", ".{0}", "." + "0" * 32])
def test_forged_file_of_the_previous_holder_is_ignored(state: RunState, blobs: BlobStore, signature: str,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    """Also one that carries the signature of a genuine checkpoint."""
    _, token = writer(state, blobs, 1, 2)
    genuine = blobs.refs(FOLDER)[-1].rpartition(".")[2]
    name = f"000000000003.{token.epoch:06d}.{token.fence:08d}" + signature.format(genuine)
    plant(blobs, name)
    successor, _ = writer(state, blobs)
    with caplog.at_level(logging.WARNING):
        successor.commit_unindexed()
    assert newest(successor) == 2.0 and name in caplog.text


def test_forged_file_does_not_hide_the_last_checkpoint(state: RunState, blobs: BlobStore) -> None:
    """The genuine file of the previous holder is taken although a planted one of its version sorts behind it."""
    checkpoints, token = writer(state, blobs, 1, 2)
    row = state.redis.hget(state.keys.checkpoints, "2")
    checkpoints.save(3, {"w": torch.full((3,), 3.0)}, {})
    state.redis.hdel(state.keys.checkpoints, "3")
    state.redis.hset(state.keys.checkpoints, "2", row)  # type: ignore[arg-type]
    plant(blobs, f"000000000003.{token.epoch:06d}.{token.fence:08d}." + "f" * 32)
    plant(blobs, "000000000003.000001.00000099")
    successor, _ = writer(state, blobs)
    successor.commit_unindexed()
    assert newest(successor) == 3.0


@pytest.mark.parametrize("name", ["latest", "12", "1e3", "000000000007.bak", "٠٠٠٠٠٠٠٠٠٠٠٧", "000000000007.1.2"])
def test_unknown_names_are_ignored_with_one_warning(state: RunState, blobs: BlobStore, name: str,
                                                    caplog: pytest.LogCaptureFixture) -> None:
    writer(state, blobs, 1)
    plant(blobs, name)
    checkpoints, _ = writer(state, blobs)
    with caplog.at_level(logging.WARNING):
        checkpoints.commit_unindexed()
        checkpoints.save(2, {"w": torch.full((3,), 2.0)}, {})
        assert newest(checkpoints) == 2.0
    assert caplog.text.count("ignored") == 1 and FOLDER + name in blobs.refs(FOLDER)


def test_damaged_name_does_not_stop_the_start(state: RunState, blobs: BlobStore) -> None:
    _, token = writer(state, blobs, 1)
    path = Path(blobs.url) / "refs" / FOLDER / f"000000000009.{token.epoch:06d}.{token.fence:08d}.{'0' * 32}"
    path.write_text("{")
    successor, _ = writer(state, blobs)
    successor.commit_unindexed()
    assert newest(successor) == 1.0


@pytest.mark.parametrize("listed", ["removed", "readable"])
def test_restored_run_continues_from_the_named_file(state: RunState, blobs: BlobStore, listed: str) -> None:
    """The state is older than the blobs. Starts after the first have no more to recover."""
    checkpoints, _ = writer(state, blobs, 1, 2)
    before = state.redis.dump(state.keys.checkpoints)
    if listed == "readable":
        blobs.put(blobs.get(checkpoints.ref(2)), "a copy")
    checkpoints, _ = writer(state, blobs, 3, 4)
    state.redis.restore(state.keys.checkpoints, 0, before, replace=True)  # type: ignore[arg-type]
    state.redis.delete(Keys(RUN).prefix + "checkpoint-key")
    name = blobs.refs(FOLDER)[-1].removeprefix(FOLDER)
    events: list[tuple[str, dict[str, Any]]] = []
    for _ in range(2):
        successor, _ = writer(state, blobs)
        successor.commit_unindexed()
        successor.recover(name, lambda what, details: events.append((what, details)))
        assert newest(successor) == 4.0
    assert [(what, details["version"], details["name"]) for what, details in events] == [
        ("checkpoint.recovered", 4, name)]
    successor.save(5, {"w": torch.full((3,), 5.0)}, {})
    successor.recover(name, lambda *_: events.append(("again", {})))
    assert newest(successor) == 5.0 and len(events) == 1


def test_restored_blobs_continue_from_the_named_file(state: RunState, blobs: BlobStore) -> None:
    """The blobs are older than the state: the listed checkpoints are missing."""
    checkpoints, _ = writer(state, blobs, 1)
    name = blobs.refs(FOLDER)[-1].removeprefix(FOLDER)
    blobs.put(blobs.get(checkpoints.ref(1)), "a copy")
    copy = blobs.ref("a copy")
    for version in (7, 8):
        checkpoints.save(version, {"w": torch.full((3,), float(version))}, {})
    remove_listed(checkpoints, blobs)
    blobs.set_ref(FOLDER + name, copy)
    successor, _ = writer(state, blobs)
    successor.recover(name, lambda *_: None)
    assert newest(successor) == 1.0 and successor.versions() == [1]


def test_start_recovers_the_configured_file(state: RunState, blobs: BlobStore) -> None:
    checkpoints, _ = writer(state, blobs, 1)
    plant(blobs, "000000000007")
    remove_listed(checkpoints, blobs)
    config = RunConfig(services=ServicesConfig(optimizer=OptimizerConfig(recover_checkpoint="000000000007")))
    service = SimpleNamespace(config=config, state=state, record=state.record())
    successor, _ = writer(state, blobs)
    complete_index(service, successor,  # type: ignore[arg-type]
                   lambda what, details: state.events.append("optimizer", what, details))
    assert newest(successor) == FORGED
    assert [e.details["name"] for e in state.events.last(3) if e.what == "checkpoint.recovered"] == ["000000000007"]


@pytest.mark.parametrize("name", ["../../../etc/passwd", "000000000042"])
def test_recovering_an_unknown_file_is_refused(state: RunState, blobs: BlobStore, name: str) -> None:
    checkpoints, _ = writer(state, blobs, 1)
    remove_listed(checkpoints, blobs)
    with pytest.raises(Corrupt, match="services.optimizer.recover_checkpoint"):
        checkpoints.recover(name, lambda *_: None)


def test_planted_name_is_not_a_preserved_checkpoint(state: RunState, blobs: BlobStore) -> None:
    """A revert continues from the contents in the run's state, whatever the name in the blob store points to."""
    checkpoints, _ = writer(state, blobs, 1)
    ref, name = checkpoints.ref(1), preserved_checkpoint(RUN, 1, "anneal-1")
    for _ in range(2):
        checkpoints.preserve(name, ref)
    plant(blobs, "000000000009")
    forged = blobs.ref(FOLDER + "000000000009")
    blobs.set_ref(name, forged)
    blobs.set_ref(preserved_checkpoint(RUN, 1, "anneal-2"), forged)
    blobs.set_ref(f"{RUN}/kept/latest", forged)
    assert checkpoints.preserved(1) == [ref]
    blobs.remove_ref(name)
    other = preserved_checkpoint(RUN, 1, "anneal-3")
    checkpoints.preserve(other, ref)
    assert CheckpointIndex(state.redis, RUN).preserved() == {other: ref}
