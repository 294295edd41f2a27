"""Diagnosis of failed TLS connections, and reloading of certificates."""

import asyncio
import logging
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from five.protos.v1 import inference_pb2, inference_pb2_grpc
from rapid.config import RpcConfig, TlsConfig
from rapid.rpc import certificate_reload
from rapid.rpc.channel import Channel, aio_channel
from rapid.rpc.errors import failure_of
from rapid.rpc.server import RpcServer, serve
from rapid.rpc.tls_diagnosis import diagnose_handshake, name_matches
from tests.rapid.test_rpc import ADD, Inference, request


class Authority:
    """Certificate authority in a folder: ca.crt."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._openssl("req", "-x509", *self.KEY, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "1")

    KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def issue(self, into: Path, *names: str) -> TlsConfig:
        """Write a certificate with these names like a Secret's files: beside, then renamed."""
        into.mkdir(exist_ok=True)
        self._openssl("req", *self.KEY, "-keyout", "new.key", "-out", "new.csr", "-subj", "/CN=five")
        (self.folder / "names").write_text("subjectAltName=" + ",".join(names))
        self._openssl("x509", "-req", "-in", "new.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", "1", "-extfile", "names", "-out", "new.crt")
        (self.folder / "new.key").rename(into / "tls.key")
        (self.folder / "new.crt").rename(into / "tls.crt")
        (self.folder / "copy").write_bytes((self.folder / "ca.crt").read_bytes())
        (self.folder / "copy").rename(into / "ca.crt")
        return TlsConfig(authority=str(into / "ca.crt"), certificate=str(into / "tls.crt"), key=str(into / "tls.key"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reload, "CHECK_SECONDS", 0.0)


def rpc(tls: TlsConfig) -> RpcConfig:
    return RpcConfig(require_token=False, tls=tls, retries=0, backoff_seconds=0.05)


async def started(tls: TlsConfig) -> RpcServer:
    return await serve("127.0.0.1:0", [], rpc(tls))


async def asked(channel: Channel) -> int:
    """Return the server's health. Raise grpc.aio.AioRpcError."""
    stub = health_pb2_grpc.HealthStub(channel.grpc)
    return int((await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)).status)


async def said(target: str, tls: TlsConfig) -> str:
    """Return the details of a failing call."""
    channel = aio_channel(target, rpc(tls))
    try:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await asked(channel)
        return str(failure_of(failed.value, target, "Check"))
    finally:
        await channel.close()


