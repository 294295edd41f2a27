"""Limits of requests (bodies, floods, forged tokens, slow clients), and behaviour without a store."""

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from five.run.config.controller import LimitsConfig
from five.services.controller.http.idempotency import IdempotencyStore
from five.services.controller.http.request_limits import ClientRates, TokenBucket
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.state import Status
from tests.services.live_controller import OPERATOR, RUN, SERVICE, VIEWER, LiveController, live, problem

MIB = 1 << 20
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


def pour(rest: LiveController, head: str, gigabytes: float = 1.0) -> tuple[int, bytes]:
    """Send a head and then zeros until the server refuses. Return the accepted bytes and the response."""
    chunked = "chunked" in head
    piece = bytes(64 << 10)
    sent, answer = 0, b""
    with socket.create_connection(("127.0.0.1", rest.port), timeout=20) as s:
        s.sendall(f"POST /v1/pause HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        try:
            while sent < gigabytes * (1 << 30):
                s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                sent += len(piece)
        except OSError:
            pass
        try:
            while more := s.recv(1 << 16):
                answer += more
        except OSError:
            pass
    return sent, answer


@pytest.mark.parametrize(("head", "status"), [
    (f"Content-Length: {1 << 30}", 413),
    (f"Content-Length: {1 << 30}\r\nAuthorization: Bearer {OPERATOR}", 413),
    (f"Content-Length: {MIB + 1}\r\nAuthorization: Bearer {OPERATOR}", 413),
    ("Transfer-Encoding: chunked", 401),
    (f"Transfer-Encoding: chunked\r\nAuthorization: Bearer {OPERATOR}", 413),
])
def test_oversized_body_is_refused_without_reading(rest: LiveController, head: str, status: int) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    sent, answer = pour(rest, head)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b"application/problem+json" in answer
    assert sent < 64 * MIB, "the server went on reading what it had refused"
    assert process.memory_info().rss - before < 32 * MIB
    assert rest.ask("GET", "/v1/status").status_code == 200


@pytest.mark.parametrize("size", [2, 64 << 10])
def test_refused_client_may_send_its_body_late(rest: LiveController, size: int) -> None:
    """A connection that is closed before the body arrives is reset, and the client loses the response."""
    connection = http.client.HTTPConnection("127.0.0.1", rest.port, timeout=30)
    connection.connect()
    opened = connection.sock
    for _ in range(2):
        connection.putrequest("POST", "/v1/pause")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        time.sleep(0.1)
        connection.send(bytes(size))
        response = connection.getresponse()
        assert response.status == 401 and json.loads(response.read())["status"] == 401
    assert connection.sock is opened, "the connection stays open for the next request"
    connection.close()


def test_refused_client_that_sends_no_body_gets_its_answer(rest: LiveController) -> None:
    with socket.create_connection(("127.0.0.1", rest.port), timeout=5) as s:
        s.sendall(b"POST /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        answer = s.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 401 ") and b"connection: close" in answer.lower()


def test_a_body_of_the_largest_size_is_read(rest: LiveController) -> None:
    reason = json.dumps({"reason": "x" * 100}) + " " * (MIB - 200)
    rest.state.transition(Status.RUNNING, "test")
    assert rest.ask("POST", "/v1/pause", content=reason, headers=JSON).status_code == 200


def test_a_slow_body_and_slow_headers_are_cut_off(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(body_seconds=0.3, header_seconds=0.3)) as rest:
        for head, expected in ((f"POST /v1/pause HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n"
                                "Content-Length: 9\r\n\r\n{", b"HTTP/1.1 408 "), ("GET /v1/sta", b""), ("", b"")):
            with socket.create_connection(("127.0.0.1", rest.port), timeout=30) as s:
                s.sendall(head.encode())
                assert s.recv(1 << 16).startswith(expected)
                rest_of = b"" if not expected else s.recv(1 << 16)
                assert rest_of == b"" or b"408" in rest_of


def test_headers_have_a_size(rest: LiveController) -> None:
    with socket.create_connection(("127.0.0.1", rest.port), timeout=30) as s:
        s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (256 << 10))
        assert s.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_forged_and_foreign_tokens(rest: LiveController) -> None:
    for token in ("", "forged", SERVICE, OPERATOR + "x", VIEWER[:-1]):
        answer = rest.ask("GET", "/v1/status", token)
        problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert not token or token not in answer.text
    for path in ("/v1/nothing", "/v1", "/v1/"):
        problem(rest.ask("GET", path, "forged"), 401, "unauthenticated")  # existing resources are not revealed either
    problem(rest.ask("POST", "/v1/stop", VIEWER), 403, "forbidden")
    now = rest.state.status()
    assert now is not None and now.status is Status.STARTING


