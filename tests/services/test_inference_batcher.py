import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from five.clients.inference import CLOSE, GREEDY, NEWEST, REPLAY, RESET, RESTORE, WANT_STATE
from five.services.inference.batcher import Batcher, BatcherOptions, BatchObserver, RequestTimeout
from five.services.inference.models import Models, ResidentVersion, VersionNotFound, VersionUnavailable
from five.services.inference.requests import Reply, Request
from five.services.inference.sessions import SessionTable
from rapid.critical_tasks import CriticalTasks
from tests.services.counting import STATE_SPECS, CountingBuilder, Versions, observations
from tests.waiting import eventually


class Server:
    """Batcher with counting versions, without gRPC."""

    def __init__(self, versions: Versions, lease: float = 60.0, past: int = 2, **options: float) -> None:
        self.versions = versions
        self.builder = CountingBuilder()
        self.models = Models(versions, self.builder, past_bytes=past, poll_seconds=60)
        self.table = SessionTable(STATE_SPECS, torch.device("cpu"), 1000, lease)
        self.drops: list[str] = []
        self.sizes: list[int] = []
        observer = BatchObserver(batch=lambda rows, seconds: self.sizes.append(rows),
                                 dropped=lambda reason, n: self.drops.append(reason))
        self.batcher = Batcher(self.models, self.table, BatcherOptions(**options), observer)  # type: ignore[arg-type]
        self.models.refresh()
        self.batcher.start()

    def ask(self, sessions: list[int], seen: list[float], flags: int | list[int] = 0, policy: int | list[int] = NEWEST,
            **more: object) -> Reply:
        return self.submit(sessions, seen, flags, policy, **more).result(30)

    def submit(self, sessions: list[int], seen: list[float], flags: int | list[int] = 0,
               policy: int | list[int] = NEWEST, **more: object):  # type: ignore[no-untyped-def]
        n = len(sessions)
        return self.batcher.submit(Request(
            sessions, np.broadcast_to(np.array(policy, np.int64), n).copy(),
            np.broadcast_to(np.array(flags, np.uint8), n).copy(), observations(*seen), **more))  # type: ignore[arg-type]

    def close(self) -> None:
        self.batcher.close()
        self.models.close()


@pytest.fixture
def server() -> Iterator[Server]:
    s = Server(Versions(0))
    yield s
    s.close()


def test_state_is_kept_from_step_to_step_and_zero_after_reset(server: Server) -> None:
    assert server.ask([5], [1.0], RESET).values[0, 0] == 1.0
    assert server.ask([5], [2.0]).values[0, 0] == 2.5
    assert server.ask([5], [3.0]).values[0, 0] == 4.25
    assert server.ask([5], [3.0], RESET).values[0, 0] == 3.0


def test_rows_of_many_streams_return_in_order() -> None:
    s = Server(Versions(0), queue_delay_seconds=60.0)
    s.batcher.open_stream(0)
    s.batcher.open_stream(1)
    try:
        a = s.submit([1, 2, 3], [10, 20, 30], RESET, stream=0)
        b = s.submit([9, 8], [90, 80], RESET, stream=1)
        assert a.result(30).values[:, 0].tolist() == [10, 20, 30]
        assert b.result(30).values[:, 0].tolist() == [90, 80]
        assert s.sizes == [5]  # both streams were there: one batch, without waiting for the delay
        s.batcher.close_stream(1)
        # Sessions keep their states when they come in another order and another company.
        again = s.ask([8, 3, 1], [0, 0, 0], WANT_STATE)
        assert again.values[:, 0].tolist() == [40, 15, 5]
        assert again.states["trace"][:, 0, 0].tolist() == [80, 30, 10]
    finally:
        s.close()


def test_full_batch_closes_and_other_requests_follow() -> None:
    s = Server(Versions(0), max_batch=4, queue_delay_seconds=0.1)
    s.batcher.open_stream(77)  # never asks: only size and delay can close a batch
    try:
        futures = [s.submit([10 * i, 10 * i + 1], [i, i], RESET, stream=i) for i in range(3)]
        assert [f.result(30).values[0, 0] for f in futures] == [0, 1, 2]
        assert s.sizes[0] in (2, 4) and sum(s.sizes) == 6 and max(s.sizes) <= 4
        with pytest.raises(ValueError, match="5 team-steps in a request; 1 to 4"):
            s.submit(list(range(5)), [0.0] * 5, RESET)
    finally:
        s.close()


def test_steps_of_one_session_never_share_a_batch() -> None:
    s = Server(Versions(0), queue_delay_seconds=0.05)
    s.batcher.open_stream(77)
    try:
        futures = [s.submit([1], [float(i)], RESET if i == 0 else 0) for i in range(4)]
        assert [f.result(30).values[0, 0] for f in futures] == [0, 1, 2.5, 4.25]
        with pytest.raises(ValueError, match="occurs twice"):
            s.submit([1, 1], [0.0, 0.0])
    finally:
        s.close()


