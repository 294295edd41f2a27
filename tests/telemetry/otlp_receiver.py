"""Collector that takes OTLP over HTTP and keeps the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1 import trace_pb2

KINDS = {1: "internal", 2: "server", 3: "client"}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as exported; ids are hex, times nanoseconds since 1970."""

    service: str
    span: trace_pb2.Span

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def kind(self) -> str:
        return KINDS[self.span.kind]

    @property
    def id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def trace(self) -> str:
        return self.span.trace_id.hex()

    @property
    def links(self) -> list[str]:
        return [link.span_id.hex() for link in self.span.links]

    @property
    def attributes(self) -> dict[str, str | int]:
        return {a.key: a.value.string_value or a.value.int_value for a in self.span.attributes}


class Receiver:
    """Server on a free port of the loopback; ``status`` is what it answers."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.paths: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.paths.add(self.path)
                receiver.headers.append(dict(self.headers))
                if receiver.status == 200:
                    receiver.keep(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(receiver.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def keep(self, request: ExportTraceServiceRequest) -> None:
        for group in request.resource_spans:
            named = {a.key: a.value.string_value for a in group.resource.attributes}
            self.spans += [ReceivedSpan(named["service.name"], span) for scope in group.scope_spans
                           for span in scope.spans]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def tree(self, root: ReceivedSpan) -> list[str]:
        """Return the spans below ``root`` as indented lines of service, kind and name, in order of their start."""
        below = sorted((s for s in self.spans if s.trace == root.trace and s.parent == root.id),
                       key=lambda s: s.span.start_time_unix_nano)
        lines = [line for child in below for line in self.tree(child)]
        return [f"{root.service} {root.kind} {root.name}", *(f"  {line}" for line in lines)]

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of a name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()
