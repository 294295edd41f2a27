"""``python -m tools.rest_page [FILE]`` writes docs/rest.md from the controller's OpenAPI document."""

import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from five.services.controller.http.app import ROUTERS
from five.services.controller.http.openapi import install_openapi

PAGE = Path(__file__).resolve().parents[1] / "docs" / "rest.md"
HEAD = """# REST endpoints

Every endpoint of the controller, made from its OpenAPI document by `python -m tools.rest_page`. A running controller
serves the document at `/openapi.json`, with every field and error. [REST API](api.md) shows how to authenticate, page,
retry and read errors.
"""


def document() -> dict[str, Any]:
    """Return the OpenAPI document of an application that has the routers and no context."""
    app = FastAPI(title="Five", version="1", generate_unique_id_function=lambda route: route.name)
    for router in ROUTERS:
        app.include_router(router, prefix="/v1")
    install_openapi(app)
    return app.openapi()


def page() -> str:
    """Return the text of docs/rest.md: a table for each tag."""
    tables: dict[str, list[str]] = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            tables.setdefault(tag, []).append(row(method, path, operation))
    head = "| endpoint | purpose | parameters | body |\n|---|---|---|---|\n"
    return HEAD + "".join(f"\n## {tag}\n\n{head}{''.join(rows)}" for tag, rows in tables.items())


def row(method: str, path: str, operation: dict[str, Any]) -> str:
    """Return the table row of one operation."""
    summary = operation.get("description", operation.get("summary", "")).strip().partition("\n\n")[0]
    parameters = ", ".join(f"`{parameter['name']}`" for parameter in operation.get("parameters", ()))
    body = schema_name(operation.get("requestBody", {}))
    cells = (f"`{method.upper()} {path}`", " ".join(summary.split()).replace("|", "\\|"), parameters, body)
    return f"| {' | '.join(cells)} |\n"


def schema_name(request: dict[str, Any]) -> str:
    """Return the name of a request body's schema, or an empty string without one."""
    for content in request.get("content", {}).values():
        schema = content.get("schema", {})
        choices = [schema, *schema.get("anyOf", ())]
        return ", ".join(f"`{choice['$ref'].rpartition('/')[2]}`" for choice in choices if "$ref" in choice)
    return ""


def main(arguments: list[str]) -> None:
    """Write the page."""
    (Path(arguments[0]) if arguments else PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
