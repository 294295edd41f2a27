"""Schedules, records and events of the training loop in real Redis: under the lease, and while Redis is away."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.services.optimizer import run_state_client
from five.services.optimizer.run_state_client import RunStateClient
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.series import Series
from rapid.store.state import RunState

CONFIGURED = SchedulesConfig()
CHANGED = SchedulesConfig(learning_rate=ScheduleConfig(initial=0.5))


class Client:
    """A client of a run whose publisher's lease is held."""

    def __init__(self, client: redis.Redis) -> None:
        self.state = RunState(client, "trial")
        self.state.create({}, "test")
        self.lease = PublisherLease(client, "trial", "optimizer-0", 60.0)
        self.token: FencingToken | None = self.lease.acquire()
        self.lifecycle: Any = SimpleNamespace(active=True)
        self.series = Series(client, "trial")
        self.client = RunStateClient(self.state, self.series, self.lifecycle, CONFIGURED, "optimizer-0",
                                     lambda: self.token)

    def records(self) -> list[int]:
        return [record.values["version"] for record in self.series.read("versions")]

    def events(self) -> list[str]:
        return [event.what for event in self.state.events.last(100) if event.what.startswith("optimizer.")]


@pytest.fixture
def run(redis_client: redis.Redis) -> Client:
    return Client(redis_client)


