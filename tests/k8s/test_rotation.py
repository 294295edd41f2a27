"""k8s/rotate.sh against real Redis servers and a fake kubectl: Secrets are files, exec runs redis-cli, and replaced
pods are recorded with the Secrets that they would get."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.rpc.access import Caller
from rapid.rpc.callers import callers_text
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
labels = dict(label.partition("=")[::2] for label in words[-1].split(",")) if words[-2] == "-l" else {}
component = labels.get("app.kubernetes.io/component", "")
# Another release of the namespace, whose names begin with the prefix of the first.
releases = {place["release"]: place["prefix"], place["release"] + "-b": place["prefix"] + "-b"}
selected = [name for name in releases if labels.get("app.kubernetes.io/instance", name) == name]
if words[:2] == ["get", "deployment"]:
    print(next(name for name, prefix in releases.items() if words[2] == prefix + "-rollout"), end="")
elif words[:2] == ["get", "secret"]:
    key = words[4].split('"')[1]
    print(base64.b64decode(place["secrets"][words[2]].get(key, "")).decode(), end="")
elif words[:2] == ["patch", "secret"]:
    for key, value in json.load(sys.stdin)["data"].items():
        place["secrets"][words[2]].pop(key, None)
        if value is not None:
            place["secrets"][words[2]][key] = value
    keep()
elif words[0] == "exec" and words[5] == "sha256sum":
    lock = open(path + ".lock", "w")  # several are asked at a time
    fcntl.flock(lock, fcntl.LOCK_EX)
    place = json.load(open(path))
    # The kubelet comes round: each pod has what it was last told, and the Secret's from the second look on.
    pod, file = words[1].removeprefix("pod/"), words[6]
    who, container = pod + "/" + words[3], words[3]
    assert place["mounts"][pod][container] in file, words
    secret, key = (place["prefix"] + "-callers", "callers.json") if file.endswith("callers.json") else (
        place["prefix"] + "-caller-" + container, "secret")
    text = base64.b64decode(place["secrets"][secret][key]).decode()
    mounted = place["mounted"].setdefault(who, [])
    late = place["asked"].get(who) != text
    place["asked"][who] = text
    if late and mounted:
        text = mounted[-1]
    elif text not in mounted[-1:]:
        mounted.append(text)
    keep()
    print(hashlib.sha256(text.encode()).hexdigest(), file)
elif words[:2] == ["get", "pods"]:
    for pod, containers in place["mounts"].items():
        release = max(name for name, prefix in releases.items() if pod.startswith(prefix + "-"))
        for container, folder in containers.items():
            # Games beside a rollout are in its pod.
            if release in selected and ('"' + folder + '"') in words[3] and component in pod:
                print(pod, container)
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
    # Of a LeaderWorkerSet there are only the StatefulSets that its operator makes.
    if not os.environ.get("GROUP"):
        for name in selected:
            print("deployment.apps/" + releases[name] + "-" + component)
    elif "!leaderworkerset.sigs.k8s.io/name" not in labels:
        print("statefulset.apps/" + place["prefix"] + "-" + component)
elif words[:2] == ["delete", "pods"]:
    assert selected == [place["release"]], words
    place["restarts"].append(["pods of " + component, place["secrets"][place["prefix"] + "-redis-" + component]])
    keep()
elif words[:2] == ["rollout", "restart"]:
    if os.environ.get("FAILS"):
        sys.exit("no such cluster")
    component = words[2].partition("/" + place["prefix"] + "-")[2]
    place["restarts"].append([component, place["secrets"].get(place["prefix"] + "-redis-" + component, {})])
    keep()
"""


CALLER, CALLERS = "/etc/five/caller", "/etc/five/callers"
# The folder that each container mounts, by pod.
MOUNTS = {"five-controller-0": {"controller": CALLER}, "five-inference-0": {"inference": CALLERS},
          "five-rollout-0": {"rollout": CALLER, "dota-env-0": CALLERS},
          "five-b-rollout-0": {"rollout": CALLER, "dota-env-0": CALLERS}}
NAMES = ("controller", "evaluator", "play", "rollout")


