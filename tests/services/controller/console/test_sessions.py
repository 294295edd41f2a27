"""Console login: single-use links, per-browser cookies, and protection against other sites."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import redis
from fastapi import WebSocket

from five.run.config.controller import LimitsConfig
from five.services.controller.console.sessions import LINK_SECONDS, SESSION_SECONDS
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FixedTokens, Role, token_hash
from rapid.store.keys import Keys
from tests.services.live_controller import OPERATOR, RUN, TLS, VIEWER, LiveController, live, problem

COOKIE = f"five-{RUN}"


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


class Browser:
    """Client that behaves like the console's script in a browser: cookies, origin and the console's header."""

    def __init__(self, rest: LiveController) -> None:
        self.rest = rest
        self.client = httpx.Client(base_url=rest.url, verify=TLS)
        self.own = {"Origin": rest.url, "Sec-Fetch-Site": "same-origin", "X-Five-Console": "test"}

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None, **given: Any) -> httpx.Response:
        return self.client.request(method, path, headers=self.own if headers is None else headers, **given)

    def log_in(self, token: str = OPERATOR, role: str | None = None) -> httpx.Response:
        """Log in with a link created by the token's holder."""
        made = self.rest.ask("POST", "/v1/session/links", token, json={"role": role} if role else {})
        assert made.status_code == 200, made.text
        return self.ask("POST", "/v1/session", json={"code": made.json()["code"]})


def test_a_link_logs_one_browser_in_once(rest: LiveController) -> None:
    link = rest.ask("POST", "/v1/session/links").json()
    assert link["role"] == "operator" and link["path"] == f"/#login={link['code']}"
    assert 0 < link["expires_at"] - time.time() <= LINK_SECONDS
    first, second = Browser(rest), Browser(rest)
    assert first.ask("POST", "/v1/session", json={"code": link["code"]}).json()["name"] == "ada"
    problem(second.ask("POST", "/v1/session", json={"code": link["code"]}), 401, "unauthenticated")
    assert first.ask("GET", "/v1/status").status_code == 200
    assert second.ask("GET", "/v1/status").status_code == 401
    assert first.ask("POST", "/v1/stop", params={"dry_run": True}).status_code == 200


def test_cookie_is_per_run_http_only_and_same_site(rest: LiveController) -> None:
    browser = Browser(rest)
    said = browser.log_in().headers["set-cookie"].split("; ")
    assert said[0].startswith(f"{COOKIE}=") and len(said[0]) > len(COOKIE) + 40
    assert set(said[1:]) == {"Path=/", f"Max-Age={SESSION_SECONDS}", "HttpOnly", "SameSite=Strict"}
    code = rest.ask("POST", "/v1/session/links").json()["code"]
    behind = {**browser.own, "Origin": "https://five.example", "Host": "five.example"}
    answer = httpx.post(rest.url + "/v1/session", headers=behind, json={"code": code})
    assert answer.status_code == 200 and "Secure" in answer.headers["set-cookie"].split("; ")


def test_only_hashes_of_secrets_are_stored(rest: LiveController, redis_client: redis.Redis) -> None:
    link = rest.ask("POST", "/v1/session/links", headers={"Idempotency-Key": "one"}).json()
    browser = Browser(rest)
    browser.log_in()
    secrets = [link["code"], browser.client.cookies[COOKIE], OPERATOR]
    names = [key for key in redis_client.keys("*") if redis_client.type(key) == b"string"]
    rows = {key.decode(): redis_client.get(key) for key in names}
    everything = " ".join(f"{key} {value!r}" for key, value in rows.items())
    assert Keys(RUN).session(token_hash(secrets[1])) in rows and Keys(RUN).login(token_hash(secrets[0])) in rows
    for secret in secrets:
        assert secret not in everything and base64.b64encode(secret.encode()).decode() not in everything


def test_two_that_exchange_one_code_at_once_get_one_session(rest: LiveController) -> None:
    code = rest.ask("POST", "/v1/session/links").json()["code"]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda b: b.ask("POST", "/v1/session", json={"code": code}).status_code,
                              [Browser(rest) for _ in range(8)]))
    assert sorted(found) == [200] + [401] * 7


def test_a_link_ends_by_itself_and_so_does_a_session(rest: LiveController, redis_client: redis.Redis) -> None:
    link, browser = rest.ask("POST", "/v1/session/links").json(), Browser(rest)
    browser.log_in()
    left = redis_client.ttl(Keys(RUN).login(token_hash(link["code"])))
    assert 0 < left <= LINK_SECONDS
    assert 0 < redis_client.ttl(Keys(RUN).session(token_hash(browser.client.cookies[COOKIE]))) <= SESSION_SECONDS


def stored(redis_client: redis.Redis, kind: str) -> int:
    """Return the number of sessions or links in the store."""
    return len(redis_client.keys(f"five:{RUN}:{kind}:*"))