def test_failed_logins_are_slowed_down_and_valid_ones_are_not(redis_client: redis.Redis, redis_url: str) -> None:
    limits = LimitsConfig(failed_logins_per_second=0.01, failed_logins_burst=3)
    with live(redis_url, limits) as rest:
        statuses = [rest.ask("GET", "/v1/status", "forged").status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        answer = rest.ask("GET", "/v1/status", "forged")
        problem(answer, 429, "too-many-requests")
        assert int(answer.headers["retry-after"]) > 10
        assert rest.ask("GET", "/v1/status").status_code == 200


def test_a_flood_gets_429_with_retry_after(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(client_requests_per_second=0.01, client_burst=5)) as rest:
        answers = [rest.ask("GET", "/v1/status") for _ in range(7)]
        assert [a.status_code for a in answers] == [200] * 5 + [429] * 2
        problem(answers[-1], 429, "too-many-requests")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert rest.ask("GET", "/healthz", "").status_code == 200, "a probe is never refused"


def test_buckets_fill_again() -> None:
    bucket = TokenBucket(10.0, 2.0, now=0.0)
    for _ in range(2):
        assert bucket.wait_seconds(0.0) == 0
        bucket.take()
    assert bucket.wait_seconds(0.0) == pytest.approx(0.1) and bucket.wait_seconds(0.05) == pytest.approx(0.05)
    assert bucket.wait_seconds(0.11) == 0
    rates = ClientRates(1.0, 1.0, lambda: 0.0)
    for client in range(10_000):  # the memory of clients is bounded
        assert rates.wait_seconds(str(client)) == 0
        rates.take(str(client))
    assert len(rates._buckets) == 4096


@pytest.mark.parametrize(("method", "path", "status", "kind"), [
    ("GET", "/v1/nothing", 404, "not-found"), ("GET", "/nothing", 404, "not-found"),
    ("DELETE", "/v1/status", 405, "method-not-allowed"), ("GET", "/v1/versions?limit=0", 422, "invalid"),
    ("GET", "/v1/series/../../etc/passwd", 404, "not-found"), ("GET", "/v1/series/..%2f..%2fetc", 404, "not-found"),
    ("GET", "/v1/versions/..%2F..%2Fetc%2Fpasswd", 404, "not-found"),
    ("GET", "/v1/versions/99999999999999999999", 422, "invalid"), ("POST", "/v1/pause", 409, "illegal-transition"),
])
def test_every_error_is_problem_details(rest: LiveController, method: str, path: str, status: int, kind: str) -> None:
    answer = rest.ask(method, path)
    document = problem(answer, status, kind)
    if status == 422:
        assert document["errors"][0]["where"] and document["errors"][0]["what"]
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize(("body", "status", "kind"), [
    *((body, 422, "invalid") for body in (
        "{", "[1]", '{"reason": 1}', '{"reason": "' + "x" * 501 + '"}', "\x00", '{"reason": "a", "b": 1}')),
    # Malicious inputs for parsers.
    ("[" * 100_000, 400, "bad-request"), ("1" * 5000, 400, "bad-request")], ids=range(8))
def test_invalid_bodies_are_refused(rest: LiveController, body: str, status: int, kind: str) -> None:
    problem(rest.ask("POST", "/v1/pause", content=body, headers=JSON), status, kind)


@pytest.mark.parametrize("text", [b"\\ud800", b"a\\uDFFF", b"\\ude00\\ud83d", b"\xed\xa0\x80",
                                  b"\xed\xa0\xbd\xed\xb8\x80"])
def test_lone_surrogate_is_refused(rest: LiveController, text: bytes) -> None:
    """In an event it would make every later list of events an internal error."""
    rest.state.transition(Status.RUNNING, "test")
    answer = rest.ask("POST", "/v1/pause", content=b'{"reason": "%s"}' % text, headers=JSON)
    assert "lone surrogate" in problem(answer, 422, "invalid")["errors"][0]["what"]
    assert rest.ask("GET", "/v1/status").json()["status"] == "running"


@pytest.mark.parametrize("text", [b"\\ud83d\\ude00", "\U0001f600".encode()])
def test_surrogate_pair_is_a_character(rest: LiveController, text: bytes) -> None:
    rest.state.transition(Status.RUNNING, "test")
    answer = rest.ask("POST", "/v1/pause", content=b'{"reason": "%s"}' % text, headers=JSON)
    assert answer.status_code == 200 and answer.json()["reason"] == "\U0001f600"
    assert rest.ask("GET", "/v1/events").json()["items"][0]["details"]["reason"] == "\U0001f600"


def test_an_internal_error_reveals_no_details(redis_client: redis.Redis, redis_url: str) -> None:
    class Broken:
        def live(self) -> None:
            raise RuntimeError("a secret path: /etc/shadow")

    with live(redis_url, leases=Broken()) as rest:
        assert "shadow" not in str(problem(rest.ask("GET", "/v1/services"), 500, "internal"))


def test_an_unreachable_store_is_reported_soon(tmp_path: Path) -> None:
    running = EmbeddedRedis(tmp_path / "redis", append_only=True).start()
    with live(running.url) as rest:
        assert rest.ask("GET", "/v1/status").status_code == 200
        running.kill()
        for method, path in (("GET", "/v1/status"), ("POST", "/v1/pause"), ("GET", "/v1/versions")):
            began = time.monotonic()
            answer = rest.ask(method, path, headers={"Idempotency-Key": "k"})
            problem(answer, 503, "store-unavailable")
            assert answer.headers["retry-after"] and time.monotonic() - began < 10.0
        with EmbeddedRedis(tmp_path / "redis", append_only=True).start():
            assert rest.ask("GET", "/v1/status").json()["run"] == RUN


def test_a_hanging_store_is_reported_soon(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as running, \
            live(running.url, LimitsConfig(store_seconds=0.3)) as rest:
        assert rest.ask("GET", "/v1/status").status_code == 200
        os.kill(running.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            problem(rest.ask("GET", "/v1/status"), 503, "store-unavailable")
            assert time.monotonic() - began < 8.0
        finally:
            os.kill(running.pid, signal.SIGCONT)
        assert rest.ask("GET", "/v1/status").status_code == 200


def pausing(rest: LiveController) -> int:
    return [e.what for e in rest.state.events.read()].count("run.pausing")


def test_a_repeated_key_changes_once_and_answers_twice(rest: LiveController) -> None:
    rest.state.transition(Status.RUNNING, "test")
    first = rest.ask("POST", "/v1/pause", json={"reason": "a"}, headers={"Idempotency-Key": "one"})
    assert rest.ask("POST", "/v1/resume").status_code == 200
    second = rest.ask("POST", "/v1/pause", content='{ "reason":"a" }', headers={**JSON, "Idempotency-Key": "one"})
    assert (second.status_code, second.json()) == (200, first.json()) and pausing(rest) == 1
    assert second.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    now = rest.state.status()
    assert now is not None and now.status is Status.RUNNING
    # Another body or path under the key, or an invalid key.
    problem(rest.ask("POST", "/v1/pause", json={"reason": "b"}, headers={"Idempotency-Key": "one"}), 422, "key-reused")
    problem(rest.ask("POST", "/v1/stop", json={"reason": "a"}, headers={"Idempotency-Key": "one"}), 422, "key-reused")
    for key in ("", "a b", "x" * 129):
        problem(rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": key}), 422, "invalid")
    assert pausing(rest) == 1


def test_keys_are_separate_by_caller(rest: LiveController) -> None:
    rest.state.transition(Status.RUNNING, "test")
    assert rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}).status_code == 200
    problem(rest.ask("POST", "/v1/pause", VIEWER, headers={"Idempotency-Key": "one"}), 403, "forbidden")
    problem(rest.ask("POST", "/v1/pause", "forged", headers={"Idempotency-Key": "one"}), 401, "unauthenticated")


def test_an_error_leaves_its_key_free(rest: LiveController) -> None:
    problem(rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}), 409, "illegal-transition")
    rest.state.transition(Status.RUNNING, "test")
    assert rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}).status_code == 200


