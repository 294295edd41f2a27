"""Map exceptions to gRPC status codes on the server, and status codes to exceptions on the client."""

import re

import grpc
import grpc.aio

from rapid.rpc.tls_diagnosis import tls_failure
from rapid.store.errors import IllegalTransition, VersionMissing

StatusCode = grpc.StatusCode


class RpcError(RuntimeError):
    """An exception with its own status code."""

    code: StatusCode = StatusCode.INTERNAL


class NotFound(RpcError):
    """The requested object does not exist."""

    code = StatusCode.NOT_FOUND


class Conflict(RpcError):
    """The request does not fit the present state. Nothing was changed."""

    code = StatusCode.FAILED_PRECONDITION


class Unavailable(RpcError):
    """The server cannot respond now (starting, draining, a store is unavailable). Another server or a later attempt
    may."""

    code = StatusCode.UNAVAILABLE


class Exhausted(RpcError):
    """A limit is reached: sessions, queue or memory."""

    code = StatusCode.RESOURCE_EXHAUSTED


class MessageTooLarge(ValueError):
    """A message over the limit, refused before it is sent."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size:,} bytes, over the limit of {limit:,}: send less at once or raise "
                         "rpc.max_message_mebibytes on both sides")
        self.size = size
        self.limit = limit


class LayoutMismatch(ValueError):
    """Sender and receiver use different layouts of their arrays."""

    def __init__(self, received: str, own: str) -> None:
        super().__init__(f"layout {received or '(none)'} of the message is not the receiver's layout {own}: both "
                         "sides must run the same game.observation and heroes_per_team")
        self.received = received
        self.own = own


class CallFailed(RuntimeError):
    """A call that a server refused or that reached no server.

    Attributes: ``code`` of the failure, ``target`` address, ``method`` full name, ``details`` reason.
    """

    def __init__(self, code: StatusCode, target: str, method: str, details: str) -> None:
        super().__init__(f"{method} at {target}: {details} ({code.name})")
        self.code = code
        self.target = target
        self.method = method
        self.details = details

    @property
    def may_retry(self) -> bool:
        """Whether the same call may succeed later or at another address."""
        return self.code in RETRIABLE


# CANCELLED: a server that stops cancels its remaining streams.
RETRIABLE = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED,
                       StatusCode.ABORTED})

# The first match wins, so subclasses precede their bases.
_CODES: tuple[tuple[type[BaseException], StatusCode], ...] = (
    (LayoutMismatch, StatusCode.FAILED_PRECONDITION),
    (IllegalTransition, StatusCode.FAILED_PRECONDITION),
    (VersionMissing, StatusCode.NOT_FOUND),
    (MessageTooLarge, StatusCode.RESOURCE_EXHAUSTED),
    (ValueError, StatusCode.INVALID_ARGUMENT),
    (PermissionError, StatusCode.PERMISSION_DENIED),
    (TimeoutError, StatusCode.DEADLINE_EXCEEDED),
    (NotImplementedError, StatusCode.UNIMPLEMENTED),
    (ConnectionError, StatusCode.UNAVAILABLE),
)


def status_of(error: BaseException) -> tuple[StatusCode, str]:
    """Return the status code and the message for a caller.

    An unexpected exception is INTERNAL; only the server's log has its message.
    """
    if isinstance(error, RpcError):
        return error.code, str(error)
    if isinstance(error, CallFailed) and (error.may_retry or error.code is StatusCode.NOT_FOUND):
        return error.code, str(error)  # of a server that this one called
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    # Redis exceptions are matched by name, because a server without a store does not import redis.
    if any(kind.__module__.startswith("redis.") and kind.__name__ in ("ConnectionError", "TimeoutError")
           for kind in type(error).__mro__):
        return StatusCode.UNAVAILABLE, f"the run's Redis does not respond: {error}"
    return StatusCode.INTERNAL, f"internal error ({type(error).__name__}); the server's log has the details"


_TOO_LARGE = re.compile(r"(Sent|Received) message larger than max \((\d+) vs\. (\d+)\)", re.IGNORECASE)
_OWN_LIMIT = re.compile(r"CLIENT: ", re.IGNORECASE)


_NO_SERVER = "no server responds there"
# The error of grpc.aio for a write when the connection or the call ended during it.
_WRITE_INTERRUPTED = "Internal error from Core"


def failure_of(error: grpc.aio.AioRpcError, target: str, method: str) -> CallFailed:
    """Convert a gRPC error to a CallFailed with target, method and advice."""
    return failure_from(error.code(), error.details() or "", target, method)


def failure_from(code: StatusCode, details: str, target: str, method: str) -> CallFailed:
    """Convert a status code and its details to a CallFailed with target, method and advice."""
    details = details or "no reason given"
    if code is StatusCode.INTERNAL and _WRITE_INTERRUPTED in details:
        return CallFailed(StatusCode.UNAVAILABLE, target, method, "the call ended while a message was being sent")
    too_large = _TOO_LARGE.search(details)
    if too_large:
        size, limit = int(too_large[2]), int(too_large[3])
        whose = "this side's" if _OWN_LIMIT.search(details) else "the server's"
        details = (f"a message of {size:,} bytes is over {whose} limit of {limit:,}: send less at once or raise "
                   "rpc.max_message_mebibytes on both sides")
    elif code is StatusCode.UNAVAILABLE and (reason := tls_failure(target)):
        details = reason
    elif code is StatusCode.UNAVAILABLE and "connect" in details.lower() and _NO_SERVER not in details:
        details = f"{_NO_SERVER} ({details})"
    return CallFailed(code, target, method, details)


ENVELOPE_BYTES = 16_384  # bytes of a message besides its arrays: names, shapes, ids


def check_size(what: str, payload_bytes: int, limit: int) -> None:
    """Raise MessageTooLarge when a message whose arrays take ``payload_bytes`` might exceed the limit.

    The message's own size is not used, because protobuf computes it by serialising.
    """
    size = payload_bytes + ENVELOPE_BYTES
    if size > limit:
        raise MessageTooLarge(what, size, limit)
