"""Pagination of lists: by cursor in both directions, or by offset."""

from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from five.services.controller.http.problems import Problem

T = TypeVar("T")

MAX_ITEMS = 1000
_ID = r"^\d{1,19}-\d{1,19}$"
Limit = Annotated[int, Query(ge=1, le=MAX_ITEMS, description="Maximum number of items.")]
AfterId = Annotated[str | None, Query(pattern=_ID, description="Return items after this id, oldest first.")]
BeforeId = Annotated[str | None, Query(pattern=_ID, description="Return items before this id, newest first.")]
MAX_SAFE_INTEGER = 2**53 - 1  # the largest integer that every JSON parser represents exactly
AfterVersion = Annotated[int | None, Query(ge=-1, le=MAX_SAFE_INTEGER,
                                           description="Return versions after it, oldest first.")]
BeforeVersion = Annotated[int | None, Query(ge=0, le=MAX_SAFE_INTEGER,
                                            description="Return versions before it, newest first.")]
Offset = Annotated[int, Query(ge=0, le=MAX_SAFE_INTEGER, description="Items to skip: `next` of the previous page.")]


class Page(BaseModel, Generic[T]):
    """A page of a list. Without cursors it holds the newest items; newest first unless `after` is given."""

    items: list[T] = Field(description="The items.")
    newer: str | None = Field(description="Cursor for newer items, as `after`; null: the list is "
                              "empty.")
    older: str | None = Field(description="Cursor for older items, as `before`; null: none.")


class Slice(BaseModel, Generic[T]):
    """A page of an ordered list."""

    items: list[T] = Field(description="The items.")
    total: int = Field(description="Number of items in the whole list.")
    next: int | None = Field(description="`offset` of the next page; null: none.")


def require_single_cursor(after: object, before: object) -> None:
    """Raise Problem 422 if both cursors are given."""
    if after is not None and before is not None:
        raise Problem(422, "`after` and `before` are mutually exclusive", errors=[
            {"where": "query.before", "what": "cannot be combined with `after`"}])


def make_page(items: list[T], ids: list[str], limit: int, after: str | None, before: str | None) -> Page[T]:
    """Return the page read with those cursors; ``ids`` are the items' ids. A full page may be the last one."""
    if after is not None:
        return Page(items=items, newer=ids[-1] if ids else after, older=ids[0] if ids else None)
    return Page(items=items, newer=ids[0] if ids else before,
                older=ids[-1] if len(ids) == limit else None)


def make_slice(items: list[T], offset: int, limit: int) -> Slice[T]:
    """Return the page that begins at ``offset``."""
    end = offset + limit
    return Slice(items=items[offset:end], total=len(items), next=end if end < len(items) else None)
