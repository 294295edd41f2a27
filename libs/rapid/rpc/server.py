"""gRPC server: limits, health, and one interceptor for access and errors."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from rapid.address import split_address
from rapid.config import RpcConfig
from rapid.rpc.access import is_allowed, max_request_bytes
from rapid.rpc.callers import KnownCallers, require_callers
from rapid.rpc.channel import connection_options
from rapid.rpc.errors import StatusCode, status_of
from rapid.rpc.health import CHECK, HealthHandler
from rapid.rpc.security import presented_token, server_credentials
from rapid.telemetry import tracing
from rapid.telemetry.metrics import counter

log = logging.getLogger(__name__)
CALLS = counter("rpc", "answered_calls", "Calls answered by this process, by method and status code; a stream is one "
                "call, counted at its end.", ("method", "code"))

Context = Any  # grpc.aio.ServicerContext; its stubs lack the awaitable types
Register = tuple[Callable[[Any, Any], None], Any]
CANCELLED_SECONDS = 2.0  # for cancelled calls to end


def server_options(config: RpcConfig, max_request: int) -> list[tuple[str, Any]]:
    """Return the gRPC options of a server that accepts requests of at most ``max_request`` bytes."""
    sizes = {"grpc.max_receive_message_length": max_request}
    return [
        *(dict(connection_options(config)) | sizes).items(),
        # Clients ping every keepalive_seconds (5 at least); pings that often are allowed.
        ("grpc.http2.min_ping_interval_without_data_ms", 4000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 4000),
        # Without it, two servers on one port would silently share its connections.
        ("grpc.so_reuseport", 0),
    ]


def port_of(address: str) -> int:
    """Return the port of host:port; 0 (any free port) for ''. Raise ValueError."""
    port = split_address(address)[1] if address else "0"
    if not port.isdigit():
        raise ValueError(f"{address!r} has no port: an address is written host:port, with an IPv6 host in brackets")
    return int(port)


async def _fail(context: Context, method: str, error: BaseException) -> NoReturn:
    code, message = status_of(error)
    if code is StatusCode.INTERNAL:
        log.error("%s failed", method, exc_info=error)
    CALLS.labels(method, code.name).inc()
    await context.abort(code, message)
    raise AssertionError("abort returned")


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Interceptor that admits the calls that `rapid.rpc.access` allows, and answers exceptions with status codes.

    It refuses a call before any message of it is read. Without ``callers`` it admits every call. At most ``limit``
    admitted calls are in progress. Health checks need no token and are not counted, because they end at once.
    """

    def __init__(self, callers: KnownCallers | None, limit: int) -> None:
        self._callers = callers
        self._limit = limit
        self.calls: set[asyncio.Task[Any]] = set()  # in progress

    async def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:  # gRPC responds UNIMPLEMENTED
            return handler
        method: str = handler_call_details.method
        if method == CHECK:
            return _guard(handler, method)
        refusal = None if self._callers is None else _refusal(
            self._callers, method, presented_token(handler_call_details.invocation_metadata))
        if refusal is None and len(self.calls) >= self._limit:
            refusal = (StatusCode.RESOURCE_EXHAUSTED,
                       f"{self._limit} calls are in progress (rpc.max_concurrent_calls)")
        if refusal is not None:
            return _refuse(method, *refusal)
        task = asyncio.current_task()  # of the whole call
        assert task is not None
        self.calls.add(task)
        task.add_done_callback(self.calls.discard)
        return _guard(handler, method)


def _refusal(callers: KnownCallers, method: str, token: str) -> tuple[StatusCode, str] | None:
    """Return why a call with ``token`` is refused; None when it is allowed."""
    caller = callers.find(token)
    if caller is None:
        return StatusCode.UNAUTHENTICATED, (
            "no valid token: set FIVE_CALLER_SECRET_FILE (or rpc.caller_secret_file) to a secret of this run's callers")
    if not is_allowed(caller, method):
        return StatusCode.PERMISSION_DENIED, f"caller {caller} is not allowed to call {method[1:]}"
    return None


def _refuse(method: str, code: StatusCode, reason: str) -> Any:
    """Return a handler that ends a call without reading its requests.

    It is streaming for every method: gRPC reads the request of a unary method, of any allowed size, before it calls the
    handler.
    """
    async def refuse(_: Any, context: Context) -> None:
        CALLS.labels(method, code.name).inc()
        await context.abort(code, reason)

    return grpc.stream_stream_rpc_method_handler(refuse)


