"""What is said of a TLS connection that does not come about, and certificates that change under one that does."""

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
    """An authority of its own in a folder: ca.crt."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._openssl("req", "-x509", *self.KEY, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "1")

    KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def issue(self, into: Path, *names: str) -> TlsConfig:
        """A certificate with these names, put where a Secret's files are: written beside, then renamed."""
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
    """The health of the server. Raises grpc.aio.AioRpcError."""
    stub = health_pb2_grpc.HealthStub(channel.grpc)
    return int((await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)).status)


async def said(target: str, tls: TlsConfig) -> str:
    """What a call that fails says."""
    channel = aio_channel(target, rpc(tls))
    try:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await asked(channel)
        return str(failure_of(failed.value, target, "Check"))
    finally:
        await channel.close()


async def test_a_name_that_the_certificate_lacks_is_told_with_those_that_it_has(
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


async def test_an_authority_that_is_not_the_certificates_is_told(authority: Authority, tmp_path: Path) -> None:
    server = await started(authority.issue(tmp_path / "tls", "IP:127.0.0.1"))
    other = Authority(tmp_path / "other")
    text = await said(f"127.0.0.1:{server.port}", TlsConfig(authority=str(other.folder / "ca.crt")))
    assert f"is not trusted by {other.folder / 'ca.crt'} (rpc.tls.authority)" in text and "127.0.0.1" in text
    await server.stop(0)


async def test_a_client_without_a_certificate_is_told(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls.model_copy(update={"require_client_certificate": True}))
    text = await said(f"127.0.0.1:{server.port}", TlsConfig(authority=tls.authority))
    assert "refuses this side, which shows no certificate (rpc.tls.certificate is not set)" in text
    await server.stop(0)


def test_nobody_there_is_not_tlss_fault(authority: Authority, tmp_path: Path) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    assert diagnose_handshake("127.0.0.1:1", tls) == "" and diagnose_handshake("unix:/nowhere", tls) == ""


@pytest.mark.parametrize(("name", "dialled", "yes"), [
    ("five-inference", "FIVE-inference", True), ("127.0.0.1", "127.0.0.1", True), ("::1", "0:0:0:0:0:0:0:1", True),
    ("*.five-optimizer.five.svc", "five-optimizer-3.five-optimizer.five.svc", True),
    ("*.five-optimizer", "five-optimizer-3.five-optimizer", False), ("*.b.c", "a.a.b.c", False),
    ("127.0.0.1", "localhost", False)])
def test_names_are_compared_as_clients_do(name: str, dialled: str, yes: bool) -> None:
    assert name_matches(name, dialled) is yes


async def test_a_server_takes_a_new_certificate_without_a_restart(authority: Authority, tmp_path: Path) -> None:
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


async def test_a_client_takes_new_certificates_for_its_next_call(authority: Authority, tmp_path: Path) -> None:
    """Here also its own: the server asks for one of the same authority."""
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


async def test_files_that_do_not_fit_change_nothing(authority: Authority, tmp_path: Path,
                                                    caplog: pytest.LogCaptureFixture) -> None:
    tls = authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    server = await started(tls)
    key = (tmp_path / "tls/tls.key").read_bytes()
    authority.issue(tmp_path / "tls", "IP:127.0.0.1")
    (tmp_path / "tls/tls.key").write_bytes(key)
    channel = aio_channel(f"127.0.0.1:{server.port}", rpc(TlsConfig(authority=tls.authority)))
    assert await asked(channel) == 1
    assert "new certificates are unusable" in caplog.text
    await channel.close()
    await server.stop(0)


async def test_a_stream_that_is_on_stays_when_certificates_change(authority: Authority, tmp_path: Path) -> None:
    """Whether somebody waits for its answer at that moment, or nobody does."""
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
    await stub.GetModel(inference_pb2.GetModelRequest(), timeout=10)  # by another connection
    await asyncio.sleep(0.2)
    for stream in (idle, waited_for):
        await stream.write(request(np.ones(3, np.float32)))
    assert np.frombuffer((await waiting).values, np.float32)[0] == 3
    assert np.frombuffer((await idle.read()).values, np.float32)[0] == 3
    await asyncio.sleep(0.3)  # whoever waited has his answer
    for stream in (idle, waited_for):
        await stream.write(request(np.ones(3, np.float32)))
        assert np.frombuffer((await stream.read()).values, np.float32)[0] == 3
    await channel.close()
    await server.stop(0)
