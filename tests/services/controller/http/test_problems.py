"""Problem details: the kind of each status, the document, and what exceptions become."""

from typing import Annotated, Any

import pytest
import redis
from fastapi import FastAPI, HTTPException, Query
from fastapi.testclient import TestClient
from pydantic import BaseModel

from five.services.controller.http.problems import (
    TITLES,
    Problem,
    install,
    kind_of,
    responses,
    store_unavailable,
)
from rapid.store.errors import FencedOut


@pytest.mark.parametrize(("status", "kind"), [
    (400, "bad-request"), (401, "unauthenticated"), (403, "forbidden"), (404, "not-found"),
    (405, "method-not-allowed"), (408, "timeout"), (409, "conflict"), (412, "stale"), (413, "too-large"),
    (421, "misdirected"), (422, "invalid"), (428, "precondition-required"), (429, "too-many-requests"),
    (431, "too-large"), (500, "internal"), (503, "unavailable"), (418, "bad-request"), (499, "bad-request"),
    (501, "internal"), (502, "internal")])
def test_status_has_a_kind(status: int, kind: str) -> None:
    assert kind_of(status) == kind and kind in TITLES
    assert Problem(status, "no").document("/v1/x")["type"] == f"urn:five:problem:{kind}"


def test_problem_is_a_document() -> None:
    problem = Problem(409, "paused", "illegal-transition", {"ETag": "a"}, errors=[{"where": "body", "what": "x"}])
    assert str(problem) == "paused"
    assert problem.document("/v1/pause") == {
        "type": "urn:five:problem:illegal-transition", "title": TITLES["illegal-transition"], "status": 409,
        "detail": "paused", "instance": "/v1/pause", "errors": [{"where": "body", "what": "x"}]}
    response = problem.response("/v1/pause")
    assert response.status_code == 409 and response.headers["etag"] == "a"
    assert response.headers["content-type"] == "application/problem+json"


def test_problem_has_its_own_headers() -> None:
    """Middleware adds headers to one problem."""
    shared = {"Retry-After": "1"}
    Problem(503, "busy", headers=shared).headers["Connection"] = "close"
    assert shared == {"Retry-After": "1"} and Problem(503, "busy").headers == {}


def test_responses_of_an_operation() -> None:
    assert responses(_404="No such version.", _409="Busy.") == {
        404: {"description": "No such version."}, 409: {"description": "Busy."}}


class Order(BaseModel):
    games: int
    seeds: list[int] = []


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    install(app)

    @app.post("/orders")
    def create(order: Order, limit: Annotated[int, Query(ge=1)] = 1) -> None:
        pass

    errors: dict[str, Exception] = {
        "problem": Problem(409, "busy", "key-busy", {"Retry-After": "5"}),
        "moved": FencedOut("epoch", "epoch 3 is over"),
        "http": HTTPException(418, "teapot", {"X-Pot": "tea"}), "connection": ConnectionError("refused"),
        "redis": redis.ConnectionError("refused"), "slow": redis.TimeoutError("refused"),
        "bug": KeyError("secret"),
        "full": redis.OutOfMemoryError("refused: command not allowed when used memory > 'maxmemory'."),
        "unsaved": redis.ResponseError("MISCONF refused: Errors writing to the AOF file"),
        "alone": redis.ResponseError("Command # 1 (SET a b) of pipeline caused error: NOREPLICAS refused"),
        "type": redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")}

    @app.get("/raise/{name}")
    def fail(name: str) -> None:
        raise errors[name]

    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(("name", "status", "kind", "detail", "headers"), [
    ("problem", 409, "key-busy", "busy", {"retry-after": "5"}), ("moved", 409, "stale-epoch", "epoch 3 is over", {}),
    ("http", 418, "bad-request", "teapot", {"x-pot": "tea"}),
    ("bug", 500, "internal", "KeyError: see the controller's log", {}),
    ("type", 500, "internal", "ResponseError: see the controller's log", {})])
def test_exceptions_are_problems(client: TestClient, name: str, status: int, kind: str, detail: str,
                                 headers: dict[str, str]) -> None:
    answer = client.get(f"/raise/{name}")
    document: dict[str, Any] = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert document == {"type": f"urn:five:problem:{kind}", "title": TITLES[kind], "status": status,
                        "detail": detail, "instance": f"/raise/{name}"}
    assert headers.items() <= dict(answer.headers).items()


@pytest.mark.parametrize("name", ["connection", "redis", "slow", "full", "unsaved", "alone"])
def test_unreachable_store_says_when_to_retry(client: TestClient, name: str) -> None:
    answer = client.get(f"/raise/{name}")
    assert answer.status_code == 503 and answer.json()["type"] == "urn:five:problem:store-unavailable"
    assert answer.headers["retry-after"] == "2" and "refused" in answer.json()["detail"]
    assert store_unavailable(OSError("away")).headers == {"Retry-After": "2"}


def test_unknown_paths_and_methods_are_named(client: TestClient) -> None:
    for method, path, status, text in (("GET", "/nothing", 404, "/nothing: no such path"),
                                       ("DELETE", "/orders", 405, "/orders: method DELETE is not allowed")):
        answer = client.request(method, path)
        assert answer.status_code == status and answer.json()["detail"].startswith(text)
        assert answer.json()["title"] == TITLES[kind_of(status)]
    assert client.delete("/orders").headers["allow"] == "POST"


def test_every_invalid_field_is_named_and_five_are_in_the_detail(client: TestClient) -> None:
    answer = client.post("/orders?limit=0", json={"seeds": ["a", "b", "c", "d", 1, "f"]})
    document = answer.json()
    assert answer.status_code == 422 and document["type"] == "urn:five:problem:invalid"
    where = [error["where"] for error in document["errors"]]
    assert where == ["query.limit", "body.games", *(f"body.seeds.{n}" for n in (0, 1, 2, 3, 5))]
    assert [f"{name}: " in document["detail"] for name in where] == [True] * 5 + [False] * 2
    assert all(error["what"] for error in document["errors"])
    assert document["detail"].count("; ") == 4
    assert document["instance"] == "/orders"


def test_internal_errors_are_logged_with_their_request(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    client.get("/raise/bug")
    (record,) = [record for record in caplog.records if record.name.endswith("problems")]
    assert "GET /raise/bug" in record.getMessage()
    assert record.exc_info is not None and isinstance(record.exc_info[1], KeyError)
