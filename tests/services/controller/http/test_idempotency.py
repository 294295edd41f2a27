"""Stored responses are ordered by insertion, whatever the clock does."""

import time

import pytest
import redis

from five.services.controller.http import idempotency
from five.services.controller.http.idempotency import IdempotencyStore, KeyClaim, StoredResponse

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
