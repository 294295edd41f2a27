"""Startup of a service: errors are one line, and a started service is alive and can be drained."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
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
from rapid.startup import advertised_host, parse_arguments
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
    with urllib.request.urlopen(f"http://{instance.metrics_address}/metrics", timeout=5) as page:
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
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as found:
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
    path.write_text(json.dumps({"store": {"state_url": url, "params_url": url, "timeout_seconds": 0.2}}))
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


def test_help_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments("rollout", [])
    assert caught.value.code == 2 and "--config" in capsys.readouterr().err


def test_arguments() -> None:
    found = parse_arguments("rollout", ["--config", "c.yaml", "--set", "a.b=1", "--set", "c=2", "--id", "3",
                                        "--port", "50051", "--metrics-port", "0"])
    assert (found.config, found.overrides, found.id, found.port, found.metrics_port) == (
        "c.yaml", ("a.b=1", "c=2"), "3", 50051, 0)
    assert parse_arguments("rollout", ["--config", "c.yaml"]).port is None


def test_ranks_have_own_names_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["--config", "c.yaml", "--id", "hostname", "--port", "50051", "--metrics-port", "9100"]
    found = parse_arguments("optimizer", asked)
    assert (found.id, found.port, found.metrics_port) == (socket.gethostname(), 50051, 9100)
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    found = parse_arguments("optimizer", asked)
    assert (found.id, found.port, found.metrics_port) == (f"{socket.gethostname()}-3", 50054, 9103)
    assert parse_arguments("optimizer", ["--config", "c.yaml", "--metrics-port", "0"]).metrics_port == 0


def test_advertised_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert advertised_host("127.0.0.1") == "127.0.0.1"
    monkeypatch.setattr(socket, "getfqdn", lambda: "five-optimizer-0.five-optimizer.five.svc.cluster.local")
    assert advertised_host("0.0.0.0") == "five-optimizer-0.five-optimizer.five.svc.cluster.local"
    monkeypatch.setattr(socket, "getfqdn", lambda: "4d1a9c6f")
    monkeypatch.setattr(socket, "gethostname", lambda: "4d1a9c6f")
    rows = [(socket.AF_INET6, 0, 0, "", ("fd00::7", 0, 0, 0)), (socket.AF_INET, 0, 0, "", ("10.1.2.3", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *name, **options: rows)
    assert advertised_host("0.0.0.0") == "10.1.2.3" and advertised_host("::") == "fd00::7"
    del rows[1]
    assert advertised_host("0.0.0.0") == "fd00::7"


# The embedded Redis.

def test_the_embedded_redis_is_private_and_persistent(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    with server.start():
        client = redis.Redis.from_url(server.url)
        assert server.socket.stat().st_mode & 0o777 == 0o700
        assert client.config_get("port") == {"port": "0"} or client.config_get("port") == {b"port": b"0"}
        client.set("x", "1")
    assert not server.is_ready()
    with server.start():
        assert redis.Redis.from_url(server.url).get("x") == b"1"
    params = EmbeddedRedis(tmp_path / "params", append_only=False)
    with params.start():
        redis.Redis.from_url(params.url).set("x", "1")
    with params.start():
        assert redis.Redis.from_url(params.url).get("x") is None
        assert not list((tmp_path / "params").glob("*.aof")) and not list((tmp_path / "params").glob("*.rdb"))


def test_long_folder_uses_a_temporary_socket(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / ("deep" * 30), append_only=False)
    assert len(str(server.socket)) <= 100
    with server.start():
        assert server.is_ready()
        again = EmbeddedRedis(server.folder, append_only=False)
        assert again.socket == server.socket and again.is_ready()
        assert server.socket.parent.stat().st_mode & 0o777 == 0o700


def plant_link(folder: Path) -> None:
    folder.symlink_to(folder.parent)


def plant_loose(folder: Path) -> None:
    folder.mkdir(mode=0o755)


def plant_foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize("plant", [plant_link, plant_loose, plant_foreign])
def test_socket_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  plant: Callable[[Path], None]) -> None:
    """A listener at a predictable path would receive the passwords of the run's users."""
    if plant is plant_foreign and os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plant(tmp_path / f"five-{os.getuid()}")
    server = EmbeddedRedis(tmp_path / ("deep" * 30), append_only=False)
    for use in (lambda: server.url, server.argv, server.is_ready):
        with pytest.raises(RuntimeError, match="must be a folder of this user with mode 0700"):
            use()


def test_failed_redis_start_has_its_log(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    server.folder.mkdir()
    (server.folder / "appendonly.aof").write_bytes(b"not an append-only file\r\n")
    with pytest.raises(RuntimeError, match=r"(?s)did not start.*append only file"):
        server.start()
