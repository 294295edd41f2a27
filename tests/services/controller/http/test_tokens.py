"""Named tokens: file format, rotation while the controller runs, and refusals."""

import json
import math
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from five.run.config.controller import ControllerConfig
from five.services.controller.http import tokens
from five.services.controller.http.auth import ANONYMOUS, Authenticator, Caller, Role
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FixedTokens, NamedTokenFile, TokenEntry
from rapid.rpc.caller_secret import CallerSecretFile


def bearer(token: str) -> str:
    return f"Bearer {token}"


def refused(authenticator: Authenticator, token: str) -> bool:
    try:
        authenticator.authenticate(bearer(token))
    except Problem as problem:
        assert problem.status == 401 and (not token or token not in problem.detail)
        return True
    return False


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_the_file_holds_hashes_and_only_its_owner_reads_it(path: Path) -> None:
    token, entry = tokens.make("ada", "operator")
    tokens.write(path, [entry])
    assert token not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == [{"name": "ada", "role": "operator", "sha256": tokens.token_hash(token)}]
    assert tokens.read(path) == [entry] and len(token) > 40


def test_the_caller_has_the_tokens_name(path: Path) -> None:
    operator, a = tokens.make("ada", "operator")
    viewer, v = tokens.make("vera", "viewer")
    tokens.write(path, [a, v])
    authenticator = Authenticator(NamedTokenFile(path))
    assert authenticator.authenticate(bearer(operator)) == Caller("ada", Role.OPERATOR, a.sha256)
    assert authenticator.authenticate(f"bearer {viewer}") == Caller("vera", Role.VIEWER, v.sha256)
    for wrong in (operator[:-1], operator + "x", operator.upper(), a.sha256, ""):
        assert refused(authenticator, wrong), wrong


def test_rotation_needs_no_restart(path: Path) -> None:
    old, first = tokens.make("ada", "operator")
    tokens.write(path, [first])
    authenticator = Authenticator(NamedTokenFile(path))
    new, second = tokens.make("ada-2", "operator")
    tokens.write(path, [first, second])
    assert authenticator.authenticate(bearer(old)).name == "ada" and authenticator.authenticate(
        bearer(new)).name == "ada-2"
    tokens.write(path, [second])
    assert refused(authenticator, old) and authenticator.authenticate(bearer(new)).name == "ada-2"


def test_a_secret_that_kubernetes_swaps_is_read_again(tmp_path: Path) -> None:
    """A mounted Secret is a link to a link to a folder that Kubernetes replaces."""
    old, first = tokens.make("ada", "operator")
    new, second = tokens.make("ada", "operator")
    for name, entry in (("one", first), ("two", second)):
        (tmp_path / name).mkdir()
        tokens.write(tmp_path / name / "tokens.json", [entry])
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "tokens.json").symlink_to("..data/tokens.json")
    authenticator = Authenticator(NamedTokenFile(tmp_path / "tokens.json"))
    assert authenticator.authenticate(bearer(old)).name == "ada"
    (tmp_path / "..beside").symlink_to("two")
    os.replace(tmp_path / "..beside", tmp_path / "..data")
    assert refused(authenticator, old) and authenticator.authenticate(bearer(new)).name == "ada"


@pytest.mark.parametrize("broken", ["", "{", '{"name": "a"}', '[{"name": "a", "role": "king", "sha256": "00"}]', None])
def test_broken_token_file_keeps_the_previous_tokens(
        path: Path, broken: str | None, caplog: pytest.LogCaptureFixture) -> None:
    token, entry = tokens.make("ada", "operator")
    tokens.write(path, [entry])
    authenticator = Authenticator(NamedTokenFile(path))
    if broken is None:
        path.unlink()
    else:
        path.write_text(broken)
    assert [authenticator.authenticate(bearer(token)).name for _ in range(3)] == ["ada"] * 3
    assert len([r for r in caplog.records if "token file is unreadable, keeping the previous" in r.message]) == 1
    with pytest.raises(ValueError, match=r"tokens\.json"):
        NamedTokenFile(path)


def test_a_token_in_place_of_its_hash_is_not_repeated(path: Path) -> None:
    token, _ = tokens.make("ada", "operator")
    path.write_text(json.dumps([{"name": "ada", "role": "operator", "sha256": token}]))
    with pytest.raises(ValueError, match=r"0\.sha256") as caught:
        NamedTokenFile(path)
    assert token not in str(caught.value)


