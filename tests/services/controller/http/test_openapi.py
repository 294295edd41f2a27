"""The OpenAPI document: every error that an operation may return, and complete examples."""

from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from five.services.controller.http.openapi import install_openapi
from five.services.controller.http.problems import TITLES, Problem, responses

COMMON = {"400", "401", "408", "413", "421", "422", "429", "500", "503"}


class Hero(BaseModel):
    """A hero, whose level may be missing."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Lina"}]})
    name: str
    level: int | None = None


class Team(BaseModel):
    """A team with an example that has members of every kind."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"captain": {"name": "Lina"}, "heroes": [{"name": "Axe"}, {"name": "Lina", "level": 3}], "coach": None,
         "score": 7, "other": {"name": "x"}}, {"captain": None, "heroes": [], "score": 1}]})
    captain: Hero | None
    heroes: list[Hero]
    score: int | str
    coach: str | None = None
    seed: int | None = 4


@pytest.fixture
def document() -> dict[str, Any]:
    app = FastAPI(title="Five", version="1", description="Control.", servers=[{"url": "/five"}])

    @app.get("/team", response_model=Team, responses=responses(_404="There is no team.", _429="Too many teams."))
    def read() -> None:
        """Return the team."""

    @app.put("/team", responses={302: {"description": "Moved."}, 399: {"description": "x"}})
    def write(team: Team) -> None:
        """Replace the team."""

    install_openapi(app)
    found = app.openapi()
    assert app.openapi() is found, "it is computed once"
    return found


def test_document_describes_the_application(document: dict[str, Any]) -> None:
    assert document["info"] == {"title": "Five", "version": "1", "description": "Control."}
    assert document["servers"] == [{"url": "/five"}]


def test_operation_lists_every_error(document: dict[str, Any]) -> None:
    operations = document["paths"]["/team"]
    assert set(operations["get"]["responses"]) == {"200", "404", *COMMON}
    assert set(operations["put"]["responses"]) == {"200", "302", "399", "403", "409", *COMMON}
    assert operations["put"]["responses"]["399"] == {"description": "x"}


def test_error_is_a_problem_with_an_example(document: dict[str, Any]) -> None:
    found = document["paths"]["/team"]["get"]["responses"]
    for status, kind in (("404", "not-found"), ("422", "invalid"), ("500", "internal")):
        assert set(found[status]["content"]) == {"application/problem+json"}
        content = found[status]["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/ProblemDetails"}
        assert content["example"]["type"] == f"urn:five:problem:{kind}"
        assert (content["example"]["title"], content["example"]["status"]) == (TITLES[kind], int(status))


def test_example_of_a_problem_is_one(document: dict[str, Any]) -> None:
    (example,) = document["components"]["schemas"]["ProblemDetails"]["examples"]
    problem = Problem(409, example["detail"], example["type"].rpartition(":")[2])
    assert example == {**problem.document("/v1/pause"), "errors": None}


def test_error_is_described_by_the_operation_or_its_kind(document: dict[str, Any]) -> None:
    found = document["paths"]["/team"]["get"]["responses"]
    assert found["404"]["description"] == "There is no team." and found["429"]["description"] == "Too many teams."
    assert found["401"]["description"] == "Unauthorized: a valid bearer token is required."
    written = document["paths"]["/team"]["put"]["responses"]
    assert written["422"]["description"].endswith(": invalid request."), "not FastAPI's own words"


def test_headers_of_errors(document: dict[str, Any]) -> None:
    found = document["paths"]["/team"]["get"]["responses"]
    headers = {status: set(answer["headers"]) for status, answer in found.items() if "headers" in answer}
    assert headers == {"401": {"WWW-Authenticate"}, "429": {"Retry-After"}, "503": {"Retry-After"}}
    assert found["429"]["headers"]["Retry-After"]["schema"] == {"type": "integer", "minimum": 1}


def test_examples_have_their_null_members(document: dict[str, Any]) -> None:
    """FastAPI leaves them out, although responses contain them."""
    schemas = document["components"]["schemas"]
    lina = {"name": "Lina", "level": None}
    assert schemas["Hero"]["examples"] == [lina]
    assert schemas["Team"]["examples"] == [
        {"captain": lina, "heroes": [{"name": "Axe", "level": None}, {"name": "Lina", "level": 3}], "coach": None,
         "score": 7, "other": {"name": "x"}, "seed": None},
        {"captain": None, "heroes": [], "score": 1, "coach": None, "seed": None}]


def test_schemas_are_those_in_use(document: dict[str, Any]) -> None:
    assert set(document["components"]["schemas"]) == {"Hero", "Team", "ProblemDetails", "FieldError"}
