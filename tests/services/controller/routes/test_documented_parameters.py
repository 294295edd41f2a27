"""Parameters and responses in the OpenAPI document: the defaults of lists and changes, and conditional reads."""

from collections.abc import Iterator
from typing import Any

import pytest

from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import context_at, problem


@pytest.fixture(scope="module")
def paths(redis_url: str) -> dict[str, Any]:
    return dict(create_app(context_at(redis_url, LimitsConfig())).openapi()["paths"])


def parameters(paths: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == name:
                    yield f"{method} {path}", parameter["schema"]


def test_a_page_has_a_hundred_items_unless_requested(paths: dict[str, Any]) -> None:
    limits, offsets = list(parameters(paths, "limit")), list(parameters(paths, "offset"))
    assert len(limits) > 10 and len(offsets) > 5
    for where, schema in limits:
        assert (schema["default"], schema["minimum"], schema["maximum"]) == (100, 1, 1000), where
    for where, schema in offsets:
        assert (schema["default"], schema["minimum"]) == (0, 0), where


def test_changes_are_carried_out_unless_dry_run_is_given(paths: dict[str, Any]) -> None:
    found = list(parameters(paths, "dry_run"))
    assert len(found) > 10
    for where, schema in found:
        assert schema["default"] is False, where


def test_reads_with_a_tag_document_304(paths: dict[str, Any]) -> None:
    conditional = [where for where, _ in parameters(paths, "If-None-Match")]
    assert conditional == ["get /v1/schedules", "get /v1/schedules/{name}", "get /v1/config"]
    for where in conditional:
        method, path = where.split()
        answers = paths[path][method]["responses"]
        assert "304" in answers and "ETag" in answers["200"]["headers"], where
    for name in ("If-None-Match", "If-Match"):
        for where, schema in parameters(paths, name):
            assert schema["anyOf"][0]["maxLength"] == 1000, where
    for path, method in (("/v1/schedules/{name}", "put"), ("/v1/schedules/history/{change}/revert", "post")):
        assert "ETag" in paths[path][method]["responses"]["200"]["headers"], path


def test_created_things_document_their_location(paths: dict[str, Any]) -> None:
    found = {f"{path} {status}" for path, methods in paths.items() for operation in methods.values()
             for status, answer in operation["responses"].items() if "Location" in answer.get("headers", {})}
    assert found >= {"/v1/matches 202", "/v1/surgery/check 202", "/v1/surgery/apply 202", "/v1/surgery/rehearse 202",
                     "/v1/play/games 201"}


def test_pages_of_the_console_are_not_documented(paths: dict[str, Any]) -> None:
    assert not [path for path in paths if path.startswith(("/v1/console", "/v1/session"))]


def test_before_the_run_exists_it_is_not_found(api: Api) -> None:
    api.context.state.redis.flushall()
    requests: list[tuple[str, str, Any]] = [
        ("GET", "/v1/status", None), ("GET", "/v1/config", None), ("GET", "/v1/surgery/log", None),
        ("POST", "/v1/surgery/plan", {"name": "wider", "overrides": ["model.lstm=16"]}),
        ("POST", "/v1/surgery/read", {"plan": "x"}), ("POST", "/v1/surgery/check", {"plan": "x"}),
        ("POST", "/v1/surgery/apply", {"digest": "0" * 64}), ("POST", "/v1/surgery/rehearse", {"plan": "x"}),
        ("POST", "/v1/revert", {"to": 1}), ("GET", "/v1/anneal", None),
        ("POST", "/v1/anneal", {"name": "a", "overrides": {"patch": "7.19"}, "versions": 1})]
    for method, path, body in requests:
        assert problem(api.ask(method, path, json=body), 404, "not-found")["detail"], path


def test_before_the_run_exists_its_lists_are_empty(api: Api) -> None:
    api.context.state.redis.flushall()
    for path in ("/v1/branches", "/v1/revert/targets", "/v1/versions", "/v1/operations", "/v1/surgery/rehearsals",
                 "/v1/matches", "/v1/opponents", "/v1/ratings"):
        answer = api.ask("GET", path)
        assert (answer.status_code, answer.json()["items"]) == (200, []), path


def test_identities_in_paths_have_a_length(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.games.live_hub.FIRST_BYTES_SECONDS", 0.0)
    for path, longest in (("/v1/operations/{}", 100), ("/v1/surgery/rehearsals/{}", 100), ("/v1/replays/{}", 200),
                          ("/v1/games/{}/live", 64)):
        problem(api.ask("GET", path.format("a" * longest)), 404, "not-found")
        problem(api.ask("GET", path.format("a" * (longest + 1))), 422, "invalid")


def test_live_games_above_the_limit_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.games.live_hub.MAX_GAMES", 0)
    answer = api.ask("GET", "/v1/games/0123456789abcdef/live")
    assert "watched games" in problem(answer, 429, "too-many-requests")["detail"]
    assert answer.headers["retry-after"] == "10"
