"""A real S3 server on loopback: moto's, in a process of its own, with faults on request.

As a program: ``python s3_server.py`` prints its port and serves until its parent ends.
"""

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

REGION = "us-east-1"
KEY, SECRET = "a-key-id-of-the-tests", "a-secret-key-of-the-tests"


class S3Server:
    """A started server. ``environment`` is what a client of it needs. Use it as a context."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(Path(__file__))], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.environment = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY,
                            "AWS_SECRET_ACCESS_KEY": SECRET, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        self._send("PUT", f"/{name}")

    def fail(self, *statuses: int) -> None:
        """Answer the next requests with these statuses."""
        self._send("POST", "/_fail", json.dumps(statuses).encode())

    def failures_left(self) -> int:
        """Return how many requested failures no client has seen yet."""
        return int(self._send("GET", "/_fail"))

    def requests(self) -> list[str]:
        """Return method and path of the requests since the last call."""
        found: list[str] = json.loads(self._send("GET", "/_requests"))
        return found

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(self.endpoint + path, body, method=method), timeout=30) as answer:
            return bytes(answer.read())

    def __enter__(self) -> "S3Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Faulty:
    """WSGI application that fails as requested over ``/_fail`` and otherwise passes on to ``app``."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._statuses: list[int] = []
        self._seen: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Implement WSGI."""
        path = environ["PATH_INFO"]
        body = b""
        with self._lock:
            if path == "/_fail":
                if environ["REQUEST_METHOD"] == "POST":
                    self._statuses += json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
                body = str(len(self._statuses)).encode()
            elif path == "/_requests":
                body, self._seen = json.dumps(self._seen).encode(), []
            else:
                self._seen.append(f"{environ['REQUEST_METHOD']} {path}")
                status = self._statuses.pop(0) if self._statuses else 0
        if path.startswith("/_"):
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]
        if status:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(f"{status} Fault", [("Content-Length", "0")])
            return []
        return self._app(environ, start_response)


def main() -> None:
    """Serve S3 on a free port."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    sys.path.insert(0, str(Path(__file__).parents[2] / "libs"))
    from rapid.child_process import die_with_parent

    die_with_parent()
    os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": REGION}
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # keeps connections open, as S3 does
    app = Faulty(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.daemon_threads = True
    print(server.port, flush=True)
    sys.stderr = open(os.devnull, "w")  # the log of requests
    server.serve_forever()


if __name__ == "__main__":
    main()
