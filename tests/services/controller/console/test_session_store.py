"""Stored sessions on a clock of the test: cache, renewal, limits, and the checks of cookies and origins."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.run.config.controller import LimitsConfig
from five.services.controller.console import sessions as module
from five.services.controller.console.sessions import (
    Sessions,
    cookie_value,
    require_console_header,
    require_same_origin,
)
from five.services.controller.http.auth import Authenticator, Caller
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import FixedTokens, Role, token_hash
from rapid.store.keys import Keys
from tests.rapid.failing_redis import Breaking
from tests.services.live_controller import OPERATOR, VIEWER, authenticator

KEYS = Keys("trial")
DAY = 24 * 3600


class Clock:
    """A clock that a test sets."""

    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=found))
    return found


@pytest.fixture
def sessions(redis_client: redis.Redis, clock: Clock) -> Sessions:
    return Sessions(redis_client, "trial", authenticator())


def ended(sessions: Sessions, secret: str) -> bool:
    try:
        sessions.caller(secret)
    except Problem as problem:
        assert problem.status == 401
        return True
    return False


def seconds_left(client: Any, key: str) -> float:
    return float(client.pttl(key)) / 1000


def test_ended_session_is_valid_for_a_second_more(sessions: Sessions, clock: Clock, redis_client: redis.Redis) -> None:
    secret = sessions.open_by_token(OPERATOR).secret
    assert not sessions.is_known(secret)
    assert sessions.caller(secret) == Caller("ada", Role.OPERATOR, token_hash(OPERATOR)) and sessions.is_known(secret)
    redis_client.delete(KEYS.session(token_hash(secret)))
    for step in (0.5, 0.5):
        clock.now += step
        assert not ended(sessions, secret)
    clock.now += 0.01
    assert ended(sessions, secret) and not sessions.is_known(secret)


def test_closed_session_ends_at_once(sessions: Sessions, redis_client: redis.Redis) -> None:
    secret, other = (sessions.open_by_token(OPERATOR).secret for _ in range(2))
    for one in (secret, other):
        sessions.caller(one)
    sessions.close(secret)
    sessions.close("unknown")
    assert ended(sessions, secret) and not ended(sessions, other)
    assert not redis_client.exists(KEYS.session(token_hash(secret)))


def test_session_is_renewed_once_an_hour(sessions: Sessions, clock: Clock, redis_client: redis.Redis) -> None:
    """Its row and the list of its token's sessions expire after 30 days, one without a request after an hour."""
    secret = sessions.open_by_token(OPERATOR).secret
    keys = [KEYS.session(token_hash(secret)), KEYS.session(f"of-{token_hash(OPERATOR)}")]
    assert 3590 < seconds_left(redis_client, keys[0]) <= 3600
    assert 30 * DAY - 10 < seconds_left(redis_client, keys[1]) <= 30 * DAY
    for step, renewed in ((0.0, True), (3599.5, False), (1.25, True), (3599.5, False), (1.25, True)):
        clock.now += step
        for key in keys:
            redis_client.expire(key, 100)
        sessions.caller(secret)
        assert [seconds_left(redis_client, key) > 30 * DAY - 10 for key in keys] == [renewed] * 2


def test_link_expires_after_ten_minutes(sessions: Sessions, redis_client: redis.Redis) -> None:
    code = sessions.create_link(Caller("vera", Role.VIEWER, token_hash(VIEWER)), Role.VIEWER)
    key = KEYS.login(token_hash(code))
    assert 590 < seconds_left(redis_client, key) <= 600 and len(code) == 32
    assert json.loads(redis_client.get(key)) == {"token": token_hash(VIEWER), "role": "VIEWER"}  # type: ignore[arg-type]
    assert sessions.open_by_code(code).caller == Caller("vera", Role.VIEWER, token_hash(VIEWER))
    with pytest.raises(Problem, match="used already or is older than ten minutes") as caught:
        sessions.open_by_code(code)
    assert caught.value.status == 401


