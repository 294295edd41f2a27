"""The system in containers: it trains, survives the loss of a container of each kind, scales, and resumes after a stop.
"""

import json
import threading
from pathlib import Path

import httpx
import pytest

from tests.containers.engine import SERVICES, STORES, Project, docker, eventually, inspect

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]
PROJECT = "five-test"
EVERYTHING = (*SERVICES, *STORES, "prometheus")


def healthy(container: str) -> bool:
    """Return whether the engine reports the container as healthy."""
    state = inspect(container)["State"]
    return bool(state["Running"]) and state.get("Health", {}).get("Status") == "healthy"


def test_every_container_is_healthy_and_the_api_answers(project: Project) -> None:
    for service in EVERYTHING:
        (container,) = project.containers(service)
        assert healthy(container), service
    root = f"http://127.0.0.1:{project.port}"
    assert httpx.get(f"{root}/readyz", timeout=60).json() == {"status": "ready"}
    assert project.rest("GET", "status", token="").status_code == 401
    assert project.rest("GET", "status", token="wrong").status_code == 401
    assert project.status()["run"] == "five"
    # A viewer may not control the run.
    viewer = project.secret["FIVE_VIEWER_TOKEN"]
    assert project.rest("GET", "versions", token=viewer).status_code == 200
    assert project.rest("POST", "pause", token=viewer).status_code == 403


def test_two_versions_are_trained(project: Project) -> None:
    first = project.version()
    project.wait_version(max(first, 0) + 2)
    status = project.status()
    assert status["status"] == "running"
    kinds = {"rollout", "inference", "optimizer", "controller", "opponents", "evaluator", "play", "dota_env"}
    assert kinds <= status["services"].keys()
    (dota_env,) = project.containers("dota-env")
    eventually(lambda: "games" in str(docker("exec", dota_env, "python", "-c", "import urllib.request as u; "
               "print(u.urlopen('http://127.0.0.1:9100/metrics').read().decode())")), 120, "games run in dota-env")


@pytest.mark.parametrize("service", EVERYTHING)
def test_containers_have_minimal_rights(project: Project, service: str) -> None:
    (container,) = project.containers(service)
    found = inspect(container)
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] > 0
    assert 0 < host["PidsLimit"] <= 4096
    assert not host["Privileged"]
    assert found["Config"]["User"].split(":")[0] not in ("", "0", "root")
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    # No secret where every user of the machine sees it.
    line = Path(f"/proc/{found['State']['Pid']}/cmdline").read_bytes().decode()
    line += " ".join(found["Config"]["Cmd"] or [])
    assert not [name for name, value in project.secret.items() if value in line]


@pytest.mark.parametrize("service", SERVICES)
def test_init_process_and_read_only_root(project: Project, service: str) -> None:
    (container,) = project.containers(service)
    assert docker("exec", container, "cat", "/proc/1/comm").strip() == "tini"
    refused = docker("exec", container, "sh", "-c", "touch /opt/five/x /var/lib/five/x /x 2>&1 || true")
    assert refused.count("Read-only file system") == 3
    assert docker("exec", container, "sh", "-c", "touch /tmp/x && echo written").strip() == "written"


def test_redis_wants_its_password(project: Project) -> None:
    for store in STORES:
        (container,) = project.containers(store)
        assert "NOAUTH" in docker("exec", container, "redis-cli", "get", "x")
    (state,) = project.containers("redis-state")
    (params,) = project.containers("redis-params")
    assert project.as_admin("redis-state", "config get appendonly") == ["appendonly", "yes"]
    assert project.as_admin("redis-params", "config get appendonly") == ["appendonly", "no"]
    # Secrets in a Redis container give no access.
    ask = 'REDISCLI_AUTH="$(cat /etc/redis-probe/password)" redis-cli --user probe --no-auth-warning '
    for container in (state, params):
        assert docker("exec", container, "sh", "-c", ask + "ping").strip() == "PONG"
        assert "NOPERM" in docker("exec", container, "sh", "-c", ask + "get five:five:status")


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_holds_its_own_secrets_alone(project: Project, service: str) -> None:
    (container,) = project.containers(service)
    assert not [name for name, value in project.secret.items() if value in json.dumps(inspect(container))]
    password = docker("exec", container, "sh", "-c", "cat /etc/five/redis/password 2>/dev/null || true").strip()
    assert password == (project.secret[f"FIVE_{service.upper()}_PASSWORD"] if service != "dota-env" else "")
    mounted = docker("exec", container, "sh", "-c",
                     "cat /etc/five/tokens/* /etc/five/callers/* /etc/redis-users/* 2>/dev/null || true")
    assert not [name for name, value in project.secret.items() if value in mounted]
    assert ("sha256" in mounted) == (service == "controller")
    assert ("dota_env" in mounted) == (service not in ("controller", "rollout")), "servers know their callers"
    secret = docker("exec", container, "sh", "-c", "cat /etc/five/caller/secret 2>/dev/null || true").strip()
    calls = service in ("controller", "evaluator", "play", "rollout")
    assert secret == (project.secret[f"FIVE_{service.upper()}_SECRET"] if calls else "")


