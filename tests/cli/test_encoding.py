"""Commands print on a terminal of any encoding, and read and write UTF-8 whatever the locale."""

import ast
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import redis

from five.agent.standings import Standing
from five.cli.main import main
from five.local.run_folder import RunFolder
from five.run.config.controller import LimitsConfig
from five.run.load import load, rename, save
from five.services.controller.http.app import create_app
from rapid.store.state import Status
from tests.cli.rest_operations import OPERATIONS
from tests.repository import ROOT
from tests.services.live_controller import OPERATOR, LiveController, context_at, live

STREAMS = {"stream", "live"}  # without an end


def five(*words: str) -> tuple[int, bytes]:
    """Return exit status and output of a command on a standard output that encodes ASCII only."""
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, "ascii", write_through=True)
    with redirect_stdout(stream):
        status = main(words)
    stream.flush()
    return status, written.getvalue()


@pytest.fixture
def controller(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveController]:
    redis.Redis.from_url(redis_url).flushall()
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", OPERATOR)
    with live(redis_url) as found:
        yield found


def test_ladder_of_an_ended_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(Path("runs/trial"))
    folder.create()
    save(rename(load("laptop-1v1"), "trial"), folder.config)
    rows = {f"rated:{s.player}": vars(s) for s in (
        Standing("random", 0.0, 0.001, 1, 0.1, True), Standing("version-4", 5.0, 3.0, 2, 0.1, False))}
    folder.ladder.write_text(json.dumps({"format": 2, **rows}), encoding="utf-8")
    status, out = five("ladder")
    assert status == 0 and b"version-4" in out and b"5.0" in out


@pytest.mark.parametrize("words", ["config learning", "config rewards --json", "scale", "scale --json"])
def test_local_command(words: str) -> None:
    status, out = five(*words.split())
    assert status == 0 and out


def test_every_read_only_command_of_a_run(controller: LiveController) -> None:
    controller.state.transition(Status.RUNNING, "ädä", "größer ± σ")
    api = create_app(context_at("redis://127.0.0.1:1/0", LimitsConfig())).openapi()
    reading = [methods["get"]["operationId"] for methods in api["paths"].values() if "get" in methods]
    told = b""
    for operation in reading:
        words = OPERATIONS[operation]
        if operation not in STREAMS:
            status, out = five(*words, "--url", controller.url)
            assert status in (0, 2), words  # 2: the run has none
            told += out
    assert told


# Opening of text without an encoding takes the locale's.
_TEXT_MODE = re.compile(r"[rwax]\+?t?")


def _text_without_encoding(call: ast.Call) -> bool:
    if any(keyword.arg in ("encoding", None) for keyword in call.keywords):
        return False
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    match call.func:
        case ast.Attribute(attr="read_text"):
            return not call.args
        case ast.Attribute(attr="write_text"):
            return len(call.args) < 2
        case ast.Name(id="open") | ast.Attribute(value=ast.Name(id="os"), attr="fdopen"):
            mode = mode or (call.args[1] if len(call.args) > 1 else ast.Constant("r"))
        case ast.Attribute(attr="open"):
            mode = mode or (call.args[0] if call.args else None)
        case _:
            return False
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(_TEXT_MODE.fullmatch(mode.value))


def test_text_files_are_opened_with_an_encoding() -> None:
    found = [f"{path.relative_to(ROOT)}:{node.lineno}" for folder in ("libs", "services", "tools")
             for path in sorted((ROOT / folder).rglob("*.py")) if "_pb2" not in path.name
             for node in ast.walk(ast.parse(path.read_bytes()))
             if isinstance(node, ast.Call) and _text_without_encoding(node)]
    assert found == []
