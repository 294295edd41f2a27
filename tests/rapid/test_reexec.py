"""Services that exec themselves when the run record changes, as real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from rapid.supervisor import ProcessSpec, ProcessState, Supervisor
from tests.rapid.process_helpers import alive
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
# Reports its record and its command line; holds a listening socket that exec would inherit unless closed.
SERVICE = """
    import os, socket, sys
    from rapid import service
    from rapid.reexec import inherited_socket
    from rapid.store.errors import FencedOut
    from tests.rapid.test_service import Config

    def load(path, overrides):
        import json
        return Config.model_validate(json.load(open(path)))

    def overlay(config, record):
        return config.model_copy(update={"telemetry": config.telemetry.model_copy(update=dict(record.game))})

    leaked = socket.socket()
    leaked.bind(("127.0.0.1", 0))
    leaked.listen()
    os.set_inheritable(leaked.fileno(), True)
    # Passed on by name; the backlog takes one connection, which nobody accepts before the exec.
    kept = inherited_socket("kept") or socket.create_server(("127.0.0.1", 0))
    with service.start(os.environ.get("KIND", "rollout"), load, overlay=overlay) as s:
        s.keep_listening("kept", kept)
        s.report_with(stats=lambda: {
            "plays_by": s.config.telemetry.log_level, "file": s.file_config.telemetry.log_level, "epoch": s.epoch,
            "kept": kept.getsockname()[1], "argv": sys.argv[1:], "leaked": leaked.getsockname()[1],
            "sockets": sum(os.readlink(f"/proc/self/fd/{f}").startswith("socket") for f in os.listdir("/proc/self/fd")
                           if os.path.exists(f"/proc/self/fd/{f}"))},
            is_idle=lambda: not os.path.exists(os.environ.get("BUSY", "/nowhere")))
        s.lifecycle.wait_drain()
        if os.environ.get("LEFT_BEHIND"):
            os.environ["LEFT_BEHIND"] = ""
            raise FencedOut("epoch", "a write was refused")
        if os.environ.get("FAILS"):
            raise SystemExit(3)
"""


@pytest.fixture
def config(tmp_path: Path, redis_server: RunningRedis) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"store": {"state_url": redis_server.url, "params_url": redis_server.url},
                                "lifecycle": {"heartbeat_seconds": 0.1, "lease_seconds": 2, "poll_seconds": 0.05}}))
    return path


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    run = RunState(database, "r")
    run.create({}, "test", RunRecord(game={"log_level": "info"}))
    run.transition("running", "test")
    return run


def command(config: Path) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(SERVICE), "--config", str(config), "--id", "7"]


@pytest.fixture
def start(config: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(**env: str) -> subprocess.Popen[str]:
        started.append(subprocess.Popen(
            command(config), stdout=subprocess.PIPE, stderr=(tmp_path / f"log-{len(started)}").open("w"), text=True,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": "libs:.", **env}))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def shown(state: RunState, kind: str = "rollout") -> dict[str, Any]:
    """Return the live instance's heartbeat."""
    found = [i for i in state.services(kind) if i.stats]
    return {**found[0].stats, "life": found[0].life, "revision": found[0].revision} if found else {}


def change(state: RunState, level: str) -> RunRecord:
    before = state.record()
    assert before is not None
    after = before.changed(new_epoch=False, game={"log_level": level})
    state.set_record(before, after, "test", "record.set", {})
    return after


def test_listening_socket_stays_open_through_the_exec(state: RunState, start: Any) -> None:
    """No connection is refused: those that arrive meanwhile wait for the next process."""
    start()
    first = eventually(lambda: shown(state))
    address = ("127.0.0.1", first["kept"])
    stopped, refused = threading.Event(), []

    def connect() -> None:
        while not stopped.is_set():
            try:
                socket.create_connection(address, 5).close()
            except OSError as error:
                refused.append(error)
            time.sleep(0.05)

    connecting = threading.Thread(target=connect)
    connecting.start()
    change(state, "error")
    second = eventually(lambda: (now := shown(state)) and now["plays_by"] == "error" and now)
    stopped.set()
    connecting.join()
    assert second["kept"] == first["kept"] and not refused


def test_service_restarts_when_its_record_changes(state: RunState, start: Any) -> None:
    change(state, "warning")
    process = start()
    first = eventually(lambda: shown(state))
    assert (first["plays_by"], first["file"], first["epoch"], first["revision"]) == ("warning", "info", 1, 2)

    change(state, "error")
    second = eventually(lambda: (now := shown(state)) and now["revision"] == 3 and now)
    assert second["plays_by"] == "error" and second["life"] != first["life"]
    assert process.poll() is None and second["argv"] == first["argv"]
    assert second["sockets"] <= first["sockets"] + 1  # no socket of the former life

    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert not state.services("rollout")


