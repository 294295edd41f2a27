"""The opponents service follows the archive."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.opponents import __main__ as opponents


async def test_version_is_offered_again_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [SimpleNamespace(version=version, blob="b", warming=False) for version in (0, 10, 20)]
    lifecycle = SimpleNamespace(draining=False)
    offered: list[int] = []

    async def watch() -> AsyncIterator[int]:
        yield 20

    def on_version(version: int) -> None:
        offered.append(version)
        if offered == [0, 10]:
            raise redis.ConnectionError("gone")
        lifecycle.draining = version == 20

    async def at_once(seconds: float) -> None:
        pass

    parameters = SimpleNamespace(head=lambda: 20, watch=watch, records_from=lambda first: [
        record for record in records if record.version >= first])
    service: Any = SimpleNamespace(
        lifecycle=lifecycle, parameters=parameters, state=SimpleNamespace(lineage=lambda: ()),
        config=SimpleNamespace(store=SimpleNamespace(archive_every=10)))
    pool: Any = SimpleNamespace(keep=lambda ours: [], on_version=on_version, probabilities=dict)
    monkeypatch.setattr(opponents, "current_line_filter", lambda lineage, head: lambda version: True)
    monkeypatch.setattr(opponents, "show_pool", lambda probabilities: None)
    monkeypatch.setattr(opponents.asyncio, "sleep", at_once)
    await opponents.follow(service, pool)
    assert offered == [0, 10, 10, 20]