class Release:
    """Secrets as k8s/make-secrets.sh creates them, and both Redis servers with these users.

    Both scripts get the variables ``named``; the objects' names begin with ``prefix``.
    """

    def __init__(self, folder: Path, prefix: str = "five", **named: str) -> None:
        self.folder, self.place, self.prefix, self.named = folder, folder / "place.json", prefix, named
        self.running: list[RunningRedis] = []
        made = subprocess.run([ROOT / "k8s/make-secrets.sh"], capture_output=True, text=True, check=True,
                              env={**os.environ, **named}).stdout
        secrets = {o["metadata"]["name"]: {k: base64.b64encode(v.encode()).decode() for k, v in o["stringData"].items()}
                   for o in yaml.safe_load_all(made) if o}
        self.place.write_text(json.dumps({"secrets": secrets, "urls": {}}))
        urls = {}
        for role in acl.ROLES:
            users = folder / f"{role}.acl"
            users.write_text(self.key("redis-users", f"{role}.acl"))
            login = Login(acl.PROBE, self.key("redis-probe", f"{role}-password"))
            self.running.append(EmbeddedRedis(folder / role, False, users, login).start())
            urls[role] = self.running[-1].url
        self.place.write_text(json.dumps({
            "secrets": secrets, "urls": urls, "restarts": [], "mounted": {}, "asked": {}, "mounts": {
                pod.replace("five-", f"{prefix}-"): containers for pod, containers in MOUNTS.items()},
            "prefix": prefix, "release": named.get("RELEASE", "five")}))
        (folder / "kubectl.py").write_text(KUBECTL)

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.place.read_text()))

    def key(self, secret: str, key: str) -> str:
        return base64.b64decode(self.state()["secrets"][f"{self.prefix}-{secret}"].get(key, "")).decode()

    def rotate(self, *what: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "k8s/rotate.sh", *what], capture_output=True, text=True, check=False, timeout=240,
            env={**os.environ, "PYTHONPATH": "", "STAND_IN": str(self.place), "PAUSE": "0.05", **self.named,
                 **environment, "KUBECTL": f"{sys.executable} -I {self.folder}/kubectl.py"})

    def takes(self, user: str, password: str, role: str = "state") -> bool:
        try:
            return bool(connect(self.state()["urls"][role], StoreConfig(), "state", Login(user, password)).ping())
        except redis.AuthenticationError:
            return False


@contextmanager
def installed(folder: Path, prefix: str = "five", **named: str) -> Iterator[Release]:
    """Run both Redis servers of a release."""
    release = Release(folder, prefix, **named)
    try:
        yield release
    finally:
        for running in release.running:
            running.stop()


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    with installed(tmp_path) as release:
        yield release


@pytest.mark.runs
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
    assert restart[0] == "optimizer" and {"state-password-old", "params-password-old"} <= restart[1].keys()
    for role in acl.ROLES:
        new = release.key("redis-optimizer", f"{role}-password")
        assert release.takes("optimizer", new, role) and not release.takes("optimizer", old[role], role)
        assert release.key("redis-optimizer", f"{role}-password-old") == ""
        users = release.key("redis-users", f"{role}.acl")
        assert f"user optimizer on {acl.hash_password(new)} resetchannels" in users
        assert acl.hash_password(old[role]) not in users
        assert new not in done.stdout + done.stderr


def test_pods_of_a_leader_worker_set_are_replaced(release: Release) -> None:
    """They have to get the new password before the old one is revoked."""
    done = release.rotate("optimizer", GROUP="yes")
    assert done.returncode == 0, done.stderr
    (restart,) = release.state()["restarts"]
    assert restart[0] == "pods of optimizer" and "state-password-old" in restart[1]


@pytest.mark.runs
def test_admin_password_rotates_alone(release: Release) -> None:
    admin = release.key("redis-admin", "state-password")
    done = release.rotate("admin")
    assert done.returncode == 0, done.stderr
    assert not release.takes("admin", admin) and release.takes("admin", release.key("redis-admin", "state-password"))
    assert release.state()["restarts"] == []


