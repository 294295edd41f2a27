"""What a process cannot do without: its death is the process's end, and a loop that stands still is no life."""

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

from rapid.critical_tasks import Vital
from rapid.embedded_redis import RunningRedis
from rapid.lifecycle import Lifecycle
from rapid.store.state import RunState
from rapid.telemetry.pages import start_pages
from tests.rapid.process_helpers import eventually

ROOT = Path(__file__).parents[2]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def vital(drained: list[str], clock: Clock | None = None, codes: list[int] | None = None) -> Vital:
    return Vital(drained.append, lambda: bool(drained), 10.0, (codes if codes is not None else []).append,
                 clock or Clock())


def test_a_thread_that_raises_drains_the_process_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    drained: list[str] = []
    parts = vital(drained)

    def work() -> None:
        raise MemoryError("out of GPU memory")

    thread = parts.thread("forward passes", work)
    thread.start()
    thread.join()
    assert drained == ["forward passes has died: MemoryError: out of GPU memory"] == [parts.failure]
    with caplog.at_level(logging.CRITICAL):
        parts.last_words()
    assert caplog.messages[-1] == f"ended: {parts.failure}"
    assert parts.why_dead() == parts.failure


@pytest.mark.parametrize(("may_end", "draining", "dies"), [
    (False, False, True), (True, False, False), (False, True, False)])
def test_a_part_that_ends_by_itself_has_died_unless_it_may(may_end: bool, draining: bool, dies: bool) -> None:
    drained = ["SIGTERM"] if draining else []
    parts = vital(drained)
    thread = parts.thread("a loop", lambda: None, may_end)
    thread.start()
    thread.join()
    assert bool(parts.failure) == dies


async def test_a_task_that_raises_is_the_end_and_one_that_is_cancelled_is_not() -> None:
    drained: list[str] = []
    parts = vital(drained)

    async def fail() -> None:
        raise KeyError("missing")

    cancelled = parts.task("cancelled", asyncio.sleep(60))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert parts.failure == ""
    await asyncio.gather(parts.task("follow", fail()), return_exceptions=True)
    await asyncio.sleep(0)
    assert drained == ["follow has died: KeyError: 'missing'"]
    await asyncio.gather(parts.task("second", fail()), return_exceptions=True)
    await asyncio.sleep(0)
    assert len(drained) == 1 and parts.failure.startswith("follow")


def test_a_loop_that_stands_still_ends_the_process_and_is_no_life(caplog: pytest.LogCaptureFixture) -> None:
    clock, codes = Clock(), list[int]()
    parts = vital([], clock, codes)
    pulse = parts.pulse("learning")
    pages = start_pages(0, why_dead=parts.why_dead)
    healthz = f"http://127.0.0.1:{pages.port}/healthz"
    clock.now += 1000
    parts.look()
    assert codes == []  # it has not begun to turn
    pulse.turn()
    clock.now += 10
    parts.look()
    with urllib.request.urlopen(healthz, timeout=5) as page:
        assert page.read() == b"alive\n"
    assert codes == []
    clock.now += 1
    parts.look()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(healthz, timeout=5)
    assert refused.value.code == 503 and "learning has not turned for 11 s" in refused.value.read().decode()
    assert codes and set(codes) == {1} and "ended: learning has not turned for 11 s" in caplog.messages
    pulse.end()
    assert parts.why_dead() == ""
    parts.close()
    pages.close()


def test_an_event_loop_that_is_blocked_is_seen() -> None:
    clock, codes = Clock(), list[int]()
    parts = vital([], clock, codes)

    async def work() -> str:
        await asyncio.sleep(0.05)
        clock.now += 11  # as if it had been blocked for so long
        parts.look()
        return "done"

    assert parts.run(work()) == "done"
    assert codes == [1] and parts.why_dead() == ""
    parts.close()


def test_a_lifecycle_drains_when_its_look_at_the_run_has_died(database: redis.Redis) -> None:
    state = RunState(database, "r")
    state.create({}, "t")
    life = Lifecycle(5.0, exit_process=lambda code: None)

    def broken() -> None:
        raise TypeError("a status that nobody can read")

    state.standing = broken  # type: ignore[method-assign, assignment]
    life.watch(state, 0.02)
    assert life.wait_drain(5)
    assert life.vital.failure == "the look at the run's status has died: TypeError: a status that nobody can read"
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
        s.not_ready = lambda: ""
        s.vital.thread("the thread of the forward passes", die).start()
        s.lifecycle.wait_drain()
"""


def test_a_service_whose_work_has_died_ends_with_the_reason_last_in_its_log(
        tmp_path: Path, redis_server: RunningRedis, database: redis.Redis) -> None:
    RunState(database, "r").create({}, "t")
    config = tmp_path / "config.json"
    config.write_text(f'{{"store": {{"state_url": "{redis_server.url}", "params_url": "{redis_server.url}"}}}}')
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(SERVICE), "--config", str(config)], text=True,
                          capture_output=True, timeout=60, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": "libs:.", "FIVE_TOKEN": "the-token-itself"})
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        "ended: the thread of the forward passes has died: RuntimeError: CUDA error: out of memory")
    assert RunState(database, "r").services("tested") == []


def test_the_watching_of_loops_ends_with_the_process() -> None:
    parts = vital([])
    parts.pulse("a loop")
    assert eventually(lambda: any(t.name == "vital" for t in threading.enumerate()))
    parts.close()
    assert not any(t.name == "vital" for t in threading.enumerate())
