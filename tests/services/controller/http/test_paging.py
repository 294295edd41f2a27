"""Pages of lists: cursors in both directions, offsets, and the accepted range of each parameter."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from five.services.controller.http.paging import (
    AfterId,
    AfterVersion,
    BeforeId,
    BeforeVersion,
    Limit,
    Offset,
    make_page,
    make_slice,
    require_single_cursor,
)
from five.services.controller.http.problems import Problem

LARGEST = 9_007_199_254_740_991  # the largest integer that JavaScript represents exactly
IDS = ["5-0", "4-0", "3-0"]


@pytest.mark.parametrize(("kind", "lowest", "highest"), [
    (Limit, 1, 1000), (Offset, 0, LARGEST), (AfterVersion, -1, LARGEST), (BeforeVersion, 0, LARGEST)],
    ids=["limit", "offset", "after", "before"])
def test_numbers_have_a_range(kind: Any, lowest: int, highest: int) -> None:
    adapter = TypeAdapter[int](kind)
    assert [adapter.validate_python(number) for number in (lowest, highest)] == [lowest, highest]
    for outside in (lowest - 1, highest + 1):
        with pytest.raises(ValidationError):
            adapter.validate_python(outside)
    assert float(json.loads(str(LARGEST))) == LARGEST and float(LARGEST + 2) != LARGEST + 2


@pytest.mark.parametrize("kind", [AfterId, BeforeId], ids=["after", "before"])
def test_ids_are_two_numbers(kind: Any) -> None:
    adapter = TypeAdapter[str](kind)
    for found in ("0-0", "1700000000000-12", "1" * 19 + "-" + "2" * 19):
        assert adapter.validate_python(found) == found
    for wrong in ("", "1", "1-", "-1", "1-2-3", "+", "a-b", "1" * 20 + "-0", "0-" + "1" * 20, "1-1\n"):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


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
