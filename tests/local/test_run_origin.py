"""The origin of a run: command, source, machine and the packed agent that it began with."""

import subprocess
from pathlib import Path

import pytest

from five.local import run_origin
from five.local.run_origin import RunOrigin, gpu_names, source_commit, usable_cores


def test_an_origin_survives_writing(tmp_path: Path) -> None:
    path = tmp_path / "origin.json"
    assert RunOrigin.load(path) is None
    gpus = ("NVIDIA H100", "NVIDIA H100")
    for origin in (RunOrigin("five train", "0123abc", 2),
                   RunOrigin("five train --from tiny", "0123abc+", 16, gpus, "tiny", "f" * 64)):
        origin.save(path)
        assert RunOrigin.load(path) == origin


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"command": "five train"}', '{"gpus": 1}', "[" * 100_000])
def test_other_text_is_no_origin(tmp_path: Path, text: str) -> None:
    path = tmp_path / "origin.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path} is not a run's origin"):
        RunOrigin.load(path)


def test_hardware_and_parent_as_text() -> None:
    assert RunOrigin("", "", 2).hardware == "2 cores, no GPU" and RunOrigin("", "", 2).parent == ""
    found = RunOrigin("", "", 16, ("A", "B"), "tiny", "0123456789abcdef" * 4)
    assert found.hardware == "16 cores, A, B" and found.parent == "tiny (0123456789abcdef)"


def test_machine_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() >= 1
    monkeypatch.setattr(run_origin.shutil, "which", lambda name: None)
    assert gpu_names() == ()
    monkeypatch.setattr(run_origin.shutil, "which", lambda name: name)
    listing = subprocess.CompletedProcess([], 0, "NVIDIA H100\nNVIDIA H100\n\n")
    monkeypatch.setattr(run_origin.subprocess, "run", lambda *arguments, **options: listing)
    assert gpu_names() == ("NVIDIA H100", "NVIDIA H100")


def test_a_tree_without_git_has_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(run_origin.subprocess, "run", missing)
    assert source_commit() == "unknown" and gpu_names() == ()
