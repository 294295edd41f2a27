"""Shared responses are loaded once, never older than allowed, and never hide a change."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from five.services.controller.http.single_flight import SingleFlightCache
from rapid.store.state import Status
from tests.services.live_controller import LiveController, live
from tests.waiting import eventually


class Clock:
    """A clock that a test sets. It counts how often it is read."""

    now = 0.0
    reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now


def test_requests_share_a_value_until_it_is_too_old() -> None:
    clock = Clock()
    shared: SingleFlightCache[int] = SingleFlightCache(1.0, clock)
    made: list[int] = []

    def compute() -> int:
        made.append(len(made))
        clock.now += 0.5  # the value counts from its end
        return made[-1]

    assert [shared.get(compute) for _ in range(3)] == [0, 0, 0]
    clock.now = 1.5
    assert shared.get(compute) == 0
    clock.now = 1.5625
    assert shared.get(compute) == 1
    shared.invalidate()
    assert [shared.get(compute) for _ in range(2)] == [2, 2]


@pytest.mark.parametrize("changes", [1, 2])
def test_change_before_the_first_request(changes: int) -> None:
    shared: SingleFlightCache[str] = SingleFlightCache(60.0, Clock())
    for _ in range(changes):
        shared.invalidate()
    assert [shared.get(lambda value=value: value) for value in "ab"] == ["a", "a"]  # type: ignore[misc]


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
    clock = Clock()
    shared: SingleFlightCache[int] = SingleFlightCache(0.05, clock)
    tries: list[int] = []

    def compute() -> int:
        tries.append(len(tries))
        eventually(lambda: clock.reads >= 10, what="ten requests")
        raise ConnectionError(f"away {len(tries)}")

    def ask(_: int) -> str:
        with pytest.raises(ConnectionError) as caught:
            shared.get(compute)
        return str(caught.value)

    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(ask, range(10))) == ["away 1"] * 10
    clock.now = 0.1
    assert ask(0) == "away 2"
    shared.invalidate()
    assert shared.get(lambda: 7) == shared.get(lambda: 8) == 7, "an error is forgotten"


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, overview_cache=SingleFlightCache(60.0)) as found:
        yield found


def test_the_status_shows_each_change_at_once(rest: LiveController) -> None:
    rest.state.transition(Status.RUNNING, "test")
    for _ in range(10):
        for verb, status in (("pause", "pausing"), ("resume", "running")):
            assert rest.ask("GET", "/v1/status").status_code == 200
            assert rest.ask("POST", f"/v1/{verb}").status_code == 200
            assert rest.ask("GET", "/v1/status").json()["status"] == status
