"""Small Kubernetes API server: the scale subresource of Deployments and their pods, behind a bearer token.

It behaves like the real one where the autoscaler depends on it: merge and strategic merge patches, resource versions
and conflicts, Status bodies of errors, pages of a list.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes import client

from five.services.controller.autoscaler.kubernetes_api import KubernetesApi

TOKEN = "a-service-account"  # noqa: S105
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


@dataclass
class ApiServer:
    """Deployments of namespace ``five``. ``deny``: verbs that the Role lacks; ``delay``: seconds before each response;
    ``on_patch``: called before a patch is processed, to simulate a concurrent writer; ``given``: status and body of
    every response (a text is sent as it is)."""

    deployments: dict[str, int] = field(default_factory=dict)
    pods: dict[str, dict[str, str]] = field(default_factory=dict)  # annotations by name
    deny: set[str] = field(default_factory=set)
    delay: float = 0.0
    gone: set[str] = field(default_factory=set)  # listed pods that have ended since
    on_patch: Any = None
    given: tuple[int, Any] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)

    def resize(self, name: str, replicas: int) -> None:
        """Scale a Deployment as `kubectl scale` does."""
        self.deployments[name] = replicas
        self.touch(name)

    def touch(self, name: str) -> None:
        """Change the object's resource version, as every pod that becomes ready does."""
        self.versions[name] = self.versions.get(name, 1) + 1

    def scale(self, name: str) -> dict[str, Any]:
        replicas = self.deployments[name]
        return {"kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {"name": name, "namespace": "five", "resourceVersion": str(self.versions.get(name, 1))},
                "spec": {"replicas": replicas},
                "status": {"replicas": replicas, "selector": f"app.kubernetes.io/component={name}"}}

    # Incoming requests.

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if self.delay:
            time.sleep(self.delay)
        url = urlsplit(target)
        self.requests.append((method, url.path))
        if self.given is not None:
            return self.given
        if headers.get("Authorization") != f"bearer {TOKEN}":
            return status(401, "Unauthorized")
        parts = url.path.strip("/").split("/")
        verb = {"GET": "get", "PATCH": "patch"}[method]
        if parts[:3] == ["apis", "apps", "v1"] and parts[3:5] == ["namespaces", "five"] and parts[5] == "deployments":
            name = parts[6]
            if parts[7:] != ["scale"]:
                return status(403, f"deployments.apps {name!r} is forbidden")
            if verb in self.deny:
                return status(403, f'deployments.apps "{name}" is forbidden: User "system:serviceaccount:five:'
                              f'controller" cannot {verb} resource "deployments/scale"')
            if name not in self.deployments:
                return status(404, f'deployments.apps "{name}" not found')
            return self.patched(name, headers, body) if verb == "patch" else (200, self.scale(name))
        if parts[:5] == ["api", "v1", "namespaces", "five", "pods"]:
            if "pods" in self.deny:
                return status(403, "pods is forbidden")
            return self.annotated(parts[5], body) if verb == "patch" else (200, self.page(parse_qs(url.query)))
        return status(404, "the server could not find the requested resource")

    def patched(self, name: str, headers: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        if headers.get("Content-Type") not in PATCHES:
            return status(415, f"the body of the request was in an unknown format: {headers.get('Content-Type')}")
        if self.on_patch is not None:
            self.on_patch()
        wanted = json.loads(body)
        version = wanted.get("metadata", {}).get("resourceVersion")
        if version is not None and version != str(self.versions.get(name, 1)):
            return status(409, f'Operation cannot be fulfilled on deployments.apps "{name}": the object has been '
                          "modified; please apply your changes to the latest version and try again")
        replicas = wanted["spec"]["replicas"]
        if replicas < 0:
            return status(422, "spec.replicas: Invalid value: must be greater than or equal to 0")
        self.resize(name, replicas)
        return 200, self.scale(name)

    def page(self, query: dict[str, list[str]]) -> dict[str, Any]:
        first = int(query.get("continue", ["0"])[0])
        last = first + int(query["limit"][0])
        names = sorted(self.pods)
        more = {"continue": str(last)} if last < len(names) else {}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1", **more}, "items": [
            {"metadata": {"name": name, "annotations": self.pods[name],
                          **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if name.endswith("ending") else {})},
             "spec": {"containers": [{"name": "rollout"}]}}
            for name in names[first:last]]}

    def annotated(self, name: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if name in self.gone:
            return status(404, f'pods "{name}" not found')
        self.pods[name] |= json.loads(body)["metadata"]["annotations"]
        return 200, {"metadata": {"name": name}, "spec": {"containers": [{"name": "rollout"}]}}


def status(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer in one packet
    server: "HttpServer"

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code, answer = self.server.api.answer(self.command, self.path, self.headers, body)
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        try:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            pass  # the client did not wait for it

    do_GET = do_PATCH = reply

    def log_message(self, *_: Any) -> None:
        pass


class HttpServer(ThreadingHTTPServer):
    api: ApiServer


@contextmanager
def serving(api: ApiServer, certificate: Path | None = None) -> Iterator[int]:
    """Serve it at the port; over TLS if given a certificate (a file with its key)."""
    http = HttpServer(("127.0.0.1", 0), Handler)
    http.api = api
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield http.server_port
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def connected(port: int, timeout_seconds: float = 5.0) -> KubernetesApi:
    """Return the real client of a server without TLS."""
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = False
    configuration.api_key["BearerToken"] = f"bearer {TOKEN}"
    return KubernetesApi(client.ApiClient(configuration), "five", timeout_seconds)
