"""JSON rows of a run in Redis, as their readers decode them."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from rapid.malformed import MALFORMED
from rapid.store.errors import Corrupt

Row = TypeVar("Row")


def read_json(text: str | bytes, what: str) -> Any:
    """Return the value of a row. Raise Corrupt that names ``what``, the row, if it is not JSON."""
    return decode_row(text, what, lambda value: value)


def decode_row(text: str | bytes, what: str, make: Callable[[Any], Row]) -> Row:
    """Return what ``make`` creates of a row's value. Raise Corrupt that names ``what``, the row, if it is damaged."""
    try:
        return make(json.loads(text))
    except MALFORMED as error:
        raise Corrupt(f"{what} is damaged in Redis ({type(error).__name__}: {error}): restore a backup of the run's "
                      "state, or remove the row") from None
