"""The token that services call each other with, and how it is changed while they go on.

A file's first line is what is sent; every line is taken. So a new token goes in as the second line, changes places with
the first once all servers have read that, and stands alone once no client sends the old one. The file is replaced
whole: written beside, then renamed.
"""

import logging
import os
import secrets
import threading
from pathlib import Path
from typing import TypeAlias

from rapid.config import RpcConfig
from rapid.rpc.certificate_reload import FileWatcher
from rapid.telemetry.logs import hide_secrets

log = logging.getLogger(__name__)
TOKEN_VARIABLE = "FIVE_TOKEN"  # noqa: S105 - the variable's name, not a token
FILE_VARIABLE = "FIVE_TOKEN_FILE"


class TokenFile:
    """Tokens in a file, which is read again when it changes; one that cannot be used changes nothing. Safe to share
    between threads. Raises ValueError when it cannot be read or is empty; no message holds a token."""

    def __init__(self, path: str, named: str = "rpc.token_file") -> None:
        """``named``: what the path comes from, for messages."""
        self._path = Path(path).expanduser()
        self._what = f"{named} {path}"
        self._files = FileWatcher(str(self._path))  # before the file is read: what changes meanwhile is seen
        self._lock = threading.Lock()
        self._tokens = self._read()

    def _read(self) -> tuple[str, ...]:
        try:
            tokens = _lines(self._path)
        except OSError as error:
            raise ValueError(f"{self._what}: {error.strerror or error}") from None
        if not tokens:
            raise ValueError(f"{self._what} is empty")
        hide_secrets(*tokens)
        return tokens

    def accepted_tokens(self) -> tuple[str, ...]:
        """Those that servers take now, the one that is sent first."""
        with self._lock:
            if self._files.changed():
                try:
                    self._tokens = self._read()
                    log.info("the services' token is read again: %d %s taken", len(self._tokens),
                             "is" if len(self._tokens) == 1 else "are")
                except ValueError as error:
                    log.error("a new token cannot be used, that of before is: %s", error)
            return self._tokens


def _lines(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in path.read_text().splitlines() if line.strip())


Token: TypeAlias = TokenFile | str | None  # None: there is none


def load_token(config: RpcConfig) -> Token:
    """The run's token: the file of ``rpc.token_file`` or of the environment's FIVE_TOKEN_FILE, or FIVE_TOKEN itself.

    Raises ValueError when the file cannot be read or is empty. The message never holds the token.
    """
    if config.token_file:
        return TokenFile(config.token_file)
    if path := os.environ.get(FILE_VARIABLE, "").strip():
        return TokenFile(path, FILE_VARIABLE)
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None


def accepted_tokens(token: Token) -> tuple[str, ...]:
    """Those that a server takes now, the one that is sent first; () lets everyone in."""
    if isinstance(token, TokenFile):
        return token.taken()
    return (token,) if token else ()


def sent_token(token: Token) -> str | None:
    """What a call carries now."""
    return next(iter(accepted_tokens(token)), None)


def require_token(config: RpcConfig, token: Token) -> Token:
    """``token``, once it is clear that the configuration allows it to be absent.

    Raises ValueError when ``rpc.require_token`` is on and there is none.
    """
    if token is None and config.require_token:
        raise ValueError(f"no token: set {TOKEN_VARIABLE} or rpc.token_file, or switch rpc.require_token off to let "
                         "anyone who reaches the port call")
    return token


def new_token() -> str:
    """A fresh random token."""
    return secrets.token_urlsafe(32)


def write_tokens(path: Path, *tokens: str) -> None:
    """Replaces the file by one of these tokens, readable by its owner only; the first is sent."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("".join(f"{token}\n" for token in tokens))
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def load_or_create_token(path: Path) -> str:
    """The token that a file's owner sends: its first, or a fresh one, which it then holds, readable by its owner
    only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if tokens := _lines(path):
            return tokens[0]
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    token = new_token()
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token
