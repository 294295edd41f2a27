"""The loop that advances the active operation: to its end, past failures of the stores, until the controller drains."""

import asyncio
import logging
import time
from typing import Any

import pytest
import redis

from five.services.controller.operations import loop
from five.services.controller.operations.document import Operation, OperationKind, OperationState
from five.services.controller.operations.loop import advance_once, run_operation_loop
from five.services.controller.operations.store import OperationStore
from rapid.store.state import RunState
from tests.services.controller.operations.memory_backend import REQUEST, MemoryBackend


@pytest.fixture
def store(redis_client: redis.Redis) -> OperationStore:
    return OperationStore(RunState(redis_client, "trial"))


def begun(store: OperationStore, kind: OperationKind = OperationKind.CHECK) -> str:
    return store.begin(kind, "ada", REQUEST, "running").id


def read(store: OperationStore, identity: str) -> Operation:
    found = store.get(identity)
    assert found is not None
    return found


async def wait_over(store: OperationStore, identity: str) -> Operation:
    end = time.monotonic() + 10
    while not (found := read(store, identity)).is_over:
        assert time.monotonic() < end, f"the operation is not over: {found.model_dump_json()}"
        await asyncio.sleep(0.01)
    return found


def test_one_pass_advances_until_the_operation_waits(store: OperationStore, caplog: pytest.LogCaptureFixture) -> None:
    run = MemoryBackend()
    assert not advance_once(store, run)  # no operation exists
    identity = begun(store)
    assert advance_once(store, run)
    step = read(store, identity).step("check")
    assert step is not None and step.waiting_for == ("optimizer 0 to claim the job 'check'",)
    changes = read(store, identity).changes
    assert not advance_once(store, run)
    assert read(store, identity).changes == changes
    run.live()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert advance_once(store, run)
    assert read(store, identity).state is OperationState.DONE
    assert caplog.messages == [f"operation {identity} is done: the plan is within its bounds"]
    assert not advance_once(store, run)


def test_pass_ends_after_a_limited_number_of_changes(store: OperationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_CHANGES_PER_PASS", 1)
    run = MemoryBackend()
    identity = begun(store)
    for changes in (1, 2):
        assert advance_once(store, run)
        assert read(store, identity).changes == changes
    monkeypatch.setattr(loop, "MAX_CHANGES_PER_PASS", 0)
    assert not advance_once(store, run)


def test_pass_that_loses_the_write_reports_no_change(store: OperationStore, redis_client: redis.Redis,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Another controller changes the document between the read and the write of each attempt."""
    monkeypatch.setattr(loop, "MAX_CHANGES_PER_PASS", 4)
    run = MemoryBackend()
    identity = begun(store)
    advance_once(store, run)
    run.live()
    other = OperationStore(RunState(redis_client, "trial"))
    save, attempts = store.save, []

    def late(before: Operation, after: Operation) -> bool:
        other.change(identity, lambda o: o.model_copy(update={"reason": f"reason {len(attempts)}"}))
        attempts.append(after)
        return save(before, after)

    store.save = late  # type: ignore[method-assign]
    assert not advance_once(store, run)
    assert len(attempts) == loop.MAX_CHANGES_PER_PASS
    found = read(store, identity)
    assert not found.is_over and found.reason == f"reason {len(attempts) - 1}"


def test_pass_that_loses_a_later_write_reports_the_earlier_change(store: OperationStore, monkeypatch: pytest.MonkeyPatch
                                                                  ) -> None:
    monkeypatch.setattr(loop, "MAX_CHANGES_PER_PASS", 2)
    begun(store)
    save, saved = store.save, []

    def losing(before: Operation, after: Operation) -> bool:
        saved.append(after)
        return len(saved) == 1 and save(before, after)

    store.save = losing  # type: ignore[method-assign]
    assert advance_once(store, MemoryBackend()) and len(saved) == 2


def test_waiting_operation_is_read_once_in_a_pass(store: OperationStore) -> None:
    run = MemoryBackend()
    begun(store)
    advance_once(store, run)
    active, reads = store.active, []

    def counted() -> Operation | None:
        reads.append(1)
        return active()

    store.active = counted  # type: ignore[method-assign]
    assert not advance_once(store, run) and len(reads) == 1


@pytest.mark.parametrize("failure", [
    redis.ConnectionError("the store is down"), OSError("no route"), KeyError("an invalid document")],
    ids=lambda error: type(error).__name__)
async def test_loop_goes_on_after_a_failure(store: OperationStore, failure: Exception,
                                            caplog: pytest.LogCaptureFixture) -> None:
    run = MemoryBackend()
    failures = [failure, failure]
    job = run.job

    def failing(identity: str, kind: str, payload: dict[str, Any]) -> Any:
        if failures:
            raise failures.pop()
        return run.carried_out(job(identity, kind, payload))

    run.job = failing  # type: ignore[method-assign]
    identity = begun(store)
    draining = False
    task = asyncio.create_task(run_operation_loop(store, run, 0.01, lambda: draining))
    ended = await wait_over(store, identity)
    assert ended.state is OperationState.DONE and not failures
    expected = isinstance(failure, redis.RedisError | OSError)
    records = [r for r in caplog.records if r.message.startswith("active operation cannot be advanced")]
    assert [r.levelname for r in records] == ["WARNING" if expected else "ERROR"] * 2
    draining = True
    await asyncio.wait_for(task, 30)


async def test_loop_advances_at_its_interval_until_the_drain(store: OperationStore) -> None:
    times: list[float] = []
    active = store.active

    def counted() -> Operation | None:
        times.append(time.monotonic())
        return active()

    store.active = counted  # type: ignore[method-assign]
    await asyncio.wait_for(run_operation_loop(store, MemoryBackend(), 0.1, lambda: len(times) >= 3), 10)
    assert len(times) == 3 and times[2] - times[0] >= 0.19
