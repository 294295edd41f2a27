"""Services started one by one as containers start them: without `five train`, in any order, a Redis for each role with
a user for each service, one file with a preset, fixed ports, names from the machine."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml

from five.local.cluster import free_ports
from five.run.load import apply_overrides, load
from five.services.controller.http import tokens
from rapid.config import StoreConfig
from rapid.embedded_redis import server_binary
from rapid.rpc.access import Audience, Caller
from rapid.rpc.caller_secret import write_secret
from rapid.rpc.callers import callers_text
from rapid.store import acl, functions
from rapid.store.connection import PASSWORD_VARIABLES, USER_VARIABLES, Login, Role, connect
from rapid.store.state import RunState, Status
from tests.e2e.running import ROOT, TINY, eventually

SECRETS = {caller: f"the-secret-of-the-{caller}" for caller in Caller}
# In an order in which nobody finds what it needs.
KINDS = ("rollout", "evaluator", "dota_env", "inference", "optimizer", "opponents", "controller")


class Containers:
    """The processes by kind of service."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        self.folder = folder
        ports = iter(free_ports(3 + 2 * len(KINDS)))
        self.rest_port = next(ports)
        self.redis_ports: dict[Role, int] = {role: next(ports) for role in acl.ROLES}
        self.passwords = {user: f"the-password-of-{user}" for role in acl.ROLES for user in acl.users(role)}
        self.ports = {kind: (next(ports), next(ports)) for kind in KINDS}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        urls = {role: f"redis://127.0.0.1:{port}/0" for role, port in self.redis_ports.items()}

        def at(kind: str) -> str:
            return f"127.0.0.1:{self.ports[kind][0]}"

        tree = apply_overrides({"preset": "laptop-1v1"}, [
            *TINY, "name=alone", f"store.state_url={urls['state']}",
            f"store.params_url={urls['params']}",
            f"blobs.url={folder / 'blobs'}", "services.rollout.environment=remote",
            f"services.dota_env.addresses=['{at('dota_env')}']", f"services.inference.addresses=['{at('inference')}']",
            f"services.inference.past_addresses=['{at('inference')}']",
            f"services.optimizer.addresses=['{at('optimizer')}']", f"services.opponents.address={at('opponents')}",
            f"services.evaluator.address={at('evaluator')}", "services.controller.keep_serving=true",
            f"services.controller.port={self.rest_port}", *overrides])
        self.token, entry = tokens.make("tester", "operator")
        tokens.write(folder / "tokens.json", [entry])
        (folder / "callers.json").write_text(callers_text({caller: [secret] for caller, secret in SECRETS.items()}))
        for caller, secret in SECRETS.items():
            write_secret(folder / f"{caller}.secret", secret)
        self.file = folder / "run.yaml"
        self.file.write_text(yaml.safe_dump(tree))
        self.config = load(self.file)

    def start_redis(self) -> None:
        for role, port in self.redis_ports.items():
            users = self.folder / f"{role}.acl"
            users.write_text(acl.acl_file(role, {user: [self.passwords[user]] for user in acl.users(role)}, "alone"))
            self.processes[f"redis-{role}"] = subprocess.Popen(
                [server_binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                 "--aclfile", str(users), "--dir", str(self.folder)], stdout=subprocess.DEVNULL)

    def secrets(self, kind: str) -> dict[str, str]:
        """Return a service's secrets: its Redis user and password, and the secret of its calls, if it has them. A
        server also gets the hashes of its callers."""
        given = {}
        if kind in SECRETS:
            given["FIVE_CALLER_SECRET_FILE"] = str(self.folder / f"{kind}.secret")
        if kind in list(Audience):
            given["FIVE_CALLERS_FILE"] = str(self.folder / "callers.json")
        if kind == "controller":
            given[tokens.FILE_VARIABLE] = str(self.folder / "tokens.json")
        for role in acl.roles_of(kind):
            given |= {USER_VARIABLES[role]: kind, PASSWORD_VARIABLES[role]: self.passwords[kind]}
        return given

    def start(self, kind: str) -> None:
        port, metrics = self.ports[kind]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FIVE_")} | {
            "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", **self.secrets(kind)}
        ports = ["--metrics-port", str(metrics)] + (["--port", str(port)] if kind != "controller" else [])
        with (self.folder / f"{kind}.log").open("ab") as log:
            self.processes[kind] = subprocess.Popen(
                [sys.executable, "-m", f"five.services.{kind}", "--config", str(self.file), "--id", "hostname", *ports],
                cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def page(self, kind: str, name: str) -> tuple[int, str]:
        """Return status and text of a service's page; (0, "") if it does not answer."""
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.ports[kind][1]}/{name}", timeout=60)
        except httpx.HTTPError:
            return 0, ""
        return answer.status_code, answer.text.strip()

    def rest(self, method: str, path: str) -> Any:
        answer = httpx.request(method, f"http://127.0.0.1:{self.rest_port}/v1/{path}", timeout=60,
                               headers={"Authorization": f"Bearer {self.token}"})
        answer.raise_for_status()
        return answer.json()

    def eventually(self, condition: Any, what: str, seconds: float = 300.0) -> Any:
        try:
            return eventually(condition, seconds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        return "\n".join(f"--- {p.name}\n" + "\n".join(p.read_text(errors="replace").splitlines()[-12:])
                         for p in sorted(self.folder.glob("*.log")))

    def redis(self, role: Role) -> redis.Redis:
        """Return a client as the admin."""
        url = self.config.store.state_url if role == "state" else self.config.store.params_url
        return connect(url, StoreConfig(timeout_seconds=5), role, Login(acl.ADMIN, self.passwords[acl.ADMIN]))

    def state(self) -> RunState:
        return RunState(self.redis("state"), "alone")

    def destroy(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(60)


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    containers = Containers(tmp_path)
    yield containers
    containers.destroy()


@pytest.mark.runs
@pytest.mark.timeout(1200)
def test_services_connect_stop_and_restart(containers: Containers) -> None:
    for kind in KINDS[:-1]:
        containers.start(kind)
    waiting = [kind for kind in KINDS if kind not in ("controller", "dota_env")]
    # Games need neither a store nor a run.
    containers.eventually(lambda: containers.page("dota_env", "readyz") == (200, "ready"), "games can be had")
    containers.eventually(lambda: all("no state Redis responds" in containers.page(k, "readyz")[1] for k in waiting),
                          "all wait for Redis")
    containers.start_redis()
    missing = (503, f"the state Redis lacks this release's functions ({functions.LIBRARY}); the controller loads them")
    containers.eventually(lambda: all(containers.page(k, "readyz") == missing for k in waiting),
                          "all wait for the controller")
    assert all(containers.page(kind, "healthz") == (200, "alive") for kind in waiting)
    assert containers.page("dota_env", "readyz") == (200, "ready")
    containers.start("controller")
    containers.eventually(lambda: containers.rest("GET", "status")["status"] == "running", "the run is running")
    containers.eventually(lambda: all(containers.page(kind, "readyz") == (200, "ready") for kind in KINDS), "all ready")
    containers.eventually(lambda: containers.rest("GET", "status")["version"] >= 2, "version 2 is out")
    services = containers.rest("GET", "services")
    assert {row["id"] for row in services} == {socket.gethostname()}
    # The games' server has no store to say that it lives: its rollout does.
    assert "dota_env" not in {row["kind"] for row in services}
    assert containers.rest("GET", "status")["services"]["dota_env"] == 1
    # Everybody did with its own rights what it does.
    refused: list[Any] = [row for role in acl.ROLES for row in containers.redis(role).acl_log()]
    assert not [(row["username"], row["reason"], row["object"]) for row in refused]

    # Stopped, all but the controller and the games end as they should; started again, they wait until the run is.
    assert containers.rest("POST", "stop")["status"] == "stopping"
    for kind in waiting:
        assert containers.processes[kind].wait(120) == 0, containers.logs()
    for kind in waiting:
        containers.start(kind)
    containers.eventually(lambda: all(containers.page(k, "readyz") == (503, "the run is stopped") for k in waiting),
                          "all wait for the run to be started again")
    assert all(containers.processes[kind].poll() is None for kind in ("controller", "dota_env"))
    reached = containers.rest("GET", "status")["version"]
    assert containers.rest("POST", "resume")["status"] == "starting"
    containers.eventually(lambda: containers.rest("GET", "status")["version"] > reached, "learning goes on")

    # Told to end, each does so within its grace, the controller as well.
    for kind in KINDS:
        containers.processes[kind].send_signal(signal.SIGTERM)
    for kind in KINDS:
        assert containers.processes[kind].wait(120) == 0, containers.logs()
    now = containers.state().status()
    assert now is not None and now.status is Status.RUNNING

    # No secret is written anywhere: not into the run's documents, not into a log.
    state: Any = containers.state()
    kept = [str(state.config()).encode()] + [path.read_bytes() for path in containers.folder.glob("*.log")]
    secrets = (*SECRETS.values(), containers.token, *containers.passwords.values())
    assert not any(secret.encode() in text for secret in secrets for text in kept)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=containers.redis_ports["state"]).ping()