async def test_error_lists_the_names_of_the_certificate(
        authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tls = authority.issue(tmp_path / "tls", "DNS:five-inference", "DNS:*.five-optimizer.five.svc")
    server = await started(tls)
    target = f"127.0.0.1:{server.port}"
    with caplog.at_level(logging.ERROR):
        text = await said(target, TlsConfig(authority=tls.authority))
    expected = (f"the certificate of {target} has the names five-inference, *.five-optimizer.five.svc, and not "
                "127.0.0.1, by which it was dialled: issue one that has it too")
    assert expected in text and "no server responds" not in text
    assert f"TLS: {expected}" in caplog.messages
    channel = aio_channel(target, rpc(TlsConfig(authority=tls.authority)))
    with pytest.raises(TimeoutError, match="by which it was dialled"):
        await channel.ready(0.2)
    await channel.close()
    await server.stop(0)


async def test_error_names_the_untrusted_authority(authority: Authority, tmp_path: Path) -> None:
    server = await started(authority.issue(tmp_path / "tls", "IP:127.0.0.1"))
    other = Authority(tmp_path / "other")
    text = await said(f"127.0.0.1:{server.port}", TlsConfig(authority=str(other.folder / "ca.crt")))
    assert f"is not trusted by {other.folder / 'ca.crt'} (rpc.tls.authority)" in text and "127.0.0.1" in text
    await server.stop(0)


async def test_error_reports_a_missing_client_certificate(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls.model_copy(update={"require_client_certificate": True}))
    text = await said(f"127.0.0.1:{server.port}", TlsConfig(authority=tls.authority))
    assert "refuses this side, which shows no certificate (rpc.tls.certificate is not set)" in text
    await server.stop(0)


async def test_error_names_an_unusable_authority(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls)
    text = await said(f"127.0.0.1:{server.port}", TlsConfig(authority=tls.key))
    assert f"rpc.tls.authority {tls.key}: " in text and "does not speak" not in text
    await server.stop(0)


async def test_server_refuses_the_key_of_another_certificate(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    other = authority.issue(tmp_path / "other", "IP:127.0.0.1")
    with pytest.raises(ValueError, match=f"rpc.tls.certificate {tls.certificate} and rpc.tls.key {other.key}: .*mism"):
        await started(tls.model_copy(update={"key": other.key}))


def test_paths_may_begin_with_the_home_folder(
        authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path))
    tls = TlsConfig(authority="~/tls/ca.crt", certificate="~/tls/tls.crt", key="~/tls/tls.key")
    assert certificate_reload.tls_files_error(tls) == ""


def test_absent_server_is_not_a_tls_error(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    assert diagnose_handshake("127.0.0.1:1", tls) == "" and diagnose_handshake("unix:/nowhere", tls) == ""


@pytest.mark.parametrize(("name", "dialled", "yes"), [
    ("five-inference", "FIVE-inference", True), ("127.0.0.1", "127.0.0.1", True), ("::1", "0:0:0:0:0:0:0:1", True),
    ("*.five-optimizer.five.svc", "five-optimizer-3.five-optimizer.five.svc", True),
    ("*.five-optimizer", "five-optimizer-3.five-optimizer", False), ("*.b.c", "a.a.b.c", False),
    ("127.0.0.1", "localhost", False)])
def test_certificate_name_matching(name: str, dialled: str, yes: bool) -> None:
    assert name_matches(name, dialled) is yes


async def test_server_reloads_its_certificate(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls)
    target = f"127.0.0.1:{server.port}"
    first = aio_channel(target, rpc(TlsConfig(authority=str(authority.folder / "ca.crt"))))
    assert await asked(first) == 1
    other = Authority(tmp_path / "other")
    other.issue(tmp_path / "tls", "IP:127.0.0.1")
    second = aio_channel(target, rpc(TlsConfig(authority=str(other.folder / "ca.crt"))))
    assert await asked(second) == 1
    assert await asked(first) == 1, "a connection that is there goes on"
    await first.close()
    await second.close()
    await server.stop(0)


async def test_client_reloads_certificates_for_the_next_call(authority: Authority, tmp_path: Path) -> None:
    """Including its own: the server requires one of the same authority."""
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    both = tls.model_copy(update={"require_client_certificate": True})
    server = await started(both)
    channel = aio_channel(f"127.0.0.1:{server.port}", rpc(tls))
    stub = health_pb2_grpc.HealthStub(channel.grpc)
    assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)).status == 1
    port = server.port
    await server.stop(0)
    Authority(tmp_path / "other").issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await serve(f"127.0.0.1:{port}", [], rpc(both))
    assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=10, wait_for_ready=True)).status == 1
    await channel.close()
    await server.stop(0)


async def test_mismatched_files_change_nothing(authority: Authority, tmp_path: Path,
                                               caplog: pytest.LogCaptureFixture) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls)
    key = (tmp_path / "tls/tls.key").read_bytes()
    authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    (tmp_path / "tls/tls.key").write_bytes(key)
    channel = aio_channel(f"127.0.0.1:{server.port}", rpc(TlsConfig(authority=tls.authority)))
    assert await asked(channel) == 1
    assert "a new certificate is unusable, keeping the previous one" in caplog.text
    await channel.close()
    await server.stop(0)


async def test_open_stream_survives_certificate_reload(authority: Authority, tmp_path: Path) -> None:
    """With and without a pending response."""
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await serve("127.0.0.1:0", [(ADD, Inference())], rpc(tls))
    channel = aio_channel(f"127.0.0.1:{server.port}", rpc(tls))
    stub = inference_pb2_grpc.InferenceServiceStub(channel.grpc)
    idle, waited_for = stub.Act(), stub.Act()
    for stream in (idle, waited_for):
        await stream.write(request(np.ones(3, np.float32)))
        assert np.frombuffer((await stream.read()).values, np.float32)[0] == 3
    waiting = asyncio.create_task(waited_for.read())
    await asyncio.sleep(0)
    authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    await stub.GetModel(inference_pb2.GetModelRequest(), timeout=10)  # over another connection
    await asyncio.sleep(0.2)
    for stream in (idle, waited_for):
        await stream.write(request(np.ones(3, np.float32)))
    assert np.frombuffer((await waiting).values, np.float32)[0] == 3
    assert np.frombuffer((await idle.read()).values, np.float32)[0] == 3
    await asyncio.sleep(0.3)  # pending responses have arrived
    for stream in (idle, waited_for):
        await stream.write(request(np.ones(3, np.float32)))
        assert np.frombuffer((await stream.read()).values, np.float32)[0] == 3
    await channel.close()
    await server.stop(0)
