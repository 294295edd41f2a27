"""`five train`: names and configurations of runs, parts that fail, and trainings that learn nothing."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from five.cli.main import main
from five.cli.train import Progress, Reporter, prepare
from five.local.run_folder import RunFolder, RunUnavailable
from five.local.run_lock import RunInUse, RunLock
from five.run.load import ConfigError, load, load_stored
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Leases
from rapid.store.series import Series
from rapid.store.state import RunState, Status
from rapid.supervisor import Supervisor
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


def test_unwritable_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("a file in the place of the folder")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--name", "trial"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("five train: the run's folder cannot be written: ") and error.count("\n") == 1


class FakeCluster:
    """The parts of a LocalCluster that reports and progress read, on a real Redis."""

    def __init__(self, client: redis.Redis, place: Path) -> None:
        self.state, self.series = RunState(client, "trial"), Series(client, "trial")
        self.leases, self.supervisor = Leases(client, "trial"), Supervisor(place / "logs")
        self.config, self.folder = load("laptop-1v1"), RunFolder(place / "trial")
        self.folder.create()
        self.state.create({}, "test")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as server:
        cluster = FakeCluster(redis.Redis.from_url(server.url), tmp_path)
        yield cluster
        cluster.supervisor.stop()


def test_failing_part_of_the_report_costs_no_other(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "five.cli.train")
    reporter, folder = Reporter(cluster), cluster.folder
    cluster.series.append("versions", {"version": 1, "entropy": 1.0})
    for path in (folder.report, folder.path / "tensorboard" / "exported.json"):
        path.mkdir()  # neither file can be written
    reporter.write()
    reporter.write()
    assert folder.records.exists() and folder.record.exists()
    assert sorted(record.getMessage().partition(":")[0] for record in caplog.records) == [
        "TensorBoard files", "report.html"]
    for path in (folder.report, folder.path / "tensorboard" / "exported.json"):
        path.rmdir()
    reporter.write()
    assert [record.getMessage() for record in caplog.records[2:]] == [
        "TensorBoard files: written again", "report.html: written again"]
    assert folder.report.is_file()


def test_report_reads_only_new_records(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    whole = Series.read

    def counted(series: Series, kind: str, after: str = "-", page: int = 2000) -> Iterator[Any]:
        for record in whole(series, kind, after, page):
            read.append(record.values)
            yield record

    monkeypatch.setattr(Series, "read", counted)
    reporter = Reporter(cluster)
    for kind in ("versions", "games", "ratings", "schedules"):
        cluster.series.extend(kind, [{"version": version} for version in range(10)])
    reporter.write()
    assert len(read) == 40
    cluster.series.append("versions", {"version": 10})
    reporter.write()
    assert read[40:] == [{"version": 10}]
    rows = json.loads(cluster.folder.records.read_text())["versions"]
    assert [row["version"] for row in rows] == list(range(11))


def test_missing_version_is_explained_in_time(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.cli.train.first_version_seconds", lambda config: 0.0)
    monkeypatch.setattr("five.cli.train.DIAGNOSIS_SECONDS", 0.0)
    progress = Progress(cluster, "")
    assert progress.update(Status.RUNNING) == [
        "no version within 0 s", f"no optimizer is up; see {cluster.folder.path}/logs"]
    assert progress.why_unlearned().startswith("no optimizer is up")
    cluster.series.append("versions", {"version": 1})
    assert progress.update(Status.RUNNING) == [] and progress.why_unlearned() == ""


def test_versions_of_an_earlier_start_do_not_count(cluster: Any) -> None:
    cluster.series.append("versions", {"version": 1})
    progress = Progress(cluster, cluster.series.last("versions").id)
    assert progress.update(Status.RUNNING) == []
    assert "training ended after 0 s" in progress.why_unlearned()
    cluster.series.append("versions", {"version": 2})
    assert progress.why_unlearned() == ""


def test_paused_run_need_not_learn(cluster: Any) -> None:
    progress = Progress(cluster, "")
    progress.update(Status.PAUSED)
    progress.update(Status.RUNNING)
    assert progress.why_unlearned() == ""
