"""Resume after a restart, a damaged checkpoint or a kill."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from five.services.optimizer.checkpoints import Checkpoints
from rapid.blob_files import LocalFiles
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.blob_owner import BlobsOwned, claim_blobs
from rapid.store.errors import Corrupt
from rapid.store.operation_blobs import preserved_checkpoint
from tests.services.optimizer_cases import (
    HYPER,
    UNROLL,
    Versions,
    feed,
    segment,
    training,
    until,
)


def test_resume_is_exact_to_the_bit(tmp_path: Path) -> None:
    versions = Versions()
    first = training(tmp_path / "a", versions)
    first.start()
    feed(first, 4)
    until(first, 1)

    again = training(tmp_path / "a", versions)
    again.start()
    assert again.version == 1 and again.client.events == ["optimizer.resumed"]  # type: ignore[attr-defined]
    batch = {n: np.repeat(a[:UNROLL, None], 2, 1) if not n.startswith("state/") else np.repeat(a[:1], 2, 0)
             for n, a in segment(1, seed=9).items()}
    for run in (first, again):
        run.learner.train_step(batch, HYPER)
    ours, theirs = first.learner.state_dict(), again.learner.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def test_resume_numbers_versions_after_the_head(tmp_path: Path) -> None:
    versions = Versions()
    run = training(tmp_path, versions)
    run.start()
    versions.published[5] = versions.published[0]
    again = training(tmp_path, versions)
    again.start()
    assert again.version == 5
    feed(again, 4)
    until(again, 6)
    assert 6 in versions.published


def test_run_without_checkpoints_refuses_to_start(tmp_path: Path) -> None:
    versions = Versions()
    training(tmp_path / "a", versions).start()
    with pytest.raises(RuntimeError, match="blobs.url"):
        training(tmp_path / "b", versions).start()


def test_old_checkpoints_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    for v in range(4):
        store.save(v, {"w": torch.full((3,), float(v))}, {"v": v})
    assert store.versions() == [2, 3]
    tensors, extra = store.load(3)
    assert tensors["w"].tolist() == [3.0] * 3 and extra == {"v": 3}


def test_newest_checkpoint_is_of_the_runs_present_branch(tmp_path: Path) -> None:
    """After a revert the checkpoints of the abandoned branch are newer."""
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 3, is_current=lambda version: version < 2)
    for version in (1, 2, 3):
        store.save(version, {"w": torch.ones(3)}, {})
    found, newest = store.newest(), Checkpoints(blobs, "trial", 3).newest()
    assert found is not None and found[0] == 1
    assert newest is not None and newest[0] == 3, "without a revert every version is current"


def test_checkpoints_are_preserved_by_version_and_operation(tmp_path: Path) -> None:
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 1)
    refs = {}
    for version in (1, 2, 3):
        store.save(version, {"w": torch.full((3,), float(version))}, {})
        refs[version] = store.ref(version)
        store.preserve(preserved_checkpoint("trial", version, "op-1"), refs[version])
    store.preserve(preserved_checkpoint("trial", 2, "op-2"), refs[3])
    assert store.versions() == [3], "their names alone keep them"
    assert {version: store.preserved(version) for version in (0, 1, 2, 3)} == {
        0: [], 1: [refs[1]], 2: [refs[2], refs[3]], 3: [refs[3]]}


def test_required_checkpoint_must_be_readable(tmp_path: Path) -> None:
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    store.save(1, {"w": torch.ones(3)}, {})
    store.require(1)
    with pytest.raises(BlobMissing):
        store.require(2)


def test_checkpoint_round_trip_is_exact(tmp_path: Path) -> None:
    tensors = {"w": torch.randn(5, 3).T, "half": torch.randn(3).half(), "count": torch.tensor([2.5]).double(),
               "step": torch.tensor(3.0), "seen": torch.tensor([True, False]), "n": torch.arange(4)}
    extra = {"schedule": [[0, 1e-4]], "big": 2**60, "name": "x"}
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    store.save(7, tensors, extra)
    back, found = store.load(7)
    assert found == extra and back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and torch.equal(back[name], tensor), name


def damage(folder: Path, store: BlobStore, version: int) -> None:
    digest = store.ref(f"trial/checkpoints/{version:012d}").digest
    path = folder / "objects" / digest[:2] / digest
    path.write_bytes(path.read_bytes()[:-1])


def test_damaged_checkpoint_is_skipped_unless_all_are(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 2)
    assert store.newest() is None
    for v in (1, 2):
        store.save(v, {"w": torch.full((3,), float(v))}, {})
    damage(tmp_path, blobs, 2)
    found = store.newest()
    assert found is not None and found[0] == 1
    damage(tmp_path, blobs, 1)
    with pytest.raises(Corrupt, match=r"no checkpoint is readable: version 2.*version 1"):
        store.newest()


def test_resume_from_older_checkpoint_keeps_version_order(tmp_path: Path) -> None:
    versions = Versions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 8)
    until(run, 2)
    damage(tmp_path, BlobStore(str(tmp_path)), 2)
    again = training(tmp_path, versions)
    again.start()
    assert again.version == 2 and again.learner.gradient_steps == 2  # version 2's number, version 1's learner


def test_failed_save_keeps_the_previous_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 2)
    store.save(1, {"w": torch.ones(3)}, {})
    write, calls = LocalFiles.write, 0

    def full(self: LocalFiles, key: str, pieces: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:  # the contents are stored, the name is not
            raise OSError("disk full")
        write(self, key, pieces)

    monkeypatch.setattr(LocalFiles, "write", full)
    with pytest.raises(OSError, match="disk full"):
        store.save(2, {"w": torch.zeros(3)}, {})
    found = store.newest()
    assert found is not None and found[0] == 1


def test_adopted_blobs_are_not_written(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 2, confirm_owner=lambda: claim_blobs(blobs, "trial", "run-1"))
    store.save(1, {"w": torch.ones(3)}, {})
    claim_blobs(blobs, "trial", "run-2", adopt="run-1")
    with pytest.raises(BlobsOwned, match="run-2"):
        store.save(2, {"w": torch.ones(3)}, {})
    assert store.versions() == [1]


KILLED = """
import sys, torch
from rapid.blobs import BlobStore
from five.services.optimizer.checkpoints import Checkpoints
store = Checkpoints(BlobStore(sys.argv[1]), "trial", 2)
for version in range(100000):
    store.save(version, {"w": torch.full((300_000,), float(version))}, {"version": version})
    print(version, flush=True)
"""


def test_kill_during_save_leaves_readable_checkpoints(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE,
                               cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "libs:."})
    assert process.stdout is not None
    for _ in range(5):
        process.stdout.readline()
    process.kill()
    process.wait()
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    for version in store.versions():
        tensors, extra = store.load(version)
        assert extra == {"version": version} and (tensors["w"] == version).all()
    assert store.versions()[-1] >= 4
