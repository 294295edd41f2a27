"""The autoscaler's signals come from the counters of the services' own code, under its own keys."""

import asyncio
import inspect
import time
from pathlib import Path

import pytest

from five.services.controller.autoscaler.signals import COUNTERS
from five.services.inference.metrics import Meter as InferenceMeter
from five.services.optimizer import __main__ as optimizer_main
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.metrics import RolloutMeter
from tests.services.optimizer_cases import Versions, feed, training, until
from tests.services.test_rollout_sender import Optimizer, blocked, segment, sender


async def test_rollout_counts_idle_time_of_games() -> None:
    async with Optimizer() as o:
        s = sender(o, max_unsent=1, in_flight=1)
        meter, groups = RolloutMeter(), [GroupProgress(), GroupProgress()]
        began = time.monotonic()
        while not await blocked(s):
            s.put(segment(0))
            await asyncio.sleep(0.02)
        first = meter.recent(groups, s)["throttled_seconds"]
        assert 0.15 / 2 <= first <= time.monotonic() - began
        began = time.monotonic()
        waits = [asyncio.create_task(s.wait_for_capacity()) for _ in groups]
        await asyncio.sleep(0.3)  # under way: both groups stand still
        second = meter.recent(groups, s)["throttled_seconds"]
        assert 0.25 <= second - first <= time.monotonic() - began + 0.001, "rounded to milliseconds"
        o.learning.set()
        await asyncio.gather(*waits)
        third = meter.recent(groups, s)["throttled_seconds"]
        await asyncio.sleep(0.1)
        assert meter.recent(groups, s)["throttled_seconds"] == third
        await s.drain(2.0)


def test_optimizer_counts_time_without_a_batch(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    run.start()
    feed(run, 4)
    until(run, 1)
    before = run.starved.seconds
    until(run, 99, patience=40)  # nothing is left to learn from
    assert run.starved.seconds - before >= 30 * 0.005
    feed(run, 4, first=4)
    until(run, 2)
    assert not run.starved.is_waiting and run.intake.pacer.received == 16


def test_inference_counts_requests_and_their_waits() -> None:
    meter = InferenceMeter()
    observer = meter.observer
    for seconds in (0.01, 0.03):
        observer.queued(seconds)
    observer.batch(8, 0.5)
    meter.recent()  # the totals go on
    observer.queued(0.06)
    told = meter.recent()
    assert (told["requests"], told["queued_seconds"], told["forward_seconds"]) == (3, pytest.approx(0.1), 0.5)
    assert set(COUNTERS["inference"]) <= set(told)


def test_optimizer_reports_the_autoscalers_counters() -> None:
    source = inspect.getsource(optimizer_main.heartbeat_stats)
    assert all(f'"{name}":' in source for name in COUNTERS["optimizer"])
