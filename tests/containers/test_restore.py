"""Loss of the state's volume, rehearsed: the chart's CronJob makes the backup, the documented commands restore it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rapid.store.keys import Keys
from tests.charts.rendering import Values, containers, objects, pods
from tests.containers.engine import ROOT, Project, docker, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]
STORES = ("redis-state", "redis-params")
SERVICES = ("controller", "opponents")  # opponents writes to the run and has no torch
VERSIONS = 5
# Publishes versions, rates two of them and counts games, with the classes that the services use.
FILL = f"""
from dataclasses import asdict
import numpy as np
from five.agent.standings import FORMAT, Standing
from five.run.load import load
from rapid.blobs import BlobStore
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.series import Series
from rapid.store.state import RunState
config = load("/etc/five/run.yaml")
redis = connect(config.store.state_url, config.store, "state")
params = connect(config.store.params_url, config.store, "params")
store = ParameterStore(params, redis, config.name, config.store, BlobStore(config.blobs.url))
for version in range({VERSIONS}):
    store.publish(version, {{"w": np.full((8, 8), version, np.float32)}}, {{"schema": "test"}})
state = RunState(redis, config.name)
rated = (Standing("random", 0.0, 0.1, 1, 0.1, True),
         Standing("version-3", 9.0, 0.8, 2, 0.1, False, 1, {{"random": [6, 2, 1]}}, {{"random": [0.8, 0.6, 0.9]}}))
ReplicatedTable(state, "ratings", lambda rows, whole: None).update(
    lambda: {{"format": FORMAT, **{{f"rated:{{s.player}}": asdict(s) for s in rated}}}})
state.count("rollout_starts")
Series(redis, config.name).extend("games", [{{"game": n, "seconds": 30.0}} for n in range(17)])
"""


def section(page: str, title: str) -> str:
    """Return the section of a page of docs/ under a heading of the second level."""
    found: str = (ROOT / "docs" / page).read_text().partition(f"\n## {title}\n")[2]
    return found.partition("\n## ")[0]


def as_cronjob(project: Project) -> str:
    """Run the command of the chart's CronJob in its image, and return the log."""
    values = Values("backup", sets=("backup.enabled=true",))
    (container,) = next(containers(spec) for name, _, spec in pods(objects(values)) if name.startswith("CronJob/"))
    assert re.search(r"/controller[:@]", container["image"]), "the image of compose's service admin"
    program, arguments = container["command"][0], [*container["command"][1:], *container["args"]]
    done = project.shell(f"docker compose run --rm -T --no-deps --entrypoint {program} admin {shlex.join(arguments)}")
    assert done.returncode == 0, done.stderr
    return done.stderr.decode()


def stored(project: Project) -> list[str]:
    """Return what the state Redis holds of the run, without status, events and heartbeats, in any order."""
    keys = Keys("five")
    reads = {"GET {}": (keys.record, keys.head),
             "HGETALL {}": (keys.documents, keys.lineage, keys.versions, keys.counters, keys.table("ratings")),
             "XRANGE {} - +": (keys.series("games"), keys.table_log("ratings"))}
    commands = [command.format(key) for command, names in reads.items() for key in names]
    return sorted(project.redis_cli("redis-state", f"AUTH admin {project.secret['FIVE_ADMIN_PASSWORD']}", *commands))


def shown(project: Project) -> dict[str, Any]:
    """Return what the controller's API shows of the run."""
    status = project.status()
    pages = {path: project.rest("GET", path).raise_for_status().json()["items"]
             for path in ("versions", "ratings", "series/games")}
    return {**pages, **{key: status[key] for key in ("version", "epoch", "record_revision")}}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """The project with both stores, two services, and a run with versions, ratings and games."""
    project = Project("five-test-restore", tmp_path / "env")
    project.down()
    try:
        project.up(*STORES, *SERVICES)
        done = project.shell("docker compose run --rm -T --no-deps -e FIVE_PARAMS_USER=admin -e "
                             "FIVE_PARAMS_PASSWORD_FILE=/etc/five/redis/password --entrypoint python admin "
                             f"-c {shlex.quote(FILL)}")
        assert done.returncode == 0, done.stderr
        yield project
    finally:
        project.down()


def test_lost_state_is_restored_from_the_cronjobs_backup(project: Project, tmp_path: Path) -> None:
    before, view = stored(project), shown(project)
    assert len(view["versions"]) == VERSIONS and len(view["ratings"]) == 2 and "" not in before
    assert "backups in /var/lib/five/blobs: " in as_cronjob(project)
    file, damaged = tmp_path / "state.zip", tmp_path / "damaged.zip"
    save, restore = (line for line in section("containers.md", "Secrets").splitlines() if "state.zip" in line)
    saved = project.shell(save.replace("state.zip", shlex.quote(str(file))))
    assert saved.returncode == 0, saved.stderr
    good = file.read_bytes()
    middle = len(good) // 2
    damaged.write_bytes(good[:middle] + bytes(b ^ 255 for b in good[middle:middle + 8]) + good[middle + 8:])
    restore_file, restore_damaged = (restore.replace("state.zip", shlex.quote(str(f))) for f in (file, damaged))

    project.compose("rm", "-sf", "redis-state", "redis-volume")
    docker("volume", "rm", f"{project.name}_state")
    project.up("redis-state")
    eventually(lambda: project.rest("GET", "status").status_code == 404, 60, "the controller reads the empty state")
    refused = project.shell(restore_file)
    assert refused.returncode == 2 and b"services of run 'five' are running (opponents)" in refused.stderr

    page = section("operations.md", "Restore")
    (restarted,) = re.findall(r"rollout restart deploy/five-(\S+)", page)
    project.compose("restart", restarted)
    eventually(lambda: project.rest("POST", "stop", json={"reason": "restore"}).status_code == 200, 180, "it stops")
    eventually(lambda: project.status()["services"].keys() == {"controller"}, 180, "only the controller is live")
    created = stored(project)
    refused = project.shell(restore_damaged)
    assert refused.returncode == 2
    assert re.fullmatch(rb"restore: the backup is damaged at keys/\d+: use another backup", refused.stderr.strip())
    assert stored(project) == created != before

    ((service, command),) = re.findall(r"admin \| kubectl -n five exec -i deploy/five-(\S+) -- (.*blobs:.*)", page)
    program, *arguments = shlex.split(command)
    password = project.secret["FIVE_ADMIN_PASSWORD"].encode() + b"\n"
    done = project.shell(f"docker compose run --rm -T --no-deps --entrypoint {program} {service} "
                         f"{shlex.join(arguments)}", password)
    assert done.returncode == 0 and b"restored to " in done.stderr, done.stderr
    assert stored(project) == before
    eventually(lambda: shown(project) == view, 60, "the controller shows the restored run")
    done = project.shell(restore_file)
    assert done.returncode == 0 and stored(project) == before, done.stderr

    # Its id is the owner's, so services may use its blobs again.
    eventually(lambda: project.rest("POST", "resume").status_code == 200, 60, "it is resumed")
    eventually(lambda: project.status()["services"].keys() == {*SERVICES}, 180, "both services are live")
    eventually(lambda: shown(project) == view, 60, "the controller shows the restored run")