def _guard(handler: Any, method: str) -> Any:
    """Wrap ``handler`` to map exceptions."""
    behaviour = next(b for b in (handler.unary_unary, handler.unary_stream, handler.stream_unary,
                                 handler.stream_stream) if b is not None)

    async def one_answer(request: Any, context: Context) -> Any:
        try:
            with tracing.remote_span(method[1:], _traceparent(context) if tracing.is_on() else ""):
                answer = await behaviour(request, context)
            CALLS.labels(method, "OK").inc()
            return answer
        except (asyncio.CancelledError, grpc.aio.AbortError):
            raise
        except Exception as error:
            await _fail(context, method, error)

    async def many_answers(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            async for answer in behaviour(request, context):
                yield answer
            CALLS.labels(method, "OK").inc()
        except (asyncio.CancelledError, grpc.aio.AbortError, GeneratorExit):
            raise
        except Exception as error:
            await _fail(context, method, error)

    streams_answers = handler.response_streaming
    # A streaming method may also be a coroutine that writes to its context.
    guarded: Any = many_answers if streams_answers and inspect.isasyncgenfunction(behaviour) else one_answer
    make: Any = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[bool(handler.request_streaming), bool(streams_answers)]
    return make(guarded, handler.request_deserializer, _unless_bytes(handler.response_serializer))


def _traceparent(context: Context) -> str:
    """Return the trace context of a call; "" without one."""
    return next((str(value) for key, value in context.invocation_metadata() or () if key == tracing.HEADER), "")


def _unless_bytes(serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Wrap a serializer to pass through responses that are bytes already (`five.clients.wire.serialize_with_set`)."""
    return lambda answer: answer if isinstance(answer, bytes) else serialize(answer)


class _Recorder:
    """Recorder of the handlers that the generated functions register with a server, and of the services' names."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []
        self.names: list[str] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self.names += [handler.service_name() for handler in handlers]
        self.handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Ignore the handlers, which the generic ones contain."""


class RpcServer:
    """A started server. Attributes: ``port`` it listens on, ``services`` it offers."""

    def __init__(self, server: grpc.aio.Server, interceptor: CallInterceptor, health: HealthHandler,
                 services: tuple[str, ...], port: int) -> None:
        self._server = server
        self._interceptor = interceptor
        self._health = health
        self.services = services
        self.port = port

    async def set_serving(self, serving: bool) -> None:
        """Set the health status. Readiness may depend on other processes; liveness never does."""
        self._health.set_serving(serving)

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let calls in progress end for ``grace`` seconds, then cancel them."""
        self._health.shut_down()
        await self._server.stop(grace)
        # gRPC cancels the remaining calls without waiting. A loop that ends now would cancel them again.
        calls = set(self._interceptor.calls)
        if calls:
            await asyncio.wait(calls, timeout=CANCELLED_SECONDS)
            await asyncio.sleep(0)

    async def wait(self) -> None:
        """Wait until the server has stopped."""
        await self._server.wait_for_termination()


async def serve(address: str, servicers: Sequence[Register], config: RpcConfig, callers: KnownCallers | None = None,
                serving: bool = True) -> RpcServer:
    """Start a server at ``address`` (host:port, port 0 is any free one; or unix:path).

    ``servicers`` pairs each generated ``add_XServicer_to_server`` with its servicer. With ``serving`` False it is not
    ready until ``set_serving``. Health needs no token; everything else is for ``callers`` alone where they are given
    (`rapid.rpc.access`). Raises ValueError when callers are required and missing, OSError when the address cannot be
    listened on.
    """
    interceptor = CallInterceptor(require_callers(config, callers), config.max_concurrent_calls)
    recorder = _Recorder()
    for add, servicer in servicers:
        add(servicer, recorder)
    options = server_options(config, max_request_bytes(recorder.names, config.max_message_bytes))
    server = grpc.aio.server(interceptors=[interceptor], options=options)
    server.add_generic_rpc_handlers(recorder.handlers)
    names = tuple(recorder.names)
    health = HealthHandler(serving)
    server.add_generic_rpc_handlers([health])
    try:
        port = (server.add_secure_port(address, server_credentials(config.tls)) if config.tls
                else server.add_insecure_port(address))
    except RuntimeError:
        raise OSError(f"cannot listen on {address}: the port is taken, or the address is not this machine's") from None
    started = RpcServer(server, interceptor, health, names, port)
    await server.start()
    return started