def test_everybody_works_with_the_rights_it_has(project: Project) -> None:
    """Neither Redis server has refused a command of any component so far."""
    project.wait_version(project.version() + 1)
    for store in STORES:
        refused = " ".join(project.as_admin(store, "acl log"))
        assert not [user for user in project.users() if f"username {user} " in refused], refused


def test_secrets_change_while_the_run_goes_on(project: Project) -> None:
    old = dict(project.secret)
    before, events = project.version(), len(project.containers("rollout"))
    project.rotate("rollout", "inference", "admin")
    project.wait_version(before + 2)
    assert project.status()["status"] == "running" and len(project.containers("rollout")) == events
    for user in ("rollout", "inference", "admin"):
        name = f"FIVE_{user.upper()}_PASSWORD"
        assert project.secret[name] != old[name] and f"{name}_OLD" not in project.secret
        asked = f"AUTH {user} {old[name]}", f"AUTH {user} {project.secret[name]}"
        said = [project.redis_cli("redis-state", line) for line in asked]
        assert "WRONGPASS" in said[0][0] and said[1] == ["OK"]


def test_prometheus_sees_every_service(project: Project) -> None:
    for service in SERVICES:
        eventually(lambda name=service: project.metric(f'sum(up{{service="{name}"}})') == 1, 180,  # type: ignore[misc]
                   f"{service} is scraped")
    rules = httpx.get(f"http://127.0.0.1:{project.prometheus_port}/api/v1/rules", timeout=60).json()["data"]["groups"]
    assert [rule["name"] for group in rules for rule in group["rules"]]
    assert not [rule for group in rules for rule in group["rules"] if rule["health"] == "err"]


@pytest.mark.parametrize("service", EVERYTHING)
def test_the_run_goes_on_when_a_container_is_killed(project: Project, service: str) -> None:
    before = project.version()
    container = project.kill(service)
    eventually(lambda: inspect(container)["RestartCount"] > 0 and healthy(container), 300, f"{service} is back")
    after = eventually(project.version, 180, "the API answers")
    assert after >= before
    project.wait_version(after + 2)
    assert project.status()["status"] == "running"


def test_rollouts_come_and_go_while_it_runs(project: Project) -> None:
    def rollouts() -> int:
        return int(project.status()["services"].get("rollout", 0))

    before = project.version()
    project.up("--no-recreate", "--scale", "rollout=3")
    assert len(project.containers("rollout")) == 3
    eventually(lambda: rollouts() == 3, 120, "the run counts three rollouts")
    eventually(lambda: project.metric('sum(up{service="rollout"})') == 3, 180, "all of them are scraped")
    project.wait_version(before + 2)
    # They play different games: each has an identity of its own.
    ids = {s["id"] for s in project.rest("GET", "services").json() if s["kind"] == "rollout"}
    assert len(ids) == 3

    going = set(project.containers("rollout"))
    ends = [_Ending(container) for container in going]
    project.up("--no-recreate", "--scale", "rollout=1")
    (left,) = project.containers("rollout")
    eventually(lambda: rollouts() == 1, 120, "the run counts one rollout")
    # Those that went drained, and were not cut off.
    assert [e.code() for e in ends if not left.startswith(e.container[:12])] == [0, 0]
    project.wait_version(project.version() + 2)


def test_the_run_continues_after_down_and_up(project: Project) -> None:
    ends = {service: _Ending(project.containers(service)[0]) for service in SERVICES}
    before = project.version()
    project.compose("stop")
    assert {service: end.code() for service, end in ends.items()} == dict.fromkeys(SERVICES, 0)
    project.compose("down")
    project.up()
    after = project.version()
    assert after >= before
    project.wait_version(after + 2)
    assert project.status()["status"] == "running"


def test_stopped_over_rest_everything_rests_until_it_is_resumed(project: Project) -> None:
    assert project.rest("POST", "stop").status_code == 200
    (optimizer,) = project.containers("optimizer")
    eventually(lambda: not healthy(optimizer), 240, "the optimizer waits")
    assert httpx.get(f"http://127.0.0.1:{project.port}/healthz", timeout=60).status_code == 200
    rested = project.version()
    assert project.rest("POST", "resume").status_code == 200
    project.wait_version(rested + 2)


class _Ending:
    """Watcher of a container's exit, starting now."""

    def __init__(self, container: str) -> None:
        self.container = container
        self._code = ""
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        self._code = docker("wait", self.container, check=False, timeout=900)

    def code(self) -> int:
        """Return the exit code. Raises AssertionError when the container is still running after three minutes."""
        self._thread.join(180)
        assert self._code.strip(), f"{self.container} still runs"
        return int(self._code)
