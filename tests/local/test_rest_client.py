"""The REST client with real HTTP servers: a controller that restarts between a change and its response, and servers
that are no controller."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from five.local.rest_client import TRIES, ApiError, ControllerClient, NoResponse


class Restarting(ThreadingHTTPServer):
    """Closes the first ``lost`` connections after reading the request, without a response."""

    daemon_threads = True

    def __init__(self, lost: int) -> None:
        self.lost, self.keys = lost, list[str | None]()
        super().__init__(("127.0.0.1", 0), RestartingHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def respond(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


class RestartingHandler(Handler):
    server: Restarting

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers["Idempotency-Key"])
        if len(self.server.keys) <= self.server.lost:
            return
        self.respond(200, json.dumps({"state": "done"}).encode())


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Restarting]:
    with Restarting(request.param) as found:
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        found.shutdown()


@pytest.mark.parametrize("server", [TRIES + 1], indirect=True)
def test_a_lost_response_is_asked_for_again_under_one_key(server: Restarting) -> None:
    assert ControllerClient(server.url, "token").post("operations/o/continue", {}, patience=30) == {"state": "done"}
    assert len(server.keys) == TRIES + 2 and len(set(server.keys)) == 1


@pytest.mark.parametrize("server", [100], indirect=True)
def test_a_request_without_response_says_so(server: Restarting) -> None:
    with pytest.raises(NoResponse, match="does not answer") as error:
        ControllerClient(server.url, "token").post("operations/o/continue", {})
    assert isinstance(error.value, ApiError) and len(server.keys) == TRIES


class Unavailable(Handler):
    """Answers the first request with 503 and a date in Retry-After, as RFC 9110 allows."""

    answered = False

    def do_GET(self) -> None:
        if Unavailable.answered:
            self.respond(200, b"{}")
        else:
            Unavailable.answered = True
            self.respond(503, b"", **{"Retry-After": "Mon, 30 Nov 2026 15:00:00 GMT"})


def test_date_in_retry_after_is_a_short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unavailable, "answered", False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Unavailable) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        assert ControllerClient(f"http://127.0.0.1:{server.server_address[1]}", "token").get("status") == {}
        server.shutdown()


class Interrupted(Handler):
    """Answers requests in their order with a first event, six times with 503, and with a last event."""

    answered = 0

    def do_GET(self) -> None:
        Interrupted.answered += 1
        if 1 < Interrupted.answered < 8:
            self.respond(503, b"")
        else:
            self.respond(200, f"event: event\nid: {Interrupted.answered}\ndata: {{}}\n\n".encode())


def test_a_stream_outlasts_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller restarts at each surgery, a Redis at a failover."""
    monkeypatch.setattr(Interrupted, "answered", 0)
    monkeypatch.setattr("five.local.rest_client.LONGEST_PAUSE", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), Interrupted) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        messages = ControllerClient(f"http://127.0.0.1:{server.server_address[1]}", "token").follow()
        assert [next(messages), next(messages)] == [("event", {})] * 2 and Interrupted.answered == 8
        messages.close()
        monkeypatch.setattr(Interrupted, "answered", 1)
        with pytest.raises(ApiError, match="503"):  # one that never began
            next(ControllerClient(f"http://127.0.0.1:{server.server_address[1]}", "token").follow())
        assert Interrupted.answered == 1 + TRIES
        server.shutdown()


class Elsewhere(Handler):
    """Answers /v1/page with a page and redirects everything else, as a proxy does."""

    def do_GET(self) -> None:
        if self.path == "/v1/page":
            self.respond(200, b"<html>log in</html>")
        else:
            self.respond(301, b"<html>log in</html>", Location="https://five.example.com/")


@pytest.fixture
def elsewhere() -> Iterator[ControllerClient]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as found:
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        yield ControllerClient(f"http://127.0.0.1:{found.server_address[1]}", "token")
        found.shutdown()


def test_a_redirect_is_an_error_that_names_its_target(elsewhere: ControllerClient, tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="301, the server redirects to https://five.example.com/"):
        elsewhere.get("status")
    with pytest.raises(ApiError, match="redirects"):
        elsewhere.save("replays/version-10", tmp_path / "version-10.view")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ApiError, match="redirects"):
        next(elsewhere.follow())


def test_a_page_is_not_an_answer(elsewhere: ControllerClient) -> None:
    with pytest.raises(ApiError, match="GET http://127.0.0.1:[0-9]+/v1/page was not answered with JSON"):
        elsewhere.get("page")


@pytest.mark.parametrize("url", ["localhost:8080", "http://", "http://host:port", "http://[::1", "ftp://host"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(ApiError, match="is not a controller's URL"):
        ControllerClient(url, "token")


@pytest.mark.parametrize("proxy", ["host:port", "gopher://proxy:70", "socks5://proxy:1080"])
def test_an_unusable_proxy_is_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # an optional package, which SOCKS needs
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(ApiError, match="a proxy in http_proxy, https_proxy or all_proxy cannot be used"):
        ControllerClient("http://five.example.org:8080", "token")
    ControllerClient("http://127.0.0.1:8080", "token")  # is reached without a proxy