def test_response_is_sent_once_its_key_is_stored_or_free(rest: LiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = IdempotencyStore.store_or_release

    def late(*arguments: Any) -> None:
        time.sleep(0.1)
        stored(*arguments)

    monkeypatch.setattr(IdempotencyStore, "store_or_release", late)
    key = {"Idempotency-Key": "one"}
    for _ in range(2):  # a refusal frees the key
        problem(rest.ask("POST", "/v1/pause", headers=key), 409, "illegal-transition")
    rest.state.transition(Status.RUNNING, "test")
    assert rest.ask("POST", "/v1/pause", headers=key).status_code == 200
    assert rest.ask("POST", "/v1/pause", headers=key).headers["idempotency-replayed"] == "true"


def test_a_key_under_way_is_busy(redis_client: redis.Redis, redis_url: str) -> None:
    entered, go_on = threading.Event(), threading.Event()
    with live(redis_url) as rest:
        rest.state.transition(Status.RUNNING, "test")
        real = rest.context.state.transition

        def slow(*arguments: object, **named: object) -> object:
            entered.set()
            go_on.wait(10)
            return real(*arguments, **named)  # type: ignore[arg-type]

        rest.context.state.transition = slow  # type: ignore[method-assign,assignment]
        statuses: list[int] = []
        first = threading.Thread(target=lambda: statuses.append(
            rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}).status_code))
        first.start()
        assert entered.wait(10)
        problem(rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}), 409, "key-busy")
        go_on.set()
        first.join(10)
        assert statuses == [200] and pausing(rest) == 1
        assert rest.ask("POST", "/v1/pause", headers={"Idempotency-Key": "one"}).headers["idempotency-replayed"]


