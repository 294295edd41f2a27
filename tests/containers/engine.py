"""Docker engine, and projects of docker-compose.yml on it."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

from five.local.cluster import free_ports

ROOT = Path(__file__).resolve().parents[2]
DOCKER = os.environ.get("DOCKER", "docker")
COMPOSE = os.environ.get("COMPOSE", f"{DOCKER} compose")
BASE = os.environ.get("BASE", "python:3.11-slim-bookworm")
VERSION = "dev"  # the tag of this machine's last build
# Names of the images and of the compose services, and what learns or serves in them.
SERVICES = ("dota-env", "rollout", "inference", "optimizer", "controller", "opponents", "evaluator", "play")
OPTIONAL = ("dotaservice",)  # started by a profile of its own
IMAGES = (*SERVICES, *OPTIONAL)
STORES = ("redis-state", "redis-params")
T = TypeVar("T")


def image(service: str) -> str:
    """Return the name of a service's image."""
    return f"five/{service}:{VERSION}"


def docker(*arguments: str, check: bool = True, timeout: float = 300.0) -> str:
    """Return the standard output of a docker command. Raises AssertionError with its output when it fails."""
    return _output([DOCKER, *arguments], check, timeout, None)


def inspect(name: str) -> dict[str, Any]:
    """Return `docker inspect` of a container or an image."""
    return dict(json.loads(docker("inspect", name))[0])


def in_image(service: str, *command: str, options: Sequence[str] = (), check: bool = True) -> str:
    """Return the standard output of a command in a fresh container of a service's image, restricted as compose
    restricts it."""
    return docker("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
                  "--security-opt", "no-new-privileges", *options, "--entrypoint", command[0], image(service),
                  *command[1:], check=check)


def eventually(condition: Callable[[], T], seconds: float, what: str, every: float = 0.5) -> T:
    """Return the first true value of ``condition``, polling through temporary connection errors."""
    end = time.monotonic() + seconds
    last: Any = None
    while time.monotonic() < end:
        try:
            last = condition()
            if last:
                return last
        except (httpx.HTTPError, LookupError) as error:
            last = error
        time.sleep(every)
    raise AssertionError(f"not within {seconds:g} s: {what} (last seen: {last!r})")


def _output(command: list[str], check: bool, timeout: float, env: dict[str, str] | None) -> str:
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode:
        raise AssertionError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}"
                             f"\n{done.stderr[-4000:]}")
    return done.stdout


