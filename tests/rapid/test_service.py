"""Startup of a service: errors are one line, and a started service is alive and can be drained."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import BaseModel, ConfigDict

from rapid import service
from rapid.config import (
    AllocatorConfig,
    BlobConfig,
    LifecycleConfig,
    RpcConfig,
    StoreConfig,
    TelemetryConfig,
    TracingConfig,
)
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store import acl, functions
from rapid.store.state import RunState
from tests.rapid.acl_servers import Servers
from tests.rapid.process_helpers import alive
from tests.tcp_forwarder import free_port
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


class Config(BaseModel):
    """Configuration of a run without a game."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = "r"
    rpc: RpcConfig = RpcConfig()
    store: StoreConfig = StoreConfig()
    blobs: BlobConfig = BlobConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    tracing: TracingConfig = TracingConfig()
    allocator: AllocatorConfig = AllocatorConfig()
    lifecycle: LifecycleConfig = LifecycleConfig(heartbeat_seconds=0.1, lease_seconds=1, poll_seconds=0.05)


SERVICE = """
    import json, os
    from rapid import service
    from tests.rapid.test_service import Config

    def load(path, overrides):
        return Config.model_validate({**json.load(open(path)), **dict(o.split("=") for o in overrides)})

    with service.start(os.environ.get("KIND", "tested"), load) as s:
        s.report_with(stats=lambda: {"steps": 3})
        s.announce(9)
        s.report_with(lambda: os.environ.get("NOT_READY", ""))
        print("folder", s.folder, flush=True)
        print("files", s.folder_for("played"), s.folder_for("played", "/elsewhere"), flush=True)
        while not s.lifecycle.wait_drain(1.0):
            pass
        print("drained:", s.lifecycle.drain_reason, flush=True)
"""


@pytest.fixture
def config(tmp_path: Path, redis_server: RunningRedis, database: redis.Redis) -> Path:
    path = tmp_path / "config.json"
    path.write_text(f'{{"store": {{"state_url": "{redis_server.url}", "params_url": "{redis_server.url}"}}}}')
    return path


class Started:
    def __init__(self, config: Path, *arguments: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SERVICE), "--config", str(config), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "libs:.", **env})


@pytest.fixture
def start() -> Iterator[Any]:
    started: list[Started] = []

    def begin(*arguments: Any, **env: str) -> Any:
        started.append(Started(*arguments, **env))
        return started[-1].process

    yield begin
    for s in started:
        s.process.kill()
        s.process.communicate()


def test_service_starts_and_drains(start: Any, config: Path, database: redis.Redis) -> None:
    state = RunState(database, "r")
    state.create({}, "t")
    state.transition("running", "t")
    process = start(config, "--id", "7")
    instance = eventually(lambda: [i for i in state.services("tested") if i.stats and i.address])[0]
    assert (instance.id, instance.address, instance.stats) == ("7", "127.0.0.1:9", {"steps": 3})
    with urllib.request.urlopen(f"http://{instance.metrics_address}/metrics", timeout=20) as page:
        assert 'five_process_started_info{id="7",kind="tested",run="r"} 1.0' in page.read().decode()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"files {config.parent}/played /elsewhere\n" in out
    assert f"folder {config.parent}" in out and "drained: SIGTERM" in out
    assert state.services("tested") == []
    assert "started, process" in err


def test_stopping_run_drains_its_services(start: Any, config: Path, database: redis.Redis) -> None:
    state = RunState(database, "r")
    state.create({}, "t")
    process = start(config)
    eventually(lambda: state.services("tested"))
    state.transition("stopping", "t")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "drained: the run is stopping" in out, err


