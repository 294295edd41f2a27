"""Entity tags: equal documents, conditional reads, and changes that need If-Match."""

import math
from typing import Any

import pytest

from five.services.controller.http.etags import etag, matches_etag, require_match
from five.services.controller.http.problems import Problem

TAG, OTHER = '"abc"', '"def"'


def test_equal_documents_have_equal_tags() -> None:
    tag = etag({"a": 1, "b": [1.5, None]})
    assert tag == etag({"b": [1.5, None], "a": 1}), "the order of keys does not matter"
    assert tag[0] == tag[-1] == '"' and len(tag) == 34
    assert matches_etag(tag, tag)
    others: tuple[Any, ...] = ({"a": 1, "b": [None, 1.5]}, {"a": 2, "b": [1.5, None]}, {"a": 1}, [], None)
    assert len({tag, *map(etag, others)}) == 6
    with pytest.raises(ValueError, match="JSON compliant"):
        etag({"a": math.nan})


@pytest.mark.parametrize(("header", "matches"), [
    (None, False), ("", False), (TAG, True), (OTHER, False), ("*", True), (f"{OTHER}, {TAG}", True),
    (f"{OTHER},{TAG}", True), (f" {TAG} ", True), ('W/"abc"', True), ('W/"def"', False), (f'W/"def", {TAG}', True),
    ("abc", False), ('"abc', False), (f"{TAG}; {TAG}", False), (f"{TAG} {TAG}", False), ('"ab"c"', False),
    ('"ab\x7f"', False), ('""', False)])
def test_unchanged_document_is_not_sent_again(header: str | None, matches: bool) -> None:
    """If-None-Match compares weakly. A malformed header counts as absent."""
    assert matches_etag(header, TAG) is matches


@pytest.mark.parametrize("header", [TAG, "*", f"{OTHER}, {TAG}", f'W/"abc", {TAG}'])
def test_change_of_the_document_that_was_read_is_allowed(header: str) -> None:
    require_match(header, TAG, "document")


@pytest.mark.parametrize(("header", "status", "kind"), [
    (None, 428, "precondition-required"), (OTHER, 412, "stale"), ('W/"abc"', 412, "stale"), ("", 412, "stale"),
    (f"{OTHER}, W/{TAG}", 412, "stale"), ("abc", 422, "invalid"), (f"{TAG} {TAG}", 422, "invalid"),
    (f"{TAG}, abc", 422, "invalid")])
def test_other_changes_are_refused(header: str | None, status: int, kind: str) -> None:
    """If-Match compares strongly."""
    with pytest.raises(Problem) as caught:
        require_match(header, TAG, "document")
    assert (caught.value.status, caught.value.kind) == (status, kind)
    assert status != 412 or caught.value.headers["ETag"] == TAG, "the client learns the present tag"


def test_long_malformed_header_is_shortened() -> None:
    with pytest.raises(Problem) as caught:
        require_match("x" * 5000, TAG, "document")
    assert len(caught.value.detail) < 200
