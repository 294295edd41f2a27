"""The opponents service follows the archive."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.agent.config import LeagueConfig
from five.services.opponents import __main__ as opponents
from five.services.opponents.pool import OpponentPool
from rapid.config import StoreConfig
from rapid.store.state import RunState


async def at_once(seconds: float) -> None:
    pass


class Run:
    """A run whose archive has some versions, with the service that follows it until the newest one is offered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, versions: list[int], last_added: int | None = None,
                 max_archived: int = 0) -> None:
        self.records = [SimpleNamespace(version=version, blob="b", warming=False) for version in versions]
        self.lifecycle = SimpleNamespace(draining=False)
        self.offered: list[int] = []
        self.begun: list[int] = []  # what records_from was called with
        self.read = 0
        parameters = SimpleNamespace(head=lambda: versions[-1], watch=self.watch, records_from=self.records_from)
        self.service: Any = SimpleNamespace(
            lifecycle=self.lifecycle, parameters=parameters, state=SimpleNamespace(lineage=lambda: ()),
            config=SimpleNamespace(store=StoreConfig(archive_every=10, max_archived=max_archived)))
        self.pool: Any = SimpleNamespace(
            keep=lambda ours: [], on_version=self.on_version, probabilities=dict,
            league=lambda: SimpleNamespace(last_added=last_added))
        monkeypatch.setattr(opponents, "current_line_filter", lambda lineage, head: lambda version: True)
        monkeypatch.setattr(opponents, "show_pool", lambda probabilities: None)
        monkeypatch.setattr(asyncio, "sleep", at_once)

    async def watch(self) -> AsyncIterator[int]:
        yield self.records[-1].version

    def records_from(self, first: int) -> Iterator[Any]:
        self.begun.append(first)
        for record in self.records:
            if record.version >= first:
                self.read += 1
                yield record

    def on_version(self, version: int) -> None:
        self.offered.append(version)
        self.lifecycle.draining = version == self.records[-1].version


async def test_version_is_offered_again_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, [0, 10, 20])

    def on_version(version: int) -> None:
        run.on_version(version)
        if run.offered == [0, 10]:
            raise redis.ConnectionError("gone")

    run.pool.on_version = on_version
    await opponents.follow(run.service, run.pool)
    assert run.offered == [0, 10, 10, 20]


async def test_restart_reads_from_the_last_added_version(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, list(range(0, 1030, 10)), last_added=1000)
    await opponents.follow(run.service, run.pool)
    assert run.begun[0] == 1001 and run.offered == [1010, 1020]


async def test_version_records_are_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "PAGE", 3)
    run, read = Run(monkeypatch, list(range(0, 100, 10))), []

    def on_version(version: int) -> None:
        run.on_version(version)
        read.append(run.read)

    run.pool.on_version = on_version
    await opponents.follow(run.service, run.pool)
    assert run.offered == list(range(0, 100, 10)) and read == [3, 3, 3, 6, 6, 6, 9, 9, 9, 10]


async def test_versions_that_the_archive_drops_leave_the_pool(redis_client: redis.Redis,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """They cannot be loaded. Those that stay keep their qualities."""
    state = RunState(redis_client, "trial")
    pool = OpponentPool(state, LeagueConfig(add_every_versions=10), seed=0)
    for version in range(0, 500, 10):
        pool.on_version(version)
    pool.report("a", 160, won=True)
    quality = {o.version: o.quality for o in pool.league().opponents}
    run = Run(monkeypatch, list(range(0, 510, 10)), max_archived=12)
    run.pool.keep, run.pool.league = pool.keep, pool.league

    def on_version(version: int) -> None:
        pool.on_version(version)
        run.on_version(version)

    run.pool.on_version = on_version
    await opponents.follow(run.service, run.pool)
    left = [*range(0, 401, 80), *range(410, 501, 10)]  # the newest 100 numbers are dense
    assert run.begun == [491] and {o.version: o.quality for o in pool.league().opponents} == {
        version: quality.get(version, 0.0) for version in left}
    assert quality[160] < 0 and max(pool.league().probabilities()) == 500
    (event,) = [e.details["versions"] for e in state.events.last(9) if e.what == "league.left"]
    assert event == sorted(set(range(0, 500, 10)) - set(left))


async def test_versions_that_the_archive_dropped_do_not_join(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, list(range(0, 510, 10)), max_archived=12)
    await opponents.follow(run.service, run.pool)
    assert run.offered == [*range(0, 401, 80), *range(410, 501, 10)]
