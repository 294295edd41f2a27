"""Passwords of Redis and of its Sentinels in files, such as mounted secrets.

Unlike the environment, a file is not inherited by child processes, and not shown by a container engine.
"""

from dataclasses import dataclass
from pathlib import Path

import redis
from redis.credentials import CredentialProvider

from rapid.telemetry.logs import hide_secrets


def read_password(path: Path) -> str:
    """Return the password in a file. Raises ValueError for an unreadable or empty file."""
    try:
        password = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"password file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:  # its text shows a byte of the password
        raise ValueError(f"password file {path} is not UTF-8 at byte {error.start}") from None
    if not password:
        raise ValueError(f"password file {path} is empty")
    return password


@dataclass
class FileLogin(CredentialProvider):
    """A user of a Redis, None for the default user, and the file of its password.

    Every connection reads the file, so that a rotated password needs no restart.
    """

    user: str | None
    path: Path

    def password(self) -> str:
        """Return the password. Raises ValueError for an unreadable or empty file."""
        password = read_password(self.path)
        hide_secrets(password)
        return password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Implement CredentialProvider. Raises redis.ConnectionError, so that a file that is being replaced is read
        again."""
        try:
            password = self.password()
        except ValueError as error:
            raise redis.ConnectionError(str(error)) from None
        return (password,) if self.user is None else (self.user, password)
