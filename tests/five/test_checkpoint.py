import pytest
import torch
from safetensors.torch import save_file

from five.learning import checkpoint
from five.learning.checkpoint import CheckpointError, CheckpointFolder, pack, read, unpack, write
from five.learning.learner import Learner
from tests.five.standins import HYPER, TinyPolicy
from tests.five.test_learner import CONFIG, batch_of, parameters

TENSORS = {"a/b": torch.arange(6.0).view(2, 3), "step": torch.tensor(3.0), "count": torch.tensor([2.5]).double()}
EXTRA = {"rng": [1, 2, 3], "name": "x", "big": 2**53}


def test_what_is_packed_comes_back():
    tensors, extra = unpack(pack(TENSORS, EXTRA))
    assert extra == EXTRA
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype


def test_a_learner_goes_on_from_a_file_bit_by_bit(tmp_path):
    learner = Learner(TinyPolicy(), CONFIG)
    batches = [batch_of(learner.policy, seed=i) for i in range(6)]
    for batch in batches[:5]:
        learner.step(batch, HYPER)
    write(tmp_path / "c.safetensors", learner.state_dict(), learner.extra())
    resumed = Learner(TinyPolicy(seed=9), CONFIG)
    resumed.load_state_dict(*read(tmp_path / "c.safetensors"))
    assert learner.step(batches[5], HYPER) == resumed.step(batches[5], HYPER)
    assert torch.equal(parameters(learner), parameters(resumed))


@pytest.mark.parametrize("cut", [0, 4, 60, -1])
def test_a_damaged_file_is_named(tmp_path, cut):
    path = tmp_path / "c.safetensors"
    path.write_bytes(pack(TENSORS, EXTRA)[:cut])
    with pytest.raises(CheckpointError, match=r"c\.safetensors is damaged"):
        read(path)


def test_a_foreign_file_is_refused(tmp_path):
    save_file(TENSORS, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match="no checkpoint of this program"):
        read(tmp_path / "other.safetensors")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    write(path, TENSORS, {"n": 1})

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write(path, TENSORS, {"n": 2})
    monkeypatch.undo()
    assert read(path)[1] == {"n": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


def test_a_folder_keeps_the_newest(tmp_path):
    folder = CheckpointFolder(tmp_path / "new", keep=2)
    assert folder.newest() is None
    for step in (5, 20, 100):
        folder.save(step, TENSORS, {"step": step})
    assert folder.steps() == [20, 100]
    step, _, extra = folder.newest()
    assert (step, extra) == (100, {"step": 100})


def test_a_damaged_newest_is_passed_over_but_not_all(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2):
        folder.save(step, TENSORS, {"step": step})
    folder.path(2).write_bytes(b"half")
    assert folder.newest()[0] == 1
    folder.path(1).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be read"):
        folder.newest()
