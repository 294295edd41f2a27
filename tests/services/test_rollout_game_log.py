"""The log of finished games in real Redis: each record is written once, also after an outage."""

import asyncio
from typing import Any

import pytest
import redis

from five.services.rollout import game_log
from five.services.rollout.game_log import GameLog
from rapid.store.series import Series


@pytest.fixture
def series(redis_client: redis.Redis) -> Series:
    return Series(redis_client, "trial")


def written(series: Series) -> list[str]:
    return [record.values["game"] for record in series.read("games")]


class Outage:
    """A series that fails, before or after the records are written, while ``down``."""

    def __init__(self, series: Series, after: bool) -> None:
        self.down = True
        self.calls = 0
        self._series = series
        self._after = after

    def extend_once(self, kind: str, records: Any) -> int:
        self.calls += 1
        if self.down and not self._after:
            raise redis.ConnectionError("the store is down")
        count = self._series.extend_once(kind, records)
        if self.down:
            raise redis.ConnectionError("the response is lost")
        return count


async def test_records_are_written_in_order_and_once(series: Series) -> None:
    log = GameLog(series)
    await log.flush()
    assert written(series) == []
    for game in ("a", "b"):
        log.put({"game": game, "winner": "dire"})
    await log.flush()
    await log.flush()
    assert written(series) == ["a", "b"]
    last = series.last("games")
    assert last is not None and last.values == {"game": "b", "winner": "dire"}


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
async def test_outage_loses_and_repeats_no_record(series: Series, after: bool) -> None:
    outage: Any = Outage(series, after)
    log = GameLog(outage)
    log.put({"game": "a"})
    await log.flush()
    log.put({"game": "b"})
    await log.flush()
    outage.down = False
    log.put({"game": "c"})
    await log.flush()
    assert written(series) == ["a", "b", "c"]


async def test_longest_waiting_records_are_dropped_in_an_outage(series: Series, monkeypatch: pytest.MonkeyPatch
                                                                ) -> None:
    monkeypatch.setattr(game_log, "MAX_UNWRITTEN", 2)
    outage: Any = Outage(series, after=False)
    log = GameLog(outage)
    for game in ("a", "b", "c"):
        log.put({"game": game})
        await log.flush()
    outage.down = False
    await log.flush()
    assert written(series) == ["b", "c"]


async def test_log_writes_once_a_second(series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is replaced, so that each turn is one second for the log and none for the test."""
    log = GameLog(series)
    waits: list[float] = []
    found: list[list[str]] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        found.append(written(series))
        if len(waits) == 3:
            raise asyncio.CancelledError
        log.put({"game": f"after {len(waits)} s"})

    monkeypatch.setattr(game_log.asyncio, "sleep", wait)
    log.put({"game": "at the start"})
    with pytest.raises(asyncio.CancelledError):
        await log.run()
    assert waits == [1.0] * 3
    assert found == [["at the start"], ["at the start", "after 1 s"], ["at the start", "after 1 s", "after 2 s"]]


async def test_nothing_is_written_without_a_record(series: Series) -> None:
    outage: Any = Outage(series, after=False)
    await GameLog(outage).flush()
    assert outage.calls == 0
