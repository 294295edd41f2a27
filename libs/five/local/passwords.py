"""Passwords of a local run's Redis users, in ``passwords.json`` of its folder, readable by its owner only.

During a rotation a user has two passwords, the newest first; both are accepted.
"""

import json
import secrets
from pathlib import Path

from rapid.atomic_file import replace_text
from rapid.store import acl
from rapid.store.connection import PASSWORD_VARIABLES, USER_VARIABLES, Login, Role

FILE = "passwords.json"


class Passwords:
    """Passwords of the run in ``folder``. Changes are written atomically before a method returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE

    def create(self) -> None:
        """Create a password for every user without one."""
        found = self._read()
        missing = {user for role in acl.ROLES for user in acl.users(role)} - found.keys()
        if missing:
            self._write(found | {user: [_new_password()] for user in missing})

    def login(self, user: str) -> Login:
        """Return a user with its newest password. Raises LookupError if it has none."""
        found = self._read().get(user)
        if not found:
            raise LookupError(f"{self._path} has no password of user {user!r}; `five train --resume` creates it")
        return Login(user, found[0])

    def of(self, user: str) -> list[str]:
        """Return a user's passwords, the newest first."""
        return self._read().get(user, [])

    def add(self, user: str) -> str:
        """Add a new password to a user's passwords. Return it."""
        found = self._read()
        fresh = _new_password()
        self._write(found | {user: [fresh, *found.get(user, [])]})
        return fresh

    def retire(self, user: str) -> list[str]:
        """Remove all but a user's newest password. Return the removed ones."""
        found = self._read()
        newest, *older = found[user]
        self._write(found | {user: [newest]})
        return older

    def environment(self, user: str, roles: tuple[Role, ...]) -> dict[str, str]:
        """Return the environment of a component's process: its user and password for each server that has this user."""
        given: dict[str, str] = {}
        for role in roles:
            if user in acl.users(role):
                login = self.login(user)
                given |= {USER_VARIABLES[role]: login.user, PASSWORD_VARIABLES[role]: login.password}
        return given

    def write_users(self, role: Role, run: str) -> Path:
        """Write a server's ACL file with password hashes. Return its path."""
        found = self._read()
        path = self._folder / "redis" / f"{role}.acl"
        replace_file(path, acl.acl_file(role, {user: found.get(user, []) for user in acl.users(role)}, run))
        return path

    def _read(self) -> dict[str, list[str]]:
        try:
            found: dict[str, list[str]] = json.loads(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):  # empty: the machine lost power before it was on disk
            return {}
        return found

    def _write(self, passwords: dict[str, list[str]]) -> None:
        replace_file(self._path, json.dumps(passwords, indent=2) + "\n")


def _new_password() -> str:
    return secrets.token_hex(24)


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically and to disk, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text, 0o600, sync=True)
