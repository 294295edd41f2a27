"""Uploads of recordings to a blob store that is slow or fails."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait

import pytest

from five.services.evaluator.uploads import MAX_WAITING, UploadQueue


class SlowStore:
    """Blob store that answers from the moment that ``answers`` is set."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.begun = threading.Event()
        self.stored: list[int] = []
        self.discarded: list[int] = []

    def recording(self, number: int) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return the functions that upload and discard a recording."""
        def upload() -> None:
            self.begun.set()
            self.answers.wait(30)
            self.stored.append(number)

        return upload, lambda: self.discarded.append(number)


@pytest.fixture
def store() -> Iterator[SlowStore]:
    store = SlowStore()
    yield store
    store.answers.set()


def test_full_queue_discards_the_oldest_and_never_blocks(store: SlowStore) -> None:
    queue = UploadQueue()
    ended = [queue.submit(*store.recording(number)) for number in range(MAX_WAITING + 3)]
    assert store.discarded == [1, 2] and [future.done() for future in ended[:4]] == [False, True, True, False]
    store.answers.set()
    assert not wait(ended, 10).not_done
    assert store.stored == [0, *range(3, MAX_WAITING + 3)]


def test_end_of_the_process_does_not_wait_for_a_slow_store(store: SlowStore) -> None:
    queue = UploadQueue()
    ended = [queue.submit(*store.recording(number)) for number in range(3)]
    assert store.begun.wait(10)
    began = time.monotonic()
    queue.close(0.05)
    assert time.monotonic() - began < 10 and store.discarded == [1, 2]
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "uploads"), "the exit waits"
    store.answers.set()
    assert not wait(ended, 10).not_done
    assert store.stored == [0]


def test_end_of_the_process_waits_for_uploads_in_time(store: SlowStore) -> None:
    queue = UploadQueue()
    queue.close(10)
    for number in range(3):
        queue.submit(*store.recording(number))
    threading.Timer(0.05, store.answers.set).start()
    queue.close(10)
    assert store.stored == [0, 1, 2] and store.discarded == []


def test_failed_upload_does_not_stop_others(store: SlowStore) -> None:
    def fail() -> None:
        raise RuntimeError("a defect of an upload")

    queue = UploadQueue()
    store.answers.set()
    ended = [queue.submit(fail, lambda: None), queue.submit(*store.recording(1))]
    assert not wait(ended, 10).not_done
    assert store.stored == [1] and ended[0].exception() is None
    assert not wait([queue.submit(*store.recording(2))], 10).not_done, "the queue works again after it was empty"
    assert store.stored == [1, 2]