def test_a_token_cannot_fill_the_store(rest: LiveController, redis_client: redis.Redis) -> None:
    sessions = rest.context.sessions
    caller = sessions.open_by_token(VIEWER).caller
    for create in (lambda: sessions.open_by_token(VIEWER), lambda: sessions.create_link(caller, Role.VIEWER)):
        for _ in range(100):
            try:
                create()
            except Problem as problem:
                assert problem.status == 429
    for kind in ("session", "login"):
        assert stored(redis_client, kind) <= 64 + 1, "64 and their list"


def test_sessions_are_created_slowly(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(logins_per_second=0.01, logins_burst=2)) as rest:
        browser = Browser(rest)
        assert [browser.ask("POST", "/v1/session", json={"token": VIEWER}).status_code for _ in range(3)] == [
            200, 200, 429]
        problem(rest.ask("POST", "/v1/session/links", VIEWER), 429, "too-many-requests")
        assert browser.ask("POST", "/v1/session", json={"token": OPERATOR}).status_code == 200


def test_the_oldest_sessions_and_links_of_a_token_end(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(sessions_per_token=2)) as rest:
        browsers = [Browser(rest) for _ in range(4)]
        operator = Browser(rest)
        operator.log_in()
        for browser in browsers:
            browser.ask("POST", "/v1/session", json={"token": VIEWER})
            assert browser.ask("GET", "/v1/session").status_code == 200
        assert [b.ask("GET", "/v1/session").status_code for b in (*browsers, operator)] == [401, 401, 200, 200, 200]
        assert browsers[2].ask("DELETE", "/v1/session").status_code == 204
        browsers[0].ask("POST", "/v1/session", json={"token": VIEWER})
        assert [b.ask("GET", "/v1/session").status_code for b in (browsers[0], browsers[3])] == [200, 200]
        codes = [rest.ask("POST", "/v1/session/links", VIEWER).json()["code"] for _ in range(3)]
        assert [Browser(rest).ask("POST", "/v1/session", json={"code": code}).status_code for code in codes] == [
            401, 200, 200]
        assert stored(redis_client, "session") == 2 + 2 + 1 and stored(redis_client, "login") == 2  # the lists included


def test_an_unused_session_ends_early(rest: LiveController, redis_client: redis.Redis) -> None:
    browser = Browser(rest)
    browser.log_in()
    name = Keys(RUN).session(token_hash(browser.client.cookies[COOKIE]))
    assert 0 < redis_client.ttl(name) <= 3600
    browser.ask("GET", "/v1/session")
    assert SESSION_SECONDS - 60 < redis_client.ttl(name) <= SESSION_SECONDS


def test_ended_sessions_leave_no_memory(rest: LiveController) -> None:
    browser = Browser(rest)
    for _ in range(5):
        browser.log_in()
        assert browser.ask("GET", "/v1/session").status_code == 200
        assert browser.ask("DELETE", "/v1/session").status_code == 204
    sessions = rest.context.sessions
    assert not sessions._cache and not sessions._renewed_at


def test_a_viewers_idempotency_keys_are_not_stored(rest: LiveController, redis_client: redis.Redis) -> None:
    before = int(redis_client.info("commandstats").get("cmdstat_set", {"calls": 0})["calls"])
    for n in range(5):
        problem(rest.ask("POST", "/v1/pause", VIEWER, headers={"Idempotency-Key": str(n)}), 403, "forbidden")
    assert int(redis_client.info("commandstats").get("cmdstat_set", {"calls": 0})["calls"]) == before


def test_a_token_that_is_typed_in_opens_a_session(rest: LiveController) -> None:
    browser = Browser(rest)
    assert browser.ask("POST", "/v1/session", json={"token": VIEWER}).json()["role"] == "viewer"
    problem(Browser(rest).ask("POST", "/v1/session", json={"token": "service-token"}), 401, "unauthenticated")
    problem(Browser(rest).ask("POST", "/v1/session", json={}), 422, "invalid")


def test_a_link_gives_no_more_than_its_makers_role(rest: LiveController) -> None:
    problem(rest.ask("POST", "/v1/session/links", VIEWER, json={"role": "operator"}), 403, "forbidden")
    lowered = Browser(rest)
    assert lowered.log_in(OPERATOR, "viewer").json()["role"] == "viewer"
    problem(lowered.ask("POST", "/v1/pause"), 403, "forbidden")


def changes(rest: LiveController) -> list[tuple[str, str]]:
    """Return every operation of the API that changes something."""
    found = rest.ask("GET", "/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in found.items() for method in methods
            if method != "get" and not path.startswith("/v1/session")]


def test_a_viewers_session_is_refused_every_change(rest: LiveController) -> None:
    viewer = Browser(rest)
    viewer.log_in(VIEWER)
    asked = changes(rest)
    assert len(asked) >= 20
    for method, path in asked:
        for part, value in (("{name}", "learning_rate"), ("{identity}", "a-1"), ("{change}", "1-0")):
            path = path.replace(part, value)
        problem(viewer.ask(method, path), 403, "forbidden")
    assert viewer.ask("POST", "/v1/pause").status_code == viewer.ask("POST", "/v1/stop").status_code == 403
    assert viewer.ask("GET", "/v1/status").json()["status"] == "starting"