def test_service_restarts_in_a_new_epoch(state: RunState, start: Any) -> None:
    process = start(LEFT_BEHIND="1")
    eventually(lambda: shown(state))
    record = state.record()
    assert record is not None
    state.redis.set(state.keys.record, record.changed(new_epoch=True).to_json())
    eventually(lambda: shown(state).get("epoch") == 2)
    assert process.poll() is None


def test_signalled_service_does_not_restart(state: RunState, start: Any) -> None:
    process = start()
    eventually(lambda: shown(state))
    os.kill(process.pid, signal.SIGSTOP)
    change(state, "error")
    process.send_signal(signal.SIGTERM)
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(30) == 0


def test_failure_during_restart_is_a_failure(state: RunState, start: Any) -> None:
    process = start(FAILS="1")
    eventually(lambda: shown(state))
    change(state, "error")
    assert process.wait(30) == 3


def test_restart_keeps_the_pid_under_a_supervisor(state: RunState, config: Path, tmp_path: Path) -> None:
    with Supervisor(tmp_path / "logs") as supervisor:
        supervisor.start(ProcessSpec("rollout", command(config), {"PYTHONPATH": f"{ROOT}/libs:{ROOT}"}))
        eventually(lambda: shown(state))
        (before,) = supervisor.status()
        change(state, "error")
        eventually(lambda: shown(state).get("plays_by") == "error")
        (after,) = supervisor.status()
        assert (after.pid, after.restarts, after.state) == (before.pid, 0, ProcessState.READY)
        assert after.pid is not None
    assert not alive(after.pid)  # it is still tied to its supervisor


def test_restart_as_pid_1_of_a_container(state: RunState, config: Path, tmp_path: Path) -> None:
    """In a PID namespace of its own nobody reaps or restarts process 1."""
    unshare = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]
    probe = subprocess.run([*unshare, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"no namespaces here: {probe.stderr.decode().strip()}")
    process = subprocess.Popen([*unshare, *command(config)], cwd=ROOT, env={**os.environ, "PYTHONPATH": "libs:."},
                               stderr=(tmp_path / "log").open("w"))
    try:
        first = eventually(lambda: shown(state))
        change(state, "error")
        second = eventually(lambda: (now := shown(state)) and now["revision"] == 2 and now)
        assert second["life"] != first["life"] and process.poll() is None
        log = (tmp_path / "log").read_text()
        assert "restarting process 1" in log and log.count("started, process 1,") == 2
    finally:
        process.kill()
        process.wait()


# Idle acknowledgements.

def test_service_acknowledges_idle_again_after_restart(
        state: RunState, start: Any, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.touch()
    process = start(BUSY=str(busy))
    eventually(lambda: shown(state))
    state.transition("pausing", "test")
    time.sleep(0.5)
    assert state.idle_report().waiting_for == ["rollout/7"]
    busy.unlink()
    eventually(lambda: not state.idle_report().waiting_for)
    assert list(state.idle_report().acknowledged) == ["rollout/7"]

    # In another epoch it must acknowledge again after its restart.
    busy.touch()
    record = state.record()
    assert record is not None
    state.redis.set(state.keys.record, record.changed(new_epoch=True).to_json())
    assert state.idle_report().waiting_for == ["rollout/7"]
    eventually(lambda: shown(state).get("epoch") == 2)
    assert state.idle_report().waiting_for == ["rollout/7"]
    busy.unlink()
    eventually(lambda: not state.idle_report().waiting_for)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert not state.idle_report().waiting_for  # a clean exit acknowledges


def test_clean_exit_acknowledges_and_kill_does_not(
        state: RunState, start: Any, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.touch()
    process = start(BUSY=str(busy))
    eventually(lambda: shown(state))
    state.transition("pausing", "test")
    process.kill()
    process.wait()
    eventually(lambda: not state.services("rollout"))  # its lease expired
    assert state.idle_report().waiting_for == ["rollout/7"]
    # Its successor acknowledges for it.
    again = start(BUSY=str(busy))
    eventually(lambda: shown(state))
    assert state.idle_report().waiting_for == ["rollout/7"]
    again.send_signal(signal.SIGTERM)
    assert again.wait(30) == 0
    report = state.idle_report()
    assert report.waiting_for == [] and list(report.acknowledged) == ["rollout/7"]
