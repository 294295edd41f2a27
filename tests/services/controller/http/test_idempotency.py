"""What was answered under a key is kept in the order in which it was, whatever the machine's clock does."""

import time

import pytest
import redis

from five.services.controller.http import idempotency
from five.services.controller.http.idempotency import Answer, Replays, Taken

GIVEN = Answer(200, (), b"{}")


def test_a_clock_that_jumped_back_has_no_new_answer_dropped(redis_client: redis.Redis,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEPT", 3)
    replays = Replays(redis_client, "trial")

    def ask(key: str) -> Taken | Answer:
        found = replays.begin("ada", key, "print")
        if isinstance(found, Taken):
            replays.settle(found, GIVEN)
        return found

    for key in ("a", "b", "c"):
        assert isinstance(ask(key), Taken)
    monkeypatch.setattr(time, "time", lambda: 1.0)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    assert isinstance(ask("d"), Taken)
    assert [ask(key) for key in ("b", "c", "d")] == [GIVEN] * 3, "each of the newest three is answered again"
    assert isinstance(ask("a"), Taken), "the oldest went"
