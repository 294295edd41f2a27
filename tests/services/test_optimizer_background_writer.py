"""Background writes: order, retries, error delivery and what blocks the next version."""

import threading
from collections.abc import Callable

import pytest

from five.services.optimizer.background_writer import BackgroundWriter, VersionWriter
from tests.waiting import eventually


def wait_until_ended(writer: BackgroundWriter) -> None:
    """Wait for the running write without reading its outcome."""
    running = writer._running
    assert running is None or running.exception(10) is None


def assert_set(event: threading.Event) -> None:
    assert event.wait(10)


def test_writes_run_in_order_one_at_a_time() -> None:
    writer, written, running = BackgroundWriter(), list[int](), threading.Semaphore()
    for i in range(20):

        def write(i: int = i) -> None:
            assert running.acquire(blocking=False)
            written.append(i)
            running.release()

        writer.submit(write)
    writer.wait()
    assert written == list(range(20)) and writer.is_idle


@pytest.mark.parametrize("call", ["submit", "wait", "raise_error"])
def test_next_call_raises_a_failed_writes_error_once(call: str) -> None:
    writer, failed = BackgroundWriter(), threading.Event()

    def fail() -> None:
        failed.set()
        raise OSError("no space left on device")

    writer.submit(fail)
    assert_set(failed)
    eventually(lambda: writer.is_idle, 10.0)
    calls: dict[str, Callable[[], None]] = {
        "submit": lambda: writer.submit(lambda: None), "wait": writer.wait, "raise_error": writer.raise_error}
    with pytest.raises(OSError, match="no space left"):
        calls[call]()
    writer.wait()


def test_write_is_retried_while_the_store_is_down() -> None:
    writer, errors = BackgroundWriter(lambda error: isinstance(error, OSError)), list[str]()

    def write() -> None:
        errors.append(writer.error)
        if len(errors) < 3:
            raise ConnectionError("Redis is down")

    writer.submit(write)
    writer.wait()
    assert errors == ["", "ConnectionError: Redis is down", "ConnectionError: Redis is down"] and writer.error == ""

    def bug() -> None:
        errors.append("bug")
        raise ValueError("a bug")

    writer.submit(bug)
    with pytest.raises(ValueError, match="a bug"):
        writer.wait()
    assert errors.count("bug") == 1


def test_stop_retrying_makes_the_next_error_final() -> None:
    writer, tried = BackgroundWriter(lambda error: True), threading.Event()

    def write() -> None:
        tried.set()
        raise ConnectionError("Redis is down")

    writer.submit(write)
    assert_set(tried)
    writer.stop_retrying()
    with pytest.raises(ConnectionError):
        writer.wait()
    assert writer.is_idle


def test_checkpoint_follows_its_version_and_spans_later_ones() -> None:
    writer, order, proceed = VersionWriter(lambda error: False), list[str](), threading.Event()

    def save() -> None:
        assert_set(proceed)
        order.append("checkpoint 1")

    writer.submit_version(lambda: order.append("version 1"), save)
    assert not writer.is_checkpoint_idle and not writer.is_idle
    wait_until_ended(writer._versions)
    writer.poll()
    assert writer.blocked_reason == "" and not writer.is_checkpoint_idle
    writer.submit_version(lambda: order.append("version 2"))
    writer.wait_for_version()
    assert order == ["version 1", "version 2"] and writer.blocked_reason == ""
    proceed.set()
    writer.wait()
    assert order[2:] == ["checkpoint 1"] and writer.is_idle and writer.is_checkpoint_idle


def test_unpublished_version_and_failing_checkpoint_block() -> None:
    writer = VersionWriter(lambda error: isinstance(error, OSError))
    proceed, tried, full = threading.Event(), threading.Event(), threading.Event()
    writer.submit_version(lambda: assert_set(proceed))
    assert writer.blocked_reason == "the previous version is not published"
    proceed.set()
    writer.wait_for_version()
    full.set()

    def save() -> None:
        if full.is_set():
            tried.set()
            raise OSError(28, "No space left on device")

    writer.submit_checkpoint(save)
    assert_set(tried)
    eventually(lambda: writer.blocked_reason, 10.0)
    assert "the checkpoint is not written: OSError: [Errno 28] No space" in writer.blocked_reason
    full.clear()
    writer.wait()
    assert writer.blocked_reason == ""


def test_finish_neither_retries_nor_starts_queued_checkpoints() -> None:
    writer, tried, order = VersionWriter(lambda error: True), threading.Event(), list[str]()

    def fail() -> None:
        tried.set()
        raise ConnectionError("Redis is down")

    writer.submit_checkpoint(fail)
    assert_set(tried)
    writer.submit_version(lambda: order.append("version"))
    with pytest.raises(ConnectionError):
        writer.finish()
    assert writer.is_idle and order == ["version"]
    writer.submit_version(lambda: None, lambda: order.append("checkpoint"))
    writer.finish()
    assert order == ["version"] and writer.is_idle
