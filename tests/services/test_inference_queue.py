"""Batch composition and closing times of the request queue, without a model."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from five.clients.inference import NEWEST
from five.services.inference.queue import BatchQueue, PendingRequest
from five.services.inference.requests import Request


def pending(sessions: list[int], stream: int = 0) -> PendingRequest:
    n = len(sessions)
    request = Request(sessions, np.full(n, NEWEST), np.zeros(n, np.uint8), {}, stream=stream)
    return PendingRequest(request, Future(), time.monotonic())


def sessions(batch: list[PendingRequest]) -> list[list[int]]:
    return [p.request.sessions for p in batch]


def test_batch_closes_before_it_exceeds_its_size() -> None:
    queue = BatchQueue(max_batch=4, delay_seconds=0.0)
    for given in ([1, 2], [3], [4, 5], [6]):
        assert queue.put(pending(given))
    assert sessions(queue.take()) == [[1, 2], [3]], "what comes after the one that is too large waits with it"
    assert sessions(queue.take()) == [[4, 5], [6]]
    for given in ([1, 2], [3, 4], [5]):
        queue.put(pending(given))
    assert sessions(queue.take()) == [[1, 2], [3, 4]], "a batch may have exactly its size"


def test_requests_of_one_session_never_share_a_batch() -> None:
    queue = BatchQueue(max_batch=100, delay_seconds=0.0)
    for given in ([1, 2], [2, 3], [3], [4]):
        queue.put(pending(given))
    assert [sessions(queue.take()) for _ in range(3)] == [[[1, 2], [4]], [[2, 3]], [[3]]]


def test_a_batch_waits_for_every_open_stream_within_the_delay() -> None:
    queue = BatchQueue(max_batch=100, delay_seconds=30.0)
    queue.open_stream(0)
    queue.open_stream(1)
    queue.put(pending([1], stream=0))
    later = threading.Timer(0.1, lambda: queue.put(pending([2], stream=1)))
    later.start()
    assert sessions(queue.take()) == [[1], [2]]
    later.join()
    queue.put(pending([3], stream=0))
    gone = threading.Timer(0.1, lambda: queue.close_stream(1))
    gone.start()
    assert sessions(queue.take()) == [[3]], "who has gone is not waited for"
    gone.join()


def test_closed_queue_refuses_requests_and_returns_the_rest() -> None:
    queue = BatchQueue(max_batch=4, delay_seconds=30.0)
    queue.put(pending([1]))
    queue.close()
    assert queue.closed and not queue.put(pending([2]))
    assert sessions(queue.drain()) == [[1]] and queue.drain() == []


def timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def test_batch_is_closed_by_the_delay_of_its_oldest_request() -> None:
    now = [time.monotonic()]
    queue = BatchQueue(max_batch=100, delay_seconds=30.0, clock=lambda: now[0])
    queue.open_stream(0)
    queue.open_stream(1)  # never asks
    oldest, second, third = (pending([number]) for number in (1, 2, 3))
    second.enqueued = third.enqueued = now[0] + 20.0
    queue.put(oldest)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(queue.take)
        queue.put(second)
        time.sleep(0.1)
        is_early = taking.done()
        now[0] = oldest.enqueued + 30.0
        queue.put(third)  # which wakes `take`, whose clock is the test's
        assert sessions(taking.result(20)) == [[1], [2], [3]] and not is_early
    queue = BatchQueue(max_batch=100, delay_seconds=30.0)
    queue.open_stream(0)
    late = pending([3], stream=1)
    late.enqueued -= 30.0
    queue.put(late)
    assert timed(queue.take) < 5.0  # it has waited long enough already


def test_full_batch_does_not_wait() -> None:
    queue = BatchQueue(max_batch=3, delay_seconds=30.0)
    queue.open_stream(0)
    queue.open_stream(1)  # never asks
    queue.put(pending([1, 2]))
    threading.Timer(0.05, lambda: queue.put(pending([3]))).start()
    assert timed(lambda: queue.take()) < 5.0


def test_every_stream_needs_a_request_in_the_batch() -> None:
    """Requests of a stream that was never opened count for none."""
    queue = BatchQueue(max_batch=100, delay_seconds=0.2)
    queue.open_stream(0)
    request = pending([1], stream=7)
    queue.put(request)
    assert queue.take() and time.monotonic() - request.enqueued > 0.1
    queue = BatchQueue(max_batch=100, delay_seconds=30.0)
    queue.open_stream(0)
    queue.put(pending([1], stream=7))
    queue.put(pending([2], stream=0))
    assert timed(queue.take) < 5.0


def test_waiting_thread_wakes_for_a_request_and_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.inference.queue.POLL_SECONDS", 20.0)
    queue = BatchQueue(max_batch=4, delay_seconds=0.0)
    threading.Timer(0.05, lambda: queue.put(pending([1]))).start()
    found: list[PendingRequest] = []
    assert timed(lambda: found.extend(queue.take())) < 5.0 and sessions(found) == [[1]]
    threading.Timer(0.05, queue.close).start()
    assert timed(lambda: found.extend(queue.take())) < 5.0 and len(found) == 1
    queue = BatchQueue(max_batch=4, delay_seconds=30.0)
    queue.open_stream(0)
    queue.put(pending([1], stream=1))
    threading.Timer(0.05, queue.close).start()
    assert timed(lambda: found.extend(queue.take())) < 5.0


def test_take_returns_after_a_time_without_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.inference.queue.POLL_SECONDS", 0.1)
    queue = BatchQueue(max_batch=4, delay_seconds=0.0)
    assert 0.05 < timed(lambda: queue.take()) < 5.0 and queue.take() == []


def test_request_counts_its_team_steps() -> None:
    assert pending([1, 2, 3]).rows == 3
    assert pending([1]).slots.shape == (0,) and pending([1]).served == {}
