"""Claims of docs/single-sign-on.md about Five behind a proxy that logs people in."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
import yaml
from fastapi import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from five.cli.main import main
from five.run.config.controller import ControllerConfig, LimitsConfig
from tests.repository import ROOT
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController, bearer, live
from tests.services.reverse_proxy import Proxy

PAGE = (ROOT / "docs/single-sign-on.md").read_text()
PREFIX = "/five"
# Headers in which oauth2-proxy and similar proxies name the person.
IDENTITY = {"X-Forwarded-User": "ada", "X-Forwarded-Email": "ada@example.org", "X-Forwarded-Groups": "five",
            "X-Forwarded-Preferred-Username": "ada", "X-Auth-Request-User": "ada",
            "X-Auth-Request-Email": "ada@example.org"}


@pytest.fixture(params=["", PREFIX], ids=["host", "path"])
def rest(request: pytest.FixtureRequest, redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, path_prefix=request.param) as found:
        yield found


@pytest.fixture
def proxy(rest: LiveController) -> Iterator[Proxy]:
    found = Proxy(rest.port, rest.context.path_prefix, strips=False)
    yield found
    found.close()


def browser(proxy: Proxy, token: str) -> httpx.Client:
    """Return a browser that logged in at the provider, and in the console with a token."""
    origin = f"http://127.0.0.1:{proxy.port}"
    client = httpx.Client(base_url=proxy.url, timeout=10, cookies={"__Host-oauth2-proxy": "ticket"}, headers={
        "Origin": origin, "Sec-Fetch-Site": "same-origin", "X-Five-Console": "1"})
    answer = client.post("/v1/session", json={"token": token}, headers=IDENTITY)
    assert answer.status_code == 200, answer.text
    assert f"five-{RUN}" in client.cookies
    return client


def test_a_session_works_beside_the_proxys_cookie(proxy: Proxy) -> None:
    client = browser(proxy, OPERATOR)
    answer = client.get("/v1/session", headers={**IDENTITY, "X-Forwarded-User": "mallory"})
    assert answer.json()["name"] == "ada" and answer.json()["role"] == "operator"
    assert client.post("/v1/stop", params={"dry_run": True}).status_code == 200


def test_identity_headers_give_no_access_and_no_name(proxy: Proxy) -> None:
    assert httpx.get(f"{proxy.url}/v1/status", headers=IDENTITY, timeout=10).status_code == 401
    answer = httpx.get(f"{proxy.url}/v1/session", headers={**IDENTITY, **bearer(VIEWER)}, timeout=10)
    assert answer.json()["name"] == "vera" and answer.json()["role"] == "viewer"
    named = {header for header in IDENTITY if header.startswith("X-Forwarded") and f"`{header}`" in PAGE}
    assert len(named) == 3 and "`X-Auth-Request-*`" in PAGE


@pytest.mark.parametrize("header", ["Basic YWRhOg==", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln"])
def test_a_proxys_own_authorization_is_refused(proxy: Proxy, header: str) -> None:
    client = browser(proxy, OPERATOR)
    assert client.get("/v1/status", headers={"Authorization": header}).status_code == 401
    assert client.get("/v1/status").status_code == 200


@pytest.mark.parametrize("missing", ["Origin", "X-Five-Console"])
def test_changes_need_the_headers_of_the_console(proxy: Proxy, missing: str) -> None:
    client = browser(proxy, OPERATOR)
    del client.headers[missing]
    assert client.post("/v1/stop", params={"dry_run": True}).status_code == 403
    assert f"`{missing}`" in PAGE


def test_a_changed_host_is_refused(proxy: Proxy) -> None:
    client = browser(proxy, OPERATOR)
    assert client.post("/v1/stop", params={"dry_run": True}, headers={"Host": "five-controller"}).status_code == 403


async def test_web_sockets_pass_with_the_session(rest: LiveController, proxy: Proxy) -> None:
    @rest.app.websocket("/v1/nothing")
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(socket.state.caller.name)

    client = browser(proxy, OPERATOR)
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    url = f"{proxy.url.replace('http', 'ws', 1)}/v1/nothing"
    async with connect(url, additional_headers={"Cookie": cookies}, origin=client.headers["Origin"]) as socket:
        assert await socket.recv() == "ada"
    with pytest.raises(InvalidStatus):
        async with connect(url, additional_headers={"Cookie": "__Host-oauth2-proxy=ticket", **IDENTITY}):
            pass


def test_the_command_uses_its_token_through_the_proxy(
        proxy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", VIEWER)
    assert main(["status", "--url", proxy.url]) == 0
    assert RUN in capsys.readouterr().out
    monkeypatch.delenv("FIVE_OPERATOR_TOKEN")
    (tmp_path / "token").write_text(VIEWER)
    assert main(["status", "--url", proxy.url, "--token-file", str(tmp_path / "token")]) == 0
    assert main(["status", "--url", proxy.url]) == 2


def test_configuration_on_the_page_is_valid() -> None:
    blocks = [yaml.safe_load(re.sub(r"^ {3}", "", block, flags=re.M)) for block in re.findall(
        r"^ *```yaml\n(.*?)^ *```$", PAGE, re.M | re.S)]
    overrides = [block["run"]["overrides"]["services"]["controller"] for block in blocks if "run" in block]
    assert [sorted(each) for each in overrides] == [["trusted_proxies"], ["path_prefix"]]
    for each in overrides:
        ControllerConfig(**each)
    (options,) = [block["config"]["configFile"] for block in blocks if "config" in block]
    seconds = re.search(r'^upstream_timeout = "(\d+)s"$', options, re.M)
    assert seconds and int(seconds[1]) > LimitsConfig().request_seconds == 30
    assert 'cookie_samesite = "lax"' in options and "pass_basic_auth = false" in options
