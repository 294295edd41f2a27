"""Idempotency keys in real Redis: claims, stored responses, refusals, expiry and the order of removal."""

import json
import time
from typing import Any

import pytest
import redis

from five.services.controller.http import idempotency
from five.services.controller.http.idempotency import (
    CLAIM_SECONDS,
    MAX_RESPONSE_BYTES,
    RETENTION_SECONDS,
    IdempotencyStore,
    KeyClaim,
    StoredResponse,
    fingerprint,
)
from five.services.controller.http.problems import Problem
from tests.rapid.failing_redis import Breaking

GIVEN = StoredResponse(200, (), b"{}")


def test_a_clock_that_jumped_back_has_no_new_answer_dropped(redis_client: redis.Redis,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_RESPONSES", 3)
    store = IdempotencyStore(redis_client, "trial")

    def ask(key: str) -> KeyClaim | StoredResponse:
        found = store.claim("ada", key, "print")
        if isinstance(found, KeyClaim):
            store.store_or_release(found, GIVEN)
        return found

    for key in ("a", "b", "c"):
        assert isinstance(ask(key), KeyClaim)
    monkeypatch.setattr(time, "time", lambda: 1.0)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    assert isinstance(ask("d"), KeyClaim)
    assert [ask(key) for key in ("b", "c", "d")] == [GIVEN] * 3, "each of the newest three is answered again"
    assert isinstance(ask("a"), KeyClaim), "the oldest went"


@pytest.fixture
def store(redis_client: redis.Redis) -> IdempotencyStore:
    return IdempotencyStore(redis_client, "trial")


def claimed(store: IdempotencyStore, key: str = "k", caller: str = "ada", request: str = "print") -> KeyClaim:
    found = store.claim(caller, key, request)
    assert isinstance(found, KeyClaim), found
    return found


def test_lost_reply_does_not_block_the_key(store: IdempotencyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats a claim whose reply was lost, and the key is then set."""
    def repeated(*arguments: Any, **options: Any) -> object:
        assert put(*arguments, **options)
        return put(*arguments, **options)

    put = store._redis.set
    monkeypatch.setattr(store._redis, "set", repeated)
    found = claimed(store)
    monkeypatch.undo()
    assert refusal(store).status == 409
    store.store_or_release(found, GIVEN)
    assert store.claim("ada", "k", "print") == GIVEN


def refusal(store: IdempotencyStore, key: str = "k", request: str = "print") -> Problem:
    with pytest.raises(Problem) as refused:
        store.claim("ada", key, request)
    return refused.value


def seconds_left(client: redis.Redis, claim: KeyClaim) -> int:
    left: Any = client.ttl(claim.name)
    return int(left)


def test_repeated_request_gets_the_first_response(store: IdempotencyStore, redis_client: redis.Redis) -> None:
    given = StoredResponse(201, ((b"etag", b'"\xe9"'), (b"location", b"/v1/x")), b"\x00{}")
    claim = claimed(store)
    store.store_or_release(claim, given)
    assert store.claim("ada", "k", "print") == given
    assert IdempotencyStore(redis_client, "trial").claim("ada", "k", "print") == given  # another controller
    assert RETENTION_SECONDS - 60 < seconds_left(redis_client, claim) <= RETENTION_SECONDS


def test_key_belongs_to_its_caller_and_run(store: IdempotencyStore, redis_client: redis.Redis) -> None:
    store.store_or_release(claimed(store), GIVEN)
    names = {claimed(store, caller="bob").name, claimed(IdempotencyStore(redis_client, "other")).name,
             claimed(store, "bc", "a").name, claimed(store, "c", "ab").name}
    assert len(names) == 4
    assert store.claim("ada", "k", "print") == GIVEN


def test_key_of_another_request_is_refused(store: IdempotencyStore) -> None:
    claim = claimed(store)
    for _ in range(2):  # while it is in progress, and after its response
        problem = refusal(store, request="another")
        assert (problem.status, problem.kind) == (422, "key-reused")
        assert "'k' was used for another request" in str(problem.detail)
        store.store_or_release(claim, GIVEN)


def test_request_in_progress_is_refused_until_it_ends(store: IdempotencyStore, redis_client: redis.Redis) -> None:
    claim = claimed(store)
    problem = refusal(store)
    assert (problem.status, problem.kind, problem.headers) == (409, "key-busy", {"Retry-After": "1"})
    assert 0 < seconds_left(redis_client, claim) <= CLAIM_SECONDS  # its controller may have died
    redis_client.delete(claim.name)
    assert claimed(store).mark != claim.mark


@pytest.mark.parametrize(("request_seconds", "least"), [(0.3, CLAIM_SECONDS), (30.0, CLAIM_SECONDS), (120.5, 121)])
def test_claim_outlasts_a_slow_request(redis_client: redis.Redis, request_seconds: float, least: int) -> None:
    claim = claimed(IdempotencyStore(redis_client, "trial", request_seconds))
    assert least - 20 <= seconds_left(redis_client, claim) <= 2 * least


@pytest.mark.parametrize("answer", [
    None, StoredResponse(199, (), b""), StoredResponse(300, (), b""), StoredResponse(409, (), b""),
    StoredResponse(500, (), b""), StoredResponse(200, (), bytes(MAX_RESPONSE_BYTES + 1))],
    ids=["none", "199", "300", "409", "500", "too large"])
def test_key_is_released_without_a_success(store: IdempotencyStore, answer: StoredResponse | None) -> None:
    store.store_or_release(claimed(store), answer)
    assert isinstance(store.claim("ada", "k", "another request"), KeyClaim)


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_releases_the_key(store: IdempotencyStore, redis_client: redis.Redis, redis_url: str,
                                          answer: bool) -> None:
    """The connection is lost at each command in turn."""
    for at in range(1, 100):
        claim = claimed(store)
        breaking = Breaking(at, answer)
        client = breaking.client(redis_url.removeprefix("unix://").partition("?")[0], retries=1)
        IdempotencyStore(client, "trial").store_or_release(claim, None)
        assert not redis_client.exists(claim.name)
        if not breaking.broken:
            break
    assert at > 3


@pytest.mark.parametrize("answer", [
    StoredResponse(200, (), b""), StoredResponse(299, (), b""), StoredResponse(202, (), bytes(MAX_RESPONSE_BYTES))],
    ids=["200", "299", "largest"])
def test_every_success_is_stored(store: IdempotencyStore, answer: StoredResponse) -> None:
    store.store_or_release(claimed(store), answer)
    assert store.claim("ada", "k", "print") == answer


def test_late_request_does_not_release_the_key_of_its_successor(store: IdempotencyStore, redis_client: redis.Redis
                                                                ) -> None:
    """The first request took longer than a claim is held."""
    late = claimed(store)
    redis_client.delete(late.name)
    claimed(store)
    store.store_or_release(late, None)
    assert refusal(store).kind == "key-busy"


@pytest.mark.parametrize("key", ["", "a b", "ä", "a\n", "x" * 129, "\x7f"])
def test_invalid_key_is_refused(store: IdempotencyStore, key: str, redis_client: redis.Redis) -> None:
    problem = refusal(store, key)
    assert problem.status == 422 and "1 to 128 visible ASCII characters" in str(problem.detail)
    assert redis_client.dbsize() == 0


@pytest.mark.parametrize("key", ["!", "~", "x" * 128])
def test_any_visible_key_is_allowed(store: IdempotencyStore, key: str) -> None:
    assert claimed(store, key).fingerprint == "print"


def test_fingerprint_is_that_of_method_path_query_and_values() -> None:
    base = ("POST", "/v1/run", b"dry=1", b'{"a": 1, "b": [1, 2]}')
    assert fingerprint(*base) == fingerprint("POST", "/v1/run", b"dry=1", b'{"b":[1,2],"a":1}')
    others = [("PUT", *base[1:]), ("POST", "/v1/ran", *base[2:]), (*base[:2], b"dry=2", base[3]),
              (*base[:3], b'{"a": 1, "b": [2, 1]}'), (*base[:3], b"not JSON"), (*base[:3], b"not JSON either"),
              (*base[:3], b"[" * 100_000)]
    assert len({fingerprint(*base), *(fingerprint(*other) for other in others)}) == 1 + len(others)  # type: ignore[arg-type]


def test_responses_beyond_the_limit_are_removed_oldest_first(store: IdempotencyStore, redis_client: redis.Redis,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_RESPONSES", 2)
    claims = [claimed(store, key) for key in ("a", "b", "c", "d")]
    for claim in claims:
        store.store_or_release(claim, GIVEN)
    assert [bool(redis_client.exists(claim.name)) for claim in claims] == [False, False, True, True]
    index: Any = redis_client.zrange(store._keys.idempotency_index, 0, -1)
    assert [name.decode() for name in index] == [claim.name for claim in claims[2:]]
    row: Any = redis_client.get(claims[3].name)
    assert json.loads(row)["fingerprint"] == "print"
