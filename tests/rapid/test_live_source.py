"""Publisher of live games: it goes on while the store is unavailable or damaged."""

import asyncio
from typing import Any

import pytest
import redis

from rapid import live_source
from rapid.live_source import LiveSource
from rapid.store.errors import Corrupt
from rapid.store.live_channel import NOTHING_WATCHED, WatchedGames


class Answers:
    """A channel whose reads give these answers in turn, and then the last one."""

    def __init__(self, *answers: WatchedGames | Exception) -> None:
        self._answers = list(answers)

    def watched(self) -> WatchedGames:
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), Corrupt("five:r:watched is damaged in Redis")])
async def test_unreadable_list_means_that_nobody_watches(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_source, "READ_SECONDS", 0.01)
    watched = WatchedGames(frozenset({"0123456789abcdef"}))
    channel: Any = Answers(watched, error, watched)
    source = LiveSource(channel, "rollout/0", list)
    running = asyncio.create_task(source.run())
    seen = [NOTHING_WATCHED]
    while len(seen) < 4 and not running.done():
        if source.watched != seen[-1]:
            seen.append(source.watched)
        await asyncio.sleep(0)
    assert seen == [NOTHING_WATCHED, watched, NOTHING_WATCHED, watched] and not running.done()
    running.cancel()
