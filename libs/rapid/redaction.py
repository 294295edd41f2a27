"""Redaction of URLs: user, password and query of a URL may be secrets."""

import re
from typing import Any

_REST = re.compile(r"://[^\s\"'<>\\]*")  # of a URL in a text, after its scheme
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def redact(text: str) -> str:
    """Return ``text`` without user, password and query of the URLs in it: queries may be signatures."""
    return _REST.sub(_redact_rest, text) if "://" in text else text


def _redact_rest(found: re.Match[str]) -> str:
    # In linear time, unlike a pattern that searches for "@" or "?" from each "://": clients write these texts.
    rest = found[0]
    _, at, place = rest.rpartition("@")
    rest = f"://***@{place}" if at else rest
    shown, end = [], 0
    while (start := rest.find("://", end)) >= 0 and (query := rest.find("?", start)) >= 0:
        shown.append(f"{rest[end:query]}?***")
        close = rest.find(")", query)
        end = close if close >= 0 else len(rest)
    return "".join([*shown, rest[end:]])


def redact_url(url: str) -> str:
    """Return a URL without user, password and query, even if the password has characters that end a URL in a text."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    _, at, place = rest.rpartition("@")
    place, asks, _ = place.partition("?")
    return f"{scheme}://{'***@' if at else ''}{place}{'?***' if asks else ''}"


def redact_tree(value: Any) -> Any:
    """Return JSON values in which every text is redacted."""
    if isinstance(value, str):
        return redact_url(value) if _URL.match(value) else redact(value)
    if isinstance(value, dict):
        return {key: redact_tree(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [redact_tree(found) for found in value]
    return value
