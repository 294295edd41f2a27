"""The OpenAPI document: FastAPI's output plus every error that an operation may return."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from five.services.controller.http.problems import MEDIA_TYPE, TITLES, ProblemDetails, kind_of

_REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
# Error statuses of all requests, and additionally of changes.
COMMON_ERRORS = (400, 401, 408, 413, 421, 422, 429, 500, 503)
WRITE_ERRORS = (403, 409)
_RETRY = {"Retry-After": {"description": "Seconds to wait before trying again.",
                          "schema": {"type": "integer", "minimum": 1}}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "Bearer.", "schema": {"type": "string"}}}, 429: _RETRY, 503: _RETRY}


def install_openapi(app: FastAPI) -> None:
    """Make ``app.openapi()`` return the complete document."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = add_problem_responses(get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes,
                servers=app.servers or None))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def add_problem_responses(document: dict[str, Any]) -> dict[str, Any]:
    """Add the possible error responses to each operation, as problem details."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas["ProblemDetails"] = schema
    for described in schemas.values():
        if "examples" in described:
            described["examples"] = [_with_nulls(schemas, described, example) for example in described["examples"]]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for methods in document["paths"].values():
        for method, operation in methods.items():
            answers = operation["responses"]
            own = {int(status) for status in answers if status.isdigit() and int(status) >= 400}
            for status in sorted({*own, *COMMON_ERRORS, *(WRITE_ERRORS if method != "get" else ())}):
                answers[str(status)] = _problem_response(status, answers.get(str(status), {}))
    return document


def _with_nulls(schemas: dict[str, Any], schema: dict[str, Any], example: Any) -> Any:
    """Return an example with its null members, which FastAPI omits although responses contain them."""
    if "$ref" in schema:
        return _with_nulls(schemas, schemas[schema["$ref"].rpartition("/")[2]], example)
    if "anyOf" in schema:
        return _with_nulls(schemas, schema["anyOf"][0], example)
    if isinstance(example, list):
        return [_with_nulls(schemas, schema.get("items", {}), row) for row in example]
    if not isinstance(example, dict):
        return example
    properties = schema.get("properties", {})
    missing = {name: None for name, described in properties.items() if name not in example
               and any(part.get("type") == "null" for part in described.get("anyOf", ()))}
    return {**{name: _with_nulls(schemas, properties.get(name, {}), value) for name, value in example.items()},
            **missing}


def _problem_response(status: int, given: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(status)
    described = given.get("description", "")
    if described in ("", "Validation Error"):
        described = f"{HTTPStatus(status).phrase}: {TITLES[kind][0].lower()}{TITLES[kind][1:]}."
    example = {"type": f"urn:five:problem:{kind}", "title": TITLES[kind], "status": status,
               "detail": "The error, the allowed values, and the fix.", "instance": "/v1/..."}
    answer: dict[str, Any] = {"description": described,
                              "content": {MEDIA_TYPE: {"schema": _REFERENCE, "example": example}}}
    if status in _HEADERS:
        answer["headers"] = _HEADERS[status]
    return answer