def test_an_expired_token_is_refused() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    token, entry = tokens.make("ada", "operator", soon)
    authenticator = Authenticator(FixedTokens([entry]))
    assert authenticator.authenticate(bearer(token)).name == "ada"
    time.sleep(0.4)
    assert refused(authenticator, token)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "../a", "x" * 65, "controller", "autoscaler",
                                  "optimizer-0", "play", "a\n"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        tokens.make(name, "operator")


def test_a_name_and_a_hash_come_once(path: Path) -> None:
    _, a = tokens.make("ada", "operator")
    _, b = tokens.make("ada", "viewer")
    same = TokenEntry(name="other", role="viewer", sha256=a.sha256)
    for pair in ([a, b], [a, same]):
        with pytest.raises(ValueError, match="duplicate"):
            tokens.write(path, pair)
        path.write_text(json.dumps([e.model_dump(mode="json") for e in pair]))
        with pytest.raises(ValueError, match="duplicate"):
            tokens.read(path)


def test_the_controllers_own_secret_opens_nothing(path: Path) -> None:
    mine, entry = tokens.make("ada", "operator")
    secret, leaked = tokens.make("five-secret", "operator")
    tokens.write(path, [entry])
    authenticator = Authenticator(NamedTokenFile(path), secret)
    assert refused(authenticator, secret)
    tokens.write(path, [entry, leaked])  # put on the list while the controller runs
    assert refused(authenticator, secret) and authenticator.authenticate(bearer(mine)).name == "ada"
    with pytest.raises(ValueError, match="FIVE_CALLER_SECRET_FILE"):
        Authenticator(NamedTokenFile(path), secret)
    (path.parent / "secret").write_text(f"{secret}\n")
    read = CallerSecretFile(str(path.parent / "secret"))
    with pytest.raises(ValueError, match="FIVE_CALLER_SECRET_FILE"):
        Authenticator(NamedTokenFile(path), read)
    tokens.write(path, [entry])
    authenticator = Authenticator(NamedTokenFile(path), read)
    tokens.write(path, [entry, leaked])
    assert refused(authenticator, secret) and authenticator.authenticate(bearer(mine)).name == "ada"


def test_token_is_refused_from_the_second_of_its_expiry() -> None:
    expires = datetime(2030, 1, 1, tzinfo=UTC)
    token, entry = tokens.make("ada", "viewer", expires)
    at = expires.timestamp()
    assert [entry.expired(now) for now in (at - 1, math.nextafter(at, 0), at, at + 1)] == [False, False, True, True]
    assert tokens.find_token([entry], token, math.nextafter(at, 0)) == entry
    assert tokens.find_token([entry], token, at) is None
    assert not tokens.make("bob", "viewer")[1].expired(math.inf)


def test_token_sources(path: Path) -> None:
    token, entry = tokens.make("ada", "viewer")
    tokens.write(path, [entry])
    config = ControllerConfig()
    assert Authenticator.from_config(config, None,
                                     {"FIVE_TOKENS_FILE": str(path)}).authenticate(bearer(token)).role is Role.VIEWER
    named = config.model_copy(update={"tokens_file": str(path)})
    assert Authenticator.from_config(named, None,
                                     {"FIVE_TOKENS_FILE": "/nowhere"}).authenticate(bearer(token)).name == "ada"
    with pytest.raises(ValueError, match="FIVE_TOKENS_FILE"):
        Authenticator.from_config(config, "service", {})
    with pytest.raises(ValueError, match="nowhere"):
        Authenticator.from_config(config, None, {"FIVE_TOKENS_FILE": "/nowhere"})
    assert Authenticator.from_config(config.model_copy(update={"auth": False}), None, {}).authenticate("") == ANONYMOUS


@pytest.mark.parametrize(("text", "seconds"), [("30d", 30 * 86400), ("12h", 12 * 3600)])
def test_times_of_expiry(text: str, seconds: float) -> None:
    assert abs(tokens.parse_expiry(text).timestamp() - time.time() - seconds) < 5
    assert tokens.parse_expiry("2031-01-31") == datetime(2031, 1, 31, tzinfo=UTC)
    for wrong in ("", "d", "soon", "1e999d"):
        with pytest.raises(ValueError, match="30d"):
            tokens.parse_expiry(wrong)
