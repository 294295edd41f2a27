"""`five repair` on a run whose Redis does not start."""

import io
from pathlib import Path

import pytest
import redis

from five.cli.main import main
from five.local.cluster import LocalCluster
from five.local.run_folder import RunFolder
from five.local.run_lock import RunLock
from five.run.load import load, save
from rapid.store import backup
from rapid.store.state import RunState
from tests.rapid.test_append_only_file import damage


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """An ended run with a backup; its file has events after the backup."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(Path("runs/broken"))
    folder.create()
    save(load("laptop-1v1").model_copy(update={"name": "broken"}), folder.config)
    with folder.embedded("state").start() as server:
        client = redis.Redis.from_url(server.url)
        state = RunState(client, "broken")
        state.create({}, "the test")
        file = io.BytesIO()
        backup.save(client, "broken", file)
        (tmp_path / "state.zip").write_bytes(file.getvalue())
        for i in range(300):
            state.events.append("the test", "counted", {"number": i})
        client.close()
    return folder


def events(folder: RunFolder) -> tuple[str, int]:
    """Return the run's id and its number of events."""
    with folder.embedded("state").start() as server:
        client = redis.Redis.from_url(server.url)
        state = RunState(client, "broken")
        try:
            return str(state.identity()), int(client.xlen(state.keys.events))
        finally:
            client.close()


def test_repair_keeps_what_was_written_before(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    run_id, _ = events(folder)
    damage(folder.embedded("state").folder)
    assert main(["repair", "broken"]) == 0
    out = capsys.readouterr().out
    assert "kept" in out and "five train --resume broken" in out
    again, count = events(folder)
    assert again == run_id and 100 < count < 200
    assert len(list(folder.embedded("state").folder.glob("appendonlydir.damaged-*"))) == 1
    assert main(["repair", "broken"]) == 0
    assert "is not damaged" in capsys.readouterr().out


def test_backup_replaces_a_damaged_file(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    run_id, _ = events(folder)
    damaged = damage(folder.embedded("state").folder, 0.0)
    bad = damaged.read_bytes()
    assert main(["repair", "broken"]) == 2
    assert "five repair broken --backup FILE" in capsys.readouterr().err
    assert main(["repair", "broken", "--backup", "absent.zip"]) == 2
    (Path("short.zip")).write_bytes(Path("state.zip").read_bytes()[:-30])
    assert main(["repair", "broken", "--backup", "short.zip"]) == 2
    assert main(["repair", "broken", "--backup", "state.zip"]) == 0
    state = folder.embedded("state").folder
    assert bad in [path.read_bytes() for path in state.glob("appendonlydir.damaged-*/*")]
    assert events(folder) == (run_id, 2)  # created, restored
    assert not list(state.glob(".restored-*"))


def test_backup_of_another_run_is_refused(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    with folder.embedded("state").start() as server:
        client = redis.Redis.from_url(server.url)
        RunState(client, "other").create({}, "the test")
        with Path("other.zip").open("wb") as file:
            backup.save(client, "other", file)
        client.close()
    assert main(["repair", "broken", "--backup", "other.zip"]) == 2
    assert "backup of run 'other'" in capsys.readouterr().err


def test_running_run_is_refused(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    damage(folder.embedded("state").folder)
    with RunLock(folder.path):
        assert main(["repair", "broken"]) == 2
    assert "is in use by process" in capsys.readouterr().err
    assert not list(folder.embedded("state").folder.glob("*.damaged-*"))


def test_start_says_how_to_repair(folder: RunFolder) -> None:
    damage(folder.embedded("state").folder)
    with pytest.raises(RuntimeError) as caught:
        LocalCluster.start(folder, load("laptop-1v1").model_copy(update={"name": "broken"}))
    text = str(caught.value)
    assert "`five repair broken`" in text and "redis-check-aof" not in text and "\n" not in text
