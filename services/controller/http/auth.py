"""Who may do what: named bearer tokens and the two roles."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from five.run.config.controller import ControllerConfig
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FILE_VARIABLE, Role, TokenEntry, TokenFile, find, hash_of
from rapid.rpc.token import Token, taken

__all__ = ["ANYBODY", "Caller", "Gate", "Role", "Tokens"]


class Tokens(Protocol):
    """Where entries come from (services.controller.tokens)."""

    def entries(self) -> list[TokenEntry]: ...


@dataclass(frozen=True)
class Caller:
    """Who asks: the token's name, which events carry, and its role. ``token`` is the token's hash."""

    name: str
    role: Role
    token: str = field(default="", repr=False)


ANYBODY = Caller("anonymous", Role.OPERATOR)  # where services.controller.auth is off


class Gate:
    """Checks the token of each request. Without ``tokens`` everybody is an operator.

    ``service_token``, which services use among themselves, opens nothing here, even where it is listed.
    """

    def __init__(self, tokens: Tokens | None, service_token: Token = None) -> None:
        self._tokens = tokens
        self._service_token = service_token
        if tokens is not None:
            shared = [e.name for e in tokens.entries() if e.sha256 in self._refused()]
            if shared:
                raise ValueError(f"the token {shared[0]!r} of the REST API is the one that services use among "
                                 "themselves (FIVE_TOKEN): give it one of its own, `five token new` makes it")

    def _refused(self) -> set[str]:
        return {hash_of(token) for token in taken(self._service_token)}

    @classmethod
    def configured(cls, config: ControllerConfig, service_token: Token,
                   environment: Mapping[str, str] = os.environ) -> "Gate":
        """The gate of a configuration. Raises ValueError when its tokens cannot be read."""
        if not config.auth:
            return cls(None)
        path = config.tokens_file or environment.get(FILE_VARIABLE, "").strip()
        if not path:
            raise ValueError("services.controller.auth is on, but there are no tokens: give services.controller."
                             f"tokens_file or {FILE_VARIABLE} (`five token new NAME --role operator` makes an entry), "
                             "or switch auth off on a machine that nobody else reaches")
        return cls(TokenFile(Path(path).expanduser()), service_token)

    def caller(self, authorization: str) -> Caller:
        """The caller of a request with that Authorization header ('': none). Raises Problem 401 without a valid
        token."""
        if self._tokens is None:
            return ANYBODY
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            entry = find(self._tokens.entries(), token)
            if entry is not None and entry.sha256 not in self._refused():
                return Caller(entry.name, entry.level, entry.sha256)
        raise Problem(401, "give a named token that is listed and has not expired: Authorization: Bearer <token>. The "
                      "token that services use among themselves (FIVE_TOKEN) is none", headers={
                          "WWW-Authenticate": 'Bearer realm="five"'})

    @property
    def open(self) -> bool:
        """Whether everybody is an operator."""
        return self._tokens is None

    def holder(self, sha256: str, role: Role) -> Caller:
        """Who holds the token of that hash now, with ``role`` at most. Raises Problem 401 when it is no longer listed
        or has expired."""
        if self._tokens is None:
            return Caller(ANYBODY.name, min(ANYBODY.role, role))
        for entry in self._tokens.entries():
            if entry.sha256 == sha256 and sha256 not in self._refused() and not entry.expired(time.time()):
                return Caller(entry.name, min(entry.level, role), sha256)
        raise Problem(401, "the token that this session was opened with is no longer listed, or has expired",
                      headers={"WWW-Authenticate": 'Bearer realm="five"'})

    @staticmethod
    def require_operator(caller: Caller) -> None:
        """Raises Problem 403 for a viewer."""
        if caller.role < Role.OPERATOR:
            raise Problem(403, f"this needs an operator's token, {caller.name!r} is a viewer's")
