"""The application: health checks, its document, and the page of an unknown address."""

import pytest
import redis
from fastapi.testclient import TestClient

from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from tests.services.live_controller import VIEWER, bearer, context_at


class Reasons:
    """Reasons why a service is not ready, and why it has failed."""

    not_ready = ""
    failure = ""


def test_health_checks_give_the_reason(redis_client: redis.Redis, redis_url: str) -> None:
    reasons = Reasons()
    client = TestClient(create_app(context_at(redis_url, LimitsConfig()), lambda: reasons.not_ready,
                                   lambda: reasons.failure))

    def health() -> list[tuple[int, str]]:
        answers = [client.get(path) for path in ("/healthz", "/readyz")]
        return [(answer.status_code, answer.json()["status"]) for answer in answers]

    assert health() == [(200, "alive"), (200, "ready")]
    reasons.not_ready = "waiting for the run"
    assert health() == [(200, "alive"), (503, "waiting for the run")]
    reasons.not_ready, reasons.failure = "", "the merger ended"
    assert health() == [(503, "the merger ended"), (200, "ready")]


@pytest.mark.parametrize(("method", "path", "allowed"), [
    ("DELETE", "/v1/matches", {"GET", "POST"}), ("DELETE", "/v1/anneal", {"GET", "POST"}),
    ("POST", "/v1/schedules/learning_rate", {"GET", "PUT"}), ("PUT", f"/v1/play/games/{'0' * 32}", {"DELETE", "GET"}),
    ("HEAD", "/v1/status", {"GET"}), ("GET", "/v1/pause", {"POST"}), ("POST", "/", {"GET", "HEAD"})])
def test_refused_method_has_all_others_of_the_path(redis_client: redis.Redis, redis_url: str, method: str, path: str,
                                                   allowed: set[str]) -> None:
    client = TestClient(create_app(context_at(redis_url, LimitsConfig())))
    answer = client.request(method, path, headers=bearer(VIEWER))
    assert answer.status_code == 405 and set(answer.headers["allow"].split(", ")) == allowed


def test_document_has_the_api_alone(redis_client: redis.Redis, redis_url: str) -> None:
    client = TestClient(create_app(context_at(redis_url, LimitsConfig())))
    document = client.get("/openapi.json").json()
    assert "servers" not in document, "the API is at the document's own address"
    assert all(path.startswith("/v1/") for path in document["paths"])
    assert not [path for path in document["paths"] if path.startswith("/v1/console")], "they change with the console"
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names)) and all(name.isidentifier() for name in names)
    assert client.get("/redoc").status_code == 404, "it would load scripts of another host"
    assert client.get("/healthz").json() == client.get("/healthz", headers=bearer("forged")).json()
    assert client.get("/v1/nothing", headers=bearer(VIEWER)).status_code == 404
