"""Checkpoints: the same arrays come back, and a crash leaves the one before."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from rapid import checkpoints
from rapid.checkpoints import Checkpoints
from rapid.store.errors import Corrupt

ROOT = Path(__file__).parents[2]


def arrays(step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    return {"w": rng.standard_normal((5, 3)).astype(np.float32), "adam.v": rng.standard_normal(4),
            "rng": rng.integers(0, 2**63, 3, dtype=np.uint64), "step": np.array(step)}


def test_comes_back_bit_for_bit(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path / "c", keep=2)
    assert saved.latest() is None and saved.steps() == []
    for step in (10, 20, 30):
        saved.save(step, arrays(step), {"step": step, "schedule": [[0, 1e-4]], "big": 2**60})
    assert saved.steps() == [20, 30] and saved.latest() == 30
    step, found, meta = saved.load()
    assert step == 30 and meta == {"step": 30, "schedule": [[0, 1e-4]], "big": 2**60}
    for name, array in arrays(30).items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()
    assert saved.load(20)[0] == 20
    assert sorted(p.suffix for p in (tmp_path / "c").iterdir()) == [".json", ".safetensors", ".safetensors"]


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep=5)
    with pytest.raises(FileNotFoundError, match="no checkpoint in"):
        saved.load()
    saved.save(1, arrays(1), {})
    saved.save(2, arrays(2), {})
    with pytest.raises(FileNotFoundError, match="step 7.*there are: 1, 2"):
        saved.load(7)
    data = bytearray(saved.path(2).read_bytes())
    data[-1] ^= 1
    saved.path(2).write_bytes(data)
    with pytest.raises(Corrupt, match="fails its checksum; load an earlier step"):
        saved.load()
    assert saved.load(1)[0] == 1
    saved.path(2).write_bytes(b"short")
    with pytest.raises(Corrupt):
        saved.load(2)
    (tmp_path / "latest.json").write_text("{")
    with pytest.raises(Corrupt, match=r"latest.json is damaged"):
        saved.load()
    with pytest.raises(ValueError, match="keep"):
        Checkpoints(tmp_path, keep=0)


def test_a_failing_write_leaves_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Checkpoints(tmp_path)
    saved.save(1, arrays(1), {})

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(checkpoints.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        saved.save(2, arrays(2), {})
    assert saved.load()[0] == 1 and saved.steps() == [1]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_process_killed_while_saving_leaves_a_whole_latest(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys, numpy as np
        from pathlib import Path
        from rapid.checkpoints import Checkpoints
        saved = Checkpoints(Path(sys.argv[1]), keep=2)
        for step in range(100000):
            saved.save(step, {"w": np.full(300_000, step, np.float32)}, {"step": step})
            print(step, flush=True)
    """)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT,
                                   env={"PYTHONPATH": "libs:."})
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        process.kill()
        process.wait()
        step, found, meta = Checkpoints(tmp_path).load()
        assert meta == {"step": step} and (found["w"] == step).all()
