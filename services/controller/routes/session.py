"""Logging in to the console: a one-time link becomes a browser's session."""

import time
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.console.sessions import LINK_SECONDS, SESSION_SECONDS
from five.services.controller.http.dependencies import Here, Viewer
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import Role

router = APIRouter(prefix="/session", tags=["session"])
RoleName = Literal["viewer", "operator"]


class LinkWish(BaseModel):
    """Who is to be let in."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "viewer"}]})

    role: RoleName | None = Field(None, description="What the session may do at most; by default as much as this "
                                  "token.")


class Link(BaseModel):
    """A way in, for one browser and once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "code": "q3J0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj", "path": "/#login=q3J0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj",
        "expires_at": 1789000600.0, "role": "viewer"}]})

    code: str = Field(description="Opens one session, once.")
    path: str = Field(description="Behind this controller's address: what is opened in a browser. What stands behind "
                      "the # is never sent to a server, and the page takes it out of the address at once.")
    expires_at: float = Field(description="Until when, seconds since the epoch.")
    role: RoleName = Field(description="What the session may do.")


class LogIn(BaseModel):
    """A link's code, or a named token."""

    model_config = ConfigDict(extra="forbid")

    code: str | None = Field(None, min_length=1, max_length=200, description="The code of a link.")
    token: str | None = Field(None, min_length=1, max_length=500, description="A token, as it is typed into the page.")


class Who(BaseModel):
    """Who asks, and what of."""

    name: str = Field(description="The token's name, which events carry.")
    role: RoleName = Field(description="What may be done.")
    run: str = Field(description="The run's name.")
    build: str = Field(description="The console that this controller serves; '' when none is built.")


def _role(role: Role) -> RoleName:
    return "operator" if role is Role.OPERATOR else "viewer"


# Of a person's browser, and no part of the documented API: scripts have tokens.
@router.post("/links", include_in_schema=False)
def make_link(caller: Viewer, here: Here, body: LinkWish | None = None) -> Link:
    """Makes a link that logs one browser in, once, within ten minutes, as this token or as less."""
    role = caller.role if body is None or body.role is None else Role[body.role.upper()]
    code = here.sessions.link(caller, role)
    return Link(code=code, path=f"/#login={code}", expires_at=time.time() + LINK_SECONDS, role=_role(role))


@router.post("", include_in_schema=False)
def log_in(here: Here, request: Request, response: Response, body: LogIn) -> Who:
    """Opens a session for the browser that asks: its cookie, named by run, is sent to this host's pages alone and is
    hidden from scripts."""
    if (body.code is None) == (body.token is None):
        raise Problem(422, "give a link's code or a token", errors=[
            {"where": "body.code", "what": "code or token, one of them"}])
    opened = here.sessions.open(body.code) if body.code else here.sessions.open_by_token(body.token or "")
    response.headers["Set-Cookie"] = _cookie(here.sessions.cookie, opened.secret, SESSION_SECONDS, request)
    return Who(name=opened.caller.name, role=_role(opened.caller.role), run=here.run, build=here.site.build)


@router.get("", include_in_schema=False)
def session(caller: Viewer, here: Here) -> Who:
    """Who this is, and what may be done."""
    return Who(name=caller.name, role=_role(caller.role), run=here.run, build=here.site.build)


@router.delete("", status_code=204, include_in_schema=False)
def log_out(caller: Viewer, here: Here, request: Request) -> Response:
    """Ends the session whose cookie was sent. A token stays."""
    secret = getattr(request.state, "session", "")
    if secret:
        here.sessions.close(secret)
    return Response(None, 204, {"Set-Cookie": _cookie(here.sessions.cookie, "", 0, request)})


def _cookie(name: str, value: str, seconds: int, request: Request) -> str:
    # The page says itself how it was reached: a proxy in front may have taken the encryption off.
    secure = "; Secure" if request.headers.get("origin", "").startswith("https://") else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
