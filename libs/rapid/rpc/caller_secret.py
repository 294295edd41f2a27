"""Secret of a calling process, and the tokens that its calls carry.

A caller derives a token for each kind of server from its secret. Servers know hashes of the tokens
(`rapid.rpc.callers`). A server that receives a token can neither use it at another kind of server nor find the secret.

To rotate a secret, add the hashes of the new one, write the new secret once all servers have read the hashes, and
remove the old hashes once no client sends the old secret. Files are replaced atomically.
"""

import logging
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from rapid.atomic_file import replace_text, replacing
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.certificate_reload import FileWatcher
from rapid.telemetry.logs import hide_secrets

log = logging.getLogger(__name__)
FILE_VARIABLE = "FIVE_CALLER_SECRET_FILE"
REMOVED_VARIABLES = ("FIVE_TOKEN", "FIVE_TOKEN_FILE")  # of releases before 0.2.0
MIN_LENGTH = 16  # of a secret; generated ones are much longer


def derive_token(secret: str, audience: Audience) -> str:
    """Return the token that the owner of ``secret`` sends to servers of the kind ``audience``.

    Shell scripts and Helm templates compute it too. Neither has HMAC. The secret is at the end, so that nobody can
    extend the hash of a longer message.
    """
    return sha256(f"five:{audience}:{secret}".encode()).hexdigest()


class CallerSecretFile:
    """A secret in a file that is read again when it changes. An unusable new file changes nothing.

    Safe to share between threads. Raises ValueError when the file cannot be read or has no usable secret. Messages
    never contain the secret.
    """

    def __init__(self, path: str, named: str = "rpc.caller_secret_file") -> None:
        """``named`` is the origin of the path, for messages."""
        self._path = Path(path).expanduser()
        self._what = f"{named} {path}"
        self._files = FileWatcher(str(self._path))  # before the file is read, so that no change is missed
        self._lock = threading.Lock()
        self._secret = self._read()

    def _read(self) -> str:
        try:
            secret = read_secret(self._path)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{self._what}: {getattr(error, 'strerror', None) or error}") from None
        if len(secret) < MIN_LENGTH:
            raise ValueError(f"{self._what}: its first line has {len(secret)} characters, at least {MIN_LENGTH} are "
                             "required")
        hide_secrets(secret, *(derive_token(secret, audience) for audience in Audience))
        return secret

    def secret(self) -> str:
        """Return the present secret."""
        with self._lock:
            if (secret := self._files.reload(self._read, "new caller secret is unusable")) is not None:
                self._secret = secret
                log.info("caller secret reloaded")
            return self._secret


Secret: TypeAlias = CallerSecretFile | str | None  # None: calls carry no token


@dataclass(frozen=True)
class CallToken:
    """Token of calls to one kind of server. It follows the rotation of the secret."""

    secret: Secret
    audience: Audience

    def value(self) -> str | None:
        """Return the token that a call carries now; None without a secret."""
        secret = present_secret(self.secret)
        return derive_token(secret, self.audience) if secret else None


def present_secret(secret: Secret) -> str | None:
    """Return the secret's text."""
    return secret.secret() if isinstance(secret, CallerSecretFile) else secret


def load_secret(config: RpcConfig, environment: Mapping[str, str] = os.environ) -> CallerSecretFile | None:
    """Return this process's secret, from the file of ``rpc.caller_secret_file`` or FIVE_CALLER_SECRET_FILE.

    Raises ValueError for a file that cannot be used, and for the variables of earlier releases.
    """
    for name in REMOVED_VARIABLES:
        if environment.get(name):
            raise ValueError(f"{name} is set, and was removed in 0.2.0: every caller has its own secret, in "
                             f"{FILE_VARIABLE}. Unset {name}; the CHANGELOG says how to upgrade")
    if config.caller_secret_file:
        return CallerSecretFile(config.caller_secret_file)
    path = environment.get(FILE_VARIABLE, "").strip()
    return CallerSecretFile(path, FILE_VARIABLE) if path else None


def read_secret(path: Path) -> str:
    """Return the first line of a file, '' when it is blank. Raise OSError, and UnicodeDecodeError."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[0].strip() if lines else ""


def new_secret() -> str:
    """Return a new random secret of 256 bits."""
    return secrets.token_urlsafe(32)


def write_secret(path: Path, secret: str) -> None:
    """Replace the file atomically, readable by its owner only."""
    replace_text(path, f"{secret}\n", 0o600, sync=True)


def load_or_create_secret(path: Path) -> str:
    """Return the secret of a file. Create the file with a new secret, readable by its owner only, if it is missing or
    blank."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if secret := read_secret(path):
            return secret
        write_secret(path, new_secret())
    except FileNotFoundError:
        try:
            with replacing(path, 0o600, sync=True, exclusive=True) as file:
                file.write(f"{new_secret()}\n".encode())
        except FileExistsError:
            pass  # another process was faster
    return read_secret(path)
