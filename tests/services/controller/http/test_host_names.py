"""The Host header: DNS rebinding makes a foreign page's requests look like the console's own."""

import socket
from typing import Any

import pytest
import redis
from fastapi import WebSocket
from pydantic import ValidationError

from five.run.config.controller import ControllerConfig
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.host_names import HostNames
from five.services.controller.http.problems import Problem
from tests.services.live_controller import OPERATOR, LiveController, live, problem

EVIL = "rebound.evil.example"


def ask(rest: LiveController, host: str, path: str = "/v1/status", token: str = "", method: str = "GET") -> Any:
    headers = {"Host": host} if method == "GET" else {"Host": host, "Origin": f"http://{host}"}
    return rest.ask(method, path, token, headers=headers)


def test_rebound_names_are_refused_without_authentication(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, authenticator=Authenticator(None)) as rest:
        for host in (EVIL, f"{EVIL}:{rest.port}", "localhost.evil.example", "127.0.0.1.evil.example", "x@y", ""):
            for path in ("/v1/status", "/", "/openapi.json"):
                problem(ask(rest, host, path), 421, "misdirected")
        problem(ask(rest, f"{EVIL}:{rest.port}", "/v1/stop", method="POST"), 421, "misdirected")
        for host in ("localhost", f"LOCALHOST:{rest.port}", f"127.0.0.1:{rest.port}", "[::1]:8080", "192.0.2.7"):
            assert ask(rest, host).status_code == 200
        assert ask(rest, EVIL, "/healthz").status_code == 200, "a probe is never refused"
        now = rest.state.status()
        assert now is not None and now.status.value == "starting"


def test_rebound_web_sockets_are_refused(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, authenticator=Authenticator(None)) as rest:
        @rest.app.websocket("/v1/nothing")
        async def talk(there: WebSocket) -> None:
            await there.accept()

        for host, expected in ((EVIL, b"HTTP/1.1 403 "), (f"localhost:{rest.port}", b"HTTP/1.1 101 ")):
            with socket.create_connection(("127.0.0.1", rest.port), 30) as one:
                one.sendall(f"GET /v1/nothing HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
                            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
                assert one.recv(1 << 16).startswith(expected)


def test_configured_names_are_required_with_authentication_too(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url) as rest:
        assert ask(rest, EVIL, token=OPERATOR).status_code == 200, "tokens and cookies protect it"
    names = HostNames(["five.example.org"], "controller.local")
    with live(redis_url, create=False, hosts=names) as rest:
        for host in ("five.example.org", "Five.example.org:443", "five.example.org.", "controller.local", "127.0.0.1"):
            assert ask(rest, host, token=OPERATOR).status_code == 200
        answer = ask(rest, EVIL, token=OPERATOR)
        assert "services.controller.hosts" in problem(answer, 421, "misdirected")["detail"]


@pytest.mark.parametrize("name", ["five.example.org:8080", "http://five", "", "*.example.org", "a b"])
def test_invalid_host_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="without a port"):
        ControllerConfig(hosts=[name])


NAMES = HostNames(["five.example.org"], "Controller.local")


def is_allowed(names: HostNames, *hosts: bytes) -> bool:
    try:
        names.require([(b"x-host", b"localhost"), *((b"host", host) for host in hosts), (b"origin", b"http://x")])
    except Problem as problem:
        assert (problem.status, problem.kind) == (421, "misdirected")
        assert "allowed are addresses and " in problem.detail and "localhost" in problem.detail
        return False
    return True


@pytest.mark.parametrize("host", [
    b"localhost", b"LocalHost:8080", b"controller.local", b"CONTROLLER.local:1", b"five.example.org",
    b"five.example.org.", b"five.example.org.:443", b"127.0.0.1", b"192.0.2.7:80", b"[::1]", b"[2001:db8::1]:80"])
def test_names_and_addresses_are_allowed(host: bytes) -> None:
    assert is_allowed(NAMES, host)


@pytest.mark.parametrize("hosts", [
    [], [b"localhost", b"localhost"], [b"127.0.0.1", b"evil.example"], [b""], [b"."], [b":80"], [b"evil.example"],
    [b"five.example.org.evil.example"], [b"evil-five.example.org"], [b"five.example.org.."], [b"[::1"], [b"[x]"],
    [b"127.0.0.1.evil.example"], [b"user@evil.example"], [b"2001:db8::1"], [b"localhost\xff"]])
def test_other_hosts_are_refused(hosts: list[bytes]) -> None:
    assert not is_allowed(NAMES, *hosts)


def test_refusal_shows_the_host_and_the_names() -> None:
    with pytest.raises(Problem, match="Host none: allowed are addresses and controller.local, five.example.org, local"):
        NAMES.require([])
    with pytest.raises(Problem, match="Host 'a', 'b': allowed are addresses and localhost; services.controller.hosts"):
        HostNames().require([(b"host", b"a"), (b"host", b"b")])


def test_names_are_configured_or_not() -> None:
    assert NAMES.configured and not HostNames().configured and not HostNames((), "0.0.0.0").configured
    assert not is_allowed(HostNames(), b"five.example.org") and not is_allowed(HostNames(), b"")