def test_link_for_a_lower_role_gives_that_role(sessions: Sessions) -> None:
    ada = Caller("ada", Role.OPERATOR, token_hash(OPERATOR))
    opened = sessions.open_by_code(sessions.create_link(ada, Role.VIEWER))
    assert opened.caller.role is sessions.caller(opened.secret).role is Role.VIEWER
    with pytest.raises(Problem, match="'vera' is a viewer: it cannot create a link for an operator") as caught:
        sessions.create_link(Caller("vera", Role.VIEWER, token_hash(VIEWER)), Role.OPERATOR)
    assert caught.value.status == 403


def test_session_of_a_revoked_token_opens_nothing(redis_client: redis.Redis, clock: Clock) -> None:
    old = Sessions(redis_client, "trial", authenticator())
    code = old.create_link(Caller("ada", Role.OPERATOR, token_hash(OPERATOR)), Role.OPERATOR)
    secret = old.open_by_token(OPERATOR).secret
    new = Sessions(redis_client, "trial", Authenticator(FixedTokens.of(vera=("viewer", VIEWER))))
    for open_session in (lambda: new.caller(secret), lambda: new.open_by_code(code)):
        with pytest.raises(Problem, match="no longer listed") as caught:
            open_session()
        assert caught.value.status == 401


def test_least_recent_sessions_leave_the_cache(sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 2)
    first, second, third = (sessions.open_by_token(OPERATOR).secret for _ in range(3))
    for secret in (first, second):
        sessions.caller(secret)
    clock.now += 2.0
    sessions.caller(first)  # read again, so the second one is the least recent
    sessions.caller(third)
    assert [sessions.is_known(secret) for secret in (first, second, third)] == [True, False, True]
    assert not ended(sessions, second) and set(sessions._renewed_at) == set(sessions._cache)


def test_token_has_a_number_of_sessions_and_a_rate(redis_client: redis.Redis, clock: Clock) -> None:
    sessions = Sessions(redis_client, "trial", authenticator(), LimitsConfig(
        sessions_per_token=2, logins_burst=4, logins_per_second=0.001))
    other = sessions.open_by_token(OPERATOR).secret
    opened = [sessions.open_by_token(VIEWER).secret for _ in range(2)]
    for secret in (*opened, other):
        sessions.caller(secret)
    opened += [sessions.open_by_token(VIEWER).secret for _ in range(2)]
    assert [ended(sessions, secret) for secret in (*opened, other)] == [True, True, False, False, False]
    index = json.loads(redis_client.get(KEYS.session(f"of-{token_hash(VIEWER)}")))  # type: ignore[arg-type]
    assert index == [token_hash(secret) for secret in opened[2:]]
    with pytest.raises(Problem, match="this token creates too many sessions and login links") as caught:
        sessions.open_by_token(VIEWER)
    assert caught.value.status == 429
    assert sessions.open_by_token(OPERATOR).caller.name == "ada"