def test_unknown_sessions_are_named_and_nothing_is_evaluated(server: Server) -> None:
    server.ask([1], [1.0], RESET)
    reply = server.ask([1, 2, 3], [5.0, 5.0, 5.0], [0, 0, RESET])
    assert reply.unknown == [2]
    assert server.ask([1], [0.0]).values[0, 0] == 0.5  # as if the refused request had never been
    assert server.ask([3], [1.0]).unknown == [3]


def test_returned_state_restores_the_session_elsewhere(server: Server) -> None:
    other = Server(Versions(0))
    try:
        for i in range(5):
            reply = server.ask([1], [float(i)], (RESET if i == 0 else 0) | WANT_STATE)
        there = other.ask([1], [4.0], RESTORE | WANT_STATE, states=reply.states)
        assert there.values.tolist() == reply.values.tolist()
        assert server.ask([1], [7.0]).values.tolist() == other.ask([1], [7.0]).values.tolist()
        assert there.auxiliary["win_probability"].shape == (1, 1)
    finally:
        other.close()


def test_invalid_restore_fails_only_its_request(server: Server) -> None:
    bad = server.submit([1], [0.0], RESTORE, states={"count": np.zeros((1, 1, 1), np.float32)})
    with pytest.raises(ValueError, match="states"):
        bad.result(30)
    assert server.ask([2], [1.0], RESET).values[0, 0] == 1.0


def test_replayed_steps_take_the_given_actions(server: Server) -> None:
    given = np.full((1, 1, 6), 25, np.int16)
    reply = server.ask([1, 2], [0.0, 0.0], [RESET | REPLAY, RESET], replayed=given)
    assert reply.actions[:, 0, 0].tolist() == [25, 1]
    states = server.ask([1, 2], [0.0, 0.0], WANT_STATE).states
    assert states["trace"][:, 0, 1].tolist() == [25, 1]


def test_greedy_and_close(server: Server) -> None:
    reply = server.ask([1, 2], [0.0, 0.0], [RESET | GREEDY, RESET | CLOSE])
    assert reply.actions[:, 0, 0].tolist() == [29, 1]
    assert server.ask([1], [0.0]).unknown == []
    assert server.ask([2], [0.0]).unknown == [2]


def test_session_with_an_expired_lease_is_unknown() -> None:
    s = Server(Versions(0), lease=0.01)
    try:
        s.ask([1], [1.0], RESET)
        time.sleep(0.05)
        s.table.expire(time.monotonic())
        assert s.ask([1], [1.0]).unknown == [1]
    finally:
        s.close()


def test_swap_between_batches_keeps_states_and_stamps_rows(server: Server) -> None:
    server.ask([1], [1.0], RESET)
    server.versions.publish(1, reward_std=2.5)
    assert server.models.refresh()
    reply = server.ask([1], [2.0])
    assert reply.versions.tolist() == [1] and reply.values[0, 0] == 2.5
    assert reply.log_probabilities[0, 0] == -1 and reply.reward_std == 2.5


def test_running_batch_keeps_its_version() -> None:
    s = Server(Versions(0))
    entered, go = threading.Event(), threading.Event()
    policy = s.builder.created[0]
    act = policy.act

    def slow(*args, **kwargs):  # type: ignore[no-untyped-def]
        entered.set()
        go.wait(30)
        return act(*args, **kwargs)

    policy.act = slow  # type: ignore[method-assign]
    try:
        future = s.submit([1], [1.0], RESET)
        entered.wait(30)
        s.versions.publish(1)
        s.models.refresh()
        s.versions.publish(2)
        s.models.refresh()  # must not be loaded over version 0, which still computes
        go.set()
        reply = future.result(30)
        assert reply.versions.tolist() == [0] and reply.log_probabilities[0, 0] == 0
        assert s.ask([1], [1.0]).versions.tolist() == [2]
    finally:
        s.close()


def test_spare_policy_is_created_before_the_next_version() -> None:
    s = Server(Versions(0))
    try:
        s.models.stock()
        made = len(s.builder.created)
        s.models.stock()  # one is enough
        s.versions.publish(1)
        assert s.models.refresh()
        assert len(s.builder.created) == made == 2
        assert s.ask([1], [1.0], RESET, [0]).versions.tolist() == [0]  # it was not made of the one that served
    finally:
        s.close()


def test_past_and_newest_versions_share_a_request() -> None:
    s = Server(Versions(3, 8))
    try:
        reply = s.ask([1, 2, 3], [1.0, 2.0, 3.0], [RESET | WANT_STATE, RESET, RESET | WANT_STATE], [NEWEST, 3, 8])
        assert reply.versions.tolist() == [8, 3, 8]
        assert reply.log_probabilities[:, 0].tolist() == [-8, -3, -8]
        assert reply.values[:, 0].tolist() == [1, 2, 3]
        assert reply.auxiliary["win_probability"][:, 0].tolist() == pytest.approx([0.58, 0.58])
        mixed = s.ask([3, 2, 1], [0.0] * 3, WANT_STATE, [NEWEST, 3, 8])
        assert mixed.states["trace"][:, 0, 0].tolist() == [3, 2, 1]
        assert mixed.auxiliary["win_probability"][:, 0].tolist() == pytest.approx([0.58, 0.53, 0.58])
    finally:
        s.close()


