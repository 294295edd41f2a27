"""HTTP pages of every process: metrics, liveness and readiness."""

import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from rapid.address import join_address
from rapid.listening import listen
from rapid.telemetry.metrics import REGISTRY

REQUEST_SECONDS = 10.0  # socket timeout of a silent client
MAX_REQUESTS = 64  # concurrent; more are refused

Environ = dict[str, Any]


def always_ready() -> str:
    """Return '': the process is ready and alive as soon as it runs."""
    return ""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
        address = listener.getsockname()
        super().__init__(address[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        # server_bind() would look up this machine's name in DNS, which may take seconds.
        self.server_name, self.server_port = str(address[0]), int(address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # the system has no more threads
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that disconnected."""


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_SECONDS  # of the socket, because each client occupies a thread

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes and scrapes come every few seconds."""


class PagesServer:
    """Server of a process's pages. Attribute: ``port``."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.port = server.server_port
        self._thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="pages", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def start_pages(port: int, host: str = "127.0.0.1", not_ready: Callable[[], str] = always_ready,
                failure_reason: Callable[[], str] = always_ready) -> PagesServer:
    """Serve the pages at http://host:port; port 0 is any free one, host ``::`` is every address.

    ``/metrics`` is for Prometheus. ``/healthz`` is 200 while ``failure_reason()`` is '' (critical threads, tasks and
    loops of this process are healthy), else 503 with the reason. It does not depend on other processes. ``/readyz`` is
    200 while ``not_ready()`` is '', else 503 with the reason. Raises OSError when the port is taken.
    """
    try:
        server = _Server(listen(host, port))
    except OSError as error:
        raise OSError(f"cannot serve metrics at {join_address(host, port)}: {error.strerror or error}; set "
                      "telemetry.metrics_port to a free port, or to 0 for any") from None
    server.set_app(_application(not_ready, failure_reason))
    return PagesServer(server)


def _application(not_ready: Callable[[], str], failure_reason: Callable[[], str]
                 ) -> Callable[[Environ, Any], Iterable[bytes]]:
    metrics: Any = make_wsgi_app(REGISTRY)

    def text(start: Any, status: str, words: str) -> list[bytes]:
        body = (words + "\n").encode()
        start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    def application(environ: Environ, start: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return text(start, "405 Method Not Allowed", "only GET and HEAD are allowed")
        match environ["PATH_INFO"]:
            case "/metrics":
                found: Iterable[bytes] = metrics(environ, start)
                return found
            case "/healthz":
                reason = failure_reason()
                return text(start, "503 Service Unavailable" if reason else "200 OK", reason or "alive")
            case "/readyz":
                reason = not_ready()
                return text(start, "503 Service Unavailable" if reason else "200 OK", reason or "ready")
        return text(start, "404 Not Found", "the pages are /metrics, /healthz and /readyz")

    return application
