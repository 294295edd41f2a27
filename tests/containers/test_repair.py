"""A damaged append-only file of the state Redis, repaired by the commands of docs/state.md in its image."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import ROOT, Project, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]
STORE = "redis-state"
VALUES = 400
# Overwrites 64 bytes from the beginning of the command in the middle of the file.
DAMAGE = """
    file=$(ls /data/appendonlydir/*.incr.aof)
    middle=$(($(LC_ALL=C grep -ac '^\\*[0-9]' $file) / 2))
    at=$(LC_ALL=C grep -abo '^\\*[0-9]' $file | sed -n ${middle}p | cut -d: -f1)
    dd if=/dev/zero of=$file bs=1 seek=$at count=64 conv=notrunc
"""


def documented() -> list[list[str]]:
    """Return the arguments of the page's compose commands."""
    page = (ROOT / "docs/state.md").read_text()
    part = page[page.index("## A damaged append-only file"):]
    block = re.findall(r"```\n(.*?)```", part, re.DOTALL)[0]
    return [shlex.split(line)[2:] for line in block.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """The project with the state Redis alone."""
    project = Project("five-test-repair", tmp_path / "env")
    project.down()
    try:
        project.up(STORE)
        yield project
    finally:
        project.down()


def test_documented_commands_repair_a_damaged_state(project: Project) -> None:
    login = f"AUTH admin {project.secret['FIVE_ADMIN_PASSWORD']}"
    assert project.redis_cli(STORE, login, *(f"SET key-{i} {i:050d}" for i in range(VALUES))) == ["OK"] * (VALUES + 1)
    project.compose("stop", STORE)
    project.compose("run", "--rm", "--no-deps", STORE, "sh", "-ec", DAMAGE)
    project.compose("start", STORE)
    eventually(lambda: "Bad file format" in project.compose("logs", STORE), 180, "the damage is logged")
    stop, repair, start = documented()
    for command in (stop, repair):
        project.compose(*command)
    assert start == ["up", "--wait"]
    project.up(STORE)
    (size,) = project.as_admin(STORE, "DBSIZE")
    kept = int(size)
    assert 0.3 * VALUES < kept < 0.7 * VALUES
    assert project.as_admin(STORE, f"GET key-{kept - 1}") == [f"{kept - 1:050d}"]
    # The damaged files are kept next to the new ones.
    assert "appendonly.aof.manifest" in project.compose("run", "--rm", "--no-deps", STORE, "ls", "/data/damaged")
