"""Draining, the grace period, and following a run's status."""

import asyncio
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.lifecycle import Lifecycle
from rapid.store.errors import Corrupt
from rapid.store.state import RunSnapshot, RunState, RunStatus, Status
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


def test_sigterm_drains() -> None:
    calls: list[str] = []
    with Lifecycle(60.0) as life:
        assert not life.draining and life.active and not life.wait_drain(0.01)
        life.on_drain(lambda: calls.append("called"))
        os.kill(os.getpid(), signal.SIGTERM)
        assert life.wait_drain(30)
        eventually(lambda: calls == ["called"])
        assert life.draining and life.drain_reason == "SIGTERM"
        life.on_drain(lambda: calls.append("late"))
        assert calls == ["called", "late"]
        assert not asyncio.run(life.wait_active())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_grace_period_exits_a_process_that_does_not_drain() -> None:
    codes: list[int] = []
    life = Lifecycle(0.1, exit_process=codes.append)
    life.drain("test")
    eventually(lambda: codes == [1])
    life.close()
    others = set(threading.enumerate())
    timely = Lifecycle(60.0, exit_process=codes.append)
    timely.drain("test")
    (enforcing,) = (t for t in threading.enumerate() if t.name == "grace-period" and t not in others)
    timely.close()
    timely.set_grace_seconds(0.0)  # over by now, but the process has ended in time
    enforcing.join(10)
    assert not enforcing.is_alive() and codes == [1]


def test_remaining_seconds_count_down_from_the_start_of_draining() -> None:
    life = Lifecycle(60.0, exit_process=lambda code: None)
    assert life.remaining_seconds == math.inf
    life.drain("test")
    before = life.remaining_seconds
    assert 30.0 < before <= 60.0
    life.drain("again")
    time.sleep(0.05)
    assert life.remaining_seconds < before
    life.set_grace_seconds(0.01)
    assert life.remaining_seconds == 0.0
    life.close()


def test_second_signal_exits_at_once() -> None:
    code = textwrap.dedent("""
        import time
        from rapid.lifecycle import Lifecycle
        with Lifecycle(60.0) as life:
            life.on_drain(lambda: print("draining", flush=True))
            print("up", flush=True)
            while True: time.sleep(0.01)
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT,
                               env={**os.environ, "PYTHONPATH": "libs:."})
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"draining\n"  # signals that arrive together would count as one
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 128 + signal.SIGTERM


async def test_asyncio_waits_for_draining() -> None:
    life = Lifecycle(60.0)
    waiting = [asyncio.create_task(life.wait_drained()) for _ in range(2)]
    await asyncio.sleep(0.02)
    assert not any(t.done() for t in waiting)
    threading.Thread(target=life.drain, args=("test",)).start()
    await asyncio.wait_for(asyncio.gather(*waiting), 30)
    await asyncio.wait_for(life.wait_drained(), 30)
    assert not await life.wait_active()
    life.close()


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    state = RunState(database, "r")
    state.create({}, "t")
    return state


async def test_service_idles_while_the_run_is_paused(state: RunState) -> None:
    life = Lifecycle(60.0, exit_process=lambda code: None)
    life.watch(state, 0.02)
    eventually(lambda: life.status is Status.STARTING)
    assert not life.active
    working = asyncio.create_task(life.wait_active(0.01))
    await asyncio.sleep(0.1)
    assert not working.done()
    state.transition("running", "t")
    assert await asyncio.wait_for(working, 30)
    assert life.active
    state.transition("pausing", "t")
    state.transition("paused", "t")
    eventually(lambda: life.status is Status.PAUSED)
    assert not life.active
    resumed = threading.Timer(0.1, state.transition, ("running", "t"))
    resumed.start()
    assert await asyncio.wait_for(life.wait_active(0.01), 30)
    state.transition("stopping", "t")
    assert life.wait_drain(30) and life.drain_reason == "the run is stopping"
    life.close()
    resumed.join()


def test_service_may_outlive_its_run(state: RunState) -> None:
    life = Lifecycle(60.0)
    life.watch(state, 0.02, ends_with_run=False)
    state.transition("stopping", "t")
    eventually(lambda: life.status is Status.STOPPING)
    assert not life.draining and not life.active
    state.transition("starting", "t")
    state.transition("running", "t")
    eventually(lambda: life.active)
    life.close()


@pytest.mark.parametrize("error", [
    redis.ConnectionError("gone"), ValueError("the run's record cannot be read"),
    Corrupt("the run's status is damaged in Redis")])
def test_unreadable_status_keeps_the_last_one(error: Exception) -> None:
    polls: list[int] = []

    class State:
        def snapshot(self) -> RunSnapshot:
            polls.append(len(polls))
            if polls[-1] == 1:
                raise error
            return RunSnapshot(RunStatus(Status.RUNNING, 0.0, "t", ""), None)

    state: Any = State()
    life = Lifecycle(60.0)
    life.watch(state, 0.02)
    eventually(lambda: len(polls) > 2)
    assert life.active and not life.draining and not life.critical_tasks.failure
    life.close()
