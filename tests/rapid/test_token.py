"""The services' token and its rotation under load."""

import io
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from five.protos.v1 import inference_pb2, inference_pb2_grpc
from rapid.config import RpcConfig, TelemetryConfig
from rapid.rpc import certificate_reload
from rapid.rpc.channel import aio_channel
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.server import serve
from rapid.rpc.token import (
    ServiceTokenFile,
    Token,
    accepted_tokens,
    load_or_create_token,
    load_token,
    sent_token,
    write_tokens,
)
from rapid.rpc.unary_client import UnaryClient
from rapid.telemetry.logs import configure_logs
from tests.rapid.test_rpc import ADD, Inference, request


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)
    for name in ("FIVE_TOKEN", "FIVE_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_token(RpcConfig()) is None and accepted_tokens(None) == () and sent_token(None) is None
    monkeypatch.setenv("FIVE_TOKEN", " from-env \n")
    assert load_token(RpcConfig()) == "from-env" == sent_token("from-env")
    path = tmp_path / "deep" / "token"
    token = load_or_create_token(path)
    assert path.stat().st_mode & 0o777 == 0o600 and len(token) > 30
    assert load_or_create_token(path) == token
    assert sent_token(load_token(RpcConfig(token_file=str(path)))) == token
    monkeypatch.setenv("FIVE_TOKEN_FILE", str(path))
    assert sent_token(load_token(RpcConfig())) == token, "before the token itself"
    with pytest.raises(ValueError, match="rpc.token_file.*No such file"):
        load_token(RpcConfig(token_file=str(tmp_path / "none")))
    path.write_text("\n")
    with pytest.raises(ValueError, match="FIVE_TOKEN_FILE .* is empty"):
        load_token(RpcConfig())
    assert load_or_create_token(path) not in ("", token)


def test_unusable_token_file_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    write_tokens(path, "the-first-token")
    file = ServiceTokenFile(str(path))
    for broken in ("", "  \n\n"):
        path.write_text(broken)
        assert file.accepted_tokens() == ("the-first-token",)
    assert "is empty" in caplog.text and "the-first-token" not in caplog.text
    path.unlink()
    assert file.accepted_tokens() == ("the-first-token",), "while it is replaced by hand there may be none"
    write_tokens(path, "the-next-token", "the-first-token")
    assert file.accepted_tokens() == ("the-next-token", "the-first-token")
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in tmp_path.iterdir()] == ["token"]


def test_token_file_is_checked_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 3600.0)
    path = tmp_path / "token"
    write_tokens(path, "old")
    file = ServiceTokenFile(str(path))
    write_tokens(path, "new")
    assert file.accepted_tokens() == ("old",)
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)
    assert file.accepted_tokens() == ("new",)


def test_reloaded_tokens_are_hidden_from_logs(tmp_path: Path) -> None:
    path, stream = tmp_path / "token", io.StringIO()
    write_tokens(path, "the-token-of-before")
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        file = ServiceTokenFile(str(path))
        configure_logs(TelemetryConfig(), stream=stream)
        write_tokens(path, "the-token-of-after", "the-token-of-before")
        assert len(file.accepted_tokens()) == 2
        logging.getLogger("x").warning("with %s and %s", *file.accepted_tokens())
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert "with *** and ***" in stream.getvalue() and "tokens=2" in stream.getvalue()


async def test_token_rotation_under_calls_and_streams(tmp_path: Path, rpc_config: RpcConfig) -> None:
    """Servers accept the new token, clients send it, the old one is refused; no call fails and open streams continue.
    """
    path = tmp_path / "token"
    write_tokens(path, "old")
    config = rpc_config.model_copy(update={"token_file": str(path), "require_token": True})
    server = await serve("127.0.0.1:0", [(ADD, servicer := Inference())], config, load_token(config))
    target = f"127.0.0.1:{server.port}"

    def asker(token: Token) -> Any:
        return UnaryClient([target], inference_pb2_grpc.InferenceServiceStub, "five.v1.InferenceService", config, token)

    async def refused(token: str) -> bool:
        caller = asker(token)
        try:
            await caller.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest())
            return False
        except CallFailed as error:
            assert error.code is StatusCode.UNAUTHENTICATED and token not in str(error)
            return True
        finally:
            await caller.close()

    mine = asker(load_token(config))
    connection = aio_channel(target, config, load_token(config))
    stream = inference_pb2_grpc.InferenceServiceStub(connection.grpc).Act(metadata=connection.metadata)
    answered = 0

    async def echoed() -> bool:
        await stream.write(request(np.ones(3, np.float32)))
        return bool(np.frombuffer((await stream.read()).values, np.float32)[0] == 3)

    assert await echoed()
    for tokens in (("old",), ("old", "new"), ("new", "old"), ("new",)):
        write_tokens(path, *tokens)
        for _ in range(5):
            await mine.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest())
            answered += 1
        assert connection.metadata == (("authorization", f"Bearer {tokens[0]}"),)
        assert await refused("old") is ("old" not in tokens)
        assert await refused("new") is ("new" not in tokens)
    assert servicer.calls == answered + 6  # the accepted calls of this test
    assert await echoed(), "who was let in stays until the stream ends"
    stream.cancel()
    await connection.close()
    await mine.close()
    await server.stop(0)


def test_stamp_of_a_replaced_file_differs(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_tokens(path, "one")
    file = ServiceTokenFile(str(path))
    for number in range(20):  # another file, perhaps of the same length and time
        write_tokens(path, f"{number:03d}")
        assert file.accepted_tokens() == (f"{number:03d}",), time.time()
