"""Metrics of an inference server, and the rates since its last heartbeat."""

import math
from typing import Any

import pytest

from five.services.inference import metrics
from five.services.inference.metrics import Meter
from five.services.inference.models import ResidentVersion
from rapid.telemetry.metrics import REGISTRY
from tests.services.fresh_metrics import initial_samples


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"five_inference_{name}", labels) or 0.0


def served(version: int) -> ResidentVersion:
    policy: Any = None
    return ResidentVersion(version, "d", policy, 1.0)


def test_batches_requests_and_sessions_are_counted() -> None:
    names = ("team_steps_total", "forward_seconds_count", "forward_seconds_sum", "batch_steps_sum", "batch_steps_count",
             "queue_seconds_sum", "queue_seconds_count", "expired_sessions_total")
    before = [value(name) for name in names]
    dropped = value("dropped_requests_total", reason="version"), value("dropped_requests_total", reason="error")
    observer = Meter().observer
    observer.batch(30, 0.5)
    observer.batch(10, 0.25)
    observer.queued(2.0)
    observer.sessions(12, 3)
    observer.dropped("error", 4)
    assert [value(name) - b for name, b in zip(names, before, strict=True)] == [40, 2, 0.75, 40, 2, 2.0, 1, 3]
    assert value("open_sessions") == 9
    assert (value("dropped_requests_total", reason="version"),
            value("dropped_requests_total", reason="error")) == (dropped[0], dropped[1] + 4)


def test_versions_in_memory_are_shown() -> None:
    before = value("swaps_total"), value("past_loads_total"), value("swap_seconds_sum"), value("swap_seconds_count")
    meter = Meter()
    meter.swapped(served(7), 1.5, 3, 200)
    assert (value("newest_versions"), value("resident_versions"), value("past_bytes")) == (7, 3, 200)
    meter.past_loaded(served(2), 4, 300)
    assert (value("newest_versions"), value("resident_versions"), value("past_bytes")) == (7, 4, 300)
    after = value("swaps_total"), value("past_loads_total"), value("swap_seconds_sum"), value("swap_seconds_count")
    assert [a - b for a, b in zip(after, before, strict=True)] == [1, 1, 1.5, 1]


def test_heartbeat_has_rates_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    meter = Meter()
    observer = meter.observer
    for rows, seconds in ((30, 0.5), (10, 0.25)):
        observer.batch(rows, seconds)
    for seconds in (0.002, 0.004, 0.003):
        observer.queued(seconds)
    observer.sessions(12, 3)
    now[0] += 2.0
    totals = {"requests": 3, "team_steps": 40, "queued_seconds": 0.009, "forward_seconds": 0.75}
    assert meter.recent() == {"steps/s": 20.0, "sessions": 9, "batch": 20.0, "busy": 0.375, "queue_ms": 3.0, **totals}
    now[0] += 4.0
    assert meter.recent() == {"steps/s": 0.0, "sessions": 9, "batch": 0.0, "busy": 0.0, "queue_ms": 0.0, **totals}
    observer.batch(8, 1.0)
    now[0] += 4.0
    assert meter.recent() == {"steps/s": 2.0, "sessions": 9, "batch": 8.0, "busy": 0.25, "queue_ms": 0.0,
                              **totals, "team_steps": 48, "forward_seconds": 1.75}


def test_sizes_of_batches_are_counted_by_powers_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    found = initial_samples("five.services.inference.metrics", monkeypatch)
    bounds = [float(bound) for bound in found["five_inference_batch_steps_bucket"]]
    assert bounds[:-1] == [2.0**i for i in range(11)] and math.isinf(bounds[-1])
    assert found["five_inference_dropped_requests_total"] == dict.fromkeys(
        ("cancelled", "error", "expired", "refused", "unknown_sessions", "version"), 0.0)
