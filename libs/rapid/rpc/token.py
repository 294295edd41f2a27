"""Bearer token of calls between services, and its rotation without a restart.

Clients send a file's first line; servers accept every line. To rotate, write the new token as the second line, swap the
lines once all servers have read the file, and remove the old token once no client sends it. The file is replaced
atomically.
"""

import logging
import os
import secrets
import threading
from pathlib import Path
from typing import TypeAlias

from rapid.atomic_file import replace_text
from rapid.config import RpcConfig
from rapid.rpc.certificate_reload import FileWatcher
from rapid.telemetry.logs import hide_secrets

log = logging.getLogger(__name__)
TOKEN_VARIABLE = "FIVE_TOKEN"  # noqa: S105 - the variable's name, not a token
FILE_VARIABLE = "FIVE_TOKEN_FILE"


class ServiceTokenFile:
    """Tokens in a file that is read again when it changes. An unusable new file changes nothing.

    Safe to share between threads. Raises ValueError when the file cannot be read or is empty. Messages never contain a
    token.
    """

    def __init__(self, path: str, named: str = "rpc.token_file") -> None:
        """``named`` is the origin of the path, for messages."""
        self._path = Path(path).expanduser()
        self._what = f"{named} {path}"
        self._files = FileWatcher(str(self._path))  # before the file is read, so that no change is missed
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
        """Return the tokens that servers accept now; clients send the first."""
        with self._lock:
            if self._files.changed():
                try:
                    self._tokens = self._read()
                    log.info("token file reloaded tokens=%d", len(self._tokens))
                except ValueError as error:
                    log.error("new token file is unusable, keeping the previous tokens: %s", error)
            return self._tokens


def _lines(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


Token: TypeAlias = ServiceTokenFile | str | None  # None: no token


def load_token(config: RpcConfig) -> Token:
    """Return the run's token: the file of ``rpc.token_file`` or FIVE_TOKEN_FILE, or the value of FIVE_TOKEN.

    Raises ValueError when the file cannot be read or is empty. The message never contains the token.
    """
    if config.token_file:
        return ServiceTokenFile(config.token_file)
    if path := os.environ.get(FILE_VARIABLE, "").strip():
        return ServiceTokenFile(path, FILE_VARIABLE)
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None


def accepted_tokens(token: Token) -> tuple[str, ...]:
    """Return the tokens that a server accepts now; clients send the first. () accepts every caller."""
    if isinstance(token, ServiceTokenFile):
        return token.accepted_tokens()
    return (token,) if token else ()


def sent_token(token: Token) -> str | None:
    """Return the token that a call carries now."""
    return next(iter(accepted_tokens(token)), None)


def require_token(config: RpcConfig, token: Token) -> Token:
    """Return ``token``. Raise ValueError when it is absent and ``rpc.require_token`` is on."""
    if token is None and config.require_token:
        raise ValueError(f"no token: set {TOKEN_VARIABLE} or rpc.token_file, or switch rpc.require_token off to let "
                         "anyone who reaches the port call")
    return token


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def write_tokens(path: Path, *tokens: str) -> None:
    """Replace the file atomically with these tokens, readable by its owner only. Clients send the first."""
    replace_text(path, "".join(f"{token}\n" for token in tokens), 0o600, sync=True)


def load_or_create_token(path: Path) -> str:
    """Return the first token of a file. Create the file with a new token, readable by its owner only, if there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if tokens := _lines(path):
            return tokens[0]
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    token = new_token()
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(token + "\n")
    return token
