"""Authentication by named bearer tokens, and the two roles."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from five.run.config.controller import ControllerConfig
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FILE_VARIABLE, NamedTokenFile, Role, TokenEntry, find_token, token_hash
from rapid.rpc.caller_secret import Secret, present_secret

__all__ = ["ANONYMOUS", "Caller", "Authenticator", "Role", "TokenSource"]


class TokenSource(Protocol):
    """A source of token entries (http.tokens)."""

    def entries(self) -> list[TokenEntry]: ...


@dataclass(frozen=True)
class Caller:
    """An authenticated caller: the token's name, as recorded in events, and its role. ``token`` is the token's hash."""

    name: str
    role: Role
    token: str = field(default="", repr=False)


ANONYMOUS = Caller("anonymous", Role.OPERATOR)  # if services.controller.auth is off


class Authenticator:
    """Authenticates requests by token. Without ``tokens`` every caller is an operator.

    ``service_secret``, of the controller's calls to other services, is always refused here, even if it is listed.
    """

    def __init__(self, tokens: TokenSource | None, service_secret: Secret = None) -> None:
        self._tokens = tokens
        self._service_secret = service_secret
        if tokens is not None:
            shared = [e.name for e in tokens.entries() if e.sha256 in self._rejected_hashes()]
            if shared:
                raise ValueError(f"REST token {shared[0]!r} equals the secret of the controller's calls to other "
                                 "services (FIVE_CALLER_SECRET_FILE): create another one with `five token new`")

    def _rejected_hashes(self) -> set[str]:
        secret = present_secret(self._service_secret)
        return {token_hash(secret)} if secret else set()

    @classmethod
    def from_config(cls, config: ControllerConfig, service_secret: Secret,
                    environment: Mapping[str, str] = os.environ) -> "Authenticator":
        """Return the authenticator of a configuration. Raise ValueError if its tokens cannot be read."""
        if not config.auth:
            return cls(None)
        path = config.tokens_file or environment.get(FILE_VARIABLE, "").strip()
        if not path:
            raise ValueError(
                "services.controller.auth is on, but there are no tokens: set services.controller."
                "tokens_file or "
                f"{FILE_VARIABLE} (`five token new NAME --role operator` creates an entry), "
                "or switch auth off on a machine that nobody else can reach")
        return cls(NamedTokenFile(Path(path).expanduser()), service_secret)

    def authenticate(self, authorization: str) -> Caller:
        """Return the caller for an Authorization header ('' if absent). Raise Problem 401 without a valid token."""
        if self._tokens is None:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            entry = find_token(self._tokens.entries(), token)
            if entry is not None and entry.sha256 not in self._rejected_hashes():
                return Caller(entry.name, entry.level, entry.sha256)
        raise Problem(401, "missing, unknown or expired token: send Authorization: Bearer <token> with a listed, named "
                      "token. The services' own secrets are not accepted", headers={
                          "WWW-Authenticate": 'Bearer realm="five"'})

    @property
    def is_open(self) -> bool:
        """Return whether every caller is an operator."""
        return self._tokens is None

    def caller_by_hash(self, sha256: str, role: Role) -> Caller:
        """Return the caller of the token with that hash, with ``role`` at most. Raise Problem 401 if the token is no
        longer listed or has expired.
        """
        if self._tokens is None:
            return Caller(ANONYMOUS.name, min(ANONYMOUS.role, role))
        for entry in self._tokens.entries():
            if entry.sha256 == sha256 and sha256 not in self._rejected_hashes() and not entry.expired(time.time()):
                return Caller(entry.name, min(entry.level, role), sha256)
        raise Problem(401, "the token of this session is no longer listed, or has expired",
                      headers={"WWW-Authenticate": 'Bearer realm="five"'})

    @staticmethod
    def require_operator(caller: Caller) -> None:
        """Raise Problem 403 for a viewer."""
        if caller.role < Role.OPERATOR:
            raise Problem(403, f"token {caller.name!r} has the role viewer: this request needs the role operator")
