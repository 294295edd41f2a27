"""Passwords of a local run's Redis: one for each user, in ``passwords.json`` of its folder, for its owner's eyes.

A user has two while it is changed, the newest first: both are taken.
"""

import json
import os
import secrets
from pathlib import Path

from rapid.store import acl
from rapid.store.connection import PASSWORD_VARIABLES, USER_VARIABLES, Login, Role

FILE = "passwords.json"


class Passwords:
    """The passwords of the run in ``folder``. A change is on disk when it returns, beside first and then renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE

    def create(self) -> None:
        """Makes a password for every user that has none."""
        found = self._read()
        missing = {user for role in acl.ROLES for user in acl.users(role)} - found.keys()
        if missing:
            self._write(found | {user: [_new()] for user in missing})

    def login(self, user: str) -> Login:
        """A user with its newest password. Raises LookupError for one that has none."""
        found = self._read().get(user)
        if not found:
            raise LookupError(f"{self._path} has no password of user {user!r}; `five train --resume` makes it")
        return Login(user, found[0])

    def of(self, user: str) -> list[str]:
        """A user's passwords, the newest first."""
        return self._read().get(user, [])

    def add(self, user: str) -> str:
        """Gives a user another password, beside those that it has. Returns it."""
        found = self._read()
        fresh = _new()
        self._write(found | {user: [fresh, *found.get(user, [])]})
        return fresh

    def retire(self, user: str) -> list[str]:
        """Takes all but a user's newest password away. Returns what is no password any more."""
        found = self._read()
        newest, *older = found[user]
        self._write(found | {user: [newest]})
        return older

    def environment(self, user: str, roles: tuple[Role, ...]) -> dict[str, str]:
        """What a component's process is given: its own user and password for those servers in which it has one."""
        given: dict[str, str] = {}
        for role in roles:
            if user in acl.users(role):
                login = self.login(user)
                given |= {USER_VARIABLES[role]: login.user, PASSWORD_VARIABLES[role]: login.password}
        return given

    def write_users(self, role: Role, run: str) -> Path:
        """Writes the file of the users of a server, with hashes of the passwords, and returns its path."""
        found = self._read()
        path = self._folder / "redis" / f"{role}.acl"
        replace_file(path, acl.acl_file(role, {user: found.get(user, []) for user in acl.users(role)}, run,
                                         reads_apart=True))
        return path

    def _read(self) -> dict[str, list[str]]:
        try:
            found: dict[str, list[str]] = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        return found

    def _write(self, passwords: dict[str, list[str]]) -> None:
        replace_file(self._path, json.dumps(passwords, indent=2) + "\n")


def _new() -> str:
    return secrets.token_hex(24)


def replace_file(path: Path, text: str) -> None:
    """Writes a file that its owner alone reads, beside first and then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    beside.replace(path)
