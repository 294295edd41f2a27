"""Named tokens of the REST API: a JSON file of their hashes, reloaded when it changes.

The file is a list of entries ``{"name", "role", "sha256", "expires"?}``. ``role`` is viewer or operator. ``sha256`` is
the SHA-256 of the token's text in 64 hexadecimal digits. ``expires`` is an ISO 8601 time. Tokens are 256 random bits,
so a plain hash does not reveal them.
"""

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from rapid.atomic_file import replacing
from rapid.file_stamp import FileStamp, file_stamp

log = logging.getLogger(__name__)

FILE_VARIABLE = "FIVE_TOKENS_FILE"
MAX_ENTRIES = 1000
MAX_BYTES = 1 << 20
_PREFIX = "five_"  # lets secret scanners detect a leaked token
# Names of services in events, of their instances (optimizer-0), and of what holds an anneal in an operator's place;
# tokens must not have them.
RESERVED = re.compile(r"(?:controller|optimizer|rollout|inference|evaluator|opponents|play|dota_env|autoscaler|guard|"
                      r"gate|anonymous)(?:-[0-9]+)?")


class Role(IntEnum):
    """Permissions of a caller; an operator may do everything that a viewer may."""

    VIEWER = 1
    OPERATOR = 2


class TokenEntry(BaseModel):
    """A named token, stored without its text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$", description="Author of its events.")
    role: Literal["viewer", "operator"] = Field(description="viewer: read; operator: read and change.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the token's text, in hexadecimal.")
    expires: AwareDatetime | None = Field(None, description="Time from which the token is refused.")

    @field_validator("name")
    @classmethod
    def _not_a_service(cls, name: str) -> str:
        if RESERVED.fullmatch(name):
            raise ValueError(f"name {name!r} is reserved for a service: choose another name")
        return name

    @property
    def level(self) -> Role:
        """Return the role as a comparable value."""
        return Role[self.role.upper()]

    def expired(self, now: float) -> bool:
        """Return whether the token has expired at ``now``, seconds since the epoch."""
        return self.expires is not None and self.expires.timestamp() <= now


_ENTRIES = TypeAdapter(list[TokenEntry])


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token's text in hexadecimal, as stored in entries."""
    return hashlib.sha256(token.encode()).hexdigest()


def make(name: str, role: str, expires: datetime | None = None) -> tuple[str, TokenEntry]:
    """Create a token and its entry. Raise pydantic.ValidationError for an invalid name or role."""
    token = _PREFIX + secrets.token_urlsafe(32)
    return token, TokenEntry.model_validate({"name": name, "role": role, "sha256": token_hash(token),
                                             "expires": expires})


def read(path: Path) -> list[TokenEntry]:
    """Return the entries of a file. Raise OSError, and ValueError if the file is invalid."""
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"{path}: larger than {MAX_BYTES >> 20} MiB, so not a token file")
    try:
        entries = _ENTRIES.validate_json(text)
    except ValidationError as error:
        # Without the input: it may contain a token instead of its hash.
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)[:5])
        raise ValueError(f"{path}: invalid list of tokens: {wrong}") from None
    require_distinct(entries, str(path))
    return entries


def require_distinct(entries: Sequence[TokenEntry], where: str) -> None:
    """Raise ValueError if two entries share a name or hash, or if there are too many."""
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"{where}: {len(entries)} tokens, at most {MAX_ENTRIES} are allowed")
    for key in ("name", "sha256"):
        count = Counter(getattr(entry, key) for entry in entries)
        double = sorted({entry.name for entry in entries if count[getattr(entry, key)] > 1})
        if double:
            raise ValueError(f"{where}: duplicate {key} of {', '.join(double)}: names and hashes must be unique")


def write(path: Path, entries: Iterable[TokenEntry]) -> None:
    """Replace a file atomically. A new one is readable by its owner only; an old one keeps its permissions, because a
    container may read it as another user. Raise ValueError or OSError."""
    kept = list(entries)
    require_distinct(kept, str(path))
    text = json.dumps([entry.model_dump(mode="json", exclude_none=True) for entry in kept], indent=2)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o600
    with replacing(path, 0o600, sync=True) as file:
        os.fchmod(file.fileno(), mode)
        file.write(f"{text}\n".encode())


class NamedTokenFile:
    """The tokens of a file, reloaded when it changes. Thread-safe.

    If the file becomes unreadable later, the previous tokens stay valid, so that a half-finished rotation locks nobody
    out. Raise ValueError if it cannot be read initially.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: FileStamp | None = None
        self._trouble = ""
        try:
            self._stamp = file_stamp(path)
            self._entries = read(path)
        except OSError as error:
            raise ValueError(f"services.controller.tokens_file {path}: {error.strerror or error}") from None

    def entries(self) -> list[TokenEntry]:
        """Return all entries, including expired ones."""
        with self._lock:
            try:
                now = file_stamp(self._path)
                if now != self._stamp:
                    self._entries = read(self._path)
                    self._stamp = now
                    self._trouble = ""
                    log.info("tokens reloaded: %s", ", ".join(e.name for e in self._entries) or "none")
            except (OSError, ValueError) as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    log.warning("token file is unreadable, keeping the previous tokens: %s", error)
            return self._entries


class FixedTokens:
    """A fixed set of tokens, for tests and for programs that embed the application."""

    def __init__(self, entries: Sequence[TokenEntry]) -> None:
        require_distinct(entries, "the tokens")
        self._entries = list(entries)

    @classmethod
    def of(cls, **tokens: tuple[str, str]) -> "FixedTokens":
        """Create it from name=(role, token)."""
        return cls([TokenEntry.model_validate({"name": name, "role": role, "sha256": token_hash(token)})
                    for name, (role, token) in tokens.items()])

    def entries(self) -> list[TokenEntry]:
        """Return all entries."""
        return self._entries


def find_token(entries: Iterable[TokenEntry], token: str, now: float | None = None) -> TokenEntry | None:
    """Return the entry of a token, or None if it is unknown or expired. Runs in constant time."""
    presented = token_hash(token)
    at = time.time() if now is None else now
    found = None
    for entry in entries:
        if hmac.compare_digest(entry.sha256, presented) and not entry.expired(at):
            found = entry
    return found


def parse_expiry(text: str) -> datetime:
    """Return the time given by "30d", "12h" or an ISO 8601 date (UTC without a zone). Raise ValueError."""
    units = {"d": 86400, "h": 3600}
    try:
        if text[-1:] in units:
            return datetime.fromtimestamp(int(time.time() + float(text[:-1]) * units[text[-1]]), UTC)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):  # OSError: a year that the system lacks
        raise ValueError(f"expiry {text!r}: expected 30d, 12h, or a date such as 2031-01-31") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
