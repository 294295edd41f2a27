"""Shared responses are loaded once, never older than allowed, and never hide a change."""

import threading
import time
from collections.abc import Iterator

import pytest
import redis

from five.services.controller.http.single_flight import SingleFlightCache
from rapid.store.state import Status
from tests.services.live_controller import LiveController, live


def test_concurrent_requests_share_one_load() -> None:
    now = [0.0]
    shared: SingleFlightCache[int] = SingleFlightCache(0.1, lambda: now[0])
    made: list[int] = []

    def compute() -> int:
        made.append(len(made))
        return made[-1]

    assert [shared.get(compute) for _ in range(3)] == [0, 0, 0]
    now[0] = 0.09
    assert shared.get(compute) == 0
    now[0] = 0.2
    assert shared.get(compute) == 1
    shared.invalidate()
    assert [shared.get(compute) for _ in range(2)] == [2, 2]


def test_a_change_while_it_is_made_is_not_hidden() -> None:
    shared: SingleFlightCache[str] = SingleFlightCache(60.0)
    values = iter(["before", "after"])

    def compute() -> str:
        value = next(values)
        if value == "before":
            shared.invalidate()
        return value

    assert [shared.get(compute) for _ in range(3)] == ["before", "after", "after"]


def test_waiters_of_a_failure_do_not_retry() -> None:
    shared: SingleFlightCache[int] = SingleFlightCache(0.05)
    tries: list[float] = []
    failures: list[str] = []

    def compute() -> int:
        tries.append(time.monotonic())
        time.sleep(0.3)
        raise ConnectionError("away")

    def ask() -> None:
        try:
            shared.get(compute)
        except ConnectionError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == ["away"] * 10 and len(tries) == 1 and time.monotonic() - began < 1.0
    time.sleep(0.1)
    with pytest.raises(ConnectionError):
        shared.get(compute)
    assert len(tries) == 2


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, overview=SingleFlightCache(60.0)) as found:
        yield found


def test_the_status_shows_each_change_at_once(rest: LiveController) -> None:
    rest.state.transition(Status.RUNNING, "test")
    for _ in range(10):
        for verb, status in (("pause", "pausing"), ("resume", "running")):
            assert rest.ask("GET", "/v1/status").status_code == 200
            assert rest.ask("POST", f"/v1/{verb}").status_code == 200
            assert rest.ask("GET", "/v1/status").json()["status"] == status