@pytest.mark.parametrize("foreign", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {}, {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://["}, {"Sec-Fetch-Site": "same-site"}])
def test_a_change_from_another_page_is_refused(rest: LiveController, foreign: dict[str, str]) -> None:
    browser = Browser(rest)
    browser.log_in()
    headers = {"X-Five-Console": "test", **foreign}
    for method, path in (("POST", "/v1/pause"), ("PUT", "/v1/anneal/share"), ("POST", "/v1/session/links")):
        problem(browser.ask(method, path, headers), 403, "cross-origin")
    if "Sec-Fetch-Site" in foreign or "Origin" in foreign:
        for path in ("/v1/status", "/v1/stream"):
            problem(browser.ask("GET", path, headers), 403, "cross-origin")
    assert browser.ask("GET", "/v1/status").json()["status"] == "starting"


def test_form_without_the_console_header_is_refused(rest: LiveController) -> None:
    browser = Browser(rest)
    browser.log_in()
    without = {key: value for key, value in browser.own.items() if key != "X-Five-Console"}
    problem(browser.ask("POST", "/v1/pause", without), 403, "cross-origin")
    assert browser.ask("POST", "/v1/pause", params={"dry_run": True}).status_code != 403


def test_login_from_another_origin_is_refused(rest: LiveController) -> None:
    code = rest.ask("POST", "/v1/session/links").json()["code"]
    for headers in ({}, {"Origin": "https://evil.example", "X-Five-Console": "x"}, {"Origin": rest.url}):
        problem(Browser(rest).ask("POST", "/v1/session", headers, json={"code": code}), 403, "cross-origin")
    assert Browser(rest).ask("POST", "/v1/session", json={"code": code}).status_code == 200


def test_a_session_ends_with_its_token_and_with_its_role(rest: LiveController) -> None:
    browser = Browser(rest)
    browser.log_in()
    authenticator = rest.context.authenticator
    authenticator._tokens = FixedTokens.of(ada=("viewer", OPERATOR))
    problem(browser.ask("POST", "/v1/pause"), 403, "forbidden")
    authenticator._tokens = FixedTokens.of(vera=("viewer", VIEWER))
    problem(browser.ask("GET", "/v1/status"), 401, "unauthenticated")


def test_a_stream_ends_with_its_session(rest: LiveController) -> None:
    browser = Browser(rest)
    browser.log_in()
    with browser.client.stream("GET", "/v1/stream", headers={"Sec-Fetch-Site": "same-origin"},
                               timeout=20) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        assert browser.ask("DELETE", "/v1/session").status_code == 204
        for _ in lines:
            pass  # it ends
    assert COOKIE not in browser.client.cookies
    problem(browser.ask("GET", "/v1/status"), 401, "unauthenticated")


def test_a_session_outlives_the_controller(rest: LiveController, redis_url: str) -> None:
    browser = Browser(rest)
    browser.log_in()
    with live(redis_url, create=False) as again:
        answer = again.ask("GET", "/v1/session", "", cookies=dict(browser.client.cookies))
        assert answer.json() == {"name": "ada", "role": "operator", "run": RUN, "build": again.context.site.build}


def shake_hands(rest: LiveController, headers: dict[str, str]) -> str:
    """Return the application's first response to a WebSocket handshake."""
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    scope = {"type": "websocket", "path": "/v1/nothing", "query_string": b"", "client": ("127.0.0.1", 1),
             "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()]}
    asyncio.run(rest.app(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]


def test_a_web_socket_needs_a_session_and_the_consoles_origin(rest: LiveController) -> None:
    reached: list[str] = []

    @rest.app.websocket("/v1/nothing")
    async def talk(socket: WebSocket) -> None:
        reached.append(socket.state.caller.name)
        await socket.accept()

    browser = Browser(rest)
    browser.log_in()
    cookie = {"Cookie": f"{COOKIE}={browser.client.cookies[COOKIE]}", "Host": f"127.0.0.1:{rest.port}"}
    refused = ({"Origin": rest.url}, {**cookie, "Origin": "https://evil.example"}, cookie,
               {**cookie, "Origin": rest.url, "Sec-Fetch-Site": "same-site"})
    assert [shake_hands(rest, headers) for headers in refused] == ["websocket.close"] * 4 and not reached
    assert shake_hands(rest, {**cookie, "Origin": rest.url}) == "websocket.accept" and reached == ["ada"]
    assert shake_hands(rest, {"Authorization": f"Bearer {VIEWER}"}) == "websocket.accept" and reached[1:] == ["vera"]


def test_a_name_that_is_markup_comes_out_as_json_text(rest: LiveController) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    rest.state.events.append("test", hostile, {"reason": hostile})
    answer = rest.ask("GET", "/v1/events")
    assert answer.headers["content-type"].startswith("application/json")
    assert json.loads(answer.text)["items"][0]["what"] == hostile
