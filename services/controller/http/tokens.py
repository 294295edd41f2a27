"""Named tokens of the REST API: a JSON file that holds their hashes, read again whenever it changes.

The file is a list of entries ``{"name", "role", "sha256", "expires"?}``: ``role`` is viewer or operator, ``sha256`` the
SHA-256 of the token's text in 64 hexadecimal digits, ``expires`` a time in ISO 8601. Tokens are 256 random bits, so
that a plain hash of one gives nothing away.
"""

import hashlib
import hmac
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from rapid.file_stamp import Stamp, stamp

log = logging.getLogger(__name__)

FILE_VARIABLE = "FIVE_TOKENS_FILE"
MAX_ENTRIES = 1000
MAX_BYTES = 1 << 20
_PREFIX = "five_"  # lets scanners of repositories and logs find a token that leaked
# What the services call themselves in events: a token's name may not pass for one of them.
RESERVED = frozenset({"controller", "optimizer", "rollout", "inference", "evaluator", "opponents", "dota_env",
                      "autoscaler", "guard", "anonymous"})


class Role(IntEnum):
    """What a caller may do; an operator may do all that a viewer may."""

    VIEWER = 1
    OPERATOR = 2


class TokenEntry(BaseModel):
    """One named token, without the token itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$", description="Who events say it was.")
    role: Literal["viewer", "operator"] = Field(description="viewer reads; operator changes things as well.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the token's text, in hexadecimal.")
    expires: AwareDatetime | None = Field(None, description="From then on the token is no longer taken.")

    @field_validator("name")
    @classmethod
    def _not_a_service(cls, name: str) -> str:
        if name in RESERVED:
            raise ValueError(f"{name!r} is what a part of the run calls itself in events: choose another name")
        return name

    @property
    def level(self) -> Role:
        """The role as one to compare with."""
        return Role[self.role.upper()]

    def expired(self, now: float) -> bool:
        """Whether its time is over at ``now``, seconds since the epoch."""
        return self.expires is not None and self.expires.timestamp() <= now


_ENTRIES = TypeAdapter(list[TokenEntry])


def token_hash(token: str) -> str:
    """SHA-256 of a token's text in hexadecimal, as entries keep it."""
    return hashlib.sha256(token.encode()).hexdigest()


def make(name: str, role: str, expires: datetime | None = None) -> tuple[str, TokenEntry]:
    """A fresh token and its entry. Raises pydantic.ValidationError for a name or role that cannot be."""
    token = _PREFIX + secrets.token_urlsafe(32)
    return token, TokenEntry.model_validate({"name": name, "role": role, "sha256": token_hash(token),
                                             "expires": expires})


def read(path: Path) -> list[TokenEntry]:
    """Entries of a file. Raises ValueError saying what is wrong with it, OSError."""
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"{path} holds more than {MAX_BYTES >> 20} MiB: that is no file of tokens")
    try:
        entries = _ENTRIES.validate_json(text)
    except ValidationError as error:
        # Without the input: somebody may have put a token where its hash belongs.
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)[:5])
        raise ValueError(f"{path} is no list of tokens: {wrong}") from None
    require_distinct(entries, str(path))
    return entries


def require_distinct(entries: Sequence[TokenEntry], where: str) -> None:
    """Raises ValueError when two entries have one name or one hash, or there are too many."""
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"{where} lists {len(entries)} tokens; at most {MAX_ENTRIES} are read")
    for key in ("name", "sha256"):
        values = [getattr(entry, key) for entry in entries]
        double = sorted({v for v in values if values.count(v) > 1})
        if double:
            names = double if key == "name" else [e.name for e in entries if e.sha256 in double]
            raise ValueError(f"{where} lists {', '.join(names)} twice: a token has one name, and a name one token")


def write(path: Path, entries: Iterable[TokenEntry]) -> None:
    """Replaces a file, readable by its owner only: written temporary first, then renamed. Raises ValueError, OSError."""
    kept = list(entries)
    require_distinct(kept, str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump([entry.model_dump(mode="json", exclude_none=True) for entry in kept], file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class TokenFile:
    """The tokens of a file, always as the file is now. Safe to share between threads.

    A file that cannot be read once the controller is up leaves the tokens as they were: half of a rotation locks nobody
    out. Raises ValueError when it cannot be read at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._trouble = ""
        try:
            self._stamp = stamp(path)
            self._entries = read(path)
        except OSError as error:
            raise ValueError(f"services.controller.tokens_file {path}: {error.strerror or error}") from None

    def entries(self) -> list[TokenEntry]:
        """All entries, expired ones too."""
        with self._lock:
            try:
                now = stamp(self._path)
                if now != self._stamp:
                    self._entries = read(self._path)
                    self._stamp = now
                    self._trouble = ""
                    log.info("tokens are read again: %s", ", ".join(e.name for e in self._entries) or "none")
            except (OSError, ValueError) as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    log.warning("tokens stay as they were: %s", error)
            return self._entries


class FixedTokens:
    """Tokens that never change: for tests, and programs that embed the application."""

    def __init__(self, entries: Sequence[TokenEntry]) -> None:
        require_distinct(entries, "the tokens")
        self._entries = list(entries)

    @classmethod
    def of(cls, **tokens: tuple[str, str]) -> "FixedTokens":
        """From name=(role, token)."""
        return cls([TokenEntry.model_validate({"name": name, "role": role, "sha256": token_hash(token)})
                    for name, (role, token) in tokens.items()])

    def entries(self) -> list[TokenEntry]:
        """All entries."""
        return self._entries


def find(entries: Iterable[TokenEntry], token: str, now: float | None = None) -> TokenEntry | None:
    """The entry that a token belongs to; None for an unknown or expired one. Takes the same time whichever it is."""
    presented = token_hash(token)
    at = time.time() if now is None else now
    found = None
    for entry in entries:
        if hmac.compare_digest(entry.sha256, presented) and not entry.expired(at):
            found = entry
    return found


def parse_expiry(text: str) -> datetime:
    """When a token ends, from "30d", "12h" or a date in ISO 8601 (UTC where it names no zone). Raises ValueError."""
    units = {"d": 86400, "h": 3600}
    try:
        if text[-1:] in units:
            return datetime.fromtimestamp(int(time.time() + float(text[:-1]) * units[text[-1]]), UTC)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time: give 30d, 12h, or a date such as 2031-01-31") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
