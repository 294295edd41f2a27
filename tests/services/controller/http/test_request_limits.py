"""Rates of requests: nobody without a token, and no viewer, takes what others need."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import redis

from five.run.config.controller import LimitsConfig
from rapid.embedded_redis import EmbeddedRedis
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController, live, problem

FIRST, SECOND = "203.0.113.1", "203.0.113.2"


def ask(rest: LiveController, token: str, client: str = FIRST, path: str = "/v1/status", **headers: str) -> int:
    """Send a request that a trusted proxy forwards for a client. Return the status."""
    return rest.ask("GET", path, token, headers={"X-Forwarded-For": client, **headers}).status_code


def log_in(rest: LiveController, client: str = FIRST, **body: str) -> httpx.Response:
    return rest.ask("POST", "/v1/session", "", json=body, headers={
        "X-Forwarded-For": client, "Origin": rest.url, "Sec-Fetch-Site": "same-origin", "X-Five-Console": "test"})


def test_requests_without_a_token_do_not_starve_others(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(requests_per_second=0.01, burst=20)) as rest:
        for client in (FIRST, SECOND):
            assert {ask(rest, token, client) for token in ["", "forged"] * 10} <= {401, 429}
        assert ask(rest, VIEWER) == ask(rest, OPERATOR) == 200


def test_viewers_do_not_starve_operators(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(requests_per_second=0.01, burst=5)) as rest:
        assert [ask(rest, VIEWER) for _ in range(6)] == [200] * 5 + [429]
        assert ask(rest, OPERATOR) == 200


def test_one_address_without_a_token_is_limited(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(anonymous_requests_per_second=0.01, anonymous_burst=3)) as rest:
        assert [ask(rest, "", path="/openapi.json") for _ in range(4)] == [200] * 3 + [429]
        assert ask(rest, "", SECOND, "/openapi.json") == 200
        assert ask(rest, VIEWER, path="/openapi.json") == 429, "the token is not checked outside the API"
        assert ask(rest, VIEWER) == 200


def test_all_addresses_without_a_token_are_limited(redis_client: redis.Redis, redis_url: str) -> None:
    limits = LimitsConfig(anonymous_requests_per_second=0.01, anonymous_burst=1)
    with live(redis_url, limits, trusted_proxies=("127.0.0.0/8",)) as rest:
        statuses = [httpx.get(f"{rest.url}/openapi.json", headers={"X-Forwarded-For": f"203.0.113.{n}"}).status_code
                    for n in range(7)]
        assert statuses == [200] * 5 + [429] * 2, "a proxy has five times the rate of an address"


def test_forged_forwarded_addresses_give_no_more_attempts(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=2)) as rest:
        statuses = [ask(rest, "forged", f"203.0.113.{n}") for n in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert ask(rest, OPERATOR) == 200


def test_forwarded_text_counts_as_the_proxy(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=2)) as rest:
        assert [ask(rest, "", "x" * n) for n in range(1, 4)] == [401, 401, 429]


def test_ipv6_clients_count_by_network(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=1)) as rest:
        assert [ask(rest, "", client) for client in ("2001:db8::1", "2001:db8::2:3", "2001:db8:0:1::1")] == [
            401, 429, 401]


def test_failed_logins_are_throttled(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=3)) as rest:
        for body in ({"token": VIEWER}, {"token": VIEWER}, {}, {}, {}):  # accepted, or not an attempt
            assert log_in(rest, **body).status_code == (200 if body else 422)
        assert [log_in(rest, **body).status_code for body in (
            {"code": "guess"}, {"token": "guess"}, {"code": "guess"}, {"code": "guess"}, {"token": VIEWER})] == [
            401, 401, 401, 429, 429]
        problem(log_in(rest, code="guess"), 429, "too-many-requests")
        assert log_in(rest, SECOND, token=VIEWER).status_code == 200
        assert ask(rest, VIEWER) == 200, "a token of the same address"


def test_forged_cookies_do_not_read_the_store(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=3)) as rest:
        own = {"Cookie": log_in(rest, token=VIEWER).headers["set-cookie"].partition(";")[0]}
        assert ask(rest, "", **own) == 200

        def reads() -> int:
            return int(redis_client.info("commandstats")["cmdstat_get"]["calls"])

        forged = [{"Cookie": f"five-{RUN}=forged-{n}"} for n in range(20)]
        assert [ask(rest, "", **cookie) for cookie in forged[:4]] == [401] * 3 + [429]
        before = reads()
        assert {ask(rest, "", **cookie) for cookie in forged[4:]} == {429}
        assert reads() == before
        assert ask(rest, "", **own) == 200, "a session that the controller has seen"


def test_attempt_is_put_back_when_the_store_is_unreachable(tmp_path: Path) -> None:
    """Otherwise a browser whose session is valid would be refused once the store is there again."""
    limits = LimitsConfig(failed_logins_per_second=0.001, failed_logins_burst=1, store_seconds=0.2)
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as running, live(running.url, limits) as rest:
        running.kill()
        cookie = {"Cookie": f"five-{RUN}=some-session"}
        assert [ask(rest, "", **cookie) for _ in range(3)] == [503, 503, 503]


def test_token_counts_before_a_cookie(redis_client: redis.Redis, redis_url: str) -> None:
    """A request with a token needs no origin, and has the token's role."""
    with live(redis_url) as rest:
        both = {"Cookie": log_in(rest, token=VIEWER).headers["set-cookie"].partition(";")[0]}
        assert rest.ask("GET", "/v1/session", headers=both).json()["name"] == "ada"
        assert rest.ask("POST", "/v1/stop", headers=both, params={"dry_run": True}).status_code == 200
        assert rest.ask("GET", "/v1/session", "forged", headers=both).status_code == 401


@contextmanager
def slow_bodies(rest: LiveController, count: int, head: str) -> Iterator[None]:
    """Send requests whose bodies do not arrive."""
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", rest.port), 5))
            one.sendall(f"POST {head}\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{".encode())
        yield


@pytest.mark.parametrize("head", [
    "/ HTTP/1.1", "/v1/session HTTP/1.1\r\nOrigin: http://x\r\nX-Five-Console: 1",
    f"/v1/pause HTTP/1.1\r\nAuthorization: Bearer {VIEWER}"], ids=["page", "login", "viewer"])
def test_slow_requests_leave_slots_to_operators(redis_client: redis.Redis, redis_url: str, head: str) -> None:
    with live(redis_url, LimitsConfig(concurrent_requests=4)) as rest, slow_bodies(rest, 8, head):
        assert ask(rest, OPERATOR) == 200
