"""Entity tags of documents: which state of one a client has read, and whether it still is the one (RFC 9110, 13)."""

import hashlib
import json
import re
from typing import Any

from five.services.controller.http.problems import Problem

_TAG = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e]*)"|(\*))\s*(?:,|$)')


def tag_of(value: Any) -> str:
    """The strong entity tag of JSON values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _tags(header: str, name: str) -> set[str]:
    """Strong tags, and '*', of a header. Raises Problem 422."""
    found, at = set(), 0
    while at < len(header):
        match = _TAG.match(header, at)
        if match is None or match.end() == at:
            raise Problem(422, f'{name} takes the ETag of a GET, in its quotation marks, or *; not {header[:80]!r}')
        weak, tag, star = match.groups()
        if not weak:
            found.add(star or f'"{tag}"')
        at = match.end()
    return found


def unchanged(if_none_match: str | None, tag: str) -> bool:
    """Whether a GET may be answered with 304. A malformed header counts as absent."""
    try:
        return bool(if_none_match and _tags(if_none_match.replace("W/", ""), "If-None-Match") & {tag, "*"})
    except Problem:
        return False


def require_match(if_match: str | None, tag: str, what: str) -> None:
    """Raises Problem 428 without an If-Match, 412 when ``what`` is no longer in that state, 422 for none at all."""
    if if_match is None:
        raise Problem(428, f"send If-Match with the ETag of the {what} that you have read: a change that somebody else "
                      "has made meanwhile is not lost that way (* overwrites whatever there is)")
    if not _tags(if_match, "If-Match") & {tag, "*"}:
        raise Problem(412, f"the {what} has changed since you read it: read it again, and decide again",
                      headers={"ETag": tag})
