"""A new epoch during games: every process restarts itself and the run goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import KINDS, Run, eventually

RENEWED = ("optimizer-0", "inference-0", "rollout-0", "opponents-0", "evaluator-0", "controller-0",
           "play-0")


SERVICES = tuple(name.removesuffix("-0") for name in RENEWED)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


def begin_epoch(run: Run) -> int:
    """Write the record of a surgery that changes nothing, without its procedure: no service is notified or waited
    for."""
    state = run.state()
    before = state.record()
    assert before is not None
    after = before.changed(new_epoch=True)
    state.redis.set(state.keys.record, after.to_json())
    return after.epoch


def epochs(run: Run) -> dict[str, int]:
    """Return the epoch by kind of service. A restarting service is missing."""
    return {instance.kind: instance.epoch for instance in run.state().services()}


@pytest.mark.runs
@pytest.mark.timeout(1800)
def test_services_restart_during_games_and_after_a_pause(run: Run) -> None:
    run.start_new()
    run.wait_version(2)
    processes = {name: run.pids(name) for name in RENEWED}

    # Without a pause, in whatever order they see it: messages meet servers of the other epoch.
    epoch = begin_epoch(run)
    eventually(lambda: epochs(run) == dict.fromkeys(SERVICES, epoch), 300, "all are in the next epoch")
    run.wait_version(run.head() + 3)

    # In a pause: what was played is acknowledged before, nothing of it is lost.
    assert run.rest("POST", "pause", json={"reason": "a test"}).status_code == 200
    eventually(lambda: run.status() == "paused", 180, "the run is paused")
    epoch = begin_epoch(run)
    eventually(lambda: epochs(run) == dict.fromkeys(SERVICES, epoch), 300, "all are in the epoch after")
    eventually(lambda: run.rest("POST", "resume", json={"reason": "a test"}).status_code == 200, 120, "it is resumed")
    run.wait_version(run.head() + 3)

    run.check_versions()
    assert {name: run.pids(name) for name in RENEWED} == processes, run.logs()  # renewed, not started again
    renewals = [e.details for e in run.state().events.last(500) if e.what == "optimizer.renewed"]
    assert len(renewals) == 2 and all(details["dropped_samples"] > 0 for details in renewals)
    assert set(KINDS) >= set(RENEWED)
    assert run.end() == 0, run.logs()
