"""Who may do what: bearer tokens and the two roles."""

import hmac
from dataclasses import dataclass
from enum import IntEnum

from fastapi import Request

from services.controller.problems import Problem


class Role(IntEnum):
    """What a caller may do; an operator may do all that a viewer may."""

    VIEWER = 1
    OPERATOR = 2


@dataclass(frozen=True)
class Caller:
    """Who asks: the name that events carry, and the role."""

    name: str
    role: Role


class Gate:
    """Checks the token of each request. Without ``auth`` everybody is an operator."""

    def __init__(self, operator: str | None, viewer: str | None, auth: bool) -> None:
        if auth and not operator:
            raise ValueError("services.controller.auth is on, but there is no token: set FIVE_TOKEN (or "
                             "rpc.token_file), or switch auth off on a machine that nobody else reaches")
        self._operator = operator or ""
        self._viewer = viewer or ""
        self._auth = auth

    def caller(self, request: Request) -> Caller:
        """The caller of a request. Raises Problem 401 without a valid token."""
        name = request.headers.get("x-five-user", "rest")[:64]
        if not self._auth:
            return Caller(name, Role.OPERATOR)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            if hmac.compare_digest(token.encode(), self._operator.encode()):
                return Caller(name, Role.OPERATOR)
            if self._viewer and hmac.compare_digest(token.encode(), self._viewer.encode()):
                return Caller(name, Role.VIEWER)
        raise Problem(401, "a valid bearer token is needed: Authorization: Bearer <token>",
                      headers={"WWW-Authenticate": "Bearer"})

    def viewer(self, request: Request) -> Caller:
        """Dependency of what reads."""
        return self.caller(request)

    def operator(self, request: Request) -> Caller:
        """Dependency of what changes something. Raises Problem 403 for a viewer."""
        caller = self.caller(request)
        if caller.role < Role.OPERATOR:
            raise Problem(403, "this needs the operator's token, the one given is a viewer's")
        return caller
