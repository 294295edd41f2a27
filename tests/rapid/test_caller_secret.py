"""The secret of a calling process, and its rotation under load."""

import hashlib
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
from rapid.rpc.access import Audience, Caller
from rapid.rpc.caller_secret import (
    CallerSecretFile,
    CallToken,
    Secret,
    derive_token,
    load_or_create_secret,
    load_secret,
    new_secret,
    write_secret,
)
from rapid.rpc.callers import CallersFile, callers_text
from rapid.rpc.channel import aio_channel
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.server import serve
from rapid.rpc.unary_client import UnaryClient
from rapid.telemetry.logs import configure_logs
from tests.rapid.test_rpc import ADD, Inference, request

OLD, NEW = "the-old-secret-of-the-tests", "the-new-secret-of-the-tests"


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)


def test_token_is_a_hash_of_audience_and_secret() -> None:
    expected = hashlib.sha256(f"five:inference:{OLD}".encode()).hexdigest()
    assert derive_token(OLD, Audience.INFERENCE) == CallToken(OLD, Audience.INFERENCE).value() == expected
    tokens = {derive_token(secret, audience) for secret in (OLD, NEW) for audience in Audience}
    assert len(tokens) == 2 * len(Audience)
    assert CallToken(None, Audience.INFERENCE).value() is None
    assert new_secret() != new_secret() and len(new_secret()) == 43, "256 bits"


def test_secret_comes_from_a_file(tmp_path: Path) -> None:
    assert load_secret(RpcConfig(), {}) is None
    path = tmp_path / "deep" / "rollout"
    secret = load_or_create_secret(path)
    assert path.stat().st_mode & 0o777 == 0o600 and len(secret) > 30
    assert load_or_create_secret(path) == secret
    for config, environment in ((RpcConfig(caller_secret_file=str(path)), {"FIVE_CALLER_SECRET_FILE": "/nowhere"}),
                                (RpcConfig(), {"FIVE_CALLER_SECRET_FILE": str(path)})):
        found = load_secret(config, environment)
        assert found is not None and found.secret() == secret
    with pytest.raises(ValueError, match="rpc.caller_secret_file.*No such file"):
        load_secret(RpcConfig(caller_secret_file=str(tmp_path / "none")), {})
    for text in ("", "\n", "short\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="FIVE_CALLER_SECRET_FILE .* at least 16 are required"):
            load_secret(RpcConfig(), {"FIVE_CALLER_SECRET_FILE": str(path)})
    path.write_text("\n")
    assert load_or_create_secret(path) not in ("", secret)


@pytest.mark.parametrize("name", ["FIVE_TOKEN", "FIVE_TOKEN_FILE"])
def test_variables_of_the_shared_token_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is set, and was removed in 0.2.0.*FIVE_CALLER_SECRET_FILE") as caught:
        load_secret(RpcConfig(), {name: "the-shared-token"})
    assert "the-shared-token" not in str(caught.value)


def test_unusable_secret_file_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rollout"
    write_secret(path, OLD)
    file = CallerSecretFile(str(path))
    for broken in (b"", b"  \n\n", b"\xff\xfe"):
        path.write_bytes(broken)
        assert file.secret() == OLD
    assert "at least 16 are required" in caplog.text and OLD not in caplog.text
    path.unlink()
    assert file.secret() == OLD, "while it is replaced by hand there may be none"
    write_secret(path, NEW)
    assert file.secret() == NEW
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in tmp_path.iterdir()] == ["rollout"]


def test_secret_file_is_checked_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 3600.0)
    path = tmp_path / "rollout"
    write_secret(path, OLD)
    file = CallerSecretFile(str(path))
    write_secret(path, NEW)
    assert file.secret() == OLD
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)
    assert file.secret() == NEW


def test_secrets_and_tokens_are_hidden_from_logs(tmp_path: Path) -> None:
    path, stream = tmp_path / "rollout", io.StringIO()
    write_secret(path, OLD)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        file = CallerSecretFile(str(path))
        configure_logs(TelemetryConfig(), stream=stream)
        write_secret(path, NEW)
        assert file.secret() == NEW
        logging.getLogger("x").warning("with %s and %s", NEW, derive_token(OLD, Audience.PLAY))
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert "with *** and ***" in stream.getvalue() and "caller secret reloaded" in stream.getvalue()


async def test_secret_rotation_under_calls_and_streams(tmp_path: Path, rpc_config: RpcConfig) -> None:
    """Servers accept the new token, clients send it, the old one is refused; no call fails and open streams continue.
    """
    secret, callers = tmp_path / "rollout", tmp_path / "callers.json"

    def accept(*secrets: str) -> None:
        callers.write_text(callers_text({Caller.ROLLOUT: secrets}))

    write_secret(secret, OLD)
    accept(OLD)
    server = await serve("127.0.0.1:0", [(ADD, servicer := Inference())], rpc_config,
                         CallersFile(str(callers), Audience.INFERENCE))
    target = f"127.0.0.1:{server.port}"

    def asker(secret: Secret) -> Any:
        return UnaryClient([target], inference_pb2_grpc.InferenceServiceStub, "five.v1.InferenceService", rpc_config,
                           CallToken(secret, Audience.INFERENCE))

    async def refused(secret: str) -> bool:
        caller = asker(secret)
        try:
            await caller.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest())
            return False
        except CallFailed as error:
            assert error.code is StatusCode.UNAUTHENTICATED and secret not in str(error)
            return True
        finally:
            await caller.close()

    mine = asker(file := CallerSecretFile(str(secret)))
    connection = aio_channel(target, rpc_config, CallToken(file, Audience.INFERENCE))
    stream = inference_pb2_grpc.InferenceServiceStub(connection.grpc).Act(metadata=connection.metadata)
    answered = 0

    async def echoed() -> bool:
        await stream.write(request(np.ones(3, np.float32)))
        return bool(np.frombuffer((await stream.read()).values, np.float32)[0] == 3)

    assert await echoed()
    for sent, accepted in ((OLD, (OLD,)), (OLD, (OLD, NEW)), (NEW, (OLD, NEW)), (NEW, (NEW,))):
        write_secret(secret, sent)
        accept(*accepted)
        for _ in range(5):
            await mine.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest())
            answered += 1
        assert connection.metadata == (("authorization", f"Bearer {derive_token(sent, Audience.INFERENCE)}"),)
        assert await refused(OLD) is (OLD not in accepted)
        assert await refused(NEW) is (NEW not in accepted)
    assert servicer.calls == answered + 6  # the accepted calls of this test
    assert await echoed(), "who was let in stays until the stream ends"
    stream.cancel()
    await connection.close()
    await mine.close()
    await server.stop(0)


def test_stamp_of_a_replaced_file_differs(tmp_path: Path) -> None:
    path = tmp_path / "rollout"
    write_secret(path, OLD)
    file = CallerSecretFile(str(path))
    for number in range(20):  # another file, perhaps of the same length and time
        write_secret(path, f"a-secret-with-number-{number:03d}")
        assert file.secret().endswith(f"{number:03d}"), time.time()
