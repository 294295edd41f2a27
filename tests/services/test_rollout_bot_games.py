"""Games of bots that are played for their snapshots: how many, and that the policy's games continue them."""

import asyncio

import numpy as np
import pytest

from dota.vec_game import Controller, VecGame
from five.run.load import load
from five.services.rollout.bot_games import GAMES, BotGames
from five.services.rollout.middle_games import USES, GameSnapshot, SnapshotRing
from tests.services.counting import CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import play

GAME = load("laptop-1v1").game


def ring(capacity: int = 2 * GAMES, interval: float = 20.0) -> SnapshotRing:
    return SnapshotRing(capacity, interval, np.random.default_rng(0), of_bots=True)


def test_a_ring_wants_snapshots_until_it_is_full_and_after_some_uses() -> None:
    kept = ring(capacity=2)
    assert not kept.wants_snapshots, "no game has asked for one"
    assert kept.choose(0.0) is None and not kept.wants_snapshots
    assert kept.choose(1.0) is None and kept.wants_snapshots
    for _ in range(2):
        assert kept.wants_snapshots
        kept.add(GameSnapshot(b"", 1.0))
    assert not kept.wants_snapshots
    for _ in range(USES):
        assert not kept.wants_snapshots and kept.choose(1.0) is not None
    assert kept.wants_snapshots
    kept.add(GameSnapshot(b"", 2.0))
    assert not kept.wants_snapshots
    for _ in range(USES):
        kept.choose(1.0)
    assert kept.choose(0.0) is None and not kept.wants_snapshots, "no game begins in the middle any more"


def test_bots_fill_the_ring_with_games_that_a_policy_continues() -> None:
    kept = ring()
    bots = BotGames(GAME, ["scripted-easy", "scripted"], kept, seed=3)
    for _ in range(2):
        bots.advance()
    assert len(kept) == 2 * GAMES
    chosen = {snapshot for _ in range(300) if (snapshot := kept.choose(1.0)) is not None}
    assert len(chosen) == 2 * GAMES
    assert {round(snapshot.game_seconds) for snapshot in chosen} == {20, 40}
    games = VecGame(GAME, 1, 5)
    for snapshot in chosen:
        games.controllers[0] = Controller.POLICY
        games.restore(0, snapshot.state)
        assert games.game_time[0] == pytest.approx(snapshot.game_seconds)
        games.step()
        assert games.winner[0] == 0 and games.game_time[0] > snapshot.game_seconds


def test_every_pair_of_bots_plays() -> None:
    kept = ring(interval=30.0)
    bots = BotGames(GAME.model_copy(update={"max_game_seconds": 40.0}), ["scripted-easy", "scripted"], kept, seed=1)
    pairs = set()
    for _ in range(16):
        pairs |= {tuple(pair) for pair in bots._games.controllers.tolist()}
        bots.advance()
    easy, middle = int(Controller.EASY), int(Controller.SCRIPTED)
    assert pairs == {(easy, easy), (easy, middle), (middle, easy), (middle, middle)}


def test_games_shorter_than_the_interval_give_no_snapshot_and_no_endless_wait() -> None:
    kept = ring(interval=300.0)
    BotGames(GAME.model_copy(update={"max_game_seconds": 20.0}), ["scripted"], kept, seed=1).advance()
    assert len(kept) == 0


async def test_bots_play_only_what_is_wanted() -> None:
    kept = ring(capacity=GAMES)
    task = asyncio.create_task(BotGames(GAME, ["scripted"], kept, seed=3).run())
    await asyncio.sleep(0.1)
    assert len(kept) == 0
    kept.choose(1.0)
    while len(kept) < GAMES:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(kept) == GAMES and not kept.wants_snapshots


async def test_games_of_the_policy_are_not_snapshotted_beside_those_of_bots() -> None:
    kept = SnapshotRing(4, 6.0, np.random.default_rng(0), of_bots=True)
    async with InferenceServer(Versions(0)) as server:
        await play(CountingGames([[11]]), 30, [server], middle=1.0, snapshots=kept)
    assert len(kept) == 0 and kept.wants_snapshots
