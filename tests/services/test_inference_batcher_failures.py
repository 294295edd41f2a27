"""Refused requests, failed batches, a dead thread and expired sessions of a batcher."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from five.clients.inference import CLOSE, NEWEST, RESET, RESTORE, WANT_POLICY_DEBUG, WANT_STATE
from five.run.config.inference import InferenceConfig
from five.services.inference import batcher as batcher_module
from five.services.inference.batcher import Batcher, BatcherOptions, BatchObserver, RequestTimeout
from five.services.inference.forward import HostForward
from five.services.inference.models import Models, VersionNotFound, VersionUnavailable
from five.services.inference.requests import Request
from five.services.inference.sessions import SessionsExhausted, SessionTable
from rapid.critical_tasks import CriticalTasks
from tests.services.counting import STATE_SPECS, CountingBuilder, Versions, observations
from tests.waiting import eventually


class Served:
    """Batcher with counting versions that records what it reports. Its requests wait until `start`."""

    def __init__(self, versions: Versions, max_sessions: int = 1000, clock: Callable[[], float] = time.monotonic,
                 forward: Callable[[SessionTable], HostForward] | None = None, **options: Any) -> None:
        self.builder = CountingBuilder()
        self.models = Models(versions, self.builder, past_bytes=2, poll_seconds=60)
        self.table = SessionTable(STATE_SPECS, torch.device("cpu"), max_sessions, 10.0)
        self.drops: list[tuple[str, int]] = []
        self.batches: list[int] = []
        self.queued: list[float] = []
        self.swept: list[tuple[int, int]] = []
        observer = BatchObserver(batch=lambda rows, seconds: self.batches.append(rows), queued=self.queued.append,
                                 dropped=lambda reason, n: self.drops.append((reason, n)),
                                 sessions=lambda open_sessions, expired: self.swept.append((open_sessions, expired)))
        self.batcher = Batcher(self.models, self.table, BatcherOptions(**options), observer, clock,
                               None if forward is None else forward(self.table))
        self.models.refresh()

    def start(self, critical_tasks: CriticalTasks | None = None) -> None:
        self.batcher.start(critical_tasks)

    def submit(self, *sessions: int, flags: int = RESET, policy: int = NEWEST, **more: Any) -> Any:
        n = len(sessions)
        return self.batcher.submit(Request(list(sessions), np.full(n, policy, np.int64), np.full(n, flags, np.uint8),
                                           observations(*range(n)), **more))

    def close(self) -> None:
        self.batcher.close()
        self.models.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def create(*versions: int, **options: Any) -> Served:
        made.append(Served(Versions(*(versions or (0,))), **options))
        return made[-1]

    yield create
    for served in made:
        served.close()


def test_refused_request_is_not_evaluated(serve: Callable[..., Served]) -> None:
    s = serve(max_sessions=2)
    s.start()
    with pytest.raises(ValueError, match=r"states: \[\] were sent; this model has"):
        s.submit(1, flags=RESTORE).result(30)
    with pytest.raises(SessionsExhausted):
        s.submit(1, 2, 3).result(30)
    assert s.batches == [] and s.drops == [("refused", 1)] * 2 and s.queued == [] and len(s.table) == 0
    assert s.submit(1, flags=0).result(30).unknown == [1]
    assert s.drops[2:] == [("unknown_sessions", 1)] and s.batches == []
    s.submit(1, 2).result(30)
    assert s.batches == [2] and len(s.queued) == 1


def test_failed_batch_is_reported_by_its_requests(serve: Callable[..., Served]) -> None:
    s = serve(queue_delay_seconds=600.0)
    s.batcher.open_stream(0)
    s.batcher.open_stream(1)
    s.builder.created[0].fail = True
    failed = [s.submit(1, stream=0), s.submit(2, stream=1)]
    s.start()
    for future in failed:
        with pytest.raises(RuntimeError, match="broke"):
            future.result(30)
    assert s.drops == [("error", 2)] and len(s.table) == 0


def test_request_of_a_failed_batch_releases_its_versions(serve: Callable[..., Served]) -> None:
    s = serve(0, 9)
    s.start()
    s.submit(1, policy=0).result(30)
    held = s.models.reserve(0).result(30)
    assert held.users == 1
    s.builder.created[1].fail = True
    with pytest.raises(RuntimeError, match="broke"):
        s.submit(1, policy=0).result(30)
    s.submit(2).result(30)
    assert held.users == 1
    cancelled = s.submit(3, policy=0)
    cancelled.cancel()
    s.submit(2, flags=0).result(30)
    eventually(lambda: held.users == 1)


def test_missing_version_is_reported_and_releases_the_others(serve: Callable[..., Served]) -> None:
    s = serve(0, 9)
    s.start()
    future = s.batcher.submit(Request([1, 2], np.array([0, 77]), np.full(2, RESET, np.uint8), observations(0, 0)))
    with pytest.raises(VersionNotFound, match="version 77"):
        future.result(30)
    assert s.drops == [("version", 1)]
    held = s.models.reserve(0).result(30)
    eventually(lambda: held.users == 1)
    assert s.batcher.idle


def test_server_without_a_version_closes_no_batch_as_failed(serve: Callable[..., Served]) -> None:
    made = Served(Versions())
    made.start()
    for _ in range(batcher_module.FAILURES_IN_A_ROW + 1):
        with pytest.raises(VersionUnavailable, match="no version has been published"):
            made.submit(1).result(30)
    assert made.drops == []
    made.close()


@pytest.mark.parametrize("before", [[], [True, True, False], [False]])
def test_repeated_failures_end_the_process(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch,
                                           before: list[bool]) -> None:
    """A batch that succeeds in between shows that the device works."""
    monkeypatch.setattr(batcher_module, "FAILURES_IN_A_ROW", 3)
    drained: list[str] = []
    s = serve()
    critical_tasks = CriticalTasks(drained.append, lambda: bool(drained), 3600.0, lambda code: None)
    s.start(critical_tasks)
    policy = s.builder.created[0]
    for fail in (*before, True, True):
        policy.fail = fail
        future = s.submit(1)
        assert isinstance(future.exception(30), RuntimeError) == fail
    assert drained == []
    assert isinstance(s.submit(1).exception(30), RuntimeError)
    eventually(lambda: drained)
    assert drained == ["forward-passes died: RuntimeError: 3 batches in a row have failed"]
    critical_tasks.close()


def test_forward_pass_is_prepared_before_the_first_batch(serve: Callable[..., Served]) -> None:
    steps: list[str] = []

    class Recording(HostForward):
        def prepare(self, beat: Callable[[], None]) -> None:
            beat()
            steps.append("prepare")

        def stage(self, request: Request) -> None:
            steps.append("stage")

        def join(self, requests: Any) -> Any:
            steps.append("join")
            return super().join(requests)

    s = serve(forward=lambda table: Recording(table, 0))
    future = s.submit(1)
    assert not s.batcher.prepared.is_set() and steps == ["stage"]
    s.start()
    future.result(30)
    assert s.batcher.prepared.is_set() and steps == ["stage", "prepare", "join"]


def test_expired_sessions_are_closed_once_a_second(serve: Callable[..., Served]) -> None:
    now = [100.0]
    s = serve(clock=lambda: now[0])
    s.start()
    s.submit(1, 2).result(30)
    for now[0] in (100.9, 101.0):
        s.submit(3).result(30)
        assert s.swept == []
    now[0] = 101.5
    s.submit(3, flags=0).result(30)
    eventually(lambda: s.swept)
    assert s.swept == [(3, 0)]
    now[0] = 102.4
    s.submit(3, flags=0).result(30)
    assert len(s.swept) == 1, "swept again within a second"
    now[0] = 110.5
    s.submit(4).result(30)  # the leases of the first two ended at 110
    eventually(lambda: len(s.swept) == 2)
    assert s.swept[1] == (4, 2)
    assert s.submit(3, flags=0).result(30).unknown == []
    assert s.submit(1, flags=0).result(30).unknown == [1]


def test_reply_has_only_what_its_request_wants(serve: Callable[..., Served]) -> None:
    now = [100.0]
    s = serve(clock=lambda: now[0], queue_delay_seconds=600.0)
    for stream in range(3):
        s.batcher.open_stream(stream)
    plain = s.submit(1, stream=0)
    now[0] += 0.5
    states = s.submit(2, 3, flags=RESET | WANT_STATE, stream=1)
    shown = s.submit(4, flags=RESET | WANT_POLICY_DEBUG | CLOSE, stream=2)
    s.start()
    first, second, third = (future.result(30) for future in (plain, states, shown))
    assert s.batches == [4]
    assert first.states == first.auxiliary == first.policy_debug == second.policy_debug == third.states == {}
    assert second.states["count"].shape[0] == second.auxiliary["win_probability"].shape[0] == 2
    assert third.policy_debug["win_probability"].shape[0] == 1 and third.auxiliary == {}
    assert [reply.queue_us for reply in (first, second, third)] == [500_000, 0, 0]
    assert first.forward_us == third.forward_us > 0
    assert 0 < first.closed_ns <= first.launched_ns < time.time_ns()
    assert s.queued == [0.5, 0.0, 0.0]
    assert s.table.find([1, 2, 3, 4]).min() == -1 and (s.table.find([1, 2, 3]) >= 0).all()


@pytest.mark.parametrize(("waited", "is_served"), [(29.5, True), (30.0, True), (30.5, False)])
def test_request_expires_after_its_timeout(serve: Callable[..., Served], waited: float, is_served: bool) -> None:
    now = [100.0]
    s = serve(clock=lambda: now[0], request_timeout_seconds=30.0)
    future = s.submit(1)
    now[0] += waited
    s.start()
    if is_served:
        assert future.result(30).queue_us == waited * 1e6
        assert s.drops == [] and s.queued == [waited]
    else:
        with pytest.raises(RequestTimeout, match=r"waited 30\.5 s"):
            future.result(30)
        assert s.drops == [("expired", 1)] and s.queued == [] and s.batches == []


def test_close_before_the_start_fails_waiting_requests(serve: Callable[..., Served]) -> None:
    s = serve(0, 9)
    held = s.models.reserve(0).result(30)
    waiting = [s.submit(1), s.submit(2, policy=0)]
    s.batcher.close()
    for future in waiting:
        with pytest.raises(VersionUnavailable, match="shutting down"):
            future.result(30)
    assert s.batcher.idle and held.users == 1


def test_options_default_to_those_of_the_configuration() -> None:
    options, settings = BatcherOptions(), InferenceConfig()
    assert (options.max_batch, options.queue_delay_seconds, options.request_timeout_seconds) == (
        settings.max_batch, settings.queue_delay_us / 1e6, settings.request_timeout_seconds)
