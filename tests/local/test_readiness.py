"""Reasons why a local run's services are not ready, from real processes, leases and pages."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from five.local.readiness import first_version_seconds, readiness, why_not_ready
from five.run.load import load
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Lease, Leases
from rapid.supervisor import ProcessSpec, Supervisor
from rapid.telemetry.pages import start_pages
from tests.waiting import eventually


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as server:
        yield redis.Redis.from_url(server.url)


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_each_service_that_is_not_ready_says_why(client: redis.Redis, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # the pages are on this machine
    leases = Leases(client, "trial")
    page = start_pages(0, not_ready=lambda: "no inference server answers")
    fine = start_pages(0)
    with Supervisor(tmp_path / "logs") as supervisor:
        for name, code in {
                "rollout-0": "import time; time.sleep(600)", "inference-0": "import time; time.sleep(600)",
                "optimizer-0": "import time; print('waiting: run does not exist', flush=True); time.sleep(600)",
                "evaluator-0": "raise SystemExit(3)", "redis-state": "import time; time.sleep(600)"}.items():
            supervisor.start(ProcessSpec(name, python(code), give_up_after=1))
        Lease(client, "trial", "rollout", "0", 30.0, "", f"127.0.0.1:{page.port}").renew({})
        Lease(client, "trial", "inference", "0", 30.0, "", f"127.0.0.1:{fine.port}").renew({})
        eventually(lambda: supervisor.failed() == ["evaluator-0"] and supervisor.log_tail("optimizer-0"))
        assert why_not_ready(supervisor, leases) == [
            "rollout-0: no inference server answers",
            "optimizer-0: has not joined the run: waiting: run does not exist",
            "evaluator-0: does not run, it exited with code 3"]
    page.close()
    fine.close()
    assert readiness(f"127.0.0.1:{page.port}") == ""  # nothing answers any more


def test_first_version_may_take_longer_for_larger_batches() -> None:
    small = first_version_seconds(load("laptop-1v1"))
    assert 200 < small < 600
    assert first_version_seconds(load("laptop-1v1", ["learning.gradient_steps_per_iteration=320"])) > 3 * small
    assert first_version_seconds(load("laptop-1v1", ["services.rollout.processes=4"])) < small
