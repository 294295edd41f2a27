"""Paths, locations and client addresses that the application sees behind a reverse proxy."""

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from five.services.controller.http.client_address import PEER
from five.services.controller.http.reverse_proxy import ReverseProxy

PREFIX = "/five"


async def pass_through(given: Scope, sent: list[tuple[bytes, bytes]] | None = None, prefix: str = PREFIX,
                       trusted: tuple[str, ...] = ("10.0.0.0/8",)) -> tuple[Scope, list[Any]]:
    """Return the scope that the application gets, and the headers of its response that the client gets."""
    seen: list[Scope] = []
    answered: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope))
        await send({"type": "http.response.start", "status": 201, "headers": sent or []})
        await send({"type": "http.response.body", "body": b"location: /v1"})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answered.append(message)

    scope = {"type": "http", "scheme": "http", "headers": [], "client": ("192.0.2.1", 5), **given}
    await ReverseProxy(app, prefix, trusted)(scope, receive, send)
    assert answered[0]["status"] == 201
    assert answered[1] == {"type": "http.response.body", "body": b"location: /v1"}
    return seen[0], answered[0]["headers"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(("path", "seen"), [
    ("/five/v1/status", "/v1/status"), ("/five/", "/"), ("/five", "/"), ("/v1/status", "/v1/status"),
    ("/fives/v1", "/fives/v1"), ("/five/five/x", "/five/x"), ("/", "/"), ("/x/five/y", "/x/five/y")])
async def test_prefix_is_removed_once(kind: str, path: str, seen: str) -> None:
    scope, _ = await pass_through({"type": kind, "path": path, "raw_path": path.encode()})
    assert (scope["path"], scope["raw_path"], scope["type"]) == (seen, seen.encode(), kind)


async def test_raw_path_keeps_its_escapes() -> None:
    scope, _ = await pass_through({"path": "/five/a b", "raw_path": b"/five/a%20b"})
    assert (scope["path"], scope["raw_path"]) == ("/a b", b"/a%20b")
    scope, _ = await pass_through({"path": "/five/a", "raw_path": b"/%66ive/a"})
    assert (scope["path"], scope["raw_path"]) == ("/a", b"/%66ive/a")
    scope, _ = await pass_through({"path": "/five/a", "raw_path": None})
    assert scope["path"] == "/a"


async def test_other_scopes_pass_unchanged() -> None:
    scope, headers = await pass_through({"type": "lifespan", "path": "/five/a"}, [(b"location", b"/v1/a")])
    assert scope["path"] == "/five/a" and headers == [(b"location", b"/v1/a")]


@pytest.mark.parametrize(("header", "expected"), [
    ((b"location", b"/v1/matches/a"), b"/five/v1/matches/a"), ((b"Location", b"/"), b"/five/"),
    ((b"location", b"https://example.org/v1"), b"https://example.org/v1"), ((b"location", b"a"), b"a"),
    ((b"location", b""), b""), ((b"link", b"/v1/a"), b"/v1/a"), ((b"x-location", b"/v1/a"), b"/v1/a")])
@pytest.mark.parametrize("path", ["/five/v1/matches", "/v1/matches"])
async def test_location_has_the_prefix(header: tuple[bytes, bytes], expected: bytes, path: str) -> None:
    _, headers = await pass_through({"path": path}, [(b"etag", b"/a"), header])
    assert headers == [(b"etag", b"/a"), (header[0], expected)]


@pytest.mark.parametrize(("value", "expected"), [
    (b"http://host:1/v1/status", b"http://host:1/five/v1/status"), (b"http://host:1", b"http://host:1"),
    (b"https://host:1/v1", b"https://host:1/v1"), (b"http://host:12/v1", b"http://host:12/v1")])
async def test_location_at_the_own_host_has_the_prefix(value: bytes, expected: bytes) -> None:
    _, headers = await pass_through({"path": "/five/a", "headers": [(b"host", b"host:1")]}, [(b"location", value)])
    assert headers == [(b"location", expected)]


async def test_nothing_changes_without_a_prefix() -> None:
    scope, headers = await pass_through({"path": "/five/a"}, [(b"location", b"/v1/a")], prefix="")
    assert scope["path"] == "/five/a" and headers == [(b"location", b"/v1/a")]


@pytest.mark.parametrize(("host", "client", "peer"), [
    ("10.0.0.1", ("203.0.113.7", 0), "10.0.0.1"), ("::ffff:10.0.0.1", ("203.0.113.7", 0), "10.0.0.1"),
    ("192.0.2.1", ("192.0.2.1", 5), "192.0.2.1"), ("::ffff:192.0.2.1", ("192.0.2.1", 5), "192.0.2.1")])
@pytest.mark.parametrize("prefix", ["", PREFIX])
async def test_trusted_proxy_names_the_client(host: str, client: tuple[str, int], peer: str, prefix: str) -> None:
    headers = [(b"x-forwarded-for", b"203.0.113.7"), (b"x-forwarded-proto", b"https")]
    scope, _ = await pass_through({"path": "/", "client": (host, 5), "headers": headers}, prefix=prefix)
    assert (scope["client"], scope[PEER]) == (client, peer)
    assert scope["scheme"] == ("https" if peer.startswith("10.") else "http")


async def test_client_without_an_address_is_served() -> None:
    scope, _ = await pass_through({"path": "/five/a", "client": None})
    assert scope["path"] == "/a" and PEER not in scope
