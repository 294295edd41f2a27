"""Matches on real games with a stand-in for inference, and the rating loop over a real Redis."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import redis

from dota.config import GameConfig
from dota.vec_game import STATS, Controller, VecGame
from five.config import RatingConfig
from rapid.blobs import BlobStore
from rapid.clients.inference import CLOSE, RESET, ActResult
from rapid.config import StoreConfig
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import RunState
from services.evaluator.__main__ import newest_kept
from services.evaluator.matches import Matches, Pairing, Player, Result
from services.evaluator.rating_loop import RatingLoop
from services.evaluator.service import BOTS, player

Array = npt.NDArray[Any]
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=4.0, start_seconds=0.0,
                  neutrals=False, roshan=False, runes=False)
AGENT = Player("version-3", version=3)


class Noop:
    """An inference server whose policy does nothing, and which may forget its sessions once."""

    def __init__(self, forget_at: int = -1) -> None:
        self.calls = 0
        self.known: set[int] = set()
        self.closed: set[int] = set()
        self.policies: set[int] = set()
        self._forget_at = forget_at

    async def act(self, sessions: Array, policies: Array, flags: Array, observations: Mapping[str, Array]) -> ActResult:
        assert all(len(a) == len(sessions) for a in observations.values())
        self.calls += 1
        if self.calls == self._forget_at:
            self.known.clear()
        self.known |= set(sessions[(flags & RESET) != 0].tolist())
        unknown = np.array([s for s in sessions.tolist() if s not in self.known], np.int64)
        if unknown.size:
            return ActResult(unknown)
        self.policies |= set(policies.tolist())
        self.closed |= set(sessions[(flags & CLOSE) != 0].tolist())
        return ActResult(np.zeros(0, np.int64), np.zeros((len(sessions), 1, 6), np.int16))


async def play(inference: Noop, pairings: list[Pairing], places: int = 2) -> list[Result]:
    games = VecGame(GAME, places, 5)
    results: list[Result] = []
    left = iter(pairings)
    await Matches(games, inference, 1).play(lambda: next(left, None), results.append)
    return results


async def test_every_pairing_is_played_once_from_its_side() -> None:
    inference = Noop()
    pairings = [Pairing(AGENT, BOTS["random"], i % 2) for i in range(5)]
    results = await play(inference, pairings)
    assert sorted(id(r.pairing) for r in results) == sorted(id(p) for p in pairings)
    # Four seconds decide nothing: draws.
    assert [r.score for r in results] == [0.5] * 5
    assert all(r.game_seconds == pytest.approx(4.0, abs=0.2) for r in results)
    assert inference.policies == {3}
    assert inference.closed == inference.known and len(inference.known) == 5


async def test_two_versions_use_a_session_each() -> None:
    inference = Noop()
    await play(inference, [Pairing(AGENT, Player("version-1", version=1), 0)])
    assert inference.policies == {1, 3} and len(inference.known) == 2


async def test_games_whose_states_were_lost_begin_again() -> None:
    inference = Noop(forget_at=4)
    results = await play(inference, [Pairing(AGENT, BOTS["random"], 0)], places=1)
    assert len(results) == 1 and len(inference.known) == 1
    assert inference.calls > 30 + 4


async def test_bots_need_no_inference() -> None:
    inference = Noop()
    results = await play(inference, [Pairing(BOTS["scripted"], BOTS["random"], 1)])
    assert len(results) == 1 and inference.calls == 0


def test_opponents_are_bots_or_versions() -> None:
    assert player("scripted").controller == Controller.SCRIPTED
    assert player("12").version == 12
    with pytest.raises(ValueError, match="scripted-hard"):
        player("human")


KEPT: list[int] = []


def loop(client: redis.Redis, newest: int = 3, share: float = 0.5, ours: Callable[[int], bool] = lambda version: True
         ) -> RatingLoop:
    config = RatingConfig(games_per_rating=8)
    return RatingLoop(config, RunState(client, "trial").table("ratings"), Series(client, "trial"),
                      {n: BOTS[n] for n in ("random", "scripted")}, STATS, share, lambda: newest,
                      KEPT.append, np.random.default_rng(0), ours)


def won(pairing: Pairing) -> Result:
    statistics = np.arange(len(STATS), dtype=np.float32)
    return Result(pairing, 1.0, 120.0, statistics, statistics, 0)


def test_a_rating_is_recorded_after_its_games(redis_client: redis.Redis) -> None:
    KEPT.clear()
    rating = loop(redis_client)
    played = 0
    while rating.series.last("ratings") is None:
        pairing = rating.next_pairing()
        assert pairing is not None and pairing.agent.version == 3
        rating.on_result(won(pairing))
        played += 1
    record = rating.series.last("ratings")
    assert record is not None
    assert record.values["version"] == 3 and record.values["games"] == 8 and played > 8
    assert record.values["mu"] > 5 and record.values["win_rates"]["random"] == 1.0
    assert record.values["statistics"]["denies"] == 1.0 and record.values["game_seconds"] == 120.0
    assert KEPT == [3]  # far above random play: a reference now
    assert rating.next_pairing() is None  # nothing newer to rate


def test_the_newest_version_that_is_none_of_a_warm_up_is_rated(redis_client: redis.Redis, tmp_path: Path) -> None:
    store = ParameterStore(redis_client, redis_client, "trial", StoreConfig(archive_every=2), BlobStore(str(tmp_path)))
    for version in range(8):
        store.publish(version, {"x": np.array([version])}, {"warming": version >= 5})
    assert newest_kept(store, 2) == 4
    store.publish(8, {"x": np.array([8])}, {})
    assert newest_kept(store, 2) == 8


def test_games_that_were_lost_leave_nothing_of_themselves(redis_client: redis.Redis) -> None:
    rating = loop(redis_client, share=0.0)
    lost = [rating.next_pairing() for _ in range(3)]
    rating.drop()
    for pairing in lost:
        assert pairing is not None
        rating.on_result(won(pairing))
    assert rating.ratings.current is not None and rating.ratings.current.games == 0
    pairing = rating.next_pairing()
    assert pairing is not None
    rating.on_result(won(pairing))
    assert rating.ratings.current.games == 1


async def test_a_pause_holds_games_between_two_steps() -> None:
    games, inference, results = VecGame(GAME, 2, 5), Noop(), []  # type: ignore[var-annotated]
    left = iter([Pairing(AGENT, BOTS["random"], i % 2) for i in range(2)])
    matches, held = Matches(games, inference, 1), asyncio.Event()
    assert matches.resting
    playing = asyncio.create_task(matches.play(lambda: next(left, None), results.append, held.is_set))
    while inference.calls < 5:
        await asyncio.sleep(0.001)
    assert not matches.resting and matches.under_way == 2
    held.set()
    while not matches.resting:
        await asyncio.sleep(0.001)
    calls, times = inference.calls, games.game_time.tolist()
    await asyncio.sleep(0.3)
    assert (inference.calls, games.game_time.tolist()) == (calls, times) and not results
    held.clear()
    await playing
    assert matches.resting and matches.under_way == 0 and len(results) == 2 and len(inference.known) == 2


def test_a_restart_keeps_ratings_and_the_games_played(redis_client: redis.Redis) -> None:
    first = loop(redis_client, share=0.0)
    for _ in range(5):
        pairing = first.next_pairing()
        assert pairing is not None
        first.on_result(won(pairing))
    again = loop(redis_client, newest=9, share=0.0)
    assert again.version == 3 and again.ratings.current is not None and again.ratings.current.games == 5
    for _ in range(3):
        pairing = again.next_pairing()
        assert pairing is not None and pairing.agent.version == 3
        again.on_result(won(pairing))
    later = loop(redis_client, newest=9)
    assert [r.player for r in later.ratings.finished] == ["version-3"]
    pairing = later.next_pairing()
    assert pairing is not None and pairing.agent.version == 9


def test_versions_that_were_reverted_are_references_no_more_and_keep_their_ratings(redis_client: redis.Redis) -> None:
    for newest in (3, 8):
        rating = loop(redis_client, newest, share=0.0)
        while rating.next_pairing() is not None and len(rating.ratings.finished) < (1 if newest == 3 else 2):
            pairing = rating.next_pairing()
            assert pairing is not None
            rating.on_result(won(pairing))
    assert set(rating.ratings.references) == {"random", "version-3", "version-8"}
    unfinished = loop(redis_client, 9, share=0.0)
    pairing = unfinished.next_pairing()
    assert pairing is not None
    unfinished.on_result(won(pairing))
    assert loop(redis_client, 20).version == 9  # it would go on being rated
    # The run went back to version 5, which goes on as 20.
    after = loop(redis_client, 20, share=0.0, ours=lambda version: version <= 5 or version >= 20)
    assert set(after.ratings.references) == {"random", "version-3"} and after.ratings.current is None
    assert [r.player for r in after.ratings.finished] == ["version-3", "version-8"]
    met = {pairing.opponent.name for _ in range(20) if (pairing := after.next_pairing()) is not None}
    assert met <= {"random", "version-3"} and after.version == 20
