"""Traces of game steps and requests across the services, off by default (docs/tracing.md).

`rapid.telemetry.tracing_export` has what needs opentelemetry and is imported once tracing is on. While tracing is off,
every function here returns after one comparison.

The context of a span travels as a W3C traceparent: in the metadata of a unary call, and in a field of a stream's
messages. Only sampled work has one; the traceparent of all other work is "".
"""

import functools
import importlib.util
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from rapid.config import TracingConfig

if TYPE_CHECKING:
    from rapid.telemetry.tracing_export import Span, Tracer

Kind = Literal["internal", "client", "server"]
Attributes = Mapping[str, str | int | float]
P = ParamSpec("P")
R = TypeVar("R")
NO_ATTRIBUTES: Attributes = MappingProxyType({})
HEADER = "traceparent"
PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

_tracer: "Tracer | None" = None
_current: ContextVar["Span | None"] = ContextVar("current_span", default=None)
_NOTHING: AbstractContextManager[None] = nullcontext()


def require_packages(config: TracingConfig) -> None:
    """Raise ValueError if tracing is on and its packages are not installed."""
    if config.endpoint is not None and not all(map(_is_installed, PACKAGES)):
        raise ValueError("tracing.endpoint is set, but the packages that export traces are not installed: "
                         "in the checkout run make setup or pip install -e '.[tracing]', or set tracing.endpoint to "
                         "null")


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def start_tracing(config: TracingConfig, run: str, kind: str, instance: str) -> None:
    """Turn tracing on for this process if it is configured. Raise ValueError if packages are missing."""
    global _tracer
    if config.endpoint is not None:
        require_packages(config)
        from rapid.telemetry.tracing_export import Tracer

        _tracer = Tracer(config, run, kind, instance)


def stop_tracing() -> None:
    """Export what is left, for a short time, and turn tracing off."""
    global _tracer
    tracer, _tracer = _tracer, None
    if tracer is not None:
        tracer.close()


def is_on() -> bool:
    """Return whether this process traces."""
    return _tracer is not None


def traceparent() -> str:
    """Return the context of the current span; "" without one, or after its end in a task that it started."""
    if _tracer is None:
        return ""
    current = _current.get()
    return "" if current is None or current.ended else current.traceparent


def metadata() -> tuple[tuple[str, str], ...]:
    """Return the metadata by which a unary call carries the current span."""
    parent = traceparent()
    return ((HEADER, parent),) if parent else ()


def step_span(name: str, attributes: Attributes = NO_ATTRIBUTES) -> "AbstractContextManager[Span | None]":
    """Trace the block as a new trace, for a random share ``tracing.sampled_steps`` of the calls."""
    if _tracer is None or random.random() >= _tracer.config.sampled_steps:
        return _NOTHING
    return _entered(_tracer.begin(name, None, "internal", attributes))


def request_span(name: str, parent: str, attributes: Attributes = NO_ATTRIBUTES
                 ) -> "AbstractContextManager[Span | None]":
    """Trace the block as a part of the caller's trace. Without one, trace a random share ``tracing.sampled_requests``
    of the calls."""
    if _tracer is None:
        return _NOTHING
    if parent:
        return remote_span(name, parent, attributes)
    if random.random() >= _tracer.config.sampled_requests:
        return _NOTHING
    return _entered(_tracer.begin(name, None, "server", attributes))


def remote_span(name: str, parent: str, attributes: Attributes = NO_ATTRIBUTES
                ) -> "AbstractContextManager[Span | None]":
    """Trace the block as the server's part of a call. ``parent`` is the caller's context; "" disables tracing."""
    found = begin(name, parent, "server", attributes=attributes)
    return _NOTHING if found is None else _entered(found)


def span(name: str, kind: Kind = "internal") -> "AbstractContextManager[Span | None]":
    """Trace the block as a part of the current span. Do nothing without one."""
    if _tracer is None:
        return _NOTHING
    found = begin(name, traceparent(), kind)
    return _NOTHING if found is None else _entered(found)


def client_call(name: str) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Decorate a coroutine function, to trace each call as a client's part of the current span."""
    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        async def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            with span(name, "client"):
                return await function(*args, **kwargs)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
            return function(*args, **kwargs) if _tracer is None else traced(*args, **kwargs)

        return call

    return decorate


def begin(name: str, parent: str, kind: Kind = "internal", start_ns: int | None = None,
          attributes: Attributes = NO_ATTRIBUTES) -> "Span | None":
    """Begin a span that ends by its ``end``. Return None while tracing is off, and if ``parent`` is not sampled.

    ``start_ns`` is in nanoseconds since 1970, None for now.
    """
    if _tracer is None or not parent:
        return None
    context = _tracer.context_of(parent, kind)
    return None if context is None else _tracer.begin(name, context, kind, attributes, start_ns)


def record(name: str, parent: str, start_ns: int, end_ns: int, kind: Kind = "internal",
           attributes: Attributes = NO_ATTRIBUTES) -> str:
    """Trace work that has ended, nanoseconds since 1970; return its context, "" if it is not traced."""
    found = begin(name, parent, kind, start_ns, attributes)
    if found is None:
        return ""
    found.end(end_ns)
    return found.traceparent


def record_linked(name: str, links: Sequence[str], start_ns: int, end_ns: int,
                  attributes: Attributes = NO_ATTRIBUTES) -> None:
    """Trace work that has ended as a new trace with links to the spans that it follows from."""
    if _tracer is not None:
        _tracer.begin(name, None, "internal", attributes, start_ns, links).end(end_ns)


@contextmanager
def _entered(found: "Span") -> "Iterator[Span]":
    token = _current.set(found)
    try:
        yield found
    except BaseException as error:
        found.fail(error)
        raise
    finally:
        _current.reset(token)
        found.end()
