"""The REST API, the console and web sockets behind a reverse proxy."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from pydantic import ValidationError
from websockets.asyncio.client import connect

from five.run.config.controller import ControllerConfig, LimitsConfig
from five.services.controller.console.static_files import ConsoleSite
from tests.ipv6 import needs_loopback
from tests.services.live_controller import OPERATOR, VIEWER, bearer, live
from tests.services.play_server import playing
from tests.services.reverse_proxy import Proxy
from tests.waiting import eventually

PREFIX = "/five"
PAGE = ('<!doctype html><meta name="path-prefix" content=""><link rel="icon" href="./icon.svg">'
        '<script type="module" src="./assets/index-abc.js"></script>')


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "build.json").write_text('{"build": "0123456789ab"}')
    (tmp_path / "assets/index-abc.js").write_text("console.log('five');")
    return tmp_path


@pytest.fixture(params=[True, False], ids=["prefix removed", "prefix kept"])
def proxy(request: Any, redis_client: redis.Redis, redis_url: str, built: Path) -> Iterator[Proxy]:
    site = ConsoleSite(built, PREFIX)
    with live(redis_url, path_prefix=PREFIX, site=site) as rest:
        found = Proxy(rest.port, PREFIX, request.param)
        yield found
        found.close()


def test_console_names_its_files_below_the_prefix(proxy: Proxy) -> None:
    for path in ("", "/", "/games/played/12"):
        page = httpx.get(proxy.url + path, timeout=10)
        assert page.status_code == 200
        assert f'content="{PREFIX}"' in page.text and f'href="{PREFIX}/icon.svg"' in page.text
        assert f'src="{PREFIX}/assets/index-abc.js"' in page.text
    assert "console.log" in httpx.get(f"{proxy.url}/assets/index-abc.js", timeout=10).text


def test_rest_works_below_the_prefix(proxy: Proxy) -> None:
    assert httpx.get(f"{proxy.url}/healthz", timeout=10).status_code == 200
    assert httpx.get(f"{proxy.url}/v1/status", timeout=10).status_code == 401
    assert httpx.get(f"{proxy.url}/v1/status", headers=bearer(VIEWER), timeout=10).json()["run"] == "trial"
    assert httpx.get(f"{proxy.url}/openapi.json", timeout=10).json()["servers"] == [{"url": PREFIX}]
    asked = {"version": 1, "against": "random", "games": 2, "seed": 1}
    made = httpx.post(f"{proxy.url}/v1/matches", json=asked, headers=bearer(OPERATOR), timeout=10)
    assert made.status_code == 202, made.text
    assert made.headers["Location"].startswith(f"{PREFIX}/v1/matches/")
    origin = proxy.url.removesuffix(PREFIX)
    assert httpx.get(origin + made.headers["Location"], headers=bearer(VIEWER), timeout=10).status_code == 200


def test_path_with_a_final_slash_is_redirected_below_the_prefix(proxy: Proxy) -> None:
    moved = httpx.get(f"{proxy.url}/v1/status/", headers=bearer(VIEWER), timeout=10)
    assert moved.status_code == 307 and moved.headers["Location"] == f"https://127.0.0.1:{proxy.port}/five/v1/status"


def test_paths_without_the_prefix_stay(redis_client: redis.Redis, redis_url: str) -> None:
    """Probes and `five` inside the cluster send none; a longer first segment is not the prefix."""
    with live(redis_url, path_prefix=PREFIX) as rest:
        assert rest.ask("GET", "/v1/status").status_code == 200
        assert rest.ask("GET", "/healthz", "").status_code == 200
        assert rest.ask("GET", "/fives/v1/status").status_code == 404


@pytest.mark.parametrize("strips", [True, False])
async def test_web_socket_works_below_the_prefix(redis_client: redis.Redis, redis_url: str, strips: bool) -> None:
    async with playing(redis_url) as there:
        game = await there.open()
        there.rest.context.path_prefix = PREFIX
        with live(redis_url, create=False, path_prefix=PREFIX, play=there.rest.context.play) as rest:
            proxy = Proxy(rest.port, PREFIX, strips)
            url = f"{proxy.url.replace('http', 'ws', 1)}/v1/play/games/{game}/socket?spectate=1"
            async with connect(url, additional_headers=bearer(OPERATOR), compression=None) as socket:
                assert len(await socket.recv()) > 0
            proxy.close()


def test_limits_count_the_client_that_a_trusted_proxy_names(redis_client: redis.Redis, redis_url: str) -> None:
    limits = LimitsConfig(failed_logins_per_second=0.001, failed_logins_burst=1)
    with live(redis_url, limits) as rest:
        first, second = (Proxy(rest.port, "", True, client) for client in ("203.0.113.7", "203.0.113.8"))
        statuses = [httpx.get(f"{p.url}/v1/status", timeout=10).status_code for p in (first, first, second)]
        assert statuses == [401, 429, 401]
        first.close()
        second.close()
    with live(redis_url, limits, create=False, trusted_proxies=()) as rest:
        first, second = (Proxy(rest.port, "", True, client) for client in ("203.0.113.7", "203.0.113.8"))
        assert [httpx.get(f"{p.url}/v1/status", timeout=10).status_code for p in (first, second)] == [401, 429]
        first.close()
        second.close()


@needs_loopback
def test_client_of_a_dual_stack_socket_is_known_by_its_ipv4_address(redis_client: redis.Redis, redis_url: str) -> None:
    limits = LimitsConfig(failed_logins_per_second=0.001, failed_logins_burst=1)
    with live(redis_url, limits, host="::", trusted_proxies=("127.0.0.0/8",)) as rest:
        first, second = (Proxy(rest.port, "", True, client) for client in ("203.0.113.7", "203.0.113.8"))
        assert [httpx.get(f"{p.url}/v1/status", timeout=10).status_code for p in (first, second)] == [401, 401]
        assert httpx.get(f"http://[::1]:{rest.port}/healthz", timeout=10).status_code == 200
        first.close()
        second.close()


def test_idle_connection_outlives_a_proxys_pause(redis_client: redis.Redis, redis_url: str) -> None:
    """A proxy reuses a connection after seconds; a server that closes it then makes the proxy answer 502."""
    with live(redis_url, LimitsConfig(keep_alive_seconds=99)) as rest, httpx.Client(timeout=10) as client:
        for _ in range(2):
            assert client.get(f"{rest.url}/healthz").status_code == 200
        (connection,) = rest._server.server_state.connections
        closing: Any = eventually(lambda: connection.timeout_keep_alive_task)  # type: ignore[union-attr]
        assert 90 < closing.when() - time.monotonic() <= 99, "the connection closes before the proxy's"
    assert LimitsConfig().keep_alive_seconds > 60  # nginx, AWS load balancers


@pytest.mark.parametrize(("key", "value", "why"), [
    ("path_prefix", "five", 'expected a path such as "/five"'), ("path_prefix", "/five/", "does not end with one"),
    ("path_prefix", '/"><script>', "letters, digits"), ("trusted_proxies", ["10.0.0.1/8"], "has host bits set"),
    ("trusted_proxies", ["proxy"], "expected addresses or networks")])
def test_invalid_values_are_refused(key: str, value: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ControllerConfig(**{key: value})


def test_unprefixed_console_is_unchanged(redis_client: redis.Redis, redis_url: str, built: Path) -> None:
    with live(redis_url, site=ConsoleSite(built)) as rest:
        page = rest.ask("GET", "/", "").text
        assert 'content=""' in page and 'src="/assets/index-abc.js"' in page and 'href="/icon.svg"' in page