class Project:
    """Compose project of docker-compose.yml and files of deploy/compose, by default the tiny run, with its own name and
    free ports.

    ``changes`` go into a file layered over deploy/compose/run.yaml, which FIVE_RUN names, as a user would do it.
    """

    def __init__(self, name: str, secrets: Path, changes: Mapping[str, Any] | None = None,
                 over: Sequence[str] = ("smoke.yml",)) -> None:
        self.name = name
        self._secrets = secrets
        self._files = [part for file in ("docker-compose.yml", *(f"deploy/compose/{name}" for name in over))
                       for part in ("-f", file)]
        _output(["deploy/compose/make-env.sh", str(secrets)], True, 120, None)
        self.port, self.prometheus_port = free_ports(2)
        self._env = {key: value for key, value in os.environ.items() if not key.startswith("FIVE_")}
        self._env |= {"FIVE_PORT": str(self.port), "FIVE_PROMETHEUS_PORT": str(self.prometheus_port),
                      "FIVE_VERSION": VERSION}
        if changes:
            run = secrets.with_name("run.yaml")
            values = yaml.safe_load((ROOT / "deploy/compose/run.yaml").read_text())
            run.write_text(yaml.safe_dump({**values, **changes}))
            run.chmod(0o644)  # containers read it as user 10001
            self._env["FIVE_RUN"] = str(run)

    @property
    def secret(self) -> dict[str, str]:
        """Return a secret by its name in .env."""
        lines = [line.partition("=") for line in self._secrets.read_text().splitlines()]
        return {key: value for key, _, value in lines if key.endswith(("_TOKEN", "_SECRET", "_PASSWORD", "_OLD"))}

    def users(self) -> list[str]:
        """Return the names of the services' Redis users."""
        return [service for service in SERVICES if service != "dota-env"]

    def redis_cli(self, store: str, *lines: str) -> list[str]:
        """Return the output of redis-cli for command lines on its standard input."""
        done = subprocess.run([DOCKER, "exec", "-i", self.containers(store)[0], "redis-cli"], input="\n".join(lines),
                              capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.split("\n")[:-1]

    def as_admin(self, store: str, command: str) -> list[str]:
        """Return the output of redis-cli as the administrator."""
        return self.redis_cli(store, f"AUTH admin {self.secret['FIVE_ADMIN_PASSWORD']}", command)[1:]

    def rotate(self, *what: str) -> None:
        """Rotate secrets with deploy/compose/rotate.sh."""
        files = f"{COMPOSE} -p {self.name} {shlex.join(self._files)}"
        _output(["deploy/compose/rotate.sh", *what], True, 420,
                self._env | {"ENV_FILE": str(self._secrets), "COMPOSE": files})

    def certify(self) -> None:
        """Create a new certificate for the services' calls with deploy/compose/make-certificates.sh."""
        _output(["deploy/compose/make-certificates.sh"], True, 120, self._env | {"ENV_FILE": str(self._secrets)})

    def compose(self, *arguments: str, check: bool = True, timeout: float = 420.0) -> str:
        """Return the standard output of a compose command on the project."""
        return _output([*shlex.split(COMPOSE), "--env-file", str(self._secrets), "-p", self.name, *self._files,
                        *arguments], check, timeout, self._env)

    def shell(self, line: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a shell line with this project's options after each `docker compose`, and ``given`` as standard input."""
        options = ["--env-file", str(self._secrets), "-p", self.name, *self._files]
        return subprocess.run(line.replace("docker compose", f"{COMPOSE} {shlex.join(options)}"), shell=True, cwd=ROOT,
                              env=self._env, input=given, capture_output=True, timeout=420, check=False)

    def up(self, *arguments: str) -> None:
        """Start the project and wait until every container is healthy. The error of a failure holds the ends of all
        logs."""
        try:
            self.compose("up", "--no-build", "--wait", "--wait-timeout", "600", *arguments, timeout=900.0)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def down(self) -> None:
        """Remove the project with its volumes."""
        self.compose("down", "-v", "--remove-orphans", "-t", "15", check=False)

    def containers(self, service: str) -> list[str]:
        """Return the ids of a service's running containers."""
        return self.compose("ps", "-q", service).split()

    def logs(self) -> str:
        """Return the ends of all logs."""
        return self.compose("logs", "--tail", "25", check=False)

    def rest(self, method: str, path: str, token: str | None = None, **arguments: Any) -> httpx.Response:
        """Return the controller's response to /v1/<path>, with the operator's token by default."""
        given = self.secret["FIVE_OPERATOR_TOKEN"] if token is None else token
        headers = {"Authorization": f"Bearer {given}"} if given else {}
        return httpx.request(method, f"http://127.0.0.1:{self.port}/v1/{path}", headers=headers, timeout=60.0,
                             **arguments)

    def status(self) -> dict[str, Any]:
        """Return the run's status."""
        return dict(self.rest("GET", "status").raise_for_status().json())

    def version(self) -> int:
        """Return the newest version, -1 before the first."""
        found = self.status()["version"]
        return -1 if found is None else int(found)

    def wait_version(self, version: int, seconds: float = 300.0) -> int:
        """Wait for a version of at least that number and return the newest."""
        try:
            eventually(lambda: self.version() >= version, seconds, f"version {version} is out")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
        return self.version()

    def kill(self, service: str, index: int = 0) -> str:
        """Kill a container's first process from outside, as a crash would, so that the restart policy acts. Return the
        container's id. ``index`` is the container's, of several."""
        container = self.containers(service)[index]
        pid = int(inspect(container)["State"]["Pid"])
        if _is_here(pid, container) and os.geteuid() == 0:
            os.kill(pid, signal.SIGKILL)
        else:
            docker("run", "--rm", "--pid", "host", "--privileged", "--user", "0", "--network", "none", "--entrypoint",
                   "sh", image("dota-env"), "-c", f"kill -9 {pid}")
        return container

    def metric(self, query: str) -> float | None:
        """Return the first value of an instant query at the project's Prometheus, or None without a series."""
        answer = httpx.get(f"http://127.0.0.1:{self.prometheus_port}/api/v1/query", params={"query": query}, timeout=60)
        found = answer.raise_for_status().json()["data"]["result"]
        return float(found[0]["value"][1]) if found else None


def _is_here(pid: int, container: str) -> bool:
    """Return whether a process belongs to the container and to this host; the engine may run on another host."""
    groups = Path(f"/proc/{pid}/cgroup")
    return groups.exists() and inspect(container)["Id"] in groups.read_text()
