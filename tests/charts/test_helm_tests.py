"""The `helm test` scripts against real servers: Redis with its rendered configuration, the controller, gRPC."""

import asyncio
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import redis
import uvicorn
import yaml

from five.agent.config import SchedulesConfig
from five.local.cluster import free_ports
from five.services.controller.http.app import create_app
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.dependencies import Context
from five.services.controller.http.tokens import FixedTokens
from rapid.config import RpcConfig, StoreConfig
from rapid.embedded_redis import server_binary
from rapid.rpc.server import serve
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState, Status
from tests.charts.rendering import CHART, ROOT, Values, find, objects

DEFAULTS = Values("defaults")
SCRIPTS = CHART / "files/tests"


def script(name: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script the way its pod does: passwords and tokens of ``env`` are in files, which variables name."""
    with tempfile.TemporaryDirectory() as folder:
        for key in [key for key, value in env.items() if value and key.endswith(("_PASSWORD", "_TOKEN"))]:
            Path(folder, key).write_text(f"{env.pop(key)}\n")
            env[f"{key}_FILE"] = f"{folder}/{key}"
        return subprocess.run(
            [sys.executable, SCRIPTS / name, *map(str, arguments)], capture_output=True, text=True, timeout=240,
            env={**os.environ, "PYTHONPATH": f"{ROOT}/libs:{ROOT}", **env})


@contextmanager
def rendered_redis(role: str, folder: Path, change: dict[str, str] | None = None) -> Iterator[int]:
    """Start a server with the rendered command, configuration and users, in a local folder and at a local port."""
    (port,) = free_ports(1)
    folder.mkdir()
    (folder / "users").mkdir()
    (folder / "users/users.acl").write_text(secret("redis-users")[f"{role}.acl"])
    files = find(DEFAULTS, "ConfigMap", f"redis-{role}")["data"]
    for name in ("start.sh", "rules.acl"):
        (folder / name).write_text(files[name])
    text = files["redis.conf"]
    for old, new in {r"^port 6379$": f"port {port}", r"^dir /(data|tmp)$": f"dir {folder}",
                     **(change or {}), r"/run/five-redis/users.acl": str(folder / "users.acl")}.items():
        text, found = re.subn(old, new, text, flags=re.M)
        assert found == 1 or "dir" in old or "users" in old, old
    (folder / "redis.conf").write_text(text)
    (folder / "bin").mkdir()
    (folder / "bin/redis-server").symlink_to(REDIS_SERVER)
    kind = "StatefulSet" if role == "state" else "Deployment"
    (container,) = find(DEFAULTS, kind, f"redis-{role}")["spec"]["template"]["spec"]["containers"]
    command = [part.replace("/etc/five-redis/conf", str(folder)) for part in container["command"]]
    process = subprocess.Popen(["env", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env={"PATH": f"{folder}/bin:/usr/bin:/bin", "CONF": str(folder),
                                               "USERS": str(folder / "users"), "RUN": str(folder)})
    try:
        yield port
    finally:
        process.terminate()
        process.wait(60)
        print(process.stdout.read() if process.stdout else "")


# Another than the embedded one.
REDIS_SERVER = os.environ.get("FIVE_REDIS_SERVER") or server_binary()


def secret(name: str) -> dict[str, str]:
    """Return the data of one of the chart's Secrets."""
    return {key: b64decode(value).decode() for key, value in find(DEFAULTS, "Secret", name)["data"].items()}


def login(user: str, *roles: str) -> dict[str, str]:
    """Return the user names and passwords that a pod gets."""
    given = {}
    for role in roles:
        given |= {f"FIVE_{role.upper()}_USER": user,
                  f"FIVE_{role.upper()}_PASSWORD": secret(f"redis-{user}")[f"{role}-password"]}
    return given


def run_file(folder: Path, state: int, params: int) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({"preset": "laptop-1v1", "store": {
        "state_url": f"redis://127.0.0.1:{state}/0", "params_url": f"redis://127.0.0.1:{params}/0"}}))
    return path


