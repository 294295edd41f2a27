"""Pages of lists: cursors in both directions, offsets, and the accepted range of each parameter."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from five.services.controller.http.paging import (
    AfterId,
    AfterVersion,
    BeforeId,
    BeforeVersion,
    Limit,
    Offset,
    Slice,
    make_page,
    make_slice,
    require_single_cursor,
)
from five.services.controller.http.problems import Problem

LARGEST = 9_007_199_254_740_991  # the largest integer that JavaScript represents exactly
IDS = ["5-0", "4-0", "3-0"]


@pytest.fixture(scope="module")
def client() -> TestClient:
    """A client of an application with every parameter of a list."""
    app = FastAPI()

    @app.get("/items")
    def items(limit: Limit = 2, offset: Offset = 0, version: AfterVersion = None, until: BeforeVersion = None,
              after: AfterId = None, before: BeforeId = None) -> Slice[Any]:
        require_single_cursor(after, before)
        return make_slice([version, until, after, before], offset, limit)

    return TestClient(app)


@pytest.mark.parametrize(("name", "lowest", "highest"), [
    ("limit", 1, 1000), ("offset", 0, LARGEST), ("version", -1, LARGEST), ("until", 0, LARGEST)])
def test_numbers_have_a_range(client: TestClient, name: str, lowest: int, highest: int) -> None:
    assert [client.get("/items", params={name: value}).status_code for value in (
        lowest - 1, lowest, highest, highest + 1, "x")] == [422, 200, 200, 422, 422]
    assert float(json.loads(str(LARGEST))) == LARGEST and float(LARGEST + 2) != LARGEST + 2


@pytest.mark.parametrize(("name", "position"), [("after", 2), ("before", 3)])
def test_ids_are_two_numbers(client: TestClient, name: str, position: int) -> None:
    for found in ("0-0", "1700000000000-12", "1" * 19 + "-" + "2" * 19):
        assert client.get("/items", params={name: found, "limit": 4}).json()["items"][position] == found
    for wrong in ("", "1", "1-", "-1", "1-2-3", "+", "a-b", "1" * 20 + "-0", "0-" + "1" * 20, "1-1\n"):
        assert client.get("/items", params={name: wrong}).status_code == 422, f"{wrong!r} was accepted"


@pytest.mark.parametrize(("after", "before"), [(None, None), ("1-0", None), (None, "1-0"), (0, None), (None, 0)])
def test_one_cursor_is_allowed(after: Any, before: Any) -> None:
    require_single_cursor(after, before)


@pytest.mark.parametrize(("after", "before"), [("1-0", "2-0"), (0, 0), (-1, 5)])
def test_two_cursors_are_refused(after: Any, before: Any) -> None:
    with pytest.raises(Problem) as caught:
        require_single_cursor(after, before)
    assert (caught.value.status, caught.value.kind) == (422, "invalid")
    assert [error["where"] for error in caught.value.members["errors"]] == ["query.before"]


@pytest.mark.parametrize(("after", "before", "ids", "limit", "newer", "older"), [
    (None, None, IDS, 3, "5-0", "3-0"), (None, None, IDS, 4, "5-0", None), (None, None, [], 3, None, None),
    (None, "6-0", IDS, 3, "5-0", "3-0"), (None, "6-0", IDS, 4, "5-0", None), (None, "6-0", [], 3, "6-0", None),
    ("2-0", None, IDS[::-1], 3, "5-0", "3-0"), ("2-0", None, IDS[::-1], 4, "5-0", "3-0"),
    ("2-0", None, [], 3, "2-0", None)])
def test_page_has_cursors_in_both_directions(after: str | None, before: str | None, ids: list[str], limit: int,
                                             newer: str | None, older: str | None) -> None:
    page = make_page([f"item {name}" for name in ids], ids, limit, after, before)
    assert page.items == [f"item {name}" for name in ids]
    assert (page.newer, page.older) == (newer, older)


@pytest.mark.parametrize(("offset", "limit", "items", "following"), [
    (0, 2, [0, 1], 2), (2, 2, [2, 3], 4), (4, 2, [4], None), (3, 2, [3, 4], None), (2, 3, [2, 3, 4], None),
    (0, 5, [0, 1, 2, 3, 4], None), (0, 4, [0, 1, 2, 3], 4), (5, 2, [], None), (9, 2, [], None)])
def test_slice_names_the_next_one(offset: int, limit: int, items: list[int], following: int | None) -> None:
    found = make_slice(list(range(5)), offset, limit)
    assert (found.items, found.total, found.next) == (items, 5, following)
