"""The HTTP server: its limits of headers and messages, an occupied port, and the context of a service."""

import logging
import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from fastapi import FastAPI, WebSocket
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from five.run.config import RunConfig
from five.run.config.controller import LimitsConfig
from five.run.load import load
from five.services.controller.http import tokens
from five.services.controller.http.server import create_context, create_server
from rapid.blobs import BlobStore
from rapid.embedded_redis import EmbeddedRedis
from tests.services.live_controller import OPERATOR, RUN, VIEWER, bearer, live, problem

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: "
HEADER_BYTES = 16 << 10  # docs/api.md


def application() -> FastAPI:
    app = FastAPI()
    app.state.context = SimpleNamespace(path_prefix="")
    return app


@pytest.mark.parametrize(("size", "is_served"), [(HEADER_BYTES, True), (HEADER_BYTES + 1, False)])
async def test_headers_have_a_largest_size(size: int, is_served: bool) -> None:
    server = create_server(application(), LimitsConfig(), "127.0.0.1", 0)
    server.config.load()
    sent: list[bytes] = []
    transport: Any = SimpleNamespace(
        get_extra_info=lambda name: None, write=sent.append, close=lambda: sent.append(b"closed"),
        is_closing=lambda: False, get_protocol=lambda: protocol, abort=lambda: None, resume_reading=lambda: None)
    kind: Any = server.config.http_protocol_class
    protocol: Any = kind(server.config, server.server_state, {})
    protocol.connection_made(transport)
    protocol.data_received(HEAD + b"a" * (size - len(HEAD)))
    assert sent == [] if is_served else sent[0].startswith(b"HTTP/1.1 400 ") and sent[-1] == b"closed"
    if is_served:
        protocol.data_received(b"\r\n\r\n")
        assert protocol.cycle is not None, "the request did not begin"
    protocol.connection_lost(None)


def test_web_socket_messages_have_a_largest_size(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url) as rest:
        @rest.app.websocket("/v1/nothing")
        async def talk(socket: WebSocket) -> None:
            await socket.accept()
            while True:
                await socket.send_text(str(len(await socket.receive_text())))

        with connect(f"ws://127.0.0.1:{rest.port}/v1/nothing", additional_headers=bearer(OPERATOR)) as one:
            assert not one.protocol.extensions, "compressing small messages costs more than it saves"
            one.send("a" * 8192)
            assert one.recv() == "8192"
            one.send("a" * 8193)
            with pytest.raises(ConnectionClosed) as caught:
                one.recv()
            assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009
        answer = rest.ask("GET", "/v1/status")
        assert answer.status_code == 200 and "server" not in answer.headers, "it would name the version to attackers"


def test_times_of_connections_are_configured() -> None:
    """A pong within 5 s, and an end within 3 s: the agent takes over a hero whose player is gone."""
    config = create_server(application(), LimitsConfig(keep_alive_seconds=99), "127.0.0.1", 0).config
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (99, 3)
    assert (config.ws_ping_interval, config.ws_ping_timeout) == (5.0, 5.0)
    assert not config.proxy_headers, "the application's own middleware reads them"
    assert not config.access_log, "it would log every request of every console"


def test_hanging_store_is_reported_despite_streams(tmp_path: Path) -> None:
    """Each stream waits for the store in a thread, and a request with a key or a cookie needs one as well."""
    head = f"GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n\r\n".encode()
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as running, \
            live(running.url, LimitsConfig(store_seconds=0.5)) as rest, ExitStack() as stack:
        for _ in range(LimitsConfig().streams):
            stream = stack.enter_context(socket.create_connection(("127.0.0.1", rest.port), 30))
            stream.sendall(head)
            assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
        os.kill(running.pid, signal.SIGSTOP)
        try:
            time.sleep(1.0)  # every stream polls the store
            began = time.monotonic()
            problem(rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "k"}), 503, "store-unavailable")
            assert time.monotonic() - began < 9.0
        finally:
            os.kill(running.pid, signal.SIGCONT)


async def test_occupied_port_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as caught:
            await create_server(application(), LimitsConfig(), "127.0.0.1", port).serve()
    assert caught.value.code == 1
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert f"127.0.0.1:{port}" in record.getMessage() and "services.controller.port" in record.getMessage()


def service(redis_url: str, folder: Path, *overrides: str) -> Any:
    """Return the part of a started service that a context needs."""
    token, entry = tokens.make("ada", "operator")
    (folder / "token").write_text(token)
    tokens.write(folder / "tokens.json", [entry])
    config: RunConfig = load("laptop-1v1", [
        f"name={RUN}", f"store.state_url={redis_url}", f"store.params_url={redis_url}", "store.timeout_seconds=9",
        f"services.controller.tokens_file={folder / 'tokens.json'}", "services.controller.auth=true", *overrides])
    return SimpleNamespace(config=config, file_config=config, blobs=BlobStore(str(folder / "blobs")),
                           caller_secret="secret")


def test_context_follows_the_configuration(redis_url: str, tmp_path: Path) -> None:
    there = service(redis_url, tmp_path, "services.controller.limits.store_seconds=0.5",
                    "services.controller.path_prefix=/five", "services.controller.hosts=[five.example.org]",
                    "services.controller.host=127.0.0.3", "services.evaluator.enabled=false",
                    "services.controller.limits.streams=7")
    context = create_context(there)
    assert (context.run, context.path_prefix, context.evaluator) == (RUN, "/five", False)
    assert context.limits.streams == 7 and context.blobs is there.blobs and context.hosts.configured
    context.hosts.require([(b"host", b"five.example.org")])
    token = (tmp_path / "token").read_text()
    assert context.authenticator.authenticate(f"Bearer {token}").name == "ada"
    pool: Any = context.state.redis.connection_pool
    assert pool.connection_kwargs["socket_timeout"] == 0.5, "a request must not wait longer for the store"
    assert context.configured == there.config.schedules


@pytest.mark.parametrize(("overrides", "has_client"), [
    (("services.play.enabled=true", "services.play.address=127.0.0.1:1"), True),
    (("services.play.enabled=false", "services.play.address=127.0.0.1:1"), False),
    (("services.play.enabled=true", 'services.play.address=""'), False)])
def test_play_client_needs_an_enabled_service(redis_url: str, tmp_path: Path, overrides: tuple[str, ...],
                                              has_client: bool) -> None:
    assert (create_context(service(redis_url, tmp_path, *overrides)).play is not None) is has_client


def test_tokens_that_cannot_be_read_end_the_controller(redis_url: str, tmp_path: Path) -> None:
    there = service(redis_url, tmp_path)
    (tmp_path / "tokens.json").write_text(VIEWER)
    with pytest.raises(ValueError, match=r"tokens\.json"):
        create_context(there)