def fail(run: Client, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise redis.ConnectionError("the store is down")

    monkeypatch.setattr(run.state, name, failing)


def test_first_call_reads_the_schedules_and_later_ones_do_not(run: Client) -> None:
    run.state.set_document("schedules", dump_schedules(CHANGED), "ada")
    assert run.client.schedules() == CHANGED
    run.state.set_document("schedules", dump_schedules(CONFIGURED), "ada")
    assert run.client.schedules() == CHANGED  # the loop never waits for Redis
    run.client.read_schedules()
    assert run.client.schedules() == CONFIGURED


def test_schedules_are_the_configured_ones_until_others_are_set(run: Client) -> None:
    assert run.client.schedules() == CONFIGURED
    run.state.set_document("schedules", dump_schedules(CHANGED), "ada")
    assert run.client.schedules() == CONFIGURED


def test_outage_of_redis_is_logged_once(run: Client, monkeypatch: pytest.MonkeyPatch,
                                        caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with monkeypatch.context() as outage:
            fail(run, outage, "schedules")
            for _ in range(3):
                run.client.read_schedules()
        run.client.read_schedules()
    assert [message for message in caplog.messages if "the store is down" in message] == [
        "cannot read schedules, keeping the previous values: the store is down"] * 2


def test_previous_schedules_stay_while_redis_is_unavailable(run: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as outage:
        fail(run, outage, "schedules")
        assert run.client.schedules() == CONFIGURED
    run.state.set_document("schedules", dump_schedules(CHANGED), "ada")
    assert run.client.schedules() == CHANGED  # nothing was read yet
    with monkeypatch.context() as outage:
        fail(run, outage, "schedules")
        run.client.read_schedules()
    assert run.client.schedules() == CHANGED


def test_polling_follows_the_schedules(run: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Exception): ...

    slept: list[float] = []
    threads: list[tuple[str, Any]] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            run.state.set_document("schedules", dump_schedules(CHANGED), "ada")
        if len(slept) == 3:
            raise Ended

    def thread(name: str, work: Any) -> Any:
        threads.append((name, work))
        return SimpleNamespace(start=lambda: None)

    critical_tasks: Any = SimpleNamespace(thread=thread)
    monkeypatch.setattr(run_state_client, "time", SimpleNamespace(sleep=sleep))
    assert run.client.schedules() == CONFIGURED
    run.client.start_polling(critical_tasks)
    ((name, loop),) = threads
    assert name == "schedule-poller"
    with pytest.raises(Ended):
        loop()
    assert run.client.schedules() == CHANGED and slept == [run_state_client.SCHEDULE_SECONDS] * 3


def test_unreadable_schedules_keep_the_previous_ones(run: Client, monkeypatch: pytest.MonkeyPatch,
                                                     caplog: pytest.LogCaptureFixture) -> None:
    class Ended(Exception): ...

    newer = {**dump_schedules(CONFIGURED), "temperature": {"initial": 1.0}}
    left = [newer, newer, [], b"{", newer, dump_schedules(CONFIGURED), newer]

    def sleep(seconds: float) -> None:
        assert run.client.schedules() == CHANGED or len(left) < 2
        if not left:
            raise Ended
        document = left.pop(0)
        run.state.redis.hset(run.state.keys.documents, "schedules",
                             document if isinstance(document, bytes) else json.dumps(document))

    threads: list[Any] = []
    critical_tasks: Any = SimpleNamespace(thread=lambda name, work: threads.append(work) or SimpleNamespace(
        start=lambda: None))
    monkeypatch.setattr(run_state_client, "time", SimpleNamespace(sleep=sleep))
    run.state.set_document("schedules", dump_schedules(CHANGED), "ada")
    assert run.client.schedules() == CHANGED
    run.client.start_polling(critical_tasks)
    with pytest.raises(Ended):
        threads[0]()
    logged = [m for m in caplog.messages if m.startswith("schedules are unreadable, keeping the previous values: ")]
    assert ["temperature" in message for message in logged] == [True, False, False, True, True]
    assert run.client.schedules() == CONFIGURED


def test_first_read_of_unreadable_schedules_is_an_error(run: Client) -> None:
    run.state.set_document("schedules", {"temperature": {"initial": 1.0}}, "ada")
    with pytest.raises(ValueError, match="temperature"):
        run.client.schedules()


def test_run_learns_while_it_is_active(run: Client) -> None:
    for active in (True, False):
        run.lifecycle.active = active
        assert run.client.active() is active


def test_records_are_written_once_and_remembered(run: Client) -> None:
    assert run.client.last == {}
    for version in (1, 2, 2):
        run.client.record({"version": version, "loss": 0.5})
    assert run.records() == [1, 2] and run.client.last == {"version": 2, "loss": 0.5}


def test_failed_record_is_raised_and_a_failed_event_is_not(run: Client, monkeypatch: pytest.MonkeyPatch,
                                                           caplog: pytest.LogCaptureFixture) -> None:
    with monkeypatch.context() as outage:
        fail(run, outage, "fenced_write")
        with pytest.raises(redis.ConnectionError):
            run.client.record({"version": 1})
        run.client.event("optimizer.resumed", {})
    assert "event optimizer.resumed lost: the store is down" in caplog.messages
    run.client.record({"version": 1})
    run.client.event("optimizer.joined", {"rank": 1})
    assert run.records() == [1] and run.events() == ["optimizer.joined"]
    (event,) = [e for e in run.state.events.last(10) if e.what == "optimizer.joined"]
    assert event.who == "optimizer-0"


@pytest.mark.parametrize("released", [False, True], ids=["without a token", "with a lost one"])
def test_nothing_is_written_without_the_lease(run: Client, released: bool, caplog: pytest.LogCaptureFixture) -> None:
    if released:
        run.lease.release()
    else:
        run.token = None
    run.client.record({"version": 1})
    run.client.event("optimizer.resumed", {})
    assert run.records() == [] and run.events() == []
    lost = [m for m in caplog.messages if "the record of version 1 lost: " in m or "event optimizer.resumed lost" in m]
    assert len(lost) == 2 and all("publisher's lease" in message for message in lost)


def test_last_events_of_an_epoch_need_no_lease(run: Client, monkeypatch: pytest.MonkeyPatch,
                                               caplog: pytest.LogCaptureFixture) -> None:
    run.client.leave_epoch()
    run.lease.release()
    run.client.event("optimizer.restarting", {})
    assert run.events() == ["optimizer.restarting"]

    def failing(*_: Any) -> None:
        raise redis.ConnectionError("the store is down")

    monkeypatch.setattr(run.state.events, "append", failing)
    run.client.event("optimizer.drained", {})
    assert "event optimizer.drained lost: the store is down" in caplog.messages
    run.client.record({"version": 3})
    assert run.records() == []  # only events
