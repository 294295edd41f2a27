"""k8s/rotate.sh against real Redis servers and a fake kubectl: Secrets are files, exec runs redis-cli, and replaced
pods are recorded with the Secrets that they would get."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store import acl
from rapid.store.connection import Login, connect
from tests.containers.engine import ROOT

KUBECTL = """
import base64, fcntl, hashlib, json, os, sys
path = os.environ["STAND_IN"]
def keep():  # whole at any time: others read it at the same time
    with open(f"{path}.{os.getpid()}", "w") as file:
        json.dump(place, file)
    os.replace(f"{path}.{os.getpid()}", path)
place = json.load(open(path))
words = sys.argv[3:]  # -n five
if words[:2] == ["get", "secret"]:
    key = words[4].split('"')[1]
    print(base64.b64decode(place["secrets"][words[2]].get(key, "")).decode(), end="")
elif words[:2] == ["patch", "secret"]:
    for key, value in json.load(sys.stdin)["data"].items():
        place["secrets"][words[2]].pop(key, None)
        if value is not None:
            place["secrets"][words[2]][key] = value
    keep()
elif words[0] == "exec" and words[3] == "sha256sum":
    lock = open(path + ".lock", "w")  # several are asked at a time
    fcntl.flock(lock, fcntl.LOCK_EX)
    place = json.load(open(path))
    # The kubelet comes round: each pod has what it was last told, and the Secret's from the second look on.
    pod, token = words[1], base64.b64decode(place["secrets"]["five-service-token"]["token"]).decode()
    mounted = place["mounted"].setdefault(pod, [])
    late = place["asked"].get(pod) != token
    place["asked"][pod] = token
    if late and mounted:
        token = mounted[-1]
    elif token not in mounted[-1:]:
        mounted.append(token)
    keep()
    print(hashlib.sha256(token.encode()).hexdigest(), words[4])
elif words[:2] == ["get", "pods"]:
    assert "dota-env, rollout" in words[-1], words
    print("pod/five-controller-0\\npod/five-rollout-0\\npod/five-rollout-1\\npod/another-rollout-0")
elif words[0] == "exec":
    import redis
    client = redis.Redis.from_url(place["urls"][words[2].partition("-redis-")[2]], protocol=2, driver_info=None)
    connection = client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    for line in sys.stdin.read().splitlines():
        connection.send_command(*line.split())
        try:
            answer = connection.read_response()
            print(answer.decode() if isinstance(answer, bytes) else answer)
        except redis.RedisError as error:
            print("ERR", error)
elif words[:2] == ["get", "deployment,statefulset"]:
    print("deployment.apps/five-" + words[-1].rpartition("=")[2])
elif words[:2] == ["rollout", "restart"]:
    if os.environ.get("FAILS"):
        sys.exit("no such cluster")
    place["restarts"].append([words[2].partition("/five-")[2], place["secrets"]["five-service-token"],
                              place["secrets"].get(words[2].partition("/")[2].replace("five-", "five-redis-"), {})])
    keep()
"""


class Release:
    """Secrets as k8s/make-secrets.sh creates them, and both Redis servers with these users."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place = folder, folder / "place.json"
        made = subprocess.run([ROOT / "k8s/make-secrets.sh"], capture_output=True, text=True, check=True).stdout
        secrets = {o["metadata"]["name"]: {k: base64.b64encode(v.encode()).decode() for k, v in o["stringData"].items()}
                   for o in yaml.safe_load_all(made) if o}
        self.place.write_text(json.dumps({"secrets": secrets, "urls": {}}))
        self.running: list[RunningRedis] = []
        urls = {}
        for role in acl.ROLES:
            users = folder / f"{role}.acl"
            users.write_text(self.key("redis-users", f"{role}.acl"))
            login = Login(acl.PROBE, self.key("redis-probe", f"{role}-password"))
            self.running.append(EmbeddedRedis(folder / role, False, users, login).start())
            urls[role] = self.running[-1].url
        self.place.write_text(json.dumps({
            "secrets": secrets, "urls": urls, "restarts": [], "mounted": {}, "asked": {}}))
        (folder / "kubectl.py").write_text(KUBECTL)

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.place.read_text()))

    def key(self, secret: str, key: str) -> str:
        return base64.b64decode(self.state()["secrets"][f"five-{secret}"].get(key, "")).decode()

    def rotate(self, *what: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "k8s/rotate.sh", *what], capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "PYTHONPATH": "", "STAND_IN": str(self.place), "PAUSE": "0.05", **environment,
                 "KUBECTL": f"{sys.executable} -I {self.folder}/kubectl.py"})

    def takes(self, user: str, password: str, role: str = "state") -> bool:
        try:
            return bool(connect(self.state()["urls"][role], StoreConfig(), "state", Login(user, password)).ping())
        except redis.AuthenticationError:
            return False


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    release = Release(tmp_path)
    yield release
    for running in release.running:
        running.stop()


def test_passwords_are_changed_by_way_of_two(release: Release) -> None:
    old = {role: release.key("redis-optimizer", f"{role}-password") for role in acl.ROLES}
    broken = release.rotate("optimizer", FAILS="yes")
    assert broken.returncode != 0
    for role in acl.ROLES:  # in between both are taken, also by a server that starts now
        new = release.key("redis-optimizer", f"{role}-password")
        assert new != old[role] and all(release.takes("optimizer", each, role) for each in (old[role], new))
        users = release.key("redis-users", f"{role}.acl")
        assert f"user optimizer on {acl.hash_password(new)} {acl.hash_password(old[role])} resetchannels" in users
    done = release.rotate("optimizer")
    assert done.returncode == 0 and "goes on with the change" in done.stdout, done.stderr
    (restart,) = release.state()["restarts"]
    assert restart[0] == "optimizer" and {"state-password-old", "params-password-old"} <= restart[2].keys()
    for role in acl.ROLES:
        new = release.key("redis-optimizer", f"{role}-password")
        assert release.takes("optimizer", new, role) and not release.takes("optimizer", old[role], role)
        assert release.key("redis-optimizer", f"{role}-password-old") == ""
        users = release.key("redis-users", f"{role}.acl")
        assert f"user optimizer on {acl.hash_password(new)} resetchannels" in users
        assert acl.hash_password(old[role]) not in users
        assert new not in done.stdout + done.stderr


def test_the_admin_and_the_token(release: Release) -> None:
    admin, old = release.key("redis-admin", "state-password"), release.key("service-token", "token")
    done = release.rotate("admin", "token")
    assert done.returncode == 0, done.stderr
    assert not release.takes("admin", admin) and release.takes("admin", release.key("redis-admin", "state-password"))
    new = release.key("service-token", "token")
    assert new != old and release.state()["secrets"]["five-service-token"].keys() == {"token"}
    # Every pod had each of them before the next was written, and none was replaced.
    assert release.state()["restarts"] == []
    assert release.state()["mounted"] == {
        f"pod/five-{pod}": [old, f"{old}\n{new}", f"{new}\n{old}", new]
        for pod in ("controller-0", "rollout-0", "rollout-1")}
    late = release.rotate("token", TRIES="1")
    assert late.returncode == 1 and "have not got the token yet, call it again: pod/five-controller-0" in late.stderr
    assert new in release.key("service-token", "token").split(), "what is sent is taken all the time"
    assert release.rotate("token").returncode == 0
    assert len(release.key("service-token", "token").split()) == 1 != release.key("service-token", "token") != new
    assert release.rotate("dota-env").returncode == 2
