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


def test_commit_of_another_project_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five is installed in an ignored virtual environment of a project with commits of its own."""
    installed = tmp_path / ".venv/five/local/run_origin.py"
    installed.parent.mkdir(parents=True)
    installed.touch()
    (tmp_path / ".gitignore").write_text(".venv\n")
    for command in (["init", "-q"], ["add", "-A"],
                    ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(run_origin, "__file__", str(installed))
    assert source_commit() == "unknown"
    monkeypatch.setattr(run_origin, "__file__", str(tmp_path / ".gitignore"))
    assert len(source_commit()) == 9


def test_a_tree_without_git_has_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(run_origin.subprocess, "run", missing)
    assert source_commit() == "unknown" and gpu_names() == ()