def page(port: int, name: str) -> tuple[int, str]:
    """Return status and text of a service's page; (0, "") while nothing responds."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=20) as found:
            return found.status, found.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()
    except urllib.error.URLError:
        return 0, ""


def test_service_waits_for_its_run(start: Any, config: Path, database: redis.Redis) -> None:
    state, port = RunState(database, "r"), free_port()
    process = start(config, "--metrics-port", str(port), NOT_READY="no games yet")
    missing = (503, "run 'r' does not exist yet; the controller creates it")
    eventually(lambda: page(port, "readyz") == missing, 60)
    assert page(port, "healthz") == (200, "alive") and state.services("tested") == []
    state.create({}, "t")
    eventually(lambda: page(port, "readyz") == (503, "no games yet"))
    eventually(lambda: [i.address for i in state.services("tested")] == ["127.0.0.1:9"], 60)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_controller_refuses_a_redis_that_evicts(start: Any, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "evicting", append_only=False).start() as running:
        redis.Redis.from_url(running.url).config_set("maxmemory-policy", "allkeys-lru")
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"store": {"state_url": running.url, "params_url": running.url}}))
        process = start(config, KIND="controller")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert [line for line in err.splitlines() if "maxmemory-policy allkeys-lru" in line] == err.splitlines()[-1:]


def test_service_waits_for_functions(start: Any, servers: Servers, tmp_path: Path) -> None:
    """At its start, and when they are lost later."""
    admin, port, url = servers.client(acl.ADMIN), free_port(), servers.servers["state"].url
    admin.flushall()
    admin.function_flush()
    RunState(admin, "r").create({}, "t")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"store": {"state_url": url, "params_url": url, "timeout_seconds": 1.0}}))
    start(path, "--metrics-port", str(port), KIND="opponents", FIVE_STATE_USER="opponents",
          FIVE_STATE_PASSWORD="opponents")
    missing = (503, f"the state Redis lacks this release's functions ({functions.LIBRARY}); the controller loads them")
    eventually(lambda: page(port, "readyz") == missing, 60)
    functions.load(servers.client(acl.CONTROLLER))
    eventually(lambda: page(port, "readyz") == (200, "ready"))
    admin.function_flush()
    eventually(lambda: page(port, "readyz") == missing)
    functions.load(servers.client(acl.CONTROLLER))


def test_service_waits_while_the_run_is_stopped(start: Any, config: Path, database: redis.Redis
                                                                ) -> None:
    state, port = RunState(database, "r"), free_port()
    state.create({}, "t")
    state.transition("stopping", "t")
    process = start(config, "--metrics-port", str(port))
    eventually(lambda: page(port, "readyz") == (503, "the run is stopped"), 60)
    state.transition("starting", "t")
    eventually(lambda: page(port, "readyz") == (200, "ready"))
    state.transition("failed", "t")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "drained: the run is failed" in out, err


def test_waiting_service_ends_on_sigterm(start: Any, config: Path) -> None:
    port = free_port()
    process = start(config, "--metrics-port", str(port))
    eventually(lambda: page(port, "healthz")[0] == 200, 60)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and out == "" and "Traceback" not in err, err


def test_service_waits_for_its_store(start: Any, tmp_path: Path) -> None:
    server, port = EmbeddedRedis(tmp_path / "late", append_only=False), free_port()
    path = tmp_path / "config.json"
    path.write_text(f'{{"store": {{"state_url": "{server.url}", "params_url": "{server.url}"}}}}')
    process = start(path, "--metrics-port", str(port))
    eventually(lambda: page(port, "readyz")[1].startswith("no state Redis responds at unix://"), 60)
    with server.start():
        RunState(redis.Redis.from_url(server.url), "r").create({}, "t")
        eventually(lambda: page(port, "readyz") == (200, "ready"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_supervised_service_dies_with_its_parent(config: Path, database: redis.Redis) -> None:
    """Like the ranks of an optimizer with their agent."""
    state = RunState(database, "r")
    state.create({}, "t")
    between = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()"
    agent = subprocess.Popen(
        [sys.executable, "-c", between, sys.executable, "-c", textwrap.dedent(SERVICE), "--config", str(config)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "libs:.", "FIVE_SUPERVISED": "1"})
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    eventually(lambda: state.services("tested"))
    agent.kill()
    agent.wait()
    eventually(lambda: not alive(pid))


def test_killed_service_loses_its_lease(start: Any, config: Path, database: redis.Redis) -> None:
    state = RunState(database, "r")
    state.create({}, "t")
    process = start(config)
    eventually(lambda: state.services("tested"))
    process.kill()
    eventually(lambda: state.services("tested") == [])


WRONG = {
    r"tested: (?s:.)*store.nope": '{"store": {"nope": 1}}',
    r"tested: no state Redis responds at unix:///nowhere/x.sock": (
        '{"store": {"state_url": "unix:///nowhere/x.sock", "params_url": "unix:///nowhere/x.sock", '
        '"reconnect_seconds": 0}}'),
    r"tested: the Redis URL is empty": "{}",
    r"tested: (?s:.)*store.state_url": '{"store": {"state_url": "http://x", "params_url": "http://x"}}',
    r"tested: rpc.caller_secret_file /nowhere: No such file": '{"rpc": {"caller_secret_file": "/nowhere"}}',
}


@pytest.mark.parametrize("says", WRONG)
def test_startup_error_is_one_line(says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def load(path: str, overrides: Sequence[str]) -> Config:
        return Config.model_validate_json(Path(path).read_text())

    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(WRONG[says]), "allocator": {"tune": False}}))
    with pytest.raises(SystemExit) as caught, service.start("tested", load, ["--config", str(path)]):
        pass
    error = capsys.readouterr().err
    assert caught.value.code == 2 and re.search(says, error), error


def test_startup_error_exits_2_without_traceback(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")
    process = start(path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "Traceback" not in err and out == ""


@pytest.mark.parametrize("kind", sorted(service.WITHOUT_BLOBS))
def test_service_without_blobs_needs_no_credentials(kind: str, config: Path, database: redis.Redis,
                                                    monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    """Only the pods of the other services mount the key file."""
    def load(path: str, overrides: Sequence[str]) -> Config:
        found = Config.model_validate_json(Path(path).read_text())
        return found.model_copy(update={"blobs": BlobConfig(url="gs://bucket/prefix")})

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
    RunState(database, "r").create({}, "t")
    with service.start(kind, load, ["--config", str(config)]) as running:
        assert running.parameters.head() is None
        with pytest.raises(RuntimeError, match=f"{kind} has no blob store"):
            _ = running.blobs
    with pytest.raises(SystemExit) as caught:
        service.start("tested", load, ["--config", str(config)])
    assert caught.value.code == 2 and "/nowhere/key.json" in capsys.readouterr().err


def test_exit_status_ends_a_service_that_did_not_fail(config: Path, database: redis.Redis) -> None:
    def load(path: str, overrides: Sequence[str]) -> Config:
        return Config.model_validate_json(Path(path).read_text())

    def run(act: Callable[[service.Service[Config]], None]) -> object:
        with pytest.raises(SystemExit) as caught, service.start("tested", load, ["--config", str(config)]) as running:
            act(running)
        return caught.value.code

    RunState(database, "r").create({}, "t")
    assert run(lambda running: running.end_with(75, lambda: None)) == 75

    def fail(running: service.Service[Config]) -> None:
        running.end_with(75, lambda: None)
        running.critical_tasks.thread("x", lambda: None).start()
        assert running.lifecycle.wait_drain(10)

    assert run(fail) == 1


def test_signal_while_a_service_closes_prevents_its_restart(
        config: Path, database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: str, overrides: Sequence[str]) -> Config:
        return Config.model_validate_json(Path(path).read_text())

    restarts: list[object] = []
    monkeypatch.setattr(service, "reexec", restarts.append)
    RunState(database, "r").create({}, "t")
    for signalled in (False, True):
        with service.start("tested", load, ["--config", str(config)]) as running:
            release = running._lease.release

            def end_lease(restarting: bool, signalled: bool = signalled, release: Any = release) -> None:
                release(restarting)
                if signalled:
                    signal.raise_signal(signal.SIGTERM)

            monkeypatch.setattr(running._lease, "release", end_lease)
            running.restart("of a new record")
    assert len(restarts) == 1
