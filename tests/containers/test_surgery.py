"""Surgery on the compose project with curl, as docs/surgery.md describes it, without a container restart."""

import json
import subprocess
import tempfile
import uuid
from typing import Any

import pytest

from tests.containers.engine import SERVICES, STORES, Project, eventually, inspect

pytestmark = [pytest.mark.containers, pytest.mark.timeout(2400)]
# The LSTM of deploy/compose/smoke.yml doubles, pickups are seen for the first time, the glyph becomes the policy's.
WISH = ["model.lstm=32", "game.observation.pickups=2", "game.scripted_actions=[shrine]"]
PROJECT = "five-surgery"
# The script keeps the glyph, so that surgery has an action to hand over.
CHANGES = {"game": {"scripted_actions": ["glyph", "shrine"]}}
WARM_UP = 2
LONG_WARM_UP = 40  # that lasts: two versions of this small network are there within a second


def curl(project: Project, method: str, path: str, body: dict[str, Any] | None = None, token: str = "",
         key: str = "") -> tuple[int, Any]:
    """Return status and JSON of curl's response; the token comes from the secrets file and goes in by standard input.

    The controller restarts itself during surgery and is unreachable for seconds: idempotent requests are retried.
    """
    command = ["curl", "-sS", "--max-time", "60", "--config", "-", "-X", method, "-w", "%{http_code}",
               f"http://127.0.0.1:{project.port}/v1/{path}"]
    if key or method == "GET":
        command += ["--retry", "30", "--retry-delay", "1", "--retry-all-errors"]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    if key:
        command += ["-H", f"Idempotency-Key: {key}"]
    given = token or project.secret["FIVE_OPERATOR_TOKEN"]
    with tempfile.NamedTemporaryFile("r") as answer:  # of the last try alone
        done = subprocess.run([*command, "-o", answer.name], input=f'header = "Authorization: Bearer {given}"',
                              capture_output=True, text=True, timeout=420, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout), json.load(answer)


def ended(project: Project, identity: str, seconds: float) -> dict[str, Any]:
    """Wait for the operation to end and return it."""
    last: dict[str, Any] = {}

    def over() -> bool:
        last.update(curl(project, "GET", f"operations/{identity}")[1])
        return last["state"] in ("done", "failed", "cancelled")

    try:
        eventually(over, seconds, f"{identity} is over")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(last, indent=1)}\n{project.logs()}") from None
    return last


def begun(project: Project) -> dict[str, tuple[str, str, int]]:
    """Return for each service its container, its start time and its restart count."""
    found = {}
    for service in (*SERVICES, *STORES):
        (container,) = project.containers(service)
        known = inspect(container)
        found[service] = container, str(known["State"]["StartedAt"]), int(known["RestartCount"])
    return found


def test_the_agent_is_changed_with_curl_while_it_runs(project: Project) -> None:
    project.wait_version(3)
    before = begun(project)

    status, planned = curl(project, "POST", "surgery/plan", {
        "name": "wider", "overrides": WISH, "warm_up_versions": WARM_UP})
    assert status == 200, planned
    assert {row["kind"] for row in planned["changes"]} == {"grow_lstm", "slots", "add_actions"}
    # A policy of some seconds is close to uniform, and so are its values: the default bounds are for a trained one.
    plan = planned["plan"] + "bounds:\n  mean_kl: 0.5\n  mean_value_change: 5.0\n"
    viewer = project.secret["FIVE_VIEWER_TOKEN"]
    assert curl(project, "POST", "surgery/check", {"plan": plan}, token=viewer)[0] == 403
    status, asked = curl(project, "POST", "surgery/check", {"plan": plan}, key=str(uuid.uuid4()))
    assert status == 202, asked
    checked = ended(project, asked["id"], 300)
    assert checked["outcome"] == "the plan is within its bounds", checked

    digest = checked["request"]["digest"]
    key = str(uuid.uuid4())
    status, applied = curl(project, "POST", "surgery/apply", {"digest": digest}, key=key)
    assert status == 202, applied
    # Asked again under its key, as after an answer that was lost, it is the same operation and not a second one.
    assert curl(project, "POST", "surgery/apply", {"digest": digest}, key=key) == (202, applied)
    done = ended(project, applied["id"], 480)
    assert done["state"] == "done", json.dumps(done, indent=1) + project.logs()
    published = next(s for s in done["steps"] if s["name"] == "publish")["result"]["version"]

    # A version of the new model is out, and another one that was learned after the warm-up.
    project.wait_version(published + WARM_UP + 2)
    schema = {number: curl(project, "GET", f"versions/{number}")[1]["meta"]["schema"]
              for number in (published - 1, published, published + WARM_UP + 1)}
    assert schema[published - 1] == planned["parent"]
    assert schema[published] == schema[published + WARM_UP + 1] == planned["schema"] != planned["parent"]
    assert begun(project) == before
    status, log = curl(project, "GET", "surgery/log", token=viewer)
    assert [(row["digest"], row["holds"], row["version"]) for row in log["items"]] == [(digest, True, published)]


