"""Spans and their export as OTLP over HTTP. Import it only while tracing is on: it needs the extra `tracing`.

Spans wait in a bounded queue for one background thread. An unreachable collector costs their loss and one warning.
"""

import logging
import threading
from collections.abc import Sequence

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as RecordedSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rapid.config import TracingConfig
from rapid.telemetry.tracing import HEADER, Attributes, Kind

log = logging.getLogger(__name__)
KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}
QUEUED_SPANS = 2048  # at most; later ones are dropped
INTERVAL_SECONDS = 2.0  # between exports
EXPORT_SECONDS = 5.0  # of one export with its retries
CLOSE_SECONDS = 2.0  # for the last export of an ending process


class Span:
    """A span in progress. ``traceparent`` is its context, which its parts and other processes name as their parent."""

    def __init__(self, recorded: RecordedSpan) -> None:
        self._recorded = recorded
        context = recorded.get_span_context()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-01"

    @property
    def ended(self) -> bool:
        """Whether the span has ended."""
        return not self._recorded.is_recording()

    def describe(self, attributes: Attributes, name: str = "") -> None:
        """Add attributes, and replace the name if one is given."""
        self._recorded.set_attributes(dict(attributes))
        if name:
            self._recorded.update_name(name)

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed."""
        self._recorded.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))

    def end(self, end_ns: int | None = None) -> None:
        """End the span now, or at ``end_ns`` nanoseconds since 1970. Repeating it has no effect."""
        if not self.ended:
            self._recorded.end(end_ns)


class Tracer:
    """Spans of one process of a run, and their export."""

    def __init__(self, config: TracingConfig, run: str, kind: str, instance: str) -> None:
        assert config.endpoint is not None
        self.config = config
        resource = Resource.create({"service.name": f"five-{kind.replace('_', '-')}", "service.namespace": run,
                                    "service.instance.id": instance})
        # Callers sample, so that a step that is not sampled costs nothing.
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(
            _Exporter(config.endpoint), QUEUED_SPANS, INTERVAL_SECONDS * 1000))
        self._tracer = self._provider.get_tracer("five")
        self._propagator = TraceContextTextMapPropagator()
        log.info("exporting traces collector=%s", config.endpoint)

    def context_of(self, traceparent: str, kind: Kind) -> Context | None:
        """Return the parent's context of a new span; None if the traceparent is invalid or not sampled."""
        found = get_current_span(self._propagator.extract({HEADER: traceparent}, Context())).get_span_context()
        if not (found.is_valid and found.trace_flags.sampled):
            return None
        parent = SpanContext(found.trace_id, found.span_id, kind == "server", found.trace_flags)
        return set_span_in_context(NonRecordingSpan(parent), Context())

    def begin(self, name: str, parent: Context | None, kind: Kind, attributes: Attributes,
              start_ns: int | None = None, links: Sequence[str] = ()) -> Span:
        """Begin a span; without ``parent`` it begins a trace. ``links`` are the contexts of other spans."""
        contexts = [context for link in links if (context := self.context_of(link, "server")) is not None]
        return Span(self._tracer.start_span(
            name, parent or Context(), KINDS[kind], dict(attributes),
            [Link(get_current_span(context).get_span_context()) for context in contexts], start_ns))

    def close(self) -> None:
        """Export the last spans, for at most CLOSE_SECONDS."""
        # The SDK's own shutdown may take half a minute while the collector does not respond.
        closing = threading.Thread(target=self._provider.shutdown, name="traces-shutdown", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


class _LastMessage(logging.Handler):
    """Handler that keeps a logger's last message instead of writing it."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


class _Exporter(SpanExporter):
    """Exporter that warns once when exports begin to fail, with the reason, and never raises."""

    def __init__(self, endpoint: str) -> None:
        session = requests.Session()
        session.trust_env = False  # the collector is on the loopback or inside the cluster, where no proxy can connect
        self._endpoint = endpoint
        self._otlp = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS, session=session)
        self._failing = False
        self._reason = _LastMessage()
        # The library logs each failed attempt and each dropped span.
        library = logging.getLogger("opentelemetry")
        library.handlers, library.propagate = [self._reason], False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans. A failure loses them."""
        try:
            result = self._otlp.export(spans)
        except Exception as error:
            result, self._reason.text = SpanExportResult.FAILURE, f"{type(error).__name__}: {error}"
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            log.warning("traces are lost, the collector does not take them collector=%s: %s", self._endpoint,
                        self._reason.text)
        elif self._failing and not failed:
            log.info("traces are exported again collector=%s", self._endpoint)
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """Stop retrying."""
        self._otlp.shutdown()  # type: ignore[no-untyped-call]
