"""Entity tags of JSON documents and conditional requests (RFC 9110, section 13)."""

import hashlib
import json
import re
from typing import Any

from five.services.controller.http.problems import Problem

_TAG = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e]*)"|(\*))\s*(?:,|$)')


def etag(value: Any) -> str:
    """Return the strong entity tag of JSON values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _parse_tags(header: str, name: str) -> set[str]:
    """Return the strong tags, and '*', of a header. Raise Problem 422."""
    found, at = set(), 0
    while at < len(header):
        match = _TAG.match(header, at)
        if match is None:
            raise Problem(422, f'{name} {header[:80]!r}: expected the quoted ETag of a GET, or *')
        weak, tag, star = match.groups()
        if not weak:
            found.add(star or f'"{tag}"')
        at = match.end()
    return found


def matches_etag(if_none_match: str | None, tag: str) -> bool:
    """Return whether a GET can be answered with 304. A malformed header counts as absent."""
    try:
        return bool(if_none_match and _parse_tags(if_none_match.replace("W/", ""), "If-None-Match") & {tag, "*"})
    except Problem:
        return False


def require_match(if_match: str | None, tag: str, what: str) -> None:
    """Raise Problem 428 without If-Match, 412 if ``what`` has another tag, and 422 for a malformed header."""
    if if_match is None:
        raise Problem(428,
                      f"If-Match is missing: send the ETag of the {what} that you have read, so that no "
                      "concurrent change is lost (* overwrites it)")
    if not _parse_tags(if_match, "If-Match") & {tag, "*"}:
        raise Problem(412, f"the {what} has changed since you read it: read it again and retry",
                      headers={"ETag": tag})
