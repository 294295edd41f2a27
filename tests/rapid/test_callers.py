"""The file of callers: hashes of their tokens, by kind of server."""

import errno
import json
from pathlib import Path

import pytest

from rapid.config import RpcConfig
from rapid.rpc import certificate_reload
from rapid.rpc.access import Audience, Caller
from rapid.rpc.caller_secret import derive_token
from rapid.rpc.callers import CallersFile, KnownCallers, callers_text, load_callers, token_hash, with_secrets

ROLLOUT, PLAY, NEXT = "the-secret-of-a-rollout", "the-secret-of-play", "the-next-secret-of-a-rollout"
SECRETS = {Caller.ROLLOUT: [ROLLOUT], Caller.PLAY: [PLAY]}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)
    path = tmp_path / "callers.json"
    path.write_text(callers_text(SECRETS))
    return path


def test_tokens_must_match_completely(path: Path) -> None:
    known = CallersFile(str(path), Audience.INFERENCE)
    token = derive_token(ROLLOUT, Audience.INFERENCE)
    assert known.find(token) is Caller.ROLLOUT
    assert known.find(derive_token(PLAY, Audience.INFERENCE)) is Caller.PLAY
    for other in ("", token[:-1], token + "0", token.upper(), ROLLOUT, token_hash(ROLLOUT, Audience.INFERENCE), "é",
                  derive_token(ROLLOUT, Audience.OPTIMIZER), derive_token(NEXT, Audience.INFERENCE)):
        assert known.find(other) is None, other


def test_file_has_neither_secrets_nor_tokens(path: Path) -> None:
    text = path.read_text()
    for secret in (ROLLOUT, PLAY):
        assert secret not in text and not [a for a in Audience if derive_token(secret, a) in text]
    tree = json.loads(text)
    assert set(tree) == set(Audience) and tree["play"] == {
        "play": [token_hash(PLAY, Audience.PLAY)], "rollout": [token_hash(ROLLOUT, Audience.PLAY)]}


def test_two_secrets_are_accepted_during_a_rotation(path: Path) -> None:
    known = CallersFile(str(path), Audience.OPTIMIZER)
    old, new = (derive_token(secret, Audience.OPTIMIZER) for secret in (ROLLOUT, NEXT))
    path.write_text(with_secrets(path.read_text(), {Caller.ROLLOUT: NEXT}))
    assert known.find(old) is known.find(new) is Caller.ROLLOUT
    path.write_text(callers_text({Caller.ROLLOUT: [NEXT]}))
    assert known.find(old) is None and known.find(new) is Caller.ROLLOUT


@pytest.mark.parametrize("broken", [
    "", "{", "[]", "{}", '{"play": {"controller": ["x"]}}', '{"inference": {"rollout": []}}',
    '{"inference": {"stranger": ["' + "0" * 64 + '"]}}'])
def test_unusable_file_is_refused_at_start_and_ignored_later(
        broken: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = CallersFile(str(path), Audience.INFERENCE)
    path.write_text(broken)
    assert known.find(derive_token(ROLLOUT, Audience.INFERENCE)) is Caller.ROLLOUT
    assert "keeping the previous one" in caplog.text
    with pytest.raises(ValueError, match="rpc.callers_file"):
        CallersFile(str(path), Audience.INFERENCE)


def test_unreadable_file_is_read_again(
        path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Once an operator has repaired its permissions, which changes neither its time nor its size."""
    known = CallersFile(str(path), Audience.INFERENCE)
    old, new = (derive_token(secret, Audience.INFERENCE) for secret in (ROLLOUT, NEXT))
    path.write_text(callers_text({Caller.ROLLOUT: [NEXT]}))

    def refuse(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        assert known.find(old) is known.find(old) is Caller.ROLLOUT
        assert caplog.text.count("Permission denied") == 1
    assert known.find(new) is Caller.ROLLOUT and known.find(old) is None


def test_names_of_another_release_are_ignored(path: Path) -> None:
    tree = json.loads(path.read_text())
    tree["inference"]["stranger"], tree["future"] = ["0" * 64], {"rollout": ["0" * 64]}
    path.write_text(json.dumps(tree))
    assert set(CallersFile(str(path), Audience.INFERENCE).hashes()) == {Caller.ROLLOUT, Caller.PLAY}


def test_only_servers_read_the_file(path: Path) -> None:
    config, environment = RpcConfig(callers_file=str(path)), {"FIVE_CALLERS_FILE": "/nowhere"}
    for kind in ("controller", "rollout"):
        assert load_callers(config, kind, environment) is None
    assert load_callers(RpcConfig(), "inference", {}) is None
    known = load_callers(config, "inference", environment)
    assert known is not None and known.find(derive_token(PLAY, Audience.INFERENCE)) is Caller.PLAY
    assert load_callers(RpcConfig(), "dota_env", {"FIVE_CALLERS_FILE": str(path)}) is not None
    with pytest.raises(ValueError, match="FIVE_CALLERS_FILE /nowhere: No such file"):
        load_callers(RpcConfig(), "optimizer", environment)


def test_callers_without_a_file() -> None:
    known = KnownCallers.from_secrets(Audience.PLAY, {Caller.CONTROLLER: PLAY})
    assert known.find(derive_token(PLAY, Audience.PLAY)) is Caller.CONTROLLER
    assert known.find(derive_token(ROLLOUT, Audience.PLAY)) is None