def test_stores(tmp_path: Path) -> None:
    with rendered_redis("state", tmp_path / "s") as state, rendered_redis("params", tmp_path / "p") as params:
        config, probe = run_file(tmp_path, state, params), login("probe", "state", "params")
        done = script("stores.py", config, 10, **probe)
        assert done.returncode == 0, done.stderr
        assert "state: answers to its password, append-only file on" in done.stdout
        assert "params: answers to its password, append-only file off" in done.stdout
        client = redis.Redis(port=params, username="admin", password=secret("redis-admin")["params-password"])
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert int(client.config_get("maxmemory")["maxmemory"]) > 0  # type: ignore[index]
        wrong = script("stores.py", config, 1, **(probe | {"FIVE_STATE_PASSWORD": "x"}))
        assert wrong.returncode != 0 and "the state Redis does not answer" in wrong.stderr
        # The users are those of the chart: one of them does what it may, and no more.
        rollout = redis.Redis(port=state, username="rollout", password=secret("redis-rollout")["state-password"])
        assert rollout.get("five:five:status") is None
        for forbidden in ("five:five:head", "five:another:status"):
            with pytest.raises(redis.ResponseError, match="(?i)no permissions"):
                rollout.get(forbidden)


def test_a_store_that_would_lose_the_run_fails_the_test(tmp_path: Path) -> None:
    with rendered_redis("state", tmp_path / "s", {"appendonly yes": "appendonly no"}) as state:
        file = run_file(tmp_path, state, state)
        done = script("stores.py", file, 10, **login("probe", "state"))
        assert done.returncode != 0 and "has no append-only file" in done.stderr


def test_a_store_without_a_password_fails_the_test(tmp_path: Path) -> None:
    with rendered_redis("state", tmp_path / "s", {r"^aclfile .*$": ""}) as state:
        done = script("stores.py", run_file(tmp_path, state, state), 10, FIVE_STATE_PASSWORD="",
                      FIVE_PARAMS_PASSWORD="")
        assert done.returncode != 0 and "answers without a password" in done.stderr


class Api:
    """REST API of the controller with its own Redis."""

    def __init__(self, port: int, folder: Path) -> None:
        client = redis.Redis(port=port, username="admin", password=secret("redis-admin")["state-password"])
        self.state = RunState(client, "trial")
        self.state.create({"name": "trial"}, "test")
        self.store = ParameterStore(client, client, "trial", StoreConfig(archive_every=0))
        gate = Authenticator(FixedTokens.of(ada=("operator", "operator-token"), vera=("viewer", "viewer-token")))
        app = create_app(Context("trial", self.state, self.store, SchedulesConfig(), gate))
        (self.port,) = free_ports(1)
        self.server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", self.port, log_level="error"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.port}"

    def publish(self, version: int) -> None:
        self.store.publish(version, {"w": np.full(4, version, np.float32)}, {})


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with rendered_redis("state", tmp_path / "s") as port:
        client = redis.Redis(port=port, username="admin", password=secret("redis-admin")["state-password"])
        for _ in range(1200):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        api = Api(port, tmp_path)
        yield api
        api.server.should_exit = True
        api.thread.join()


TOKENS = {"FIVE_VIEWER_TOKEN": "viewer-token"}


def test_rest_endpoint(api: Api) -> None:
    done = script("rest_endpoint.py", api.url, 30, **TOKENS)
    assert done.returncode == 0, done.stderr
    assert "run trial: starting" in done.stdout
    assert script("rest_endpoint.py", api.url, 0, FIVE_VIEWER_TOKEN="other").returncode != 0
    same = script("rest_endpoint.py", api.url, 30, FIVE_VIEWER_TOKEN="operator-token")
    assert same.returncode != 0 and "expected 403" in same.stderr, "a viewer that may change things"


def test_training_version(api: Api) -> None:
    api.publish(1)
    is_over = threading.Event()

    def learn() -> None:  # whenever the script begins to look
        for version in itertools.count(2):
            if is_over.wait(3.0):
                return
            api.publish(version)

    learning = threading.Thread(target=learn)
    learning.start()
    done = script("training_version.py", api.url, 30, **TOKENS)
    is_over.set()
    learning.join()
    found = re.search(r"version (\d+) came after version (\d+)", done.stdout)
    assert done.returncode == 0 and found and int(found[1]) > int(found[2]) >= 1, done.stderr
    done = script("training_version.py", api.url, 0.5, **TOKENS)
    assert done.returncode != 0 and "no new version within 0.5 s" in done.stderr
    api.state.transition(Status.RUNNING, "test")
    api.state.transition(Status.PAUSING, "test", "to look")
    done = script("training_version.py", api.url, 30, **TOKENS)
    assert done.returncode != 0 and "the run is pausing (to look)" in done.stderr