def test_an_answer_that_takes_too_long_is_given_up(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(request_seconds=0.3)) as rest:
        over = threading.Event()
        rest.context.leases.live = lambda kind=None: over.wait(60) and []  # type: ignore[method-assign,assignment]
        try:
            problem(rest.ask("GET", "/v1/services"), 503, "timeout")
            assert not over.is_set()  # nothing has ended what was asked for
        finally:
            over.set()


@pytest.mark.parametrize("fails", [False, True])
def test_key_of_a_late_request_is_busy_until_it_ends(redis_client: redis.Redis, redis_url: str, fails: bool) -> None:
    """Its change is made although the client was told that there is no response: a repeated one must not make it again.
    """
    key, go_on = {"Idempotency-Key": "one"}, threading.Event()
    with live(redis_url, LimitsConfig(request_seconds=0.3)) as rest:
        rest.state.transition(Status.RUNNING, "test")
        real = rest.context.state.transition

        def late(*arguments: Any, **named: Any) -> object:
            assert go_on.wait(10) and not fails
            return real(*arguments, **named)

        rest.context.state.transition = late  # type: ignore[method-assign,assignment]
        problem(rest.ask("POST", "/v1/pause", headers=key), 503, "timeout")
        problem(rest.ask("POST", "/v1/pause", headers=key), 409, "key-busy")
        rest.context.state.transition = real  # type: ignore[method-assign]
        go_on.set()
        deadline = time.monotonic() + 10
        while (answer := rest.ask("POST", "/v1/pause", headers=key)).status_code == 409:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, not fails)
        assert answer.json()["status"] == "pausing" and pausing(rest) == 1


def test_connection_is_closed_only_over_an_unread_body(rest: LiveController) -> None:
    """Otherwise the server would read the rest of a refused body, or clients would open a connection each time."""
    rest.state.transition(Status.RUNNING, "test")
    key = {"Idempotency-Key": "one"}
    assert rest.ask("POST", "/v1/pause", json={"reason": "a"}, headers=key).status_code == 200
    for answer, status, close in ((rest.ask("POST", "/v1/pause", json={"reason": "b"}, headers=key), 422, False),
                                  (rest.ask("POST", "/v1/pause", "forged", json={"reason": "b" * 100_000}), 401, True),
                                  (rest.ask("POST", "/v1/pause", "forged", json={"reason": "b"}), 401, False),
                                  (rest.ask("POST", "/v1/pause", "forged"), 401, False)):
        assert (answer.status_code, answer.headers.get("connection") == "close") == (status, close)
