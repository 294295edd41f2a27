"""Tokens and TLS."""

from pathlib import Path

import grpc
import grpc.aio
import pytest

from five.protos.v1 import inference_pb2
from rapid.config import RpcConfig, TlsConfig
from rapid.rpc import security
from rapid.rpc.access import Audience
from rapid.rpc.server import serve
from tests.rapid.conftest import known_callers
from tests.rapid.test_rpc import ADD, CODE, Inference, stub_of


def test_only_a_bearer_token_is_read() -> None:
    assert security.presented_token(security.token_metadata("t")) == "t" and security.token_metadata(None) == ()
    assert security.presented_token((("x", b"y"), ("authorization", b"Bearer \xff"))) == "\ufffd"
    for header in ("", "t", "bearer t", "Bearer ", "Basic t"):
        assert security.presented_token((("authorization", header),)) == "", header
    assert security.presented_token(None) == ""


async def test_tls_switch(certificates: Path, rpc_config: RpcConfig) -> None:
    tls = TlsConfig(authority=str(certificates / "ca.pem"), certificate=str(certificates / "server.pem"),
                    key=str(certificates / "server.key"), require_client_certificate=True)
    server = await serve("127.0.0.1:0", [(ADD, Inference())], rpc_config.model_copy(update={"tls": tls}),
                         known_callers(Audience.INFERENCE))

    async def newest(client: TlsConfig | None) -> int:
        config = rpc_config.model_copy(update={"tls": client, "retries": 0})
        connection, stub, metadata = stub_of(server.port, config)
        try:
            answer = await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)
            return int(answer.newest_version)
        finally:
            await connection.close()

    trusted = tls.model_copy(update={"server_name": "five.test"})
    assert await newest(trusted) == 7
    for wrong in (None, trusted.model_copy(update={"server_name": "other.test"}),
                  TlsConfig(authority=trusted.authority, server_name="five.test")):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await newest(wrong)
        assert caught.value.code() is CODE.UNAVAILABLE
    await server.stop(0)


def test_tls_files_are_named_when_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="certificate and key must be given together"):
        TlsConfig(certificate="x")
    with pytest.raises(ValueError, match=r"rpc.tls.authority /nowhere: No such file"):
        security.channel_credentials(TlsConfig(authority="/nowhere"))
    with pytest.raises(ValueError, match="a server needs certificate and key"):
        security.server_credentials(TlsConfig(authority="/nowhere"))


