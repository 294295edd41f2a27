"""Errors of the REST API as problem details (RFC 9457)."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from rapid.store.errors import FencedOut

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2  # Retry-After while a store is unavailable
_KIND = "urn:five:problem:"
# Replies of a Redis that cannot save, or lacks the replicas of min-replicas-to-write.
_REFUSED = re.compile(r"\b(MISCONF|NOREPLICAS) ")

# Titles by the last part of the problem's type.
TITLES = {
    "bad-request": "Malformed request",
    "unauthenticated": "A valid bearer token is required",
    "forbidden": "The token's role does not permit this",
    "cross-origin": "Session used from another origin",
    "not-found": "Not found",
    "method-not-allowed": "Method not allowed",
    "timeout": "Timeout",
    "illegal-transition": "Transition not allowed from the run's current status",
    "conflict": "Conflict with the current state",
    "key-reused": "Idempotency key used for another request",
    "key-busy": "The first request with this key is still in progress",
    "stale-epoch": "The run is in another epoch",
    "operation-in-progress": "Another operation is active",
    "rehearsal-in-progress": "Another rehearsal is in progress",
    "no-rehearsal-worker": "No rehearsal worker is available",
    "stale-plan": "The plan no longer fits the run",
    "not-approved": "The plan did not pass its check",
    "stale": "The document has changed since it was read",
    "misdirected": "The Host header names another server",
    "too-large": "The request is too large",
    "invalid": "Invalid request",
    "precondition-required": "If-Match is required",
    "too-many-requests": "Too many requests",
    "internal": "Internal error",
    "store-unavailable": "The run's Redis is unavailable",
    "unavailable": "A required service is unavailable",
}
_OF_STATUS = {
    400: "bad-request", 401: "unauthenticated", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    408: "timeout", 409: "conflict", 412: "stale", 413: "too-large", 421: "misdirected", 422: "invalid",
    428: "precondition-required",
    429: "too-many-requests", 431: "too-large", 500: "internal", 503: "unavailable",
}


class FieldError(BaseModel):
    """An invalid field of a request."""

    where: str = Field(description="Location of the field: body, query, path or header, then its path.")
    what: str = Field(description="The error.")


class ProblemDetails(BaseModel):
    """The reason for refusing a request (RFC 9457)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{
        "type": "urn:five:problem:illegal-transition", "title": TITLES["illegal-transition"], "status": 409,
        "detail": "run 'laptop' is paused: it cannot go to pausing, only to running, operating, stopping, failed",
        "instance": "/v1/pause"}]})

    type: str = Field(description="Kind of problem: urn:five:problem: and a word from docs/api.md.")
    title: str = Field(description="Title of the kind.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="The error, the allowed values, and the fix.")
    instance: str = Field(description="Path of the request.")
    errors: list[FieldError] | None = Field(None, description="Invalid fields, with a 422.")


class Problem(Exception):
    """An error response with problem details, raised by handlers.

    ``kind`` is a key of TITLES, by default the status's. ``members`` are added to the document.
    """

    def __init__(self, status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None,
                 **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind or kind_of(status)
        self.headers = dict(headers or {})
        self.members = members

    def document(self, instance: str) -> dict[str, Any]:
        """Return the JSON document."""
        return {"type": _KIND + self.kind, "title": TITLES[self.kind], "status": self.status, "detail": self.detail,
                "instance": instance, **self.members}

    def response(self, instance: str) -> JSONResponse:
        """Return the HTTP response."""
        return JSONResponse(self.document(instance), self.status, self.headers, MEDIA_TYPE)


def store_unavailable(error: Exception) -> Problem:
    """Return a 503 with Retry-After: a Redis of the run does not respond, or refuses writes."""
    what = "refuses writes" if is_write_refusal(error) else "does not respond"
    return Problem(503, f"the run's Redis {what}: {error}. Training continues where it can; try again",
                   "store-unavailable", {"Retry-After": str(RETRY_SECONDS)})


def is_write_refusal(error: Exception) -> bool:
    """Return whether a Redis refuses all writes: it is full, cannot save, or lacks replicas."""
    return isinstance(error, redis.OutOfMemoryError) or (
        isinstance(error, redis.ResponseError) and _REFUSED.search(str(error)) is not None)


@contextmanager
def blob_store_errors() -> Iterator[None]:
    """Convert a failure of the blob store in the block to a Problem 503 with Retry-After."""
    try:
        yield
    except ConnectionError:
        raise  # of the run's Redis, which has its own handler
    except OSError as error:
        raise Problem(503, f"the blob store (blobs.url) is unavailable: {error}", "unavailable",
                      {"Retry-After": str(RETRY_SECONDS)}) from None


def kind_of(status: int) -> str:
    """Return the default kind of problem of a status."""
    return _OF_STATUS.get(status, "bad-request" if status < 500 else "internal")


def responses(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """Return an operation's errors for its OpenAPI entry: ``responses(_404="There is no such version.")``.

    Errors common to all operations (http.openapi) need not be listed.
    """
    return {int(status.removeprefix("_")): {"description": when} for status, when in statuses.items()}


def install(app: FastAPI, allowed_methods: Callable[[str], Sequence[str]] = lambda path: ()) -> None:
    """Install exception handlers that return problem details.

    ``allowed_methods`` returns all methods of a path: the router names only those of its first route.
    """

    @app.exception_handler(Problem)
    def known(request: Request, problem: Problem) -> Response:
        return problem.response(request.url.path)

    @app.exception_handler(HTTPException)
    def plain(request: Request, error: HTTPException) -> Response:
        detail = {404: f"{request.url.path}: no such path; /openapi.json lists all paths",
                  405: f"{request.url.path}: method {request.method} is not allowed"}.get(error.status_code,
                                                                                          str(error.detail))
        methods = allowed_methods(request.url.path) if error.status_code == 405 else ()
        headers = {**(error.headers or {}), **({"Allow": ", ".join(methods)} if methods else {})}
        return Problem(error.status_code, detail, headers=headers).response(request.url.path)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = [{"where": ".".join(map(str, e["loc"])), "what": str(e["msg"])} for e in error.errors()]
        detail = "; ".join(f"{w['where']}: {w['what']}" for w in wrong[:5])
        return Problem(422, detail, errors=wrong).response(request.url.path)

    for away in (ConnectionError, redis.ConnectionError, redis.TimeoutError):
        app.add_exception_handler(away, lambda request, error: store_unavailable(error).response(request.url.path))

    @app.exception_handler(redis.ResponseError)
    def refused(request: Request, error: redis.ResponseError) -> Response:
        if not is_write_refusal(error):
            raise error
        return store_unavailable(error).response(request.url.path)

    @app.exception_handler(FencedOut)
    def moved(request: Request, error: FencedOut) -> Response:
        return Problem(409, str(error), "stale-epoch").response(request.url.path)

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> Response:
        log.error("request failed: %s %s", request.method, request.url.path, exc_info=error)
        return Problem(500, f"{type(error).__name__}: see the controller's log").response(request.url.path)