def test_link_stays_valid_while_its_token_is_too_fast(redis_client: redis.Redis, clock: Clock,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(redis_client, "trial", authenticator(), LimitsConfig(logins_burst=2, logins_per_second=0.001))
    code = sessions.create_link(Caller("vera", Role.VIEWER, token_hash(VIEWER)), Role.VIEWER)
    sessions.open_by_token(VIEWER)
    with pytest.raises(Problem, match="too many sessions") as caught:
        sessions.open_by_code(code)
    assert caught.value.status == 429
    monkeypatch.setattr(sessions._rates, "_clock", lambda: time.monotonic() + 2000.0)
    assert sessions.open_by_code(code).caller.name == "vera"


def test_ended_sessions_do_not_count(redis_client: redis.Redis, clock: Clock) -> None:
    sessions = Sessions(redis_client, "trial", authenticator(), LimitsConfig(sessions_per_token=2))
    first, second = (sessions.open_by_token(VIEWER).secret for _ in range(2))
    sessions.close(first)
    third = sessions.open_by_token(VIEWER).secret
    assert [ended(sessions, secret) for secret in (first, second, third)] == [True, False, False]


def test_sessions_opened_at_once_are_all_listed(redis_client: redis.Redis, redis_url: str, clock: Clock,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Another controller opens one between reading the list and writing it."""
    limits = LimitsConfig(sessions_per_token=2)
    other = Sessions(redis.Redis.from_url(redis_url), "trial", authenticator(), limits)
    sessions = Sessions(redis_client, "trial", authenticator(), limits)
    oldest = sessions.open_by_token(VIEWER).secret
    between: list[str] = []
    create = redis_client.pipeline

    def pipeline(**options: Any) -> Any:
        found: Any = create(**options)
        begin = found.multi

        def multi() -> None:
            if not between:
                between.append(other.open_by_token(VIEWER).secret)
            begin()

        found.multi = multi
        return found

    monkeypatch.setattr(redis_client, "pipeline", pipeline)
    newest = sessions.open_by_token(VIEWER).secret
    assert [ended(sessions, secret) for secret in (oldest, *between, newest)] == [True, False, False]


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_opens_one_session(redis_client: redis.Redis, redis_url: str, sessions: Sessions, answer: bool
                                           ) -> None:
    """The connection is lost at each command of a link and its session in turn."""
    for at in range(1, 100):
        redis_client.flushall()
        breaking = Breaking(at, answer)
        client = breaking.client(redis_url.removeprefix("unix://").partition("?")[0], retries=1)
        broken = Sessions(client, "trial", authenticator())
        code = broken.create_link(Caller("vera", Role.VIEWER, token_hash(VIEWER)), Role.VIEWER)
        secret = broken.open_by_code(code).secret
        assert not ended(sessions, secret)
        index = json.loads(redis_client.get(KEYS.session(f"of-{token_hash(VIEWER)}")))  # type: ignore[arg-type]
        assert index == [token_hash(secret)]
        if not breaking.broken:
            break
    assert at > 9


# Cookies and origins.


@pytest.mark.parametrize(("cookies", "found"), [
    ([], ""), ([b"five-trial=abc"], "abc"), ([b"a=1; five-trial=abc; b=2"], "abc"),
    ([b"a=1", b"five-trial=abc"], "abc"),
    ([b"five-trial=a=b"], "a=b"), ([b"five-trial"], ""), ([b"five-trials=x"], ""), ([b"xfive-trial=x"], ""),
    ([b"five-trial=first; five-trial=second"], "first"), ([b"  five-trial=abc  "], "abc")])
def test_cookie_is_found_by_its_name(cookies: list[bytes], found: str) -> None:
    headers = [(b"x-cookie", b"five-trial=wrong"), *((b"cookie", value) for value in cookies)]
    assert cookie_value(headers, "five-trial") == found


@pytest.mark.parametrize(("headers", "reads", "changes"), [
    ({}, True, False), ({"sec-fetch-site": "none"}, True, False), ({"sec-fetch-site": "same-origin"}, True, False),
    ({"sec-fetch-site": "same-site"}, False, False), ({"sec-fetch-site": "cross-site"}, False, False),
    ({"origin": "https://Five.example", "host": "five.example"}, True, True),
    ({"origin": "http://five.example", "host": "FIVE.example"}, True, True),
    ({"origin": "http://five.example:80", "host": "five.example"}, False, False),
    ({"origin": "ftp://five.example", "host": "five.example"}, False, False),
    ({"origin": "http://"}, False, False), ({"origin": "http://", "host": ""}, False, False),
    ({"origin": "null", "host": "null"}, False, False),
    ({"origin": "http://five.example", "host": "five.example", "sec-fetch-site": "cross-site"}, False, False)])
def test_origin_must_be_the_consoles_own(headers: dict[str, str], reads: bool, changes: bool) -> None:
    raw = {key.encode(): value.encode() for key, value in headers.items()}
    for change, allowed in ((False, reads), (True, changes)):
        if allowed:
            require_same_origin(raw, change)
            continue
        with pytest.raises(Problem) as caught:
            require_same_origin(raw, change)
        assert (caught.value.status, caught.value.kind) == (403, "cross-origin")


def test_change_by_cookie_needs_the_consoles_header() -> None:
    require_console_header({b"x-five-console": b""})
    with pytest.raises(Problem, match="x-five-console") as caught:
        require_console_header({b"origin": b"http://five.example"})
    assert (caught.value.status, caught.value.kind) == (403, "cross-origin")
