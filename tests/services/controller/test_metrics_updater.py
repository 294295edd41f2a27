"""The task that keeps the controller's metrics current: each pass, past failures of the stores, until the drain."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.run.load import load
from five.services.controller import metrics_updater
from five.services.controller.metrics_updater import keep_metrics_current
from five.services.controller.run.setup import set_up_run
from rapid.store.errors import Corrupt
from rapid.store.state import RunState, Status
from rapid.telemetry.metrics import REGISTRY

CONFIG = load("laptop-1v1", ["services.controller.reconcile_seconds=0.01"])
Head = Callable[[], int | None]


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"five_controller_{name}", labels)


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, CONFIG.name)


def passes(state: RunState, url: str, count: int = 1, head: Head = lambda: 4, params: str = "", **given: Any) -> int:
    """Keep the metrics current for some passes; return how often the loop asked whether the service drains."""
    left = [False] * count

    class Life:
        asked = 0

        @property
        def draining(self) -> bool:
            self.asked += 1
            return not left or left.pop()

    life = Life()
    store = CONFIG.store.model_copy(update={"state_url": url, "params_url": params or url})
    service: Any = SimpleNamespace(
        config=CONFIG.model_copy(update={"store": store}), file_config=given.get("file_config", CONFIG), state=state,
        parameters=SimpleNamespace(head=head), lifecycle=life)
    asyncio.run(asyncio.wait_for(keep_metrics_current(service), 20))
    return life.asked


def test_pass_shows_the_run_and_its_stores(state: RunState, redis_url: str) -> None:
    set_up_run(state, CONFIG, "test")
    state.lease("rollout", "0", 60.0).renew()
    changed = load("laptop-1v1", ["game.observation.minimap=3", "model.lstm=24"])
    assert passes(state, redis_url, file_config=changed) == 2
    assert [shown("run_state", status=name) for name in ("starting", "running")] == [1.0, 0.0]
    assert [shown("live_instances", component=kind) for kind in ("rollout", "optimizer")] == [1.0, 0.0]
    assert [shown(name) for name in ("head_versions", "run_epoch_info", "run_record_revision_info")] == [4.0, 1.0, 1.0]
    assert shown("config_drift_keys") == 2.0
    assert [shown("redis_up_state", role=role) for role in ("state", "params")] == [1.0, 1.0]


@pytest.mark.parametrize(("statuses", "busy"), [
    ([Status.RUNNING], 0.0), ([Status.RUNNING, Status.PAUSING], 1.0),
    ([Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING], 1.0),
    ([Status.RUNNING, Status.PAUSING, Status.RUNNING], 0.0)])
def test_services_that_are_not_idle_count_only_in_a_pause(state: RunState, redis_url: str, statuses: list[Status],
                                                          busy: float) -> None:
    set_up_run(state, CONFIG, "test")
    state.lease("rollout", "0", 60.0).renew(epoch=1, revision=1)
    for status in statuses:
        state.transition(status, "test")
    passes(state, redis_url)
    assert shown("not_idle_instances") == busy
    assert shown("run_state", status=str(statuses[-1])) == 1.0


def test_missing_run_is_in_no_status(state: RunState, redis_url: str) -> None:
    passes(state, redis_url)
    assert {shown("run_state", status=str(status)) for status in Status} == {0.0}


def test_record_without_a_status_has_nobody_to_wait_for(state: RunState, redis_url: str) -> None:
    """The status was lost, or a run is just being created."""
    set_up_run(state, CONFIG, "test")
    state.redis.delete(state.keys.status)
    passes(state, redis_url)
    assert (shown("run_epoch_info"), shown("not_idle_instances")) == (1.0, 0.0)


@pytest.mark.parametrize("failure", [
    redis.ConnectionError("away"), Corrupt("an acknowledgement is damaged"), ValueError("a name is damaged")])
def test_failed_pass_is_followed_by_the_next(state: RunState, redis_url: str, failure: Exception) -> None:
    set_up_run(state, CONFIG, "test")
    failures = [failure]

    def head() -> int:
        if failures:
            raise failures.pop()
        return 11

    assert passes(state, redis_url, 2, head) == 3
    assert shown("head_versions") == 11.0


@pytest.fixture
def silent() -> Iterator[str]:
    """URL of a Redis that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


def test_silent_store_is_down_and_delays_nothing_else(state: RunState, redis_url: str, silent: str,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_updater, "ANSWER_SECONDS", 1.0)
    set_up_run(state, CONFIG, "test")
    passes(state, redis_url, params=silent, head=lambda: 12)
    assert [shown("redis_up_state", role=role) for role in ("state", "params")] == [1.0, 0.0]
    assert shown("head_versions") == 12.0
