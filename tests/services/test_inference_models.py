"""Versions in an inference server's memory: which stay or are evicted, failed loads, and swaps of the newest one."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from five.services.inference import models as module
from five.services.inference.models import Models, ResidentVersion, VersionNotFound, VersionUnavailable
from rapid.store.errors import Corrupt
from tests.services.counting import CountingBuilder, Versions
from tests.waiting import eventually

Start = Callable[..., Models]


@pytest.fixture
def start() -> Iterator[Start]:
    """Create models that serve the newest of some versions, each of one byte. They are closed at the end."""
    created: list[Models] = []

    def begin(versions: Versions, past: int = 2, **options: Any) -> Models:
        models = Models(versions, CountingBuilder(), past_bytes=past, poll_seconds=options.pop("poll_seconds", 60),
                        **options)
        created.append(models)
        models.refresh()
        return models

    yield begin
    for models in created:
        models.close()


def load(models: Models, version: int) -> None:
    """Announce a version, as a rollout does, until it is in memory."""
    eventually(lambda: models.want(version))


def hold(models: Models, version: int) -> ResidentVersion:
    return models.reserve(version).result(30)


class GatedVersions(Versions):
    """Versions whose next reads wait for ``go``."""

    def __init__(self, *versions: int) -> None:
        super().__init__(*versions)
        self.begun: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def fetch(self, version: int) -> Any:
        self.begun.append(version)
        assert self.go.wait(30), f"the read of version {version} was never let go"
        return super().fetch(version)


@pytest.mark.parametrize("use", [Models.want, Models.reserve], ids=["want", "reserve"])
def test_each_use_of_a_past_version_postpones_its_eviction(start: Start, use: Callable[[Models, int], object]) -> None:
    models = start(Versions(0, 1, 2, 9), play_seconds=0.0)
    load(models, 0)
    load(models, 1)
    used = use(models, 0)
    if isinstance(used, Future):
        models.release(used.result(30))
    load(models, 2)
    assert models.resident == [0, 2, 9]  # version 1 was used least recently, although it was loaded later


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time of the models, in seconds."""
    found = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found[0]))
    return found


def test_each_request_keeps_a_version_in_play(start: Start, now: list[float]) -> None:
    models = start(Versions(0, 1, 9), past=1, play_seconds=10.0)
    load(models, 0)
    for _ in range(5):
        now[0] += 9.0
        assert not models.want(1)
        assert models.want(0)
    assert models.resident == [0, 9]
    now[0] += 10.0
    load(models, 1)  # nobody requested version 0 for 10 s
    assert models.resident == [1, 9]


def test_version_in_use_is_in_play_for_any_time(start: Start) -> None:
    models = start(Versions(0, 1, 9), past=1, play_seconds=0.0)
    held = hold(models, 0)
    for _ in range(5):
        assert not models.want(1)
        time.sleep(0.01)
    models.release(held)
    load(models, 1)


def test_newest_version_uses_none_of_the_budget_for_past_ones(start: Start) -> None:
    models = start(Versions(0, 9), past=1)
    assert models.want(9) and models.past_bytes == 0
    load(models, 0)
    assert models.resident == [0, 9] and models.past_bytes == 1


def test_loads_under_way_count_towards_the_budget(start: Start) -> None:
    versions = GatedVersions(0, 1, 2, 9)
    models = start(versions, past=2)
    load(models, 0)
    versions.go.clear()
    assert not models.want(1)  # one byte in play, one on its way: no more fits
    assert not models.want(2)
    versions.go.set()
    load(models, 1)
    assert models.resident == [0, 1, 9] and versions.fetches.count(2) == 0


def test_version_larger_than_the_budget_is_loaded_while_no_other_is_in_play(start: Start) -> None:
    """A server with too little memory for one past version still serves it to requests that wait."""
    versions = Versions(0, 1, 9)
    models = start(versions, past=0)
    for version in (0, 1):
        assert not models.want(version)
        eventually(lambda version=version: version in versions.fetches)
        models.release(hold(models, version))
    assert models.resident == [9]


