"""The controller's REST API on a local port, with the test's Redis."""

import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import redis

from five.agent.config import SchedulesConfig
from five.agent.surgery import AgentSpec
from five.run.config.controller import LOOPBACK, LimitsConfig
from five.services.controller.http.app import create_app
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.dependencies import Context
from five.services.controller.http.server import STORE_RETRIES, create_server
from five.services.controller.http.tokens import FixedTokens
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status

TLS = ssl.create_default_context()  # made once: httpx would load the certificates for each request
OPERATOR, VIEWER, SERVICE = "operator-token", "viewer-token", "service-token"
RUN = "trial"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def authenticator() -> Authenticator:
    return Authenticator(FixedTokens.of(ada=("operator", OPERATOR), vera=("viewer", VIEWER)), SERVICE)


def context_at(url: str, limits: LimitsConfig, run: str = RUN) -> Context:
    """Return a context as the controller's server creates it."""
    store = StoreConfig(archive_every=0, timeout_seconds=limits.store_seconds, reconnect_seconds=limits.store_seconds)
    client = connect(url, store, "state", retries=STORE_RETRIES)
    return Context(run, RunState(client, run), ParameterStore(client, client, run, store), SchedulesConfig(),
                   authenticator(), limits)


class LiveController:
    """Served application. ``state`` is a separate connection of the test."""

    def __init__(self, redis_url: str, limits: LimitsConfig, run: str = RUN, host: str = "127.0.0.1",
                 trusted_proxies: Sequence[str] = LOOPBACK, **given: Any) -> None:
        self.context = context_at(redis_url, limits, run)
        self._folder = tempfile.TemporaryDirectory()
        self.context.blobs = BlobStore(self._folder.name)
        for name, value in given.items():
            setattr(self.context, name, value)
        self.state = RunState(redis.Redis.from_url(redis_url), run)
        self.app = create_app(self.context)
        self._server = create_server(self.app, limits, host, 0, trusted_proxies)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, token: str = OPERATOR, **arguments: Any) -> httpx.Response:
        headers = {**(bearer(token) if token else {}), **arguments.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=20, verify=TLS, **arguments)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive()
        self._folder.cleanup()


@contextmanager
def live(redis_url: str, limits: LimitsConfig | None = None, create: bool = True, agent: AgentSpec | None = None,
         **given: Any) -> Iterator[LiveController]:
    """Serve the application with an existing run; with ``agent`` it has a record and its status is RUNNING."""
    found = LiveController(redis_url, limits or LimitsConfig(), **given)
    try:
        if agent is not None:
            found.state.create({"name": RUN}, "test", RunRecord(**agent.trees(), layout=agent.layout.hash))
            found.state.transition(Status.RUNNING, "test")
        elif create:
            found.state.create({"name": RUN}, "test")
        yield found
    finally:
        found.close()


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Return a response's problem details; fail unless it has that status and kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"urn:five:problem:{kind}", document
    assert document["status"] == status and document["title"] and document["detail"]
    assert document["instance"] == answer.request.url.path
    return document
