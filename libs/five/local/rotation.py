"""Rotation of Redis passwords and of the callers' secrets in a running local run (`five rotate`).

Every process reads its secret and the hashes of callers again (rapid.rpc), so that a new secret restarts none.
Passwords are changed by the process of `five train`: the command leaves a request in the run's folder and waits for its
completion. In a rotation both passwords are accepted while the component's processes are restarted one by one. Then the
old one is removed. Another request finishes an interrupted rotation.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis

from five.local.passwords import Passwords, replace_file
from five.local.run_folder import RunFolder
from rapid.rpc.access import Caller
from rapid.rpc.caller_secret import new_secret, read_secret, write_secret
from rapid.rpc.callers import callers_text, with_secrets
from rapid.rpc.certificate_reload import CHECK_SECONDS
from rapid.store import acl
from rapid.store.connection import Role

REQUEST = "rotate.json"
TOKEN = "token"  # noqa: S105 - argument for the secrets of all callers; token:CALLER for one
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


def callers_of(what: str) -> list[Caller] | None:
    """Return the callers whose secrets ``token`` or ``token:CALLER`` names; None for another word. Raise
    RotationFailed for an unknown caller."""
    word, _, name = what.partition(":")
    if word != TOKEN:
        return None
    if name and name not in list(Caller):
        raise RotationFailed(f"{name!r} is not a caller; callers are {', '.join(Caller)}")
    return [Caller(name)] if name else list(Caller)


def rotate_secrets(folder: RunFolder, callers: Sequence[Caller], pause: float = 3 * CHECK_SECONDS) -> None:
    """Change the secrets of ``callers``, and so the tokens of their calls.

    ``pause``: seconds after which every process has read its files again. After an interrupted rotation, every secret
    that a client may still send stays valid until this one ends. Raises FileNotFoundError if a file is missing.
    """
    present = {caller: read_secret(folder.caller_secret(caller)) for caller in Caller}
    fresh = {caller: new_secret() for caller in callers}
    replace_file(folder.callers, with_secrets(folder.callers.read_text(encoding="utf-8"), fresh))
    time.sleep(pause)  # servers accept the old and the new secrets
    for caller, secret in fresh.items():
        write_secret(folder.caller_secret(caller), secret)
    time.sleep(pause)  # clients send the new secrets
    replace_file(folder.callers, callers_text({caller: [secret] for caller, secret in {**present, **fresh}.items()}))
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