@pytest.mark.runs
def test_callers_secrets_rotate_without_restarts(release: Release) -> None:
    def secrets() -> dict[Caller, str]:
        return {Caller(name): release.key(f"caller-{name}", "secret") for name in NAMES}

    old = secrets()
    done = release.rotate("token")
    assert done.returncode == 0, done.stderr
    new = secrets()
    assert not set(old.values()) & set(new.values())
    assert not [secret for secret in (*old.values(), *new.values()) if secret in done.stdout + done.stderr]
    assert all(release.state()["secrets"][f"five-caller-{name}"].keys() == {"secret"} for name in NAMES)
    # Every server accepts both before a client sends the new one, and until every client does. No pod is replaced.
    both = callers_text({caller: [old[caller], new[caller]] for caller in old})
    only = callers_text({caller: [secret] for caller, secret in new.items()})
    assert release.state()["restarts"] == []
    assert release.state()["mounted"] == {
        "five-inference-0/inference": [both, only], "five-rollout-0/dota-env-0": [both, only],
        "five-rollout-0/rollout": [new[Caller.ROLLOUT]], "five-controller-0/controller": [new[Caller.CONTROLLER]]}
    assert release.key("callers", "callers.json") == only


@pytest.mark.runs
def test_one_callers_secret_rotates_and_a_broken_rotation_is_repeated(release: Release) -> None:
    def sent() -> list[str]:
        return [release.key(f"caller-{name}", "secret") for name in NAMES]

    first = sent()
    assert release.rotate("token:rollout").returncode == 0
    second = sent()
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, True, False]
    late = release.rotate("token:rollout", TRIES="1")
    assert late.returncode == 1 and "have not got /etc/five/callers/callers.json yet, call it again" in late.stderr
    assert sent() == second, "what is sent is accepted all the time"
    again = release.rotate("token:rollout")
    assert again.returncode == 0 and "a new one begins" in again.stdout, again.stderr
    assert sent()[:3] == first[:3] and sent()[3] not in (first[3], second[3])
    assert release.key("caller-rollout", "secret-also") == ""
    assert release.key("callers", "callers.json") == callers_text(
        {Caller(name): [secret] for name, secret in zip(NAMES, sent(), strict=True)})
    for unknown in ("dota-env", "token:dota-env", "token:inference"):
        assert release.rotate(unknown).returncode == 2


@pytest.mark.runs
@pytest.mark.parametrize(("named", "prefix"), [
    ({"RELEASE": "dota"}, "dota-five"), ({"RELEASE": "my-five"}, "my-five"),
    ({"RELEASE": "dota", "FULLNAME": "short"}, "short")], ids=["other-name", "with-five", "fullname"])
def test_both_scripts_take_the_release_name(tmp_path: Path, named: dict[str, str], prefix: str) -> None:
    with installed(tmp_path, prefix, **named) as release:
        old, secret = release.key("redis-optimizer", "state-password"), release.key("caller-rollout", "secret")
        done = release.rotate("optimizer", "token:rollout")
        assert done.returncode == 0, done.stderr
        new = release.key("redis-optimizer", "state-password")
        assert release.takes("optimizer", new) and not release.takes("optimizer", old)
        assert [component for component, _ in release.state()["restarts"]] == ["optimizer"]
        changed = release.key("caller-rollout", "secret")
        assert changed != secret and release.state()["mounted"][f"{prefix}-rollout-0/rollout"] == [changed]


@pytest.mark.runs
def test_prefix_of_the_objects_names_is_still_taken(tmp_path: Path) -> None:
    with installed(tmp_path, "dota-five", RELEASE="dota") as release:
        old = release.key("redis-admin", "state-password")
        done = release.rotate("admin", RELEASE="dota-five")
        assert done.returncode == 0, done.stderr
        assert release.key("redis-admin", "state-password") != old


def test_another_release_of_the_namespace_is_left_alone(release: Release) -> None:
    """Its names, five-b-rollout and so on, begin with this release's prefix; it has other secrets."""
    done = release.rotate("rollout", "token")
    assert done.returncode == 0, done.stderr
    assert [component for component, _ in release.state()["restarts"]] == ["rollout"]
    assert not [pod for pod in release.state()["mounted"] if pod.startswith("five-b-")]


def test_a_release_that_is_missing_is_reported_before_any_change(release: Release) -> None:
    before = release.state()
    assert release.rotate("rollout", RELEASE="four").returncode != 0
    assert release.state() == before
