"""Pages of long lists, read from the newest on, and both ways from anywhere."""

from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from five.services.controller.http.problems import Problem

T = TypeVar("T")

LARGEST = 1000
_ID = r"^\d{1,19}-\d{1,19}$"
Limit = Annotated[int, Query(ge=1, le=LARGEST, description="Items of a page at most.")]
AfterId = Annotated[str | None, Query(pattern=_ID, description="Give what came after this id, oldest first.")]
BeforeId = Annotated[str | None, Query(pattern=_ID, description="Give what was before this id, newest first.")]
NUMBER = 2**53 - 1  # the largest that every JSON parser keeps
AfterVersion = Annotated[int | None, Query(ge=-1, le=NUMBER, description="Give versions after it, oldest first.")]
BeforeVersion = Annotated[int | None, Query(ge=0, le=NUMBER, description="Give versions before it, newest first.")]
Offset = Annotated[int, Query(ge=0, le=NUMBER, description="Items to leave out: `next` of the page before.")]


class Page(BaseModel, Generic[T]):
    """A part of a list. Without cursors the newest; newest first unless `after` was given."""

    items: list[T] = Field(description="The items.")
    newer: str | None = Field(description="Give it as `after` to go on to what is newer, now or later; null: there was "
                              "nothing yet.")
    older: str | None = Field(description="Give it as `before` to go on to what is older; null: there is nothing.")


class Slice(BaseModel, Generic[T]):
    """A part of an ordered list."""

    items: list[T] = Field(description="The items.")
    total: int = Field(description="Items of the whole list.")
    next: int | None = Field(description="Give it as `offset` to go on; null: that was all.")


def require_one(after: object, before: object) -> None:
    """Raises Problem 422 when both cursors are given."""
    if after is not None and before is not None:
        raise Problem(422, "give `after` or `before`, not both", errors=[
            {"where": "query.before", "what": "stands beside `after`"}])


def page(items: list[T], ids: list[str], limit: int, after: str | None, before: str | None) -> Page[T]:
    """The page that was read with those cursors; ``ids`` are the items' own. A full page may be the last one."""
    if after is not None:
        return Page(items=items, newer=ids[-1] if ids else after, older=ids[0] if ids else None)
    return Page(items=items, newer=ids[0] if ids else before,
                older=ids[-1] if len(ids) == limit else None)


def cut(items: list[T], offset: int, limit: int) -> Slice[T]:
    """The slice from ``offset`` on."""
    end = offset + limit
    return Slice(items=items[offset:end], total=len(items), next=end if end < len(items) else None)
