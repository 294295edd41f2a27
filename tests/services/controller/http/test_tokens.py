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


def test_a_rewritten_file_keeps_its_permissions(path: Path) -> None:
    tokens.write(path, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)  # as of deploy/compose/make-env.sh, for a container's user
    tokens.write(path, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_the_file_holds_hashes_and_only_its_owner_reads_it(path: Path) -> None:
    token, entry = tokens.make("ada", "operator")
    tokens.write(path, [entry])
    assert token not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == [{"name": "ada", "role": "operator", "sha256": tokens.token_hash(token)}]
    assert tokens.read(path) == [entry] and token.startswith("five_") and len(token) == 48, "256 random bits"


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
    for seconds, expired in ((60, False), (-1, True)):
        token, entry = tokens.make("ada", "operator", datetime.now(UTC) + timedelta(seconds=seconds))
        assert refused(Authenticator(FixedTokens([entry])), token) is expired


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "../a", "x" * 65, "controller", "autoscaler",
                                  "optimizer-0", "inference-12", "anonymous", "play", "gate", "a\n"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        tokens.make(name, "operator")


@pytest.mark.parametrize("name", ["a", "7", "x" * 64, "ada.lovelace@example.org", "ci_bot-2", "optimizer-x", "players",
                                  "the-controller", "rollout-1-2"])
def test_names_that_no_service_has_are_allowed(name: str) -> None:
    assert tokens.make(name, "viewer")[1].name == name


@pytest.mark.parametrize("changed", [
    {"role": "king"}, {"role": ""}, {"sha256": "A" * 64}, {"sha256": "a" * 63}, {"sha256": "a" * 65},
    {"expires": "2031-01-31T00:00:00"}, {"token": "five_x"}])
def test_invalid_entries_are_refused(changed: dict[str, str]) -> None:
    entry = {"name": "ada", "role": "viewer", "sha256": "a" * 64, "expires": "2031-01-31T00:00:00Z"}
    assert TokenEntry.model_validate(entry).expires == datetime(2031, 1, 31, tzinfo=UTC)
    with pytest.raises(ValidationError):
        TokenEntry.model_validate({**entry, **changed})


def entry_of(name: str, token: str, role: str = "viewer") -> TokenEntry:
    return TokenEntry.model_validate({"name": name, "role": role, "sha256": tokens.token_hash(token)})


@pytest.mark.parametrize(("pair", "text"), [
    ([("ada", "x"), ("ada", "y")], "duplicate name of ada:"),
    ([("vera", "x"), ("ada", "x"), ("bob", "y")], "duplicate sha256 of ada, vera:")])
def test_a_name_and_a_hash_come_once(path: Path, pair: list[tuple[str, str]], text: str) -> None:
    entries = [entry_of("eve", "z"), *(entry_of(name, token) for name, token in pair)]
    with pytest.raises(ValueError, match=rf"tokens\.json: {text}"):
        tokens.write(path, entries)
    path.write_text(json.dumps([entry.model_dump(mode="json") for entry in entries]))
    with pytest.raises(ValueError, match=rf"tokens\.json: {text}"):
        tokens.read(path)
    with pytest.raises(ValueError, match=text):
        FixedTokens(entries)


def test_file_has_a_largest_size(path: Path) -> None:
    tokens.write(path, [entry_of("ada", "x")])
    text = path.read_text()
    path.write_text(text + " " * ((1 << 20) - len(text)))
    assert [entry.name for entry in tokens.read(path)] == ["ada"]
    path.write_text(text + " " * ((1 << 20) - len(text) + 1))
    with pytest.raises(ValueError, match="larger than 1 MiB"):
        tokens.read(path)


def test_file_has_a_largest_number_of_tokens() -> None:
    entries = [entry_of(f"ci-{n}", f"token {n}") for n in range(1001)]
    tokens.require_distinct(entries[:1000], "here")
    with pytest.raises(ValueError, match="here: 1001 tokens, at most 1000 are allowed"):
        tokens.require_distinct(entries, "here")


def test_error_names_the_first_five_fields(path: Path) -> None:
    path.write_text(json.dumps([{"name": "ada", "role": "king", "sha256": "a" * 64}] * 8))
    with pytest.raises(ValueError, match="invalid list of tokens") as caught:
        tokens.read(path)
    assert [f"{n}.role: " in str(caught.value) for n in range(8)] == [True] * 5 + [False] * 3


def test_each_break_of_the_file_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens.write(path, [entry_of("ada", "x")])
    file = NamedTokenFile(path)
    for name in ("bob", "eve"):
        path.unlink()
        for _ in range(2):
            file.entries()
        tokens.write(path, [entry_of(name, name)])
        assert [entry.name for entry in file.entries()] == [name]
    assert [record.levelname for record in caplog.records if "unreadable" in record.message] == ["WARNING"] * 2


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


@pytest.mark.parametrize(("text", "seconds"), [
    ("30d", 30 * 86400), ("12h", 12 * 3600), ("0.5d", 43200), ("1h", 3600), ("-1d", -86400)])
def test_expiry_after_a_time(text: str, seconds: float) -> None:
    assert abs(tokens.parse_expiry(text).timestamp() - time.time() - seconds) < 60


@pytest.mark.parametrize(("text", "expected"), [
    ("2031-01-31", "2031-01-31T00:00:00+00:00"), ("2031-01-31T12:30", "2031-01-31T12:30:00+00:00"),
    ("2031-01-31T12:30:00+02:00", "2031-01-31T12:30:00+02:00")])
def test_expiry_at_a_date(text: str, expected: str) -> None:
    assert tokens.parse_expiry(text).isoformat() == expected


@pytest.mark.parametrize("text", ["", "d", "soon", "30", "30m", "30D", "nand", "1e999d", "1e300h", "1e14d", "1e9d",
                                  "2031-02-30"])
def test_invalid_expiry_is_refused(text: str) -> None:
    """Too large numbers raise ValueError, OverflowError or OSError in datetime, by their size and system."""
    with pytest.raises(ValueError, match="expected 30d, 12h, or a date"):
        tokens.parse_expiry(text)