def test_loading_a_past_version_does_not_block_requests() -> None:
    versions = Versions(1, 5)
    fetch, go = versions.fetch, threading.Event()

    def slow(version: int):  # type: ignore[no-untyped-def]
        if version == 1:
            go.wait(30)
        return fetch(version)

    versions.fetch = slow  # type: ignore[method-assign]
    s = Server(versions)
    try:
        waiting = s.submit([1], [1.0], RESET, 1)
        assert s.ask([2], [1.0], RESET).versions.tolist() == [5]
        assert not waiting.done()
        go.set()
        assert waiting.result(30).versions.tolist() == [1]
    finally:
        s.close()


def test_least_recently_used_past_version_is_evicted() -> None:
    s = Server(Versions(0, 1, 2, 3, 9), past=2)
    try:
        for version in (0, 1, 0, 2):
            s.ask([version], [0.0], RESET, version)
        assert s.models.resident == [0, 2, 9]
        assert s.versions.fetches.count(0) == 1
        futures = [s.submit([10 + v], [0.0], RESET, v) for v in (0, 1, 2, 3)]  # more at once than fit
        assert [f.result(30).versions[0] for f in futures] == [0, 1, 2, 3]
        assert len(s.models.resident) == 3
    finally:
        s.close()


def wanted(s: Server, version: int) -> bool:
    """Request a version until it is loaded, as a rollout does."""
    for _ in range(200):
        if s.models.want(version):
            return True
        time.sleep(0.005)
    return False


def load(s: Server, version: int) -> None:
    eventually(lambda: s.models.want(version))


def test_wanted_version_is_loaded_and_stays_while_in_play() -> None:
    s = Server(Versions(0, 1, 2, 3, 9), past=2)
    try:
        assert not s.models.want(0)  # on its way
        load(s, 0)
        load(s, 1)
        assert s.models.resident == [0, 1, 9] and s.models.past_bytes == 2
        # Two are in play: a third would be loaded again and again in turn with them.
        assert not wanted(s, 2) and s.versions.fetches.count(2) == 0
        assert s.ask([1], [0.0], RESET, 0).versions.tolist() == [0]
        s.models._play_seconds = 0.0
        load(s, 2)
        assert s.models.resident == [0, 2, 9]  # the least recently used left
        assert not wanted(s, 77)
    finally:
        s.close()


def test_version_larger_than_the_budget_is_served() -> None:
    s = Server(Versions(0, 1, 9), past=0)
    try:
        assert s.ask([1], [0.0], RESET, 0).versions.tolist() == [0]
        assert s.models.resident == [9]
        assert not s.models.want(1)
    finally:
        s.close()


def test_unknown_version_fails_only_its_request(server: Server) -> None:
    missing = server.submit([1], [0.0], RESET, 77)
    assert server.ask([2], [0.0], RESET).versions.tolist() == [0]
    with pytest.raises(VersionNotFound, match="version 77"):
        missing.result(30)
    with pytest.raises(ValueError, match="allowed are -1"):
        server.submit([1], [0.0], RESET, -2)


def test_cancelled_and_expired_requests_are_dropped() -> None:
    s = Server(Versions(0), queue_delay_seconds=60.0, request_timeout_seconds=0.01)
    s.batcher.open_stream(77)  # never asks
    try:
        cancelled = s.submit([1], [0.0], RESET)
        assert cancelled.cancel()
        expired = s.submit([2], [0.0], RESET)
        time.sleep(0.05)
        s.batcher.close_stream(77)
        with pytest.raises(RequestTimeout):
            expired.result(30)
        assert sorted(s.drops) == ["cancelled", "expired"] and s.sizes == []
    finally:
        s.close()


def test_failed_batch_closes_its_sessions_and_serving_continues(server: Server) -> None:
    server.ask([1], [1.0], RESET)
    policy = server.builder.created[0]
    policy.fail = True
    with pytest.raises(RuntimeError, match="broke"):
        server.ask([1], [1.0])
    policy.fail = False
    assert server.ask([1], [1.0]).unknown == [1]


def test_close_fails_waiting_requests() -> None:
    s = Server(Versions(0), queue_delay_seconds=600)
    s.batcher.open_stream(77)
    first = s.submit([1], [0.0], RESET)
    s.close()
    late = s.submit([2], [0.0], RESET)
    with pytest.raises(VersionUnavailable, match="shutting down"):
        late.result(30)
    assert first.done()


@pytest.mark.parametrize("ask", [Models.want, Models.reserve])
def test_error_in_past_version_load_ends_the_process(ask: Callable[[Models, int], object]) -> None:
    drained: list[str] = []

    def fail(served: ResidentVersion) -> None:
        raise MemoryError("no room for a number")

    models = Models(Versions(0, 9), CountingBuilder(), past_bytes=2, poll_seconds=60, on_past=fail)
    models.refresh()
    models.start(CriticalTasks(drained.append, lambda: bool(drained), 3600.0, lambda code: None))
    ask(models, 0)
    eventually(lambda: drained)
    assert drained == ["past-version-loader died: MemoryError: no room for a number"]
    models.close()
