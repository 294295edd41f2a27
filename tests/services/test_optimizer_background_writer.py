"""Background writes: order, retries, error delivery, what blocks the next version, and who waits for a checkpoint."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from five.services.optimizer import background_writer
from five.services.optimizer.background_writer import (
    BackgroundWriter,
    BlockedTimer,
    CheckpointRequests,
    VersionWriter,
    failing_waiters,
    resolve_waiters,
)
from tests.services.test_optimizer_metrics import value
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
    eventually(lambda: writer.is_idle)
    calls: dict[str, Callable[[], None]] = {
        "submit": lambda: writer.submit(lambda: None), "wait": writer.wait, "raise_error": writer.raise_error}
    with pytest.raises(OSError, match="no space left"):
        calls[call]()
    writer.wait()


def test_write_is_retried_while_the_store_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_writer, "MIN_RETRY_SECONDS", 0.01)
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
    eventually(lambda: writer.blocked_reason)
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


def test_pauses_between_retries_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
                                                   ) -> None:
    assert (background_writer.MIN_RETRY_SECONDS, background_writer.MAX_RETRY_SECONDS) == (0.2, 5.0)
    monkeypatch.setattr(background_writer, "MIN_RETRY_SECONDS", 0.002)
    monkeypatch.setattr(background_writer, "MAX_RETRY_SECONDS", 0.005)
    writer, failures = BackgroundWriter(lambda error: True), [OSError(28, "No space left on device")] * 4

    def write() -> None:
        if failures:
            raise failures.pop()

    writer.submit(write)
    writer.wait()
    pauses = [record.args[0] for record in caplog.records if isinstance(record.args, tuple)]
    assert pauses == [0.002, 0.004, 0.005, 0.005]


def test_retries_go_on_after_the_previous_write_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_writer, "MIN_RETRY_SECONDS", 0.01)
    writer = BackgroundWriter(lambda error: True)
    writer.stop_retrying()
    failures = [ConnectionError("Redis is down")]

    def write() -> None:
        if failures:
            raise failures.pop()

    writer.submit(write)
    writer.wait()
    assert not failures and writer.error == ""


def test_checkpoint_starts_only_after_its_version_is_published() -> None:
    writer, proceed, order = VersionWriter(lambda error: False), threading.Event(), list[str]()

    def publish() -> None:
        assert_set(proceed)
        order.append("version")

    writer.poll()  # nothing is queued
    writer.submit_version(publish, lambda: order.append("checkpoint"))
    for _ in range(3):
        writer.poll()
    assert order == [] and not writer.is_checkpoint_idle and not writer.is_idle
    proceed.set()
    writer.wait()
    assert order == ["version", "checkpoint"]


def test_error_of_a_checkpoint_is_raised_by_poll() -> None:
    writer = VersionWriter(lambda error: False)

    def fail() -> None:
        raise ValueError("a bug")

    writer.submit_checkpoint(fail)
    eventually(lambda: writer.is_checkpoint_idle)
    with pytest.raises(ValueError, match="a bug"):
        writer.poll()
    writer.poll()


@pytest.mark.parametrize("error", [None, OSError("disk full")])
def test_all_callers_get_the_checkpoint_or_its_error(error: Exception | None) -> None:
    requests = CheckpointRequests()
    assert not requests and requests.take() == []

    def write() -> None:
        if error is not None:
            raise error

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(requests.request, lambda: True) for _ in range(2)]
        eventually(lambda: len(requests._waiters) == 2)
        waiters = requests.take()
        assert not requests, "the next checkpoint is for later callers"
        resolve_waiters(waiters, 7, write)()
        found = [call.exception(10) or call.result() for call in calls]
    assert found == [7 if error is None else error] * 2


def test_request_waits_as_long_as_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_writer, "WANTED_SECONDS", 0.001)
    wanted = iter([True, True, True, False])
    with pytest.raises(TimeoutError, match="no checkpoint was written in time"):
        CheckpointRequests().request(lambda: next(wanted))
    assert next(wanted, None) is None


def test_error_before_the_write_reaches_the_callers() -> None:
    requests = CheckpointRequests()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(requests.request, lambda: True)
        eventually(lambda: bool(requests))
        with failing_waiters(requests.take()):
            raise MemoryError("no copy")
        assert isinstance(call.exception(10), MemoryError)


def test_blocked_learning_is_logged_after_five_seconds(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    monkeypatch.setattr(background_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    timer = BlockedTimer()

    def at(seconds: float, reason: str) -> tuple[float, list[str]]:
        """Return the shown seconds and the new lines of the log."""
        caplog.clear()
        now[0] = 100.0 + seconds
        timer.update(reason)
        assert timer.reason == reason
        return value("write_blocked_seconds"), list(caplog.messages)

    down, full = "Redis is down", "the disk is full"
    with caplog.at_level(logging.INFO):
        assert at(0, "") == (0.0, [])
        assert at(10, down) == (0.0, []), "it was not blocked before"
        assert at(15, down) == (5.0, [])
        assert at(15.5, full) == (5.5, ["learning blocked: the disk is full"])
        assert at(16, full) == (6.0, []), "one line for each time"
        assert at(17, "") == (0.0, ["learning continues"])
        assert at(18, "") == (0.0, [])
        assert at(20, down) == (0.0, []) and at(24, down) == (4.0, [])
        assert at(25, "") == (0.0, []), "a short block is not logged"
