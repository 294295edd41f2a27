"""Errors of the REST API as problem details (RFC 9457): one shape for every answer that is no success."""

import logging
from collections.abc import Mapping
from typing import Any

import redis
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from rapid.rpc.errors import Unavailable
from rapid.store.errors import FencedOut

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2  # what a client is told to wait while a store is away
_KIND = "urn:five:problem:"

# What goes wrong, by the last part of the problem's type; the title is the same for each occurrence.
TITLES = {
    "bad-request": "The request cannot be read",
    "unauthenticated": "A valid bearer token is needed",
    "forbidden": "This token may not do that",
    "cross-origin": "A session is for the console's own pages",
    "not-found": "There is nothing at this address",
    "method-not-allowed": "This address does not take that method",
    "timeout": "The request took too long",
    "illegal-transition": "The run cannot go there from its present status",
    "conflict": "The request conflicts with what is there",
    "key-reused": "An idempotency key belongs to one request",
    "key-busy": "The first request with this key is still under way",
    "epoch-moved": "The run has moved on since this was decided",
    "operation-under-way": "Another operation is under way",
    "rehearsal-under-way": "Another rehearsal is under way",
    "no-rehearser": "Nobody of this run can rehearse",
    "stale-plan": "The plan no longer fits the run",
    "not-approved": "The plan's check was not passed",
    "stale": "The document has changed since it was read",
    "too-large": "The request is too large",
    "invalid": "The request does not hold what it must",
    "precondition-required": "Say which state of the document you have read",
    "too-many-requests": "Too many requests",
    "internal": "The controller failed",
    "store-away": "The run's store does not answer",
    "unavailable": "A service that this needs does not answer",
}
_OF_STATUS = {
    400: "bad-request", 401: "unauthenticated", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    408: "timeout", 409: "conflict", 412: "stale", 413: "too-large", 422: "invalid", 428: "precondition-required",
    429: "too-many-requests", 431: "too-large", 500: "internal", 503: "unavailable",
}


class FieldError(BaseModel):
    """One field of a request that is wrong."""

    where: str = Field(description="Place of the field: body, query, path or header, and the keys to it.")
    what: str = Field(description="What is wrong with it.")


class ProblemDetails(BaseModel):
    """Why a request was not carried out (RFC 9457)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{
        "type": "urn:five:problem:illegal-transition", "title": TITLES["illegal-transition"], "status": 409,
        "detail": "run 'laptop' is paused: it cannot go to pausing, only to running, operating, stopping, failed",
        "instance": "/v1/pause"}]})

    type: str = Field(description="Which kind of problem: urn:five:problem: and a word, listed in docs/api.md.")
    title: str = Field(description="The kind in words, the same each time.")
    status: int = Field(description="The answer's HTTP status.")
    detail: str = Field(description="What was wrong this time, and what to do.")
    instance: str = Field(description="Path of the request.")
    errors: list[FieldError] | None = Field(None, description="Fields that are wrong, with a 422.")


class Problem(Exception):
    """Raise it from a handler to answer with problem details.

    ``kind`` is one of TITLES, by default that of the status; ``members`` are added to the document.
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
        """The JSON of the answer."""
        return {"type": _KIND + self.kind, "title": TITLES[self.kind], "status": self.status, "detail": self.detail,
                "instance": instance, **self.members}

    def response(self, instance: str) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.document(instance), self.status, self.headers, MEDIA_TYPE)


def store_away(error: Exception) -> Problem:
    """503 with Retry-After: a Redis of the run does not answer."""
    return Problem(503, f"the run's store does not answer: {error}. Training goes on where it can; try again",
                   "store-away", {"Retry-After": str(RETRY_SECONDS)})


def kind_of(status: int) -> str:
    """The kind of problem that a status stands for where nothing more is known."""
    return _OF_STATUS.get(status, "bad-request" if status < 500 else "internal")


def responses(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """The errors of an operation and when they come, for its OpenAPI: ``responses(_404="no such version")``.

    What any operation may answer with (services.controller.api.openapi) need not be named.
    """
    return {int(status.removeprefix("_")): {"description": when} for status, when in statuses.items()}


def install(app: FastAPI) -> None:
    """Has every error of the application answered with problem details."""

    @app.exception_handler(Problem)
    def known(request: Request, problem: Problem) -> Response:
        return problem.response(request.url.path)

    @app.exception_handler(HTTPException)
    def plain(request: Request, error: HTTPException) -> Response:
        detail = {404: f"there is nothing at {request.url.path}; /openapi.json lists what there is",
                  405: f"{request.url.path} does not take {request.method}"}.get(error.status_code, str(error.detail))
        return Problem(error.status_code, detail, headers=error.headers).response(request.url.path)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = [{"where": ".".join(map(str, e["loc"])), "what": str(e["msg"])} for e in error.errors()]
        detail = "; ".join(f"{w['where']}: {w['what']}" for w in wrong[:5])
        return Problem(422, detail, errors=wrong).response(request.url.path)

    for away in (ConnectionError, redis.ConnectionError, redis.TimeoutError, Unavailable):
        app.add_exception_handler(away, lambda request, error: store_away(error).response(request.url.path))

    @app.exception_handler(FencedOut)
    def moved(request: Request, error: FencedOut) -> Response:
        return Problem(409, str(error), "epoch-moved").response(request.url.path)

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return Problem(500, f"{type(error).__name__}: the controller's log says more").response(request.url.path)
