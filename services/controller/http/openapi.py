"""The OpenAPI document: what FastAPI makes of the routers, with every error that an operation may answer."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from five.services.controller.http.problems import MEDIA_TYPE, TITLES, ProblemDetails, kind_of

_REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
# What any request may be answered with, and those with a body, and those that change something.
ALWAYS = (400, 401, 408, 413, 422, 429, 500, 503)
CHANGING = (403, 409)
_RETRY = {"Retry-After": {"description": "Seconds to wait before the next try.",
                          "schema": {"type": "integer", "minimum": 1}}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "Bearer.", "schema": {"type": "string"}}}, 429: _RETRY, 503: _RETRY}


def describe(app: FastAPI) -> None:
    """Has ``app.openapi()`` give the whole document."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = complete(get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """Adds to each operation the errors that it may answer with; all of them are problem details."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas["ProblemDetails"] = schema
    for described in schemas.values():
        if "examples" in described:
            described["examples"] = [_whole(schemas, described, example) for example in described["examples"]]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for methods in document["paths"].values():
        for method, operation in methods.items():
            answers = operation["responses"]
            own = {int(status) for status in answers if status.isdigit() and int(status) >= 400}
            for status in sorted({*own, *ALWAYS, *(CHANGING if method != "get" else ())}):
                answers[str(status)] = _problem(status, answers.get(str(status), {}))
    return document


def _whole(schemas: dict[str, Any], schema: dict[str, Any], example: Any) -> Any:
    """An example with its members that are null, which FastAPI leaves out although answers have them."""
    if "$ref" in schema:
        return _whole(schemas, schemas[schema["$ref"].rpartition("/")[2]], example)
    if "anyOf" in schema:
        return _whole(schemas, schema["anyOf"][0], example)
    if isinstance(example, list):
        return [_whole(schemas, schema.get("items", {}), row) for row in example]
    if not isinstance(example, dict):
        return example
    properties = schema.get("properties", {})
    missing = {name: None for name, described in properties.items() if name not in example
               and any(part.get("type") == "null" for part in described.get("anyOf", ()))}
    return {**{name: _whole(schemas, properties.get(name, {}), value) for name, value in example.items()}, **missing}


def _problem(status: int, given: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(status)
    described = given.get("description", "")
    if described in ("", "Validation Error"):
        described = f"{HTTPStatus(status).phrase}: {TITLES[kind][0].lower()}{TITLES[kind][1:]}."
    example = {"type": f"urn:five:problem:{kind}", "title": TITLES[kind], "status": status,
               "detail": "What was wrong this time, and what to do.", "instance": "/v1/..."}
    answer: dict[str, Any] = {"description": described,
                              "content": {MEDIA_TYPE: {"schema": _REFERENCE, "example": example}}}
    if status in _HEADERS:
        answer["headers"] = _HEADERS[status]
    return answer
