"""docs/api.md: its curl examples run against a served controller, and its lists match the code."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from five.cli.commands import parser
from five.services.controller.http.problems import TITLES
from five.services.controller.http.tokens import TokenEntry
from rapid.store.state import Status
from tests.services.live_controller import OPERATOR, LiveController, live

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/api.md").read_text()
BLOCKS = [block for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S) if "curl" in block]


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


def test_documented_curl_examples_work(rest: LiveController, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    rest.state.transition(Status.RUNNING, "test")
    assert len(BLOCKS) >= 5
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "uuidgen").write_text("#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n")
    (tools / "uuidgen").chmod(0o755)
    script = "set -eu\n" + "".join(re.sub(r"^curl ", "echo; curl ", block, flags=re.M) for block in BLOCKS)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env={
        "PATH": f"{tools}:{os.environ['PATH']}", "FIVE": rest.url, "TOKEN": OPERATOR})
    assert done.returncode == 0, done.stdout + done.stderr
    whats = [e.what for e in rest.state.events.read()]
    assert whats.count("schedules.set") == 2 and "run.pausing" in whats and whats[-1] == "match.asked"
    assert "event: status" in done.stdout


def test_documented_problems_match_the_code() -> None:
    section = PAGE[PAGE.index("## Errors"):PAGE.index("## Tokens")]
    told = re.findall(r"^\| `([a-z-]+)` \| [45]\d\d", section, re.M)
    assert len(told) == len(set(told)) and not TITLES.keys() - set(told)


def test_documented_routes_match_the_code(rest: LiveController) -> None:
    paths = rest.ask("GET", "/openapi.json", "").json()["paths"]
    for path in re.findall(r"`(?:GET |POST |PUT )?(/v1/[\w/{}]+)`", PAGE):
        assert path in paths, path
    for command in re.findall(r"`five ([^`]+)`", PAGE):
        words = re.sub(r"\[.*?\]", "", command).replace("KIND", "games").split()
        parser().parse_args(words)


def test_documented_tokens_file_is_valid() -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.S)
    assert example is not None
    assert [TokenEntry.model_validate(e).name for e in json.loads(example.group(1))] == ["ada", "grafana"]
