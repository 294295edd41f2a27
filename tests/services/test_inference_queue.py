"""Batch composition and closing times of the request queue, without a model."""

import threading
import time
from concurrent.futures import Future

import numpy as np

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
