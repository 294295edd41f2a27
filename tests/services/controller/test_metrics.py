"""Metrics of the controller: the run, its record, its Redis servers, and the autoscaler."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from five.services.controller import metrics
from rapid.store.leases import Instance
from rapid.store.state import Status
from rapid.telemetry.metrics import REGISTRY


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"five_controller_{name}", labels)


def instance(kind: str, *servers: str) -> Instance:
    return Instance(kind, "0", "", "10.0.0.1:9100", 0.0, 0.0, {"environments": list(servers)} if servers else {})


@pytest.mark.parametrize("status", [*Status, None])
def test_one_status_is_shown(status: Status | None) -> None:
    metrics.show_run(status, 1, [])
    assert {each: shown("run_state", status=str(each)) for each in Status} == {
        each: float(each is status) for each in Status}


def test_unknown_head_keeps_the_last_one() -> None:
    heads = []
    for head in (7, None, 0):
        metrics.show_run(Status.RUNNING, head, iter([]))
        heads.append(shown("head_versions"))
    assert heads == [7.0, 7.0, 0.0]


def test_live_instances_are_counted_by_component() -> None:
    live = [instance("rollout", "10.0.9.1:1", "10.0.9.2:1"), instance("rollout", "10.0.9.2:1"), instance("zoo")]
    metrics.show_run(Status.RUNNING, 1, iter(live))
    found = {name: shown("live_instances", component=name) for name in (*metrics.COMPONENTS, "zoo")}
    assert found == {**dict.fromkeys(metrics.COMPONENTS, 0.0), "rollout": 2.0, "zoo": 1.0, "dota_env": 2.0}
    metrics.show_run(Status.RUNNING, 1, [])
    assert {shown("live_instances", component=name) for name in metrics.COMPONENTS} == {0.0}


def test_record_is_shown() -> None:
    metrics.show_record(3, 12, 2, 4)
    assert [shown(name) for name in ("run_epoch_info", "run_record_revision", "run_record_revision_info",
                                     "config_drift_keys", "not_idle_instances")] == [3.0, None, 12.0, 2.0, 4.0]


class Answer:
    """Redis whose INFO is given, or that raises an error."""

    def __init__(self, found: dict[str, Any] | Exception) -> None:
        self.found = found

    def info(self) -> dict[str, Any]:
        if isinstance(self.found, Exception):
            raise self.found
        return {"used_memory": 5, **self.found}


def show(role: str = "params", **found: Any) -> None:
    metrics.show_stores({role: Answer(found)})  # type: ignore[dict-item]


@pytest.fixture
def limited(redis_client: redis.Redis) -> Iterator[redis.Redis]:
    """A real Redis with a limit of its memory."""
    before = redis_client.config_get("maxmemory")["maxmemory"] or 0
    redis_client.config_set("maxmemory", 123_000_000)
    yield redis_client
    redis_client.config_set("maxmemory", before)


def test_redis_that_responds_is_up(limited: redis.Redis) -> None:
    metrics.show_stores({"params": limited})
    assert shown("redis_up_state", role="params") == 1.0
    seconds, used = shown("redis_answer_seconds", role="params"), shown("redis_used_bytes", role="params")
    assert seconds is not None and 0.0 < seconds < 60.0, "not the time of an exchange"
    assert used is not None and 100_000 < used < 123_000_000
    assert shown("redis_limit_bytes", role="params") == 123_000_000.0
    assert shown("redis_append_only_state", role="params") == 0.0


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), redis.ResponseError("loading"), OSError("no route")])
def test_redis_that_does_not_respond_is_down(limited: redis.Redis, error: Exception) -> None:
    """The others are shown all the same."""
    metrics.show_stores({"params": limited, "state": limited})
    used = shown("redis_used_bytes", role="params")
    limited.config_set("maxmemory", 124_000_000)
    metrics.show_stores({"params": Answer(error), "state": limited})  # type: ignore[dict-item]
    assert [shown("redis_up_state", role=role) for role in ("params", "state")] == [0.0, 1.0]
    assert shown("redis_used_bytes", role="params") == used
    assert shown("redis_limit_bytes", role="state") == 124_000_000.0
    metrics.show_stores({"params": limited})
    assert shown("redis_up_state", role="params") == 1.0


def test_redis_without_a_limit_shows_none() -> None:
    show(maxmemory=7)
    assert shown("redis_limit_bytes", role="params") == 7.0
    show()  # a server that speaks Redis and reports no limit
    assert shown("redis_limit_bytes", role="params") == 0.0


@pytest.mark.parametrize(("found", "saved"), [
    ({"aof_enabled": 1, "aof_last_write_status": "ok"}, 1.0), ({"aof_enabled": 1, "aof_last_write_status": "err"}, 0.0),
    ({"aof_enabled": 0, "aof_last_write_status": "ok"}, 0.0), ({"aof_enabled": 1}, 0.0),
    ({"aof_enabled": 1, "aof_last_write_status": "out of space"}, 0.0), ({"aof_last_write_status": "ok"}, 0.0)])
def test_only_a_written_append_only_file_saves(found: dict[str, Any], saved: float) -> None:
    show(**found)
    assert shown("redis_append_only_state", role="params") == saved


SIGNALS = {"unpaced_reuse": "unpaced_reuse_ratio", "rollouts_throttled": "rollouts_throttled_ratio",
           "optimizers_starved": "optimizers_starved_ratio", "queue_seconds": "queue_seconds",
           "inference_busy": "inference_busy_ratio"}


def test_signals_that_are_not_measured_are_nan() -> None:
    def values() -> list[float]:
        return [shown(f"autoscaler_{name}") or 0.0 for name in SIGNALS.values()]

    metrics.show_signals({name: 0.25 + n for n, name in enumerate(SIGNALS)} | {"rollouts": 9.0})
    assert values() == [0.25, 1.25, 2.25, 3.25, 4.25]
    metrics.show_signals({"queue_seconds": 0.5})
    assert [math.isnan(value) for value in values()] == [True, True, True, False, True] and values()[3] == 0.5


def test_decisions_are_counted_by_reason() -> None:
    def counted(component: str, reason: str) -> float:
        return shown("autoscaler_decisions_total", component=component, reason=reason) or 0.0

    before = counted("rollout", "in_band"), counted("rollout", "at_max"), counted("inference", "in_band")
    for reason in ("in_band", "in_band", "at_max"):
        metrics.show_decision("rollout", 6, 4, reason)
    after = counted("rollout", "in_band"), counted("rollout", "at_max"), counted("inference", "in_band")
    assert [now - then for now, then in zip(after, before, strict=True)] == [2.0, 1.0, 0.0]
    assert shown("autoscaler_desired_instances", component="rollout") == 6.0
    assert shown("autoscaler_current_instances", component="rollout") == 4.0
