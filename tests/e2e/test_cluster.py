"""The whole system under `five train`: it learns, follows commands, survives every process's death, and resumes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from five.cli.watch import PANEL, SIDE, newest
from five.local.passwords import Passwords
from rapid.store import acl
from rapid.store.connection import Login, connect
from tests.e2e.running import KINDS, Run, eventually

# Prints the shape of each frame of a film as JSON.
READ_FRAMES = "import json, sys, imageio.v2 as i; print(json.dumps([p.shape for p in i.get_reader(sys.argv[1])]))"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


def all_gone(processes: list[psutil.Process], seconds: float = 60.0) -> None:
    """Fail if one of the processes still exists."""
    _, alive = psutil.wait_procs(processes, seconds)
    left = [p.cmdline() for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not left


def rows(run: Run, *kinds: str) -> list[dict[str, Any]]:
    """Return the statistics of the services of these kinds; all must be live."""
    found = [row for row in run.rest("GET", "services").json() if row["kind"] in kinds]
    assert {row["kind"] for row in found} == set(kinds)
    return found


@pytest.mark.timeout(1200)
def test_run_learns_pauses_resumes_and_stops(run: Run) -> None:
    run.start_new()
    run.wait_version(2)

    # Only with the token.
    assert run.rest("GET", "status", token="").status_code == 401
    assert run.rest("POST", "stop", token="wrong").status_code == 401
    answer = run.rest("GET", "status").json()
    assert answer["status"] == "running"
    assert answer["version"] >= 2
    assert {"inference", "optimizer", "rollout", "controller", "opponents"} <= answer["services"].keys()

    # Paused, nothing new comes out; resumed, it does.
    assert run.rest("POST", "pause", json={"reason": "a test"}).status_code == 200
    eventually(lambda: run.status() == "paused", 180, "the run is paused")
    rested = run.head()
    assert run.rest("GET", "status").json()["waiting_for"] == []
    # Every step up to a sample's border is learned from. A heartbeat reports it.
    eventually(lambda: rows(run, "rollout")[0]["stats"]["unsent"] == 0, 60, "every segment is sent")
    assert run.command("status").returncode == 0
    assert run.head() == rested
    resumed = run.command("resume", "--reason", "the test goes on")
    assert resumed.returncode == 0, resumed.stderr
    run.wait_version(rested + 2)
    # The games went on as they were: no state was lost, no game given up.
    assert rows(run, "rollout")[0]["stats"]["recoveries"] == 0

    # The two that hold what is learned die at once.
    run.kill("optimizer-0")
    run.kill("inference-0")
    run.wait_version(run.head() + 2)

    # A version was rated, and one of its games is there to be seen.
    games = run.folder.path / "replays"
    eventually(lambda: list(games.glob("version-*.replay")), 240, "a rated version has left its game")

    # Ended over REST it ends by itself, with a report and without an orphan.
    processes = run.everything()
    run.check_versions()
    assert run.refusals() == []  # everybody works with the keys and commands of its own
    assert run.rest("POST", "stop").status_code == 200
    assert run.process is not None
    assert run.process.wait(240) == 0, run.logs()
    all_gone(processes)
    report = run.report()
    assert "median staleness" in dict(report["facts"])
    assert len(report["curves"]["versions"]["fields"]["staleness_mean"]["mean"]) > 0
    assert "optimizer.resumed" in [event["what"] for event in report["events"]]
    assert list((run.folder.path / "tensorboard").glob("events*"))
    assert run.command("status").returncode == 2

    # `five watch` renders the newest game after the run has ended too.
    assert re.fullmatch(r"version-\d+", newest(games).stem)
    film = run.place / "film.mp4"
    shown = run.command("watch", "--out", str(film), "--seconds", "1")
    assert shown.returncode == 0, shown.stderr
    # In a separate process: imageio forks for ffmpeg, which a process that has used gRPC must not do.
    read = subprocess.run([sys.executable, "-c", READ_FRAMES, str(film)], capture_output=True, text=True, check=True)
    pictures = json.loads(read.stdout)
    assert len(pictures) > 5 and all(shape == [SIDE + PANEL, SIDE, 3] for shape in pictures)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_processes_and_runs_recover(run: Run) -> None:
    run.start_new()
    run.wait_version(2)
    for name in KINDS:
        run.kill(name)
        # At least one version was learned from games played after the kill.
        run.wait_version(run.head() + 3)
        run.check_versions()
    assert run.status() == "running"
    assert not [name for name in KINDS if not run.pids(name)]

    # Everything at once, the supervisor too, as a power cut would.
    processes = run.everything()
    before = run.head()
    for process in processes:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it died with its parent
    all_gone(processes)
    assert "is not running, its process has died" in run.command("status").stderr

    run.start("--resume", run.folder.name)
    # The last second of an append-only file may be lost, and with it the newest version's record.
    after = run.wait_version(before + 3)
    assert after >= before + 3
    run.check_versions()
    resumed = [e.details for e in run.state().events.last(500) if e.what == "optimizer.resumed"]
    assert len(resumed) >= 2  # after its own death, and after the end of all
    assert any(e.what == "run.resumed" for e in run.state().events.last(500))
    assert run.end() == 0
    assert "run.resumed" in run.folder.report.read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_process_outlives_a_killed_supervisor(run: Run) -> None:
    run.start_new()
    run.wait_version(1)
    processes = run.everything()
    assert run.process is not None
    run.process.kill()
    run.process.wait()
    all_gone(processes)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_passwords_rotate_in_a_running_run(run: Run) -> None:
    run.start_new("services.rollout.environment=remote")
    run.wait_version(1)
    passwords = Passwords(run.folder.path)
    old = {user: passwords.login(user).password for user in acl.users("state")}
    for user in old:
        before = run.head()
        done = run.command("rotate", user)
        assert done.returncode == 0, done.stderr + run.logs()
        run.wait_version(before + 1)
    assert run.status() == "running"
    for user, password in old.items():
        assert passwords.of(user) != [password] and len(passwords.of(user)) == 1
        for role in acl.ROLES:
            if user in acl.users(role):
                config = run.config.store
                client = connect(config.state_url if role == "state" else config.params_url, config, role,
                                 Login(user, password))
                with pytest.raises(redis.AuthenticationError):
                    client.ping()
    run.__dict__.pop("store")  # it came in by the admin's old password
    run.check_versions()
    changed = [e.details["user"] for e in run.state().events.last(500) if e.what == "password.changed"]
    assert set(changed) == set(old)
    # Nobody was refused a key or a command; only the old passwords were.
    assert {kind for _, kind, _ in run.refusals()} <= {"auth"}
    refused = run.command("rotate", "dota_env").stderr
    assert "'dota_env' is not a user of the run's own Redis; users are controller, " in refused
    assert run.end() == 0
