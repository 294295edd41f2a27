"""New passwords of Redis, and a new token of the services, for a local run that goes on: `five rotate`.

The token lies in a file that every process reads again (rapid.rpc.token): none is replaced. Passwords are changed by
the process of `five train` alone: the command leaves a request in the run's folder and waits for its answer. A password
is taken beside the old one, the component's processes are replaced one after the other, then the old one is taken away.
What broke off is finished by asking again.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from five.local.passwords import Passwords, replace_file
from five.local.run_folder import RunFolder
from rapid.rpc.certificate_reload import CHECK_SECONDS
from rapid.rpc.token import TokenFile, new_token, write_tokens
from rapid.store import acl
from rapid.store.connection import Role

REQUEST = "rotate.json"
TOKEN = "token"  # noqa: S105 - how it is asked for
WAIT_SECONDS = 300.0


class RotationFailed(RuntimeError):
    """Why a password was not changed; what to do. Old and new are both taken, and nothing has stopped."""


def rotate(passwords: Passwords, user: str, run: str, roles: tuple[Role, ...], admin: Callable[[Role], redis.Redis],
           renew: Callable[[str], None]) -> None:
    """Changes a user's password in the servers of ``roles``.

    ``admin`` connects as the admin; ``renew`` replaces all that logs in as that user, by the newest password. Raises
    RotationFailed for an unknown user, redis.RedisError, and what ``renew`` raises.
    """
    mine = [role for role in roles if user in acl.users(role)]
    if not mine:
        raise RotationFailed(f"{user!r} has no user in the run's own Redis; there are {', '.join(acl.users('state'))}")
    if len(passwords.of(user)) == 1:
        fresh = passwords.add(user)
    else:
        fresh = passwords.of(user)[0]  # one that broke off
    # Where the file is read first: a server that starts now takes both.
    for role in mine:
        passwords.write_users(role, run)
        _order(admin(role), "ACL", "SETUSER", user, acl.hashed(fresh))
    renew(user)
    old = passwords.of(user)[1:]
    for role in mine:
        client = admin(role)
        for password in old:
            _order(client, "ACL", "SETUSER", user, "!" + acl.hashed(password)[1:])
        if user != acl.ADMIN:  # who came in by an old one is told to go; the others come back at once
            _order(client, "CLIENT", "KILL", "USER", user)
    passwords.retire(user)
    for role in mine:
        passwords.write_users(role, run)


def _order(client: Any, *words: str) -> None:
    client.execute_command(*words)


def rotate_token(path: Path, pause: float = 3 * CHECK_SECONDS) -> None:
    """Changes the services' token in its file. ``pause``: seconds in which every process has read it again. Of a change
    that broke off, what is sent stays until this one is done. Raises ValueError when there is no such file."""
    old, *others = TokenFile(str(path)).accepted_tokens()
    if others:
        write_tokens(path, old)
        time.sleep(pause)
    fresh = new_token()
    for tokens in ((old, fresh), (fresh, old), (fresh,)):  # taken by all, sent by all, the only one
        write_tokens(path, *tokens)
        time.sleep(pause)


# The request, from one process to the other.


def ask(folder: RunFolder, users: list[str]) -> None:
    """Asks the run's `five train` and waits. Raises NoRun, RotationFailed, TimeoutError."""
    pid = folder.cluster().pid
    path = folder.path / REQUEST
    replace_file(path, json.dumps({"users": users, "by": os.getpid()}))
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        folder.cluster()  # it is still there
        answer: dict[str, Any] = json.loads(path.read_text())
        if "done" in answer:
            path.unlink()
            if answer.get("error"):
                raise RotationFailed(answer["error"])
            return
        time.sleep(0.2)
    raise TimeoutError(f"process {pid} has not changed the passwords in {WAIT_SECONDS:g} s; see its logs, ask again")


def asked(folder: Path) -> list[str] | None:
    """The users whose passwords somebody wants changed; None: nobody does."""
    try:
        request: dict[str, Any] = json.loads((folder / REQUEST).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return None if "done" in request else [str(user) for user in request["users"]]


def answer(folder: Path, error: str = "") -> None:
    """Ends the request: done, or why not."""
    replace_file(folder / REQUEST, json.dumps({"done": not error, "error": error}))