def test_grpc_endpoints(tmp_path: Path) -> None:
    """Every configured address must answer the health service; a listening port is not enough."""
    config = tmp_path / "run.yaml"

    async def ask(serving: bool) -> subprocess.CompletedProcess[str]:
        rpc = RpcConfig(require_token=False)
        up, other = await serve("127.0.0.1:0", [], rpc), await serve("127.0.0.1:0", [], rpc, serving=serving)
        # By a name: numbers of the own loop are the games beside a rollout, which nobody else calls.
        names = {"inference": {"addresses": [f"{socket.gethostname()}:{up.port}"]},
                 "opponents": {"address": f"{socket.gethostname()}:{up.port}"},
                 "evaluator": {"address": f"{socket.gethostname()}:{other.port}"},
                 "play": {"address": f"{socket.gethostname()}:{up.port}"},
                 "optimizer": {"addresses": [f"{socket.gethostname()}:{other.port}"]}}
        config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "services": names}))
        done = await asyncio.to_thread(script, "grpc_endpoints.py", config, 30 if serving else 3)
        await up.stop(0)
        await other.stop(0)
        return done

    good = asyncio.run(ask(True))
    assert good.returncode == 0 and good.stdout.count("serves") == 5, good.stderr
    bad = asyncio.run(ask(False))
    assert bad.returncode != 0 and "not serving after 3 s" in bad.stderr


def test_the_pods_run_these_scripts() -> None:
    tests = {o["metadata"]["name"]: o for o in objects(DEFAULTS, "Pod")}
    assert set(tests) == {f"five-test-{n}" for n in ("rest", "grpc", "redis", "training")}
    mounted = find(DEFAULTS, "ConfigMap", "test")["data"]
    for pod in tests.values():
        (container,) = pod["spec"]["containers"]
        path = Path(container["command"][-1])
        assert path.parent == Path("/etc/five/tests") and path.name in mounted
        assert mounted[path.name] == (SCRIPTS / path.name).read_text()
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        assert pod["spec"]["activeDeadlineSeconds"] > int(container["args"][-1]), "the script tells why it failed"
    assert container["image"].startswith("five/controller:")


def test_a_pod_holds_only_the_secrets_that_its_script_reads() -> None:
    """Reading or breaking into a test pod gives access to the tested endpoint only."""
    tls = Values("tests over TLS", sets=("tls.grpc.enabled=true", "tls.grpc.existingSecret=grpc",
                                         "tls.redis.enabled=true", "tls.redis.existingSecret=redis"))
    held = {}
    for pod in objects(tls, "Pod"):
        (container,) = pod["spec"]["containers"]
        assert not [e for e in container.get("env", []) if "valueFrom" in e]
        secrets = [v["secret"] for v in pod["spec"]["volumes"] if "secret" in v]
        found = {item["key"] if s["secretName"].startswith("five-") else s["secretName"] for s in secrets
                 for item in s.get("items", [{}])}
        configured = any(m["mountPath"] == "/etc/five/run.yaml" for m in container["volumeMounts"])
        assert configured is ("/etc/five/run.yaml" in container["args"])
        held[pod["metadata"]["name"].removeprefix("five-test-")] = found
    assert held == {"rest": {"token"}, "training": {"token"}, "grpc": {"grpc"},
                    "redis": {"state-password", "params-password", "redis"}}


def test_volumes_are_mounted_in_the_test_pods_only() -> None:
    values = Values("volumes of the tests", sets=(
        "tests.extraVolumes[0].name=authority", "tests.extraVolumes[0].configMap.name=ca",
        "tests.extraVolumeMounts[0].name=authority", "tests.extraVolumeMounts[0].mountPath=/ca"))
    for pod in objects(values, "Pod"):
        assert {"name": "authority", "configMap": {"name": "ca"}} in pod["spec"]["volumes"]
        assert {"name": "authority", "mountPath": "/ca"} in pod["spec"]["containers"][0]["volumeMounts"]
    others = [o for o in objects(values) if o["kind"] in ("Deployment", "StatefulSet")]
    assert others and "authority" not in json.dumps(others)


def test_logs_can_be_read_after_a_test() -> None:
    """`helm test --logs` reads logs after all tests have ended, so pods must not be deleted on success."""
    for pod in objects(DEFAULTS, "Pod"):
        assert pod["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation"


def test_without_training_or_without_tests() -> None:
    names = [o["metadata"]["name"] for o in objects(Values("endpoints", sets=("tests.training.enabled=false",)), "Pod")]
    assert "five-test-training" not in names and len(names) == 3
    assert not objects(Values("none", sets=("tests.enabled=false",)), "Pod")
