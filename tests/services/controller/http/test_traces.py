"""Traces of REST requests: which ones are traced, and what their spans say."""

from collections.abc import Iterator

import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient

from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from five.services.controller.http.traces import TraceMiddleware
from rapid.config import TracingConfig
from rapid.telemetry import tracing
from tests.services.live_controller import OPERATOR, RUN, VIEWER, bearer, context_at
from tests.telemetry.otlp_receiver import Receiver, receiving

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = f"{SAMPLED[:-2]}00"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
    tracing.stop_tracing()


def start(receiver: Receiver, requests: float = 0.0) -> None:
    config = TracingConfig(endpoint=receiver.endpoint, sampled_steps=0.0, sampled_requests=requests)
    tracing.start_tracing(config, RUN, "controller", "0")


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/v1/versions/{number}")
    def version(number: int) -> int:
        return 1 // number

    app.add_middleware(TraceMiddleware)
    return app


def test_span_has_method_route_and_status(receiver: Receiver) -> None:
    start(receiver)
    client = TestClient(application(), raise_server_exceptions=False)
    for path, status in (("/v1/versions/3", 200), ("/v1/versions/x", 422), ("/v1/versions/0", 500), ("/v1/none", 404)):
        assert client.get(path, headers={"traceparent": SAMPLED}).status_code == status
    tracing.stop_tracing()
    route = "/v1/versions/{number}"
    assert [(span.name, span.kind, span.attributes) for span in receiver.spans] == [
        (f"GET {route}", "server", {"http.request.method": "GET", "http.route": route,
                                    "http.response.status_code": 200}),
        (f"GET {route}", "server", {"http.request.method": "GET", "http.route": route,
                                    "http.response.status_code": 422}),
        (f"GET {route}", "server", {"http.request.method": "GET", "http.route": route}),
        ("GET", "server", {"http.request.method": "GET", "http.response.status_code": 404})]
    assert {f"00-{span.trace}-{span.parent}-01" for span in receiver.spans} == {SAMPLED}


@pytest.mark.parametrize(("share", "parent", "traced"), [
    (0.0, SAMPLED, True), (1.0, NOT_SAMPLED, False), (1.0, None, True), (0.0, None, False)])
def test_caller_or_share_decides_what_is_traced(receiver: Receiver, share: float, parent: str | None,
                                                traced: bool) -> None:
    start(receiver, share)
    client = TestClient(application())
    headers = {} if parent is None else {"traceparent": parent}
    for path in ("/v1/versions/1", "/healthz", "/assets/v1"):
        client.get(path, headers=headers)
    tracing.stop_tracing()
    assert [span.name for span in receiver.spans] == ["GET /v1/versions/{number}"] * traced


async def test_other_scopes_pass(receiver: Receiver) -> None:
    """Web sockets and the application's start have no span."""
    start(receiver, 1.0)
    seen = []

    async def app(scope: object, receive: object, send: object) -> None:
        seen.append((scope, receive, send))

    middleware = TraceMiddleware(app)
    for scope in ({"type": "websocket", "path": "/v1/play", "headers": []}, {"type": "lifespan"}):
        await middleware(scope, "receive", "send")  # type: ignore[arg-type]
        assert seen.pop() == (scope, "receive", "send")
    tracing.stop_tracing()
    assert not receiver.spans


def test_requests_with_a_valid_token_are_traced(receiver: Receiver, redis_client: redis.Redis, redis_url: str) -> None:
    start(receiver)
    client = TestClient(create_app(context_at(redis_url, LimitsConfig())))
    for token in (VIEWER, "forged", OPERATOR):
        client.get("/v1/session", headers={**bearer(token), "traceparent": SAMPLED})
    tracing.stop_tracing()
    assert [span.name for span in receiver.spans] == ["GET /v1/session"] * 2
    untraced = create_app(context_at(redis_url, LimitsConfig()))
    start(receiver)
    TestClient(untraced).get("/v1/session", headers={**bearer(VIEWER), "traceparent": SAMPLED})
    tracing.stop_tracing()
    assert len(receiver.spans) == 2, "an application that was created without tracing does no work for it"