def test_close_drops_loads_that_have_not_begun(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = GatedVersions(0, 1, 9)
    models = start(versions)
    versions.go.clear()
    assert not models.want(0) and not models.want(1)
    eventually(lambda: 0 in versions.begun)
    shutdown = models._loader.shutdown

    def cancel_first(**options: Any) -> None:
        shutdown(wait=False, **options)
        versions.go.set()  # so the load under way goes on once the others are cancelled
        shutdown()

    monkeypatch.setattr(models._loader, "shutdown", cancel_first)
    models.close()
    assert 0 in versions.fetches and 1 not in versions.fetches


def test_version_is_loaded_once_for_all_that_wait(start: Start) -> None:
    versions = GatedVersions(0, 9)
    models = start(versions, past=0)
    versions.go.clear()
    assert not models.want(0) and not models.want(0)
    waiting = [models.reserve(0) for _ in range(3)]
    assert not any(w.done() for w in waiting)
    versions.go.set()
    served = {id(w.result(30)) for w in waiting}
    assert len(served) == 1 and versions.fetches.count(0) == 1
    held = waiting[0].result()
    assert held.users == 3
    for left in (2, 1, 0):
        assert models.resident == [0, 9]  # larger than the budget, but in use
        models.release(held)
        assert held.users == left
    assert models.resident == [9]


def test_version_in_use_is_not_evicted_for_another(start: Start) -> None:
    models = start(Versions(0, 1, 2, 9), past=1)
    held, other = hold(models, 0), hold(models, 1)
    models.release(other)
    assert models.resident == [0, 9]
    assert hold(models, 0) is held
    models.release(held)
    models.release(held)
    assert models.resident == [0, 9] and held.users == 0


def test_newest_version_stays_while_a_batch_uses_it_and_then_counts_as_past(start: Start) -> None:
    versions = Versions(0)
    models = start(versions, past=0)
    with models.use_newest() as served:
        assert (served.version, served.users) == (0, 1)
        versions.publish(1)
        assert models.refresh() and models.newest == 1
        assert models.resident == [0, 1] and models.past_bytes == 1
    assert served.users == 0 and models.resident == [1]


def test_no_version_is_unavailable_until_the_first_is_published(start: Start) -> None:
    versions = Versions()
    models = start(versions)
    assert models.newest is None and not models.refresh()
    with pytest.raises(VersionUnavailable, match="no version has been published yet"), models.use_newest():
        pytest.fail("there is no version to use")
    versions.publish(0)
    assert models.refresh() and models.newest == 0


def test_failed_load_fails_its_requests_and_is_tried_again(start: Start) -> None:
    versions = GatedVersions(9)
    models = start(versions)
    for unavailable in (False, True):
        versions.go.clear()
        if unavailable:
            versions.published[5] = None  # type: ignore[assignment]  # the read fails, but not because it is unknown
        waiting = [models.reserve(5), models.reserve(5)]
        versions.go.set()
        for failed in waiting:
            with pytest.raises(VersionUnavailable if unavailable else VersionNotFound,
                               match="version 5 could not be loaded: ") as error:
                failed.result(30)
            assert error.value.__cause__ is not None
    versions.publish(5)
    assert hold(models, 5).version == 5


@pytest.mark.parametrize("cause", [Corrupt("its digest differs"), ValueError("it was made for another layout")])
def test_damaged_version_is_not_waited_for(start: Start, cause: Exception) -> None:
    """A group whose past version is unavailable waits for it; one whose version is not found starts other games."""
    versions = Versions(9)
    models = start(versions)
    versions.fetch = Mock(side_effect=cause)  # type: ignore[method-assign]
    with pytest.raises(VersionNotFound, match=f"version 5 could not be loaded: {cause}"):
        models.reserve(5).result(30)


def test_version_replaced_during_every_read_is_unavailable(start: Start) -> None:
    class Changing(Versions):
        def fetch(self, version: int) -> Any:
            found = super().fetch(version)
            if version == 0 and len(self.fetches) < self.stable_after:
                self.bias += 1
                self.publish(version)
            return found

        stable_after = 1 << 30

    versions = Changing(0, 9)
    models = start(versions)
    with pytest.raises(VersionUnavailable, match="version 0 was replaced 5 times while it was being read"):
        models.reserve(0).result(30)
    versions.stable_after = len(versions.fetches) + 5  # only the fifth read finds it unchanged
    served = hold(models, 0)
    assert served.digest == versions.digests([0])[0] and served.policy.bias == versions.bias  # type: ignore[attr-defined]


def test_evicted_policy_is_used_again(start: Start) -> None:
    """A policy of past versions is not used for the newest, whose memory may be laid out differently."""
    versions = Versions(0, 1, 2, 9)
    models = start(versions, past=1, play_seconds=0.0)
    builder: Any = models._builder
    for version in (0, 1, 2, 0, 1):
        load(models, version)
    assert len(builder.created) == 3  # the newest, the past one in memory, and the one that is loaded meanwhile
    past = set(map(id, builder.created[1:]))
    versions.publish(10)
    models.refresh()
    with models.use_newest() as served:
        assert id(served.policy) not in past
    # Nothing holds version 9 any more, so its policy serves the newest version after 10.
    versions.publish(11)
    models.refresh()
    with models.use_newest() as served:
        assert id(served.policy) == id(builder.created[0])
    assert len(builder.created) == 4


def test_one_policy_is_kept_for_the_next_version(start: Start) -> None:
    """Each takes as much memory as a version, which the budget does not count."""
    models = start(Versions(0, 1, 2, 9), past=0)
    held = [hold(models, version) for version in (0, 1, 2)]
    for served in held:
        models.release(served)
    assert models.resident == [9] and len(models._spare_past) == 1


def test_past_version_in_memory_becomes_the_newest_without_a_read(start: Start) -> None:
    """A revert publishes older contents under their number: they are served again."""
    versions = Versions(0, 9)
    swapped: list[int] = []
    models = start(versions, on_swap=lambda served, seconds: swapped.append(served.version))
    load(models, 0)
    del versions.published[9]
    assert models.refresh() and models.newest == 0
    assert versions.fetches == [9, 0] and swapped == [9, 0]


def test_callbacks_report_swaps_and_past_loads(start: Start, now: list[float]) -> None:
    swaps: list[tuple[int, float]] = []
    past: list[int] = []
    versions = Versions(0, 9)
    models = start(versions, on_swap=lambda served, seconds: swaps.append((served.version, seconds)),
                   on_past=lambda served: past.append(served.version))
    assert [v for v, _ in swaps] == [9] and past == []
    load(models, 0)
    eventually(lambda: past == [0])
    assert not models.refresh() and len(swaps) == 1
    versions.publish(10)
    fetch = versions.fetch

    def fetch_slowly(version: int) -> Any:
        now[0] += 0.5
        return fetch(version)

    versions.fetch = fetch_slowly  # type: ignore[method-assign]
    assert models.refresh()
    assert swaps[1:] == [(10, 0.5)]  # the seconds that reading took


def test_watcher_loads_a_version_when_woken_and_survives_an_unavailable_store(start: Start) -> None:
    class Failing(Versions):
        down = False

        def head(self) -> int | None:
            if self.down:
                raise ConnectionError("the store is down")
            return super().head()

    versions = Failing(0)
    models = start(versions, poll_seconds=600)
    models.start()
    builder: Any = models._builder
    eventually(lambda: len(builder.created) == 2)  # a spare policy for the next version
    versions.publish(1)
    time.sleep(0.1)
    assert models.newest == 0  # it polls every ten minutes
    models.wake()
    eventually(lambda: models.newest == 1)
    versions.down = True
    models.wake()
    time.sleep(0.1)
    versions.down = False
    versions.publish(2)
    models.wake()
    eventually(lambda: models.newest == 2)
    began = time.monotonic()
    models.close()
    assert time.monotonic() - began < 60.0  # it does not wait for the next poll


def test_only_a_newer_version_waits_for_the_load_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    jitters: list[tuple[float, float]] = []

    def longest(low: float, high: float) -> float:
        jitters.append((low, high))
        return high

    monkeypatch.setattr(module.random, "uniform", longest)
    versions = Versions(0)
    models = Models(versions, CountingBuilder(), past_bytes=2, poll_seconds=0.005, load_jitter_seconds=60.0)
    models.start()
    try:
        eventually(lambda: models.newest == 0)
        time.sleep(0.1)  # polls that find the same version
        assert jitters == []
        versions.publish(1)
        eventually(lambda: jitters == [(0.0, 60.0)])
        assert models.newest == 0
    finally:
        models.close()


def test_versions_are_loaded_at_once_without_a_load_jitter(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.random, "uniform", lambda low, high: pytest.fail("a load waits without a jitter"))
    versions = Versions(0)
    models = start(versions, poll_seconds=0.005)
    versions.publish(1)
    models.start()
    eventually(lambda: models.newest == 1)


def test_failed_polls_follow_each_other_more_slowly(start: Start) -> None:
    """The wait doubles up to 30 s, and is the configured one after a success."""
    waits: list[float | None] = []

    class Failing(Versions):
        def head(self) -> int | None:
            if 1 <= len(waits) <= 3:
                raise ConnectionError("the store is down")
            return super().head()

    models = start(Failing(0), poll_seconds=9)

    class Waits(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            if len(waits) == 6:
                models._closing.set()
            return True

    models._wake = Waits()
    models._watch()
    assert waits == [9, 18, 30, 30, 9, 9]
