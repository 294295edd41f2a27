"""Preparation of runs: names, configurations, and what a resumed run may change."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import yaml

from five.cli.main import main
from five.cli.run_preparation import prepare
from five.local.run_folder import RunFolder, RunUnavailable
from five.local.run_lock import RunInUse, RunLock
from five.run.load import ConfigError, load, load_stored
from tests.repository import ROOT


def made(root: Path, *overrides: str, name: str | None = "trial") -> RunFolder:
    folder, _, lock = prepare(None, overrides, name, None, root=root)
    lock.release()
    return folder


def resumed(root: Path, *overrides: str, accept: bool = False) -> None:
    prepare(None, overrides, None, "trial", accept, root)[2].release()


def test_existing_name_requires_resume(tmp_path: Path) -> None:
    folder = made(tmp_path, "seed=1")
    before = folder.config.read_text()
    with pytest.raises(RunUnavailable, match="run 'trial' exists .*--resume trial"):
        made(tmp_path, "seed=7")
    assert folder.config.read_text() == before
    resumed(tmp_path)
    assert folder.config.read_text() == before


def test_run_in_use_is_neither_resumed_nor_overwritten(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with RunLock(folder.path):
        with pytest.raises(RunInUse, match="in use by process"):
            resumed(tmp_path)
        with pytest.raises(RunInUse, match="in use by process"):
            made(tmp_path)
    resumed(tmp_path)


def test_optimizers_need_one_gpu_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    made(tmp_path, "services.optimizer.device=cuda")
    with pytest.raises(ConfigError, match=r"services.optimizer.device 'cuda': 2 processes .*\(GPUs visible: 1\)"):
        made(tmp_path, "services.optimizer.device=cuda", "services.optimizer.optimizers=2", name="other")


def test_changes_on_resume_are_listed_and_need_consent(tmp_path: Path) -> None:
    folder = made(tmp_path, "seed=1")
    same = f"services.rollout.games={load_stored(folder.config).services.rollout.games}"
    change = ("seed=7", "learning.ppo_clip=0.1", same)
    with pytest.raises(ConfigError, match=r"--accept-changes.*\n  seed: 1 -> 7\n  learning.ppo_clip: 0.2 -> 0.1$"):
        resumed(tmp_path, *change)
    assert load_stored(folder.config).seed == 1
    resumed(tmp_path, *change, accept=True)
    assert load_stored(folder.config).seed == 7 and load_stored(folder.config).learning.ppo_clip == 0.1


@pytest.mark.parametrize("change", ["name=other", "game.max_game_seconds=1000", "model.lstm=64"])
def test_name_game_and_model_stay_on_resume(tmp_path: Path, change: str) -> None:
    made(tmp_path)
    with pytest.raises(ConfigError, match=f"five surgery.*\n  {change.split('=')[0]}: "):
        resumed(tmp_path, change, accept=True)


def test_first_release_run_beyond_bounds_resumes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "trial")
    folder.create()
    tree = yaml.safe_load((ROOT / "tests/run/release-0.1.yaml").read_text()) | {"name": "trial"}
    tree["lifecycle"]["grace_seconds"], tree["game"]["offset_cell"] = 1e9, 0.5
    tree["services"]["play"] = {"address": "somewhere"}
    folder.config.write_text(yaml.safe_dump(tree))
    with pytest.raises(ConfigError) as error:
        resumed(tmp_path)
    lines = str(error.value).splitlines()
    assert lines[1] == "  game.offset_cell 0.5: should be greater than or equal to 1"
    assert lines[2].startswith('  services.play.address "somewhere": expected host:port')
    assert lines[3] == "  a stored value is corrected by five train --resume trial --accept-changes --set KEY=VALUE"
    with pytest.raises(ConfigError, match="game.offset_cell"):  # one of them is left
        resumed(tmp_path, "services.play.address=a:5", accept=True)
    with pytest.raises(ConfigError, match="keeps its name, game and model"):  # a valid value of the game stays
        resumed(tmp_path, "services.play.address=a:5", "game.offset_cell=1", "game.kills_to_win=3", accept=True)
    resumed(tmp_path, "services.play.address=a:5", "game.offset_cell=1", accept=True)
    stored = load(folder.config)
    assert (stored.game.offset_cell, stored.lifecycle.grace_seconds) == (1.0, 2e6)
    resumed(tmp_path)


@pytest.mark.parametrize(("preset", "name"), [("laptop-5v5", None), (None, "other")])
def test_resume_refuses_options_of_a_new_run(tmp_path: Path, preset: str | None, name: str | None) -> None:
    made(tmp_path)
    with pytest.raises(ConfigError, match="not possible with --resume"):
        prepare(preset, (), name, "trial", root=tmp_path)


def test_invalid_name_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="My Run"):
        made(tmp_path, name="My Run")
    assert not list(tmp_path.iterdir())


def test_simultaneous_runs_get_names_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as workers:
        found = list(workers.map(lambda _: made(tmp_path, name=None).name, range(8)))
    assert sorted(found) == ["laptop-1v1", *(f"laptop-1v1-{number}" for number in range(2, 9))]


@pytest.mark.parametrize("name", [None, "trial"])
def test_link_to_a_missing_folder_is_named(name: str | None, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.symlink_to(tmp_path / "unmounted")
    for resume in (None, ""):
        with pytest.raises(RunUnavailable, match="runs is a link to .*unmounted, which does not exist"):
            prepare(None, (), None if resume == "" else name, resume, root=root)


def test_unwritable_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("a file in the place of the folder")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--name", "trial"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("five train: the run's folder cannot be written: ") and error.count("\n") == 1
