"""Token buckets and rates of senders, on a clock of the test: borders, refills and what is put back."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from five.run.config.controller import LimitsConfig
from five.services.controller.http import request_limits
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.client_address import ClientAddress
from five.services.controller.http.problems import Problem
from five.services.controller.http.request_limits import (
    ClientRates,
    RequestLimits,
    TokenBucket,
    discard_small_body,
    too_many_requests,
)

ADA, VERA, VINCE = (Caller("ada", Role.OPERATOR, "a"), Caller("vera", Role.VIEWER, "v"),
                    Caller("vince", Role.VIEWER, "w"))
FIRST, SECOND = ClientAddress("203.0.113.1"), ClientAddress("203.0.113.2")


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def admitted(admit: Callable[[], None], attempts: int = 1000) -> int:
    """Return how many attempts are admitted until the first refusal."""
    for count in range(attempts):
        try:
            admit()
        except Problem as problem:
            assert problem.status == 429
            return count
    return attempts


# Buckets.


def test_bucket_never_has_more_than_its_burst() -> None:
    bucket = TokenBucket(2.0, 3.0, now=10.0)
    bucket.put_back()
    for _ in range(3):
        assert bucket.wait_seconds(10.0) == 0.0
        bucket.take()
    assert bucket.wait_seconds(10.0) == 0.5
    assert bucket.wait_seconds(10.25) == 0.25  # half a token is there
    assert bucket.wait_seconds(10.5) == 0.0
    bucket.take()
    bucket.put_back()
    assert bucket.wait_seconds(10.5) == 0.0
    assert bucket.wait_seconds(1000.0) == 0.0
    for _ in range(3):
        bucket.take()
    assert bucket.wait_seconds(1000.0) == 0.5


def test_least_recent_client_is_forgotten(clock: Clock) -> None:
    rates = ClientRates(0.5, 1.0, clock)
    for client in range(4096):
        assert rates.wait_seconds(str(client)) == 0.0
        rates.take(str(client))
    assert rates.wait_seconds("0") == 2.0  # which makes "1" the least recent one
    assert rates.wait_seconds("new") == 0.0
    assert rates.wait_seconds("0") == rates.wait_seconds("2") == 2.0
    rates.put_back("1")  # forgotten: ignored
    assert rates.wait_seconds("1") == 0.0
    rates.put_back("0")
    assert rates.wait_seconds("0") == 0.0


@pytest.mark.parametrize(("seconds", "retry", "text"), [
    (0.001, "1", "0.01 s"), (0.4, "1", "0.4 s"), (1.2, "2", "1.2 s"), (99.0, "100", "99 s")])
def test_refusal_names_the_time_to_wait(seconds: float, retry: str, text: str) -> None:
    problem = too_many_requests(seconds, "too many")
    assert (problem.status, problem.headers["Retry-After"]) == (429, retry)
    assert problem.detail == f"too many; try again in {text}"


# Callers.


def test_callers_have_their_own_rates_and_viewers_one_together(clock: Clock) -> None:
    limits = RequestLimits(LimitsConfig(client_requests_per_second=1.0, client_burst=4, requests_per_second=0.5,
                                        burst=6), clock)
    assert admitted(lambda: limits.admit_caller(VERA, FIRST)) == 4
    assert admitted(lambda: limits.admit_caller(VINCE, FIRST)) == 2  # six of all viewers
    assert admitted(lambda: limits.admit_caller(ADA, FIRST)) == 4
    clock.now += 1.0
    assert admitted(lambda: limits.admit_caller(ADA, FIRST)) == 1
    assert admitted(lambda: limits.admit_caller(VERA, FIRST)) == 0  # half a token for all viewers
    clock.now += 1.0
    assert admitted(lambda: limits.admit_caller(VERA, FIRST)) == 1


def test_requests_in_progress_are_limited() -> None:
    limits = RequestLimits(LimitsConfig(concurrent_requests=2, viewer_share=1.0, operator_share=0.5))
    with limits.enter(None, FIRST):
        for caller in (None, VERA):
            with pytest.raises(Problem, match="1 requests are in progress") as caught:
                limits.enter(caller, FIRST)
            assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
        with limits.enter(ADA, FIRST), pytest.raises(Problem, match=r"limits\.concurrent_requests"):
            limits.enter(ADA, FIRST)
    with limits.enter(VERA, FIRST):
        pass


def test_refused_request_costs_nothing(clock: Clock) -> None:
    """A viewer who is over its own rate takes none of the tokens of the others."""
    limits = RequestLimits(LimitsConfig(client_requests_per_second=0.001, client_burst=1, requests_per_second=0.001,
                                        burst=3), clock)
    assert [admitted(lambda: limits.admit_caller(VERA, FIRST)) for _ in range(5)] == [1, 0, 0, 0, 0]
    assert admitted(lambda: limits.admit_caller(VINCE, FIRST)) == 1


def test_anonymous_operators_count_by_address(clock: Clock) -> None:
    """Without authentication everybody has the same name."""
    limits = RequestLimits(LimitsConfig(client_requests_per_second=0.001, client_burst=2), clock)
    anonymous = Caller("anonymous", Role.OPERATOR)
    assert [admitted(lambda c=client: limits.admit_caller(anonymous, c))  # type: ignore[misc]
            for client in (FIRST, SECOND, FIRST)] == [2, 2, 0]
    with pytest.raises(Problem, match=r"more than 0.001 requests a second from address 203.0.113.1, or 1000 from all"):
        limits.admit_caller(anonymous, FIRST)


# Senders without a token.


def test_proxy_has_five_and_all_have_ten_times_the_rate(clock: Clock) -> None:
    limits = RequestLimits(LimitsConfig(anonymous_requests_per_second=1.0, anonymous_burst=2,
                                        failed_logins_per_second=1.0, failed_logins_burst=2), clock)
    for admit in (limits.admit_anonymous, limits.begin_login):
        def count(prefix: str, proxy: str, admit: Callable[[ClientAddress], None] = admit) -> int:
            return sum(admitted(lambda n=n: admit(ClientAddress(f"{prefix}{n}", proxy)))  # type: ignore[misc]
                       for n in range(20))

        assert admitted(lambda admit=admit: admit(FIRST)) == 2  # type: ignore[misc]
        assert count("10.0.0.", "proxy-1") == 10
        assert count("10.0.1.", "proxy-2") == 8  # 20 of all, less 12
        assert count("10.0.2.", "") == 0
    clock.now += 1.0
    assert admitted(lambda: limits.begin_login(FIRST)) == 1 and admitted(lambda: limits.admit_anonymous(FIRST)) == 1
    again = [ClientAddress(f"10.0.3.{n}", "proxy-1") for n in range(20)]
    assert sum(admitted(lambda c=client: limits.begin_login(c)) for client in again) == 5  # type: ignore[misc]
    for admit, left in ((limits.begin_login, 10 - 6), (limits.admit_anonymous, 10 - 1)):
        others = [ClientAddress(f"10.0.4.{n}") for n in range(20)]
        assert sum(admitted(lambda c=client, a=admit: a(c)) for client in others) == left  # type: ignore[misc]


def test_login_and_other_requests_have_their_own_refusals(clock: Clock) -> None:
    limits = RequestLimits(LimitsConfig(anonymous_requests_per_second=0.1, anonymous_burst=1,
                                        failed_logins_per_second=0.01, failed_logins_burst=1), clock)
    for admit, text, retry in ((limits.admit_anonymous, "without a valid token;", "10"),
                               (limits.begin_login, "without a valid token, code or cookie;", "100")):
        admit(FIRST)
        with pytest.raises(Problem, match=f"too many requests {text} try again in") as caught:
            admit(FIRST)
        assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, retry)


def test_successful_login_is_put_back_everywhere(clock: Clock) -> None:
    limits = RequestLimits(LimitsConfig(failed_logins_per_second=0.001, failed_logins_burst=1), clock)
    for n in range(50):  # more than the proxy or all may fail
        client = ClientAddress(f"10.0.0.{n}", "proxy")
        limits.begin_login(client)
        limits.login_succeeded(client)
    assert admitted(lambda: limits.begin_login(FIRST)) == 1


# Bodies.


def receiving(*pieces: bytes, end: str = "http.request") -> Callable[[], Any]:
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": end})

    async def receive() -> Any:
        return messages.pop(0)

    return receive


@pytest.mark.parametrize(("announced", "allowed"), [
    (b"0", True), (b"1024", True), (b"1025", False), (b"-1", False), (b"", False), (b"1e3", False), (b"+5", False)])
def test_announced_size_is_checked(announced: bytes, allowed: bool) -> None:
    limits = RequestLimits(LimitsConfig(body_bytes=1024))
    limits.check_length([(b"host", b"x")])
    if allowed:
        limits.check_length([(b"host", b"x"), (b"content-length", announced)])
        return
    with pytest.raises(Problem, match="at most 1024 bytes are allowed") as caught:
        limits.check_length([(b"host", b"x"), (b"content-length", announced)])
    assert caught.value.status == 413 and caught.value.headers["Connection"] == "close"


async def test_body_of_the_limit_is_read_and_no_byte_more() -> None:
    limits = RequestLimits(LimitsConfig(body_bytes=1024))
    assert await limits.read_body(receiving(b"a" * 1000, b"b" * 24)) == b"a" * 1000 + b"b" * 24
    assert await limits.read_body(receiving()) == b""
    assert await limits.read_body(receiving(b"a", end="http.disconnect")) is None
    with pytest.raises(Problem) as caught:
        await limits.read_body(receiving(b"a" * 1000, b"b" * 25))
    assert caught.value.status == 413


async def test_slow_body_is_given_up() -> None:
    limits = RequestLimits(LimitsConfig(body_seconds=0.05))

    async def receive() -> Any:
        await asyncio.sleep(30)

    with pytest.raises(Problem, match=r"did not arrive within 0.05 s") as caught:
        await limits.read_body(receive)
    assert caught.value.status == 408 and caught.value.headers["Connection"] == "close"


@pytest.mark.parametrize(("headers", "pieces", "end", "is_complete"), [
    ([(b"content-length", b"65536")], [b"a" * 65530, b"b" * 6], "http.request", True),
    ([(b"host", b"9"), (b"content-length", b"0")], [], "http.request", True),
    ([(b"content-length", b"9")], [b"a"], "http.disconnect", False)])
async def test_small_body_of_a_refused_request_is_read(headers: list[tuple[bytes, bytes]], pieces: list[bytes],
                                                       end: str, is_complete: bool) -> None:
    assert await discard_small_body(headers, receiving(*pieces, end=end)) is is_complete


@pytest.mark.parametrize("headers", [
    [], [(b"content-length", b"65537")], [(b"content-length", b"-1")], [(b"content-length", b"")],
    [(b"content-length", b"9e9"), (b"content-length", b"1")], [(b"transfer-encoding", b"chunked")]])
async def test_other_bodies_of_refused_requests_are_not_read(headers: list[tuple[bytes, bytes]]) -> None:
    async def receive() -> Any:
        pytest.fail("the body was read")

    assert await discard_small_body(headers, receive) is False


async def test_small_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "DISCARD_SECONDS", 0.01)
    assert await discard_small_body([(b"content-length", b"9")], asyncio.Future) is False
