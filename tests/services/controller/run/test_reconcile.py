"""Transitions of the run's status that the controller makes, and the record of a pause that takes too long."""

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import redis

from five.services.controller.run import reconcile as module
from five.services.controller.run.reconcile import PauseClock, next_status, reconcile
from rapid.store.idle import IdleReport
from rapid.store.leases import Instance
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status

ALL = ("inference", "optimizer", "rollout")
IDLE = IdleReport(1, 1, 0.0, {"rollout/0": 1.0, "optimizer/0": 2.0}, [])


def instances(*kinds: str) -> list[Instance]:
    return [Instance(kind, "0", "", "", 0.0, 0.0, {}) for kind in kinds]


@pytest.mark.parametrize(("head", "live", "starts"), [
    (0, ALL, True), (7, (*ALL, "controller", "zoo"), True), (None, ALL, False), (0, (), False),
    *((0, tuple(kind for kind in ALL if kind != missing), False) for missing in ALL)])
def test_run_starts_with_a_version_and_a_service_of_each_kind(head: int | None, live: tuple[str, ...], starts: bool
                                                              ) -> None:
    due = next_status(Status.STARTING, head, instances(*live), IDLE)
    reason = f"version {head} is published and inference, optimizer, rollout are live"
    assert due == ((Status.RUNNING, reason) if starts else None)


@pytest.mark.parametrize(("waiting", "due"), [
    ([], (Status.PAUSED, "games and learning are idle: acknowledged by 2 services")), (["play/1"], None)])
def test_run_pauses_once_nobody_is_waited_for(waiting: list[str], due: tuple[Status, str] | None) -> None:
    for head, live in ((None, ()), (3, ALL)):
        assert next_status(Status.PAUSING, head, instances(*live), IDLE._replace(waiting_for=waiting)) == due


@pytest.mark.parametrize(("live", "stops"), [
    ((), True), (("controller",), True), (("controller", "controller"), True), (("controller", "rollout"), False),
    (("a-new-kind",), False)])
def test_run_stops_once_only_controllers_are_live(live: tuple[str, ...], stops: bool) -> None:
    due = next_status(Status.STOPPING, 3, instances(*live), IDLE._replace(waiting_for=["rollout/0"]))
    assert due == ((Status.STOPPED, "all services have drained") if stops else None)


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.STARTING, Status.PAUSING, Status.STOPPING)])
def test_other_statuses_stay(redis_client: redis.Redis, status: Status) -> None:
    """Although every condition of a transition holds."""
    for live in (instances(*ALL), []):
        assert next_status(status, 3, live, IDLE) is None
    state = run(redis_client, status)
    assert not reconcile(state, lambda: 3, lambda: instances(*ALL), PauseClock(), -1.0)
    assert (now := state.status()) is not None and now.status is status


def test_restarted_redis_does_not_stop_the_run_early(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
                                                     ) -> None:
    """It has lost the leases of services that still drain, which renew them within a lease."""
    state = run(redis_client, Status.STOPPING)
    assert not reconcile(state, lambda: 0, list, PauseClock(), lease_seconds=1e6)
    assert (now := state.status()) is not None and now.status is Status.STOPPING
    monkeypatch.setattr(state.redis, "info", lambda section: {})  # a Redis that does not report its uptime
    assert reconcile(state, lambda: 0, list, PauseClock(), lease_seconds=1e6)
    assert (now := state.status()) is not None and now.status is Status.STOPPED


ROUTES = {Status.RUNNING: [Status.RUNNING], Status.PAUSING: [Status.RUNNING, Status.PAUSING],
          Status.PAUSED: [Status.RUNNING, Status.PAUSING, Status.PAUSED],
          Status.OPERATING: [Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING],
          Status.STOPPING: [Status.STOPPING], Status.STOPPED: [Status.STOPPING, Status.STOPPED],
          Status.FAILED: [Status.FAILED]}


def run(client: redis.Redis, status: Status = Status.STARTING) -> RunState:
    """Return a run of that status."""
    state = RunState(client, "trial")
    state.create({}, "test", RunRecord(schema="s"))
    for step in ROUTES.get(status, []):
        state.transition(step, "test")
    if status is Status.WARMING:
        text = client.get(state.keys.status)
        assert isinstance(text, bytes)
        client.set(state.keys.status, text.replace(b"starting", b"warming"))
    return state


def test_transition_has_its_reason_and_happens_once(redis_client: redis.Redis) -> None:
    state = run(redis_client)

    def step() -> bool:
        return reconcile(state, lambda: 4, lambda: instances(*ALL), PauseClock())

    assert [step(), step()] == [True, False]
    now = state.status()
    assert now is not None and (now.status, now.who, now.reason) == (
        Status.RUNNING, "controller", "version 4 is published and inference, optimizer, rollout are live")


def test_missing_run_or_record_is_left_alone(redis_client: redis.Redis) -> None:
    absent = RunState(redis_client, "absent")
    assert not reconcile(absent, lambda: 0, list, PauseClock()) and absent.status() is None
    state = run(redis_client, Status.STOPPING)
    redis_client.delete(state.keys.record)
    assert not reconcile(state, lambda: 0, list, PauseClock())
    assert (now := state.status()) is not None and now.status is Status.STOPPING


def stop(state: RunState) -> None:
    state.transition(Status.STOPPING, "ada")


def begin_epoch(state: RunState) -> None:
    record = json.loads(state.redis.get(state.keys.record))  # type: ignore[arg-type]
    state.redis.set(state.keys.record, json.dumps({**record, "epoch": 2}))


@pytest.mark.parametrize(("meanwhile", "status"), [(stop, Status.STOPPING), (begin_epoch, Status.STARTING)])
def test_change_during_the_pass_is_kept(redis_client: redis.Redis, meanwhile: Callable[[RunState], None],
                                        status: Status) -> None:
    state = run(redis_client)

    def head() -> int:
        meanwhile(state)
        return 0

    assert not reconcile(state, head, lambda: instances(*ALL), PauseClock())
    assert (now := state.status()) is not None and now.status is status


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The monotonic clock of the controller; ``now`` is its time."""
    clock = SimpleNamespace(now=5000.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_each_pause_is_measured_from_its_first_pass(clock: SimpleNamespace) -> None:
    measured = PauseClock()
    for pause in (0, 3, 2, 3):
        assert measured.seconds(pause) == 0.0
        clock.now += 10.0
        assert measured.seconds(pause) == 10.0


def test_long_pause_is_recorded_once_with_who_is_busy(redis_client: redis.Redis, clock: SimpleNamespace) -> None:
    state = run(redis_client, Status.RUNNING)
    state.lease("rollout", "b", 60.0).renew(epoch=1, revision=1)
    state.transition(Status.PAUSING, "ada")
    measured = PauseClock()
    passes = []
    for seconds in (0.0, 60.0, 60.5, 61.0):
        clock.now = 5000.0 + seconds
        passes.append(reconcile(state, lambda: 0, list, measured))
    assert passes == [False, False, True, False]
    (event,) = [e for e in state.events.read() if e.what == "run.pause_overdue"]
    assert (event.who, event.details) == ("controller", {
        "pause": state.idle_report().pause, "waiting_for": ["rollout/b"], "seconds": 60.0})


def test_only_pauses_are_overdue(redis_client: redis.Redis) -> None:
    state = run(redis_client)
    assert not reconcile(state, lambda: None, list, PauseClock(), -1.0)
    assert [e.what for e in state.events.read()] == ["run.created"]
