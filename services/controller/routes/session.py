"""Routes below /v1/session: login to the console by one-time link or token."""

import time
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.console.sessions import LINK_SECONDS, SESSION_SECONDS
from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import Role

router = APIRouter(prefix="/session", tags=["session"])
RoleName = Literal["viewer", "operator"]


class LoginLinkRequest(BaseModel):
    """The role of a new login link."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "viewer"}]})

    role: RoleName | None = Field(None, description="Maximum role of the session; by default this token's.")


class LoginLink(BaseModel):
    """A login link for one browser; it works once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "code": "q3J0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj", "path": "/#login=q3J0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj",
        "expires_at": 1789000600.0, "role": "viewer"}]})

    code: str = Field(description="Opens one session, once.")
    path: str = Field(description="Path to open in a browser, below this controller's address. Browsers never send "
                      "the part after the # to a server, and the page removes it at once.")
    expires_at: float = Field(description="Expiry, seconds since the epoch.")
    role: RoleName = Field(description="Role of the session.")


class LoginRequest(BaseModel):
    """A link's code or a named token."""

    model_config = ConfigDict(extra="forbid")

    code: str | None = Field(None, min_length=1, max_length=200, description="The code of a link.")
    token: str | None = Field(None, min_length=1, max_length=500, description="A named token.")


class SessionInfo(BaseModel):
    """The caller and the run."""

    name: str = Field(description="The token's name, as in events.")
    role: RoleName = Field(description="Role.")
    run: str = Field(description="The run's name.")
    build: str = Field(description="Build of the console; '' if it is not built.")


def _role(role: Role) -> RoleName:
    return "operator" if role is Role.OPERATOR else "viewer"


# For browsers only, not part of the documented API: scripts use tokens.
@router.post("/links", include_in_schema=False)
def make_link(caller: Viewer, context: ContextDep, body: LoginLinkRequest | None = None) -> LoginLink:
    """Create a link that logs one browser in, once, within ten minutes, with at most this token's role."""
    role = caller.role if body is None or body.role is None else Role[body.role.upper()]
    code = context.sessions.create_link(caller, role)
    return LoginLink(code=code, path=f"/#login={code}", expires_at=time.time() + LINK_SECONDS, role=_role(role))


@router.post("", include_in_schema=False)
def log_in(context: ContextDep, request: Request, response: Response, body: LoginRequest) -> SessionInfo:
    """Open a session for the browser. Its cookie is named after the run, is sent to this host only, and is hidden from
    scripts."""
    if (body.code is None) == (body.token is None):
        raise Problem(422, "exactly one of code and token is required", errors=[
            {"where": "body.code", "what": "exactly one of code and token is required"}])
    opened = context.sessions.open_by_code(body.code) if body.code else context.sessions.open_by_token(body.token or "")
    response.headers["Set-Cookie"] = _cookie(context.sessions.cookie, opened.secret, SESSION_SECONDS, request)
    return SessionInfo(name=opened.caller.name, role=_role(opened.caller.role), run=context.run,
                       build=context.site.build)


@router.get("", include_in_schema=False)
def session(caller: Viewer, context: ContextDep) -> SessionInfo:
    """Return the caller and its role."""
    return SessionInfo(name=caller.name, role=_role(caller.role), run=context.run, build=context.site.build)


@router.delete("", status_code=204, include_in_schema=False)
def log_out(caller: Viewer, context: ContextDep, request: Request) -> Response:
    """End the session whose cookie was sent. Tokens are not affected."""
    secret = getattr(request.state, "session", "")
    if secret:
        context.sessions.close(secret)
    return Response(None, 204, {"Set-Cookie": _cookie(context.sessions.cookie, "", 0, request)})


def _cookie(name: str, value: str, seconds: int, request: Request) -> str:
    # The Origin header tells whether the browser used TLS: a proxy may have terminated it.
    secure = "; Secure" if request.headers.get("origin", "").startswith("https://") else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
