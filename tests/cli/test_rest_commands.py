"""The command line reaches every operation of the REST API and prints the responses."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from five.cli import surgery
from five.cli.commands import parser
from five.cli.main import main
from five.local import rest_client
from five.local.rest_client import ApiError, ControllerClient
from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from five.services.controller.operations.document import EXAMPLE
from rapid.store.state import Status
from tests.cli.rest_operations import OPERATIONS
from tests.services.live_controller import OPERATOR, VIEWER, LiveController, context_at, live

REDIS = "redis://127.0.0.1:1/0"  # nobody is asked


@pytest.fixture
def controller(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveController]:
    redis.Redis.from_url(redis_url).flushall()
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", OPERATOR)
    with live(redis_url) as found:
        yield found


@pytest.fixture(scope="module")
def api() -> Any:
    """The API's OpenAPI description."""
    return create_app(context_at(REDIS, LimitsConfig())).openapi()


def operations(api: Any) -> dict[str, tuple[str, str]]:
    """Return method and path of each operation by its id."""
    return {operation["operationId"]: (method.upper(), path)
            for path, methods in api["paths"].items() for method, operation in methods.items()}


def operation_at(api: Any, method: str, path: str) -> Any:
    """Return the operation of a request; the most literal path wins. Raises LookupError."""
    parts = path.split("/")
    fitting = [(sum(part.startswith("{") for part in known.split("/")), methods[method.lower()])
               for known, methods in api["paths"].items() if method.lower() in methods
               and len(known.split("/")) == len(parts)
               and all(p.startswith("{") or p == f for p, f in zip(known.split("/"), parts, strict=True))]
    if not fitting:
        raise LookupError(f"the API has no {method} {path}")
    return min(fitting, key=lambda found: found[0])[1]


