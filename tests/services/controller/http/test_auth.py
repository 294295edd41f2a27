"""Callers of requests: the header, sessions of a token, and what a role permits."""

from datetime import UTC, datetime, timedelta

import pytest

from five.services.controller.http.auth import ANONYMOUS, Authenticator, Caller, Role
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FixedTokens, TokenEntry, token_hash

TOKEN, HASH = "operator-token", token_hash("operator-token")
OPEN = Authenticator(None)


def listed(role: str = "operator", expires: datetime | None = None, secret: str | None = None) -> Authenticator:
    """Return an authenticator that lists ada's token after another one."""
    entry = TokenEntry.model_validate({"name": "ada", "role": role, "sha256": HASH, "expires": expires})
    return Authenticator(FixedTokens([*FixedTokens.of(vera=("viewer", "viewer-token")).entries(), entry]), secret)


def refuse_secret_of(tokens: FixedTokens, secret: str) -> Authenticator:
    """Return an authenticator whose service secret was listed after it was created."""
    found = Authenticator(FixedTokens([]), secret)
    found._tokens = tokens
    return found


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER {TOKEN}"])
def test_listed_token_is_the_caller(header: str) -> None:
    assert listed().authenticate(header) == Caller("ada", Role.OPERATOR, HASH)
    assert listed("viewer").authenticate(header).role is Role.VIEWER
    assert HASH not in repr(listed().authenticate(header)), "logs show callers"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Digest {TOKEN}",
                                    f"Bearer  {TOKEN}", f"Bearer {TOKEN} ", f"Bearer {HASH}", f"Bearer\t{TOKEN}",
                                    "Bearer forged"])
def test_other_headers_are_refused(header: str) -> None:
    with pytest.raises(Problem, match="missing, unknown or expired token") as caught:
        listed().authenticate(header)
    assert (caught.value.status, caught.value.kind) == (401, "unauthenticated")
    assert caught.value.headers["WWW-Authenticate"] == 'Bearer realm="five"', "RFC 9110 requires a challenge"


def test_everybody_is_an_operator_without_authentication() -> None:
    assert OPEN.is_open and not listed().is_open
    for header in ("", f"Bearer {TOKEN}"):
        assert OPEN.authenticate(header) == ANONYMOUS == Caller("anonymous", Role.OPERATOR)
    assert OPEN.caller_by_hash(HASH, Role.OPERATOR) == ANONYMOUS
    assert OPEN.caller_by_hash(HASH, Role.VIEWER) == Caller("anonymous", Role.VIEWER), "a link for a viewer stays one"


@pytest.mark.parametrize(("of_token", "of_session", "role"), [
    ("operator", Role.OPERATOR, Role.OPERATOR), ("operator", Role.VIEWER, Role.VIEWER),
    ("viewer", Role.OPERATOR, Role.VIEWER), ("viewer", Role.VIEWER, Role.VIEWER)])
def test_session_has_the_lower_role(of_token: str, of_session: Role, role: Role) -> None:
    assert listed(of_token).caller_by_hash(HASH, of_session) == Caller("ada", role, HASH)


def test_session_ends_with_its_token() -> None:
    now = datetime.now(UTC)
    assert listed(expires=now + timedelta(hours=1)).caller_by_hash(HASH, Role.OPERATOR).name == "ada"
    secret_is_listed = refuse_secret_of(FixedTokens.of(ada=("operator", TOKEN)), TOKEN)
    for authenticator, digest in ((listed(expires=now - timedelta(seconds=1)), HASH),
                                  (listed(), token_hash("revoked")), (secret_is_listed, HASH)):
        with pytest.raises(Problem, match="no longer listed, or has expired") as caught:
            authenticator.caller_by_hash(digest, Role.OPERATOR)
        assert caught.value.status == 401 and caught.value.headers["WWW-Authenticate"] == 'Bearer realm="five"'


def test_service_secret_is_no_token() -> None:
    """A controller must not start with it on the list, and refuses it when it is listed later."""
    with pytest.raises(ValueError, match=r"REST token 'ada' equals the secret .*FIVE_CALLER_SECRET_FILE"):
        listed(secret=TOKEN)
    with pytest.raises(Problem):
        refuse_secret_of(FixedTokens.of(ada=("operator", TOKEN)), TOKEN).authenticate(f"Bearer {TOKEN}")
    assert listed(secret="another").authenticate(f"Bearer {TOKEN}").name == "ada"
    assert Authenticator(None, TOKEN).is_open


def test_changes_need_the_operator() -> None:
    OPEN.require_operator(Caller("ada", Role.OPERATOR))
    with pytest.raises(Problem, match="'vera' has the role viewer") as caught:
        listed().require_operator(Caller("vera", Role.VIEWER))
    assert (caught.value.status, caught.value.kind) == (403, "forbidden")
