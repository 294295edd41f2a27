"""HTTP front end of the API for helm and kubectl."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.charts.apiserver import kinds, protobuf
from tests.charts.apiserver.kinds import Kind, Object
from tests.charts.apiserver.store import Refused, Store, Writer, selected

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
URL = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
                 r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?")


class Handler(BaseHTTPRequestHandler):
    """HTTP request handler."""

    protocol_version = "HTTP/1.1"
    # Headers and body go out in two writes: without this the second one waits for the first one's acknowledgement.
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, format: str, *args: object) -> None:
        """Discard the access log: tests read the store's list of writes instead."""

    def _answer(self, code: int, body: Object, content: str = "application/json") -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        url = urlsplit(self.path)
        query = {k: v[-1] for k, v in parse_qs(url.query).items()}
        try:
            if self.command == "GET" and (page := self._page(url.path)):
                self._answer(200, *page)
                return
            found = URL.fullmatch(unquote(url.path))
            kind = kinds.find(found["group"] or "", found["version"], found["plural"]) if found else None
            if not found or not kind:
                raise Refused(404, "NotFound", "the server could not find the requested resource")
            if query.get("watch") in ("true", "1"):
                self._watch(kind, found["namespace"] or "", query)
                return
            with self.store.changed:
                code, answer = self._resource(kind, found, query, body)
                self.store.changed.notify_all()
            self._answer(code, answer)
        except Refused as e:
            self._answer(e.status["code"], e.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _page(self, path: str) -> tuple[Object, str] | tuple[Object] | None:
        if path == "/version":
            return ({"major": "1", "minor": "33", "gitVersion": "v1.33.1", "platform": "linux/amd64"},)
        if path in ("/api", "/apis"):
            return kinds.discovery(core=path == "/api"), DISCOVERY
        if path[1:] in kinds.FOLDERS:
            return (kinds.resources(path[1:]),)
        if path == "/openapi/v3":
            return (kinds.openapi_paths(),)
        if path.startswith("/openapi/v3/"):
            return (kinds.openapi(path.removeprefix("/openapi/v3/")),)
        return None

    def _resource(self, kind: Kind, at: re.Match[str], query: dict[str, str], body: bytes) -> tuple[int, Object]:
        namespace, name, store = at["namespace"] or "", at["name"], self.store
        given = self._given(body) if self.command != "DELETE" else {}
        agent = self.headers.get("User-Agent", "").partition("/")[0]
        writer = Writer(query.get("fieldManager", agent), "dryRun" in query, query.get("force") == "true")
        if at["sub"] == "scale" and kind.scalable:
            if self.command != "GET":
                store.scale(kind, namespace, name, given, writer)
            return 200, _scale(store.get(kind, namespace, name).value)
        if at["sub"]:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        match self.command, name:
            case "GET", None:
                items = store.listed(kind, namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))
                return 200, {"kind": f"{kind.name}List", "apiVersion": kind.api, "items": items,
                             "metadata": {"resourceVersion": str(store.version)}}
            case "GET", _:
                return 200, store.get(kind, namespace, name).value
            case "POST", None:
                return 201, store.create(kind, namespace, given, writer)
            case "PUT", str():
                return 200, store.update(kind, namespace, name, given, writer)
            case "PATCH", str():
                how = self.headers["Content-Type"].partition(";")[0]
                return 200, store.patch(kind, namespace, name, given, how, writer)
            case "DELETE", str():
                return 200, store.delete(kind, namespace, name, writer)
        raise Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _given(self, body: bytes) -> Any:
        if not body.startswith(protobuf.MAGIC):
            return yaml.load(body, Loader=yaml.CSafeLoader) if body else {}
        try:
            return protobuf.secret(body)
        except ValueError as e:
            raise Refused(415, "UnsupportedMediaType", str(e)) from None

    def _watch(self, kind: Kind, namespace: str, query: dict[str, str]) -> None:
        """Stream events since a resource version until the client disconnects."""
        if query.get("sendInitialEvents"):
            raise Refused(422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate "
                          "is enabled")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        since, seen, store = int(query.get("resourceVersion") or 0), 0, self.store
        while True:
            with store.changed:
                store.changed.wait_for(lambda at=seen: len(store.events) > at, 0.5)  # type: ignore[misc]
                news, seen = store.events[seen:], len(store.events)
            lines = [json.dumps({"type": what, "object": o}) + "\n" for version, what, resource, o in news
                     if version > since and resource == kind.resource and
                     namespace in ("", o["metadata"].get("namespace", "")) and
                     selected(o, query.get("labelSelector", ""), query.get("fieldSelector", ""))]
            data = "".join(lines).encode()
            if data:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            elif getattr(self.server, "ended", False):
                return


def _scale(o: Object) -> Object:
    metadata = {k: o["metadata"][k] for k in ("name", "namespace", "uid", "resourceVersion")}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
            "spec": {"replicas": o["spec"]["replicas"]}, "status": {"replicas": o["spec"]["replicas"]}}


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Store, Path]]:
    """Yield an empty cluster and the path of its kubeconfig."""
    store = Store()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"store": store}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    config = folder / "kubeconfig"
    config.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
    try:
        yield store, config
    finally:
        server.ended = True  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