def example_of(api: Any, schema: Any) -> Any:
    """Return a schema's documented example, composed of its parts' examples if it has none."""
    if "$ref" in schema:
        return example_of(api, api["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for key in ("examples", "default", "const", "enum", "anyOf"):
        if key in schema:
            given = schema[key]
            return example_of(api, given[0]) if key == "anyOf" else \
                given[0] if key in ("examples", "enum") else given
    if "properties" in schema:
        return {name: example_of(api, part) for name, part in schema["properties"].items()}
    return {"array": [example_of(api, schema["items"])] if "items" in schema else [], "object": {}, "string": "",
            "integer": 1, "number": 1.0, "boolean": True, "null": None}[schema["type"]]


def answer_of(api: Any, method: str, path: str) -> Any:
    """Return the documented response of a request."""
    found = operation_at(api, method, path)
    status = min(status for status in found["responses"] if status < "300")
    return example_of(api, found["responses"][status]["content"]["application/json"]["schema"])


def test_every_operation_has_a_command(api: Any) -> None:
    missing = operations(api).keys() - OPERATIONS.keys()
    assert not missing, f"add them to OPERATIONS in tests/cli/rest_operations.py, with the command: {sorted(missing)}"
    assert not OPERATIONS.keys() - operations(api).keys()
    for words in OPERATIONS.values():
        parser().parse_args(list(words))


STREAMS = {"stream", "live", "replay", "recorded_game"}  # answered piece by piece; here with a refusal


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_command_calls_its_operation(operation: str, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                         ) -> None:
    """Requests are intercepted and answered with the documented examples; one must be the operation."""
    seen: list[str] = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(EXAMPLE["request"]["plan"])
    monkeypatch.setattr(surgery, "POLL_SECONDS", 0.0)

    def catch(method: str, url: str, **arguments: Any) -> httpx.Response:
        path = httpx.URL(url).path
        seen.append(operation_at(api, method, path)["operationId"])
        body = answer_of(api, method, path)
        if seen[-1] == "operation":  # the operation has ended
            body = {**body, "state": "done"}
        return httpx.Response(200, json=body, headers={"ETag": '"a"'}, request=httpx.Request(method, url))

    def catch_stream(method: str, url: str, **arguments: Any) -> Any:
        seen.append(operation_at(api, method, httpx.URL(url).path)["operationId"])
        raise ApiError("that is enough")

    monkeypatch.setattr(httpx, "request", catch)
    monkeypatch.setattr(httpx, "stream", catch_stream)
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", "t")
    assert main([*OPERATIONS[operation], "--url", "http://there"]) == (2 if operation in STREAMS else 0)
    assert operation in seen


@pytest.mark.parametrize("words", [
    ["schedules", "--run", "other", "--json", "set", "learning_rate", "1e-5"],
    ["schedules", "set", "--run", "other", "learning_rate", "1e-5", "--json"],
    ["matches", "--run", "other", "--json", "play"], ["schedules", "--run", "other", "--json"]])
def test_options_hold_on_both_sides_of_the_verb(words: list[str]) -> None:
    arguments = parser().parse_args(words)
    assert (arguments.run, arguments.url, arguments.token_file, arguments.json) == ("other", None, None, True)


def test_commands_against_a_controller(controller: LiveController, capsys: pytest.CaptureFixture[str]) -> None:
    def five(*words: str) -> tuple[int, str, str]:
        status = main([*words, "--url", controller.url])
        said = capsys.readouterr()
        return status, said.out, said.err

    controller.state.transition(Status.RUNNING, "test")
    assert json.loads(five("status")[1])["status"] == "running"
    assert five("pause", "--reason", "a look")[1] == "pausing (requested by ada)\n"
    status, out, _ = five("events", "--limit", "2")
    assert status == 0 and "run.pausing" in out and "more: --before" in out
    status, out, _ = five("schedules", "set", "learning_rate", "1e-6", "--over", "10", "--reason", "finer")
    assert status == 0 and json.loads(out)["schedule"]["ramps"][-1] == {
        "start": 2, "length": 10, "from": 5e-5, "to": 1e-6}
    change = json.loads(five("schedules", "history", "--json")[1])["items"][0]["id"]
    assert "finer" in five("schedules", "history")[1]
    assert five("schedules", "revert", change)[0] == 0
    status, _, err = five("schedules", "set", "team_spirit", "1.5")
    assert status == 2 and "0 to 1 is allowed" in err and "(422)" in err
    status, _, err = five("versions", "9")
    assert status == 2 and "version 9 was never published" in err
    for words in (("versions",), ("services",), ("series", "games"), ("opponents",), ("ratings",), ("matches",),
                  ("config",), ("schedules",), ("schedules", "show", "team_spirit"), ("live",), ("recordings",)):
        assert five(*words)[0] == 0, words


def test_recording_is_saved_atomically(controller: LiveController, capsys: pytest.CaptureFixture[str],
                                       tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "film.view"
    assert main(["recordings", "missing", "--out", str(file), "--url", controller.url]) == 2
    assert "there is no recording 'missing'" in capsys.readouterr().err and not list(tmp_path.glob("*film*"))
    real, broken = httpx.Response.iter_bytes, []

    def cut(answer: httpx.Response) -> Iterator[bytes]:
        yield next(real(answer))
        if not broken:
            broken.append(answer)
            raise httpx.ReadError("connection reset")

    monkeypatch.setattr(httpx.Response, "iter_bytes", cut)
    client = ControllerClient(controller.url, OPERATOR)
    with pytest.raises(ApiError, match="does not answer"):
        client.save("status", file)
    assert not list(tmp_path.glob("*film*"))
    assert client.save("status", file) == file.stat().st_size > 0


@pytest.mark.parametrize("words", ["recordings x", "live x", "play --save x"])
def test_saved_file_is_reported_as_json(words: str, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", OPERATOR)
    monkeypatch.setattr(ControllerClient, "save", lambda client, path, file: 7)
    assert main([*words.split(), "--json", "--url", "http://127.0.0.1:9"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": "x.view", "bytes": 7}


def test_viewer_token_from_a_file(controller: LiveController, tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                     ) -> None:
    (tmp_path / "token").write_text(VIEWER + "\n")
    where = ["--url", controller.url, "--token-file", str(tmp_path / "token")]
    assert main(["status", *where]) == 0
    assert main(["stop", *where]) == 2
    assert "token 'vera' has the role viewer" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b'[{"name": "ada"}]', b"one\ntwo\n", "t\u00f6ken".encode(), b"\xff\xfe"])
def test_file_that_is_no_token_is_refused(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_bytes(content)
    assert main(["status", "--url", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"five status: --token-file {tmp_path / 'token'}: ") and "ada" not in said


def test_missing_token_sends_no_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("FIVE_OPERATOR_TOKEN", raising=False)
    assert main(["status", "--url", "http://127.0.0.1:1"]) == 2
    assert "FIVE_OPERATOR_TOKEN" in capsys.readouterr().err


def test_change_with_lost_response_is_applied_once(controller: LiveController, monkeypatch: pytest.MonkeyPatch
                                                    ) -> None:
    controller.state.transition(Status.RUNNING, "test")
    real, lost = httpx.request, []

    def lossy(method: str, url: str, **arguments: Any) -> httpx.Response:
        answer = real(method, url, **arguments)
        if not lost:
            lost.append(answer)
            raise httpx.ReadError("connection reset")
        return answer

    monkeypatch.setattr(httpx, "request", lossy)
    answer = ControllerClient(controller.url, OPERATOR).post("matches", {"against": "scripted"})
    assert lost[0].json()["id"] == answer["id"]
    assert len(ControllerClient(controller.url, OPERATOR).get("matches")["items"]) == 1


def test_event_stream_resumes_after_a_lost_connection(controller: LiveController, monkeypatch: pytest.MonkeyPatch
                                                      ) -> None:
    told: list[str] = []
    begun, over = threading.Event(), threading.Event()
    real, losses = rest_client._messages, []

    def lossy(lines: Iterator[str]) -> Iterator[dict[str, str]]:
        for fields in real(lines):
            yield fields
            if "first" in fields.get("data", "") and not losses:
                losses.append(fields)
                raise httpx.ReadError("connection reset")

    def follow() -> None:
        for kind, data in ControllerClient(controller.url, OPERATOR).follow():
            begun.set()
            if kind == "event":
                told.append(data["what"])
            if "last" in told:
                over.set()
                return

    monkeypatch.setattr(rest_client, "_messages", lossy)
    threading.Thread(target=follow, daemon=True).start()
    assert begun.wait(60)
    controller.state.events.append("test", "first")
    while not losses:
        time.sleep(0.01)
    for what in ("second", "last"):
        controller.state.events.append("test", what)
    assert over.wait(60) and told == ["first", "second", "last"]


def test_tokens_are_created_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokens.json"
    assert main(["token", "new", "ada", "--role", "operator", "--expires", "30d", "--file", str(path)]) == 0
    token = capsys.readouterr().out.splitlines()[0].rpartition(" ")[2]
    assert token not in path.read_text() and json.loads(path.read_text())[0]["expires"]
    assert main(["token", "new", "ada", "--file", str(path)]) == 2
    assert "duplicate name" in capsys.readouterr().err
    assert main(["token", "new", "vera", "--file", str(path)]) == 0
    capsys.readouterr()
    assert main(["token", "list", "--file", str(path)]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["ada", "operator"], ["vera", "viewer"]]
    assert main(["token", "revoke", "ada", "--file", str(path)]) == 0
    assert main(["token", "revoke", "ada", "--file", str(path)]) == 2
    assert [e["name"] for e in json.loads(path.read_text())] == ["vera"]
    assert main(["token", "new", "a b", "--file", str(path)]) == 2
    capsys.readouterr()
    assert main(["token", "new", "elsewhere"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["name"] == "elsewhere"
