"""Past versions of a group: one at a time, and no game waits for a load."""

import asyncio
import inspect

import numpy as np
import pytest

from five.clients.inference import NEWEST
from five.clients.opponents import Opponent
from five.services.inference.models import Models
from five.services.rollout import past_opponent
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.past_opponent import PastOpponent
from tests.services.test_rollout_matchmaking import Service
from tests.waiting import eventually_async


class Servers:
    """Inference servers that load the versions in ``loaded`` at once and others never."""

    def __init__(self, *loaded: int) -> None:
        self.loaded = set(loaded)
        self.wanted: list[int] = []

    async def want(self, version: int) -> bool:
        self.wanted.append(version)
        return version in self.loaded


async def rounds() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_opponent, "POLL_SECONDS", 0.001)


async def test_version_is_played_for_a_number_of_games() -> None:
    """The version changes every three games while the next one loads."""
    servers = Servers(*range(100))
    group = PastOpponent(servers.want, 3)
    met = []
    for drawn in range(2, 16):
        met.append(group.assign(drawn))
        await rounds()
    await group.close()
    # The first game has no version yet. Later versions are played three times and once more during the next load.
    assert met == [NEWEST, 2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14]
    assert servers.wanted == [2, 6, 10, 14]
    assert group.assign(NEWEST) == NEWEST


async def test_version_names_the_game_that_drew_it() -> None:
    """The league counts results with the probability of that draw."""
    group = PastOpponent(Servers(*range(9)).want, 2)
    drawn_by = []
    for drawn, game in ((3, "a"), (4, "b"), (5, "c"), (6, "d"), (7, "e"), (7, "f"), (7, "g")):
        drawn_by.append((group.assign(drawn, game), group.drawn_by))
        await rounds()
    await group.close()
    assert drawn_by == [(NEWEST, ""), (3, "a"), (3, "a"), (3, "a"), (6, "d"), (6, "d"), (6, "d")]


async def test_loading_never_delays_games() -> None:
    servers = Servers(4)
    group = PastOpponent(servers.want, 1)
    assert [group.assign(9), group.assign(9)] == [NEWEST, NEWEST]  # 9 is not loaded: self-play
    await rounds()
    servers.loaded.add(9)
    await asyncio.sleep(0.02)
    assert group.assign(4) == 9
    assert group.assign(4) == 9  # 4 is loading, 9 is still played
    await rounds()
    assert group.assign(9) == 4
    await group.close()


async def test_slow_load_is_abandoned(monkeypatch: pytest.MonkeyPatch,
                                      caplog: pytest.LogCaptureFixture) -> None:
    def gave_up() -> list[object]:
        return [record.args[0] for record in caplog.records if isinstance(record.args, tuple)]

    monkeypatch.setattr(past_opponent, "LOAD_SECONDS", 0.01)
    servers = Servers(5)
    group = PastOpponent(servers.want, 1)
    group.assign(8)
    await asyncio.sleep(0.05)
    assert group.version == NEWEST and gave_up() == [8]
    group.assign(5)
    await rounds()
    assert group.assign(5) == 5
    # The played version is dropped as well, because it may occupy the memory.
    assert group.assign(8) == 5
    await asyncio.sleep(0.05)
    assert group.version == NEWEST and gave_up() == [8, 8]
    await group.close()


async def test_failed_load_leaves_no_games_of_the_dropped_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version sampled again during another one's load is dropped with the games that it had left."""
    monkeypatch.setattr(past_opponent, "LOAD_SECONDS", 0.01)
    group = PastOpponent(Servers(5, 6).want, 2)
    group.assign(5)
    await rounds()
    assert [group.assign(5), group.assign(5)] == [5, 5]
    assert [group.assign(8), group.assign(5)] == [5, 5]  # 8 is loading and never arrives
    await asyncio.sleep(0.05)
    assert group.assign(6) == NEWEST
    await rounds()
    assert group.assign(6) == 6
    await group.close()


async def test_played_version_is_renewed_and_dropped_when_lost(monkeypatch: pytest.MonkeyPatch
                                                                                   ) -> None:
    monkeypatch.setattr(past_opponent, "RENEW_SECONDS", 0.005)
    servers = Servers(5)
    group = PastOpponent(servers.want, 10)
    group.assign(5)
    await eventually_async(lambda: servers.wanted.count(5) > 3)
    assert group.assign(6) == 5
    servers.loaded.clear()
    await eventually_async(lambda: group.version == NEWEST)
    assert group.assign(6) == NEWEST
    servers.loaded.add(6)
    await eventually_async(lambda: group.version == 6)
    assert group.assign(7) == 6
    await group.close()


async def test_dropped_version_is_played_again_once_it_is_loaded() -> None:
    servers = Servers(5)
    group = PastOpponent(servers.want, 10)
    group.assign(5)
    await rounds()
    group.drop()
    assert group.assign(5) == NEWEST
    await rounds()
    assert group.assign(6) == 5 and servers.wanted == [5, 5]
    await group.close()


async def test_version_sampled_again_is_played_for_more_games_without_a_load() -> None:
    servers = Servers(5, 6)
    group = PastOpponent(servers.want, 2)
    group.assign(5)
    await rounds()
    assert [group.assign(6), group.assign(6)] == [5, 5]
    assert [group.assign(5), group.assign(6)] == [5, 5]  # two more games against it
    await rounds()
    assert servers.wanted == [5]
    group.assign(6)
    await rounds()
    assert servers.wanted == [5, 6] and group.version == 6
    await group.close()


async def test_one_version_is_loaded_at_a_time() -> None:
    servers = Servers()
    group = PastOpponent(servers.want, 1)
    for drawn in (8, 9, 10):
        assert group.assign(drawn) == NEWEST
        await asyncio.sleep(0.01)
    assert set(servers.wanted) == {8}
    await group.close()
    wanted = len(servers.wanted)
    await asyncio.sleep(0.02)
    assert len(servers.wanted) == wanted  # nothing is requested after the group has ended


async def test_newest_version_is_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_opponent, "RENEW_SECONDS", 0.005)
    servers = Servers(5)
    group = PastOpponent(servers.want, 1)
    group.assign(5)
    await asyncio.sleep(0.02)
    servers.loaded.clear()
    await asyncio.sleep(0.02)
    assert group.version == NEWEST
    servers.wanted.clear()
    await asyncio.sleep(0.02)
    assert servers.wanted == []
    await group.close()


def test_renewals_are_more_frequent_than_versions_leave_play() -> None:
    """A version that is played must not leave the memory of inference between two requests for it."""
    play_seconds = inspect.signature(Models.__init__).parameters["play_seconds"].default
    assert 2 * past_opponent.RENEW_SECONDS <= play_seconds


async def test_groups_play_different_versions() -> None:
    class Drawing(Service):
        async def assign(self, game_id: str) -> Opponent:
            await super().assign(game_id)
            return Opponent(len(self.assigned), 0)

    service, servers = Drawing(), Servers(*range(100))
    matches = Matchmaker(service, ["scripted"], np.random.default_rng(0))
    groups = [PastOpponent(servers.want, 50) for _ in range(2)]
    matches.start()
    for group in groups:
        assert (await matches.next(group)).opponent == NEWEST
        await rounds()
    met = [[(await matches.next(group)).opponent for _ in range(4)] for group in groups]
    await matches.close()
    await asyncio.gather(*(group.close() for group in groups))
    assert [len(set(versions)) for versions in met] == [1, 1] and met[0] != met[1]
    assert matches.unassigned == 2  # each group's first game, before anything was loaded
