"""Listening sockets: IPv4, IPv6, and both."""

import errno
import socket
import urllib.request
from typing import Any

import pytest

from rapid.config import RpcConfig
from rapid.listening import listen
from rapid.rpc.channel import aio_channel
from rapid.rpc.resolve import ServerAddress, resolve_servers
from rapid.rpc.server import port_of, serve
from rapid.telemetry.pages import start_pages
from tests.ipv6 import needs_loopback

CONFIG = RpcConfig(require_token=False)


def reaches(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=30).close()
    except OSError:
        return False
    return True


@needs_loopback
@pytest.mark.parametrize(("host", "reached"), [
    ("::", {"127.0.0.1", "::1"}), ("::1", {"::1"}), ("0.0.0.0", {"127.0.0.1"}), ("127.0.0.1", {"127.0.0.1"})])
def test_socket_serves_its_families(host: str, reached: set[str]) -> None:
    with listen(host, 0) as listener:
        port = listener.getsockname()[1]
        assert {h for h in ("127.0.0.1", "::1") if reaches(h, port)} == reached
        with pytest.raises(OSError, match="in use"):
            listen(host, port)


def test_every_address_is_ipv4_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def without_ipv6(family: int = -1, *arguments: Any, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *arguments, **options)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    listener = listen("::", 0)
    try:
        assert listener.family == socket.AF_INET and listener.getsockname()[0] == "0.0.0.0"
    finally:
        listener.close()


def test_unknown_host_is_an_os_error() -> None:
    with pytest.raises(OSError, match=r"nowhere\.invalid:0"):
        listen("nowhere.invalid", 0)


@needs_loopback
def test_pages_on_every_address() -> None:
    pages = start_pages(0, "::")
    try:
        for host in ("127.0.0.1", "[::1]"):
            with urllib.request.urlopen(f"http://{host}:{pages.port}/healthz", timeout=30) as page:
                assert page.read() == b"alive\n"
    finally:
        pages.close()


@needs_loopback
@pytest.mark.parametrize(("listens", "dialled"), [
    ("[::]", "127.0.0.1"), ("[::]", "[::1]"), ("[::1]", "[::1]")])
async def test_grpc_is_reached_by_bracketed_addresses(listens: str, dialled: str) -> None:
    server = await serve(f"{listens}:0", [], CONFIG)
    channel = aio_channel(f"{dialled}:{server.port}", CONFIG)
    await channel.ready(10)
    await channel.close()
    await server.stop(0)


async def test_addresses_with_brackets_are_not_looked_up() -> None:
    assert await resolve_servers(["[::1]:50051"]) == [ServerAddress("[::1]:50051")]
    assert port_of("[::1]:50051") == 50051 and port_of("") == 0
    for wrong in ("::1", "[::1]", "host"):
        with pytest.raises(ValueError, match="host:port, with an IPv6 host in brackets"):
            port_of(wrong)
