"""The death of a critical thread or task, and a loop without progress, end the process."""

import asyncio
import logging
import os
import subprocess
import sys
import textwrap
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import redis

from rapid.critical_tasks import CriticalTasks
from rapid.embedded_redis import RunningRedis
from rapid.lifecycle import Lifecycle
from rapid.store.state import RunState
from rapid.telemetry.pages import start_pages
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def critical_tasks(drained: list[str], clock: Clock | None = None, codes: list[int] | None = None) -> CriticalTasks:
    return CriticalTasks(drained.append, lambda: bool(drained), 10.0, (codes if codes is not None else []).append,
                         clock or Clock())


def test_thread_failure_drains_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    drained: list[str] = []
    parts = critical_tasks(drained)

    def work() -> None:
        raise MemoryError("out of GPU memory")

    thread = parts.thread("forward passes", work)
    thread.start()
    thread.join()
    assert drained == ["forward passes died: MemoryError: out of GPU memory"] == [parts.failure]
    with caplog.at_level(logging.CRITICAL):
        parts.report_failure()
    assert caplog.messages[-1] == f"process ended: {parts.failure}"
    assert parts.failure_reason() == parts.failure


@pytest.mark.parametrize(("may_end", "draining", "dies"), [
    (False, False, True), (True, False, False), (False, True, False)])
def test_returning_thread_counts_as_dead_unless_allowed(may_end: bool, draining: bool, dies: bool) -> None:
    drained = ["SIGTERM"] if draining else []
    parts = critical_tasks(drained)
    thread = parts.thread("a loop", lambda: None, may_end)
    thread.start()
    thread.join()
    assert bool(parts.failure) == dies


async def test_task_failure_drains_and_cancellation_does_not() -> None:
    drained: list[str] = []
    parts = critical_tasks(drained)

    async def fail() -> None:
        raise KeyError("missing")

    cancelled = parts.task("cancelled", asyncio.sleep(60))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert parts.failure == ""
    await asyncio.gather(parts.task("follow", fail()), return_exceptions=True)
    await asyncio.sleep(0)
    assert drained == ["follow died: KeyError: 'missing'"]
    await asyncio.gather(parts.task("second", fail()), return_exceptions=True)
    await asyncio.sleep(0)
    assert len(drained) == 1 and parts.failure.startswith("follow")


def test_expired_watchdog_fails_healthz_and_exits(caplog: pytest.LogCaptureFixture) -> None:
    clock, codes = Clock(), list[int]()
    parts = critical_tasks([], clock, codes)
    watchdog = parts.watchdog("learning")
    pages = start_pages(0, failure_reason=parts.failure_reason)
    healthz = f"http://127.0.0.1:{pages.port}/healthz"
    clock.now += 1000
    parts.check()
    assert codes == []  # not armed before the first beat
    watchdog.beat()
    clock.now += 10
    parts.check()
    with urllib.request.urlopen(healthz, timeout=30) as page:
        assert page.read() == b"alive\n"
    assert codes == []
    clock.now += 1
    parts.check()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(healthz, timeout=30)
    assert refused.value.code == 503 and "learning made no progress for 11 s" in refused.value.read().decode()
    assert codes and set(codes) == {1} and "process ended: learning made no progress for 11 s" in caplog.messages
    watchdog.stop()
    assert parts.failure_reason() == ""
    parts.close()
    pages.close()


def test_blocked_event_loop_is_detected() -> None:
    clock, codes = Clock(), list[int]()
    parts = critical_tasks([], clock, codes)

    async def work() -> str:
        await asyncio.sleep(0.05)
        clock.now += 11  # as if the loop had been blocked
        parts.check()
        return "done"

    assert parts.run(work()) == "done"
    assert codes == [1] and parts.failure_reason() == ""
    parts.close()


def test_lifecycle_drains_when_its_status_poller_dies(database: redis.Redis) -> None:
    state = RunState(database, "r")
    state.create({}, "t")
    life = Lifecycle(5.0, exit_process=lambda code: None)

    def broken() -> None:
        raise TypeError("unreadable status")

    state.snapshot = broken  # type: ignore[method-assign, assignment]
    life.watch(state, 0.02)
    assert life.wait_drain(5)
    assert life.critical_tasks.failure == "run-status-poller died: TypeError: unreadable status"
    life.close()


SERVICE = """
    import json, threading, time
    from rapid import service
    from tests.rapid.test_service import Config

    def load(path, overrides):
        return Config.model_validate(json.load(open(path)))

    def die():
        raise RuntimeError("CUDA error: out of memory")

    with service.start("tested", load) as s:
        s.report_with(lambda: "")
        s.critical_tasks.thread("forward-passes", die).start()
        s.lifecycle.wait_drain()
"""


def test_service_logs_the_fatal_reason_last(
        tmp_path: Path, redis_server: RunningRedis, database: redis.Redis) -> None:
    RunState(database, "r").create({}, "t")
    config = tmp_path / "config.json"
    config.write_text(f'{{"store": {{"state_url": "{redis_server.url}", "params_url": "{redis_server.url}"}}}}')
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(SERVICE), "--config", str(config)], text=True,
                          capture_output=True, timeout=60, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": "libs:."})
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        "process ended: forward-passes died: RuntimeError: CUDA error: out of memory")
    assert RunState(database, "r").services("tested") == []


def test_close_ends_the_watchdog_thread() -> None:
    parts = critical_tasks([])
    parts.watchdog("a loop")
    assert eventually(lambda: any(t.name == "watchdog" for t in threading.enumerate()))
    parts.close()
    assert not any(t.name == "watchdog" for t in threading.enumerate())