def test_it_obeys_after_it(project: Project) -> None:
    status, said = curl(project, "POST", "pause", {"reason": "a look"}, key=str(uuid.uuid4()))
    assert status == 200, said
    eventually(lambda: curl(project, "GET", "status")[1]["status"] == "paused", 180, "everything rests")
    head = project.version()
    assert curl(project, "POST", "resume", key=str(uuid.uuid4()))[0] == 200
    project.wait_version(head + 2)


def test_every_container_may_be_killed_in_the_middle_of_it(project: Project) -> None:
    """Kills happen at the hold and during warm-up, and include dota-env, which a single-machine run does not have."""
    before = project.version()
    planned = curl(project, "POST", "surgery/plan", {
        "name": "wider-still", "overrides": ["model.unit_hidden=12"], "warm_up_versions": LONG_WARM_UP})[1]
    asked = curl(project, "POST", "surgery/check", {"plan": planned["plan"]}, key=str(uuid.uuid4()))[1]
    digest = ended(project, asked["id"], 300)["request"]["digest"]
    identity = curl(project, "POST", "surgery/apply", {"digest": digest, "hold": True}, key=str(uuid.uuid4()))[1]["id"]

    def step() -> str:
        steps = curl(project, "GET", f"operations/{identity}")[1]["steps"]
        return next((str(s["name"]) for s in steps if s["state"] == "going"), "")

    eventually(lambda: step() == "hold", 300, "it holds")
    for service in (*SERVICES, *STORES):
        project.kill(service)
    eventually(lambda: curl(project, "POST", f"operations/{identity}/continue", key=str(uuid.uuid4()))[0] == 200, 300,
               "it goes on")
    eventually(lambda: step() == "warm_up", 480, "it warms up")
    for service in ("dota-env", "rollout", "inference"):
        project.kill(service)
    done = ended(project, identity, 600)
    assert done["state"] == "done", json.dumps(done, indent=1) + project.logs()
    after = project.wait_version(project.version() + 2)
    assert curl(project, "GET", "status")[1]["status"] == "running"
    # No version is missing, and each is the old model's or the new one's.
    rows = [curl(project, "GET", f"versions/{number}") for number in range(before, after + 1)]
    assert [status for status, _ in rows] == [200] * len(rows)
    first = next(s for s in done["steps"] if s["name"] == "publish")["result"]["version"]
    assert all(row["meta"]["schema"] == planned["schema" if row["version"] >= first else "parent"] for _, row in rows)


def test_containers_that_start_again_undo_nothing(project: Project) -> None:
    """compose still passes the old model size at start: the run's record takes precedence."""
    head = project.version()
    epoch = curl(project, "GET", "status")[1]["epoch"]
    project.compose("restart", "optimizer", "inference", "rollout")
    project.wait_version(head + 3)
    found = curl(project, "GET", "status")[1]
    assert found["epoch"] == epoch > 1
    assert {"key": "model.lstm", "file": 16, "record": 32} in found["drift"]
    first, now = (curl(project, "GET", f"versions/{number}")[1] for number in (head, project.version()))
    assert first["meta"]["schema"] == now["meta"]["schema"]
    assert first["bytes"] == now["bytes"]
