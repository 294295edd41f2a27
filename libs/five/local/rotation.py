"""Rotation of Redis passwords and of the services' token in a running local run (`five rotate`).

Every process reads the token's file again (rapid.rpc.token), so that a new token restarts none. Passwords are
changed by the process of `five train`: the command leaves a request in the run's folder and waits for its
completion. A new password is accepted beside the old one, the component's processes are restarted one by one, then
the old password is removed. Another request finishes an interrupted rotation.
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
from rapid.rpc.token import ServiceTokenFile, new_token, write_tokens
from rapid.store import acl
from rapid.store.connection import Role

REQUEST = "rotate.json"
TOKEN = "token"  # noqa: S105 - how it is asked for
WAIT_SECONDS = 300.0


class RotationFailed(RuntimeError):
    """A password that was not changed: the reason and what to do. Old and new password are both accepted; nothing
    stopped."""


def rotate(passwords: Passwords, user: str, run: str, roles: tuple[Role, ...], admin: Callable[[Role], redis.Redis],
           renew: Callable[[str], None]) -> None:
    """Change a user's password in the servers of ``roles``.

    ``admin`` connects as the admin; ``renew`` restarts the processes that log in as the user. Raises RotationFailed
    for an unknown user, redis.RedisError, and what ``renew`` raises.
    """
    mine = [role for role in roles if user in acl.users(role)]
    if not mine:
        known = ", ".join(acl.users("state"))
        raise RotationFailed(f"{user!r} is not a user of the run's own Redis; users are {known}")
    if len(passwords.of(user)) == 1:
        fresh = passwords.add(user)
    else:
        fresh = passwords.of(user)[0]  # an interrupted rotation
    # The file is written first: a server that starts now accepts both.
    for role in mine:
        passwords.write_users(role, run)
        _execute(admin(role), "ACL", "SETUSER", user, acl.hash_password(fresh))
    renew(user)
    old = passwords.of(user)[1:]
    for role in mine:
        client = admin(role)
        for password in old:
            _execute(client, "ACL", "SETUSER", user, "!" + acl.hash_password(password)[1:])
        if user != acl.ADMIN:  # close connections made with the old password; other clients reconnect at once
            _execute(client, "CLIENT", "KILL", "USER", user)
    passwords.retire(user)
    for role in mine:
        passwords.write_users(role, run)


def _execute(client: Any, *words: str) -> None:
    client.execute_command(*words)


def rotate_token(path: Path, pause: float = 3 * CHECK_SECONDS) -> None:
    """Change the services' token in its file.

    ``pause``: seconds after which every process has read the file again. After an interrupted change, the token in
    use stays valid until this change ends. Raises ValueError if the file is missing.
    """
    old, *others = ServiceTokenFile(str(path)).accepted_tokens()
    if others:
        write_tokens(path, old)
        time.sleep(pause)
    fresh = new_token()
    for tokens in ((old, fresh), (fresh, old), (fresh,)):  # accepted by all, sent by all, the only one
        write_tokens(path, *tokens)
        time.sleep(pause)


# Request and completion between the two processes.


def request_rotation(folder: RunFolder, users: list[str]) -> None:
    """Request a rotation from the run's `five train` and wait for it. Raises RunUnavailable, RotationFailed,
    TimeoutError."""
    pid = folder.cluster().pid
    path = folder.path / REQUEST
    replace_file(path, json.dumps({"users": users, "by": os.getpid()}))
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        folder.cluster()  # raises if the run has ended
        answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if "done" in answer:
            path.unlink()
            if answer.get("error"):
                raise RotationFailed(answer["error"])
            return
        time.sleep(0.2)
    raise TimeoutError(f"process {pid} has not changed the passwords in {WAIT_SECONDS:g} s; see its logs and try again")


def pending_users(folder: Path) -> list[str] | None:
    """Return the users whose passwords are to be changed; None without a request."""
    try:
        request: dict[str, Any] = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return None if "done" in request else [str(user) for user in request["users"]]


def complete_request(folder: Path, error: str = "") -> None:
    """Complete the request; ``error``: why it failed."""
    replace_file(folder / REQUEST, json.dumps({"done": not error, "error": error}))
