"""Matches on real games with a simulated inference server."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import redis

from dota.config import GameConfig
from dota.vec_game import Controller, VecGame
from five.clients.inference import CLOSE, RESET, ActResult
from five.services.evaluator.__main__ import newest_archived
from five.services.evaluator.matches import Matches, Pairing, PairingResult, TeamPlayer
from five.services.evaluator.service import PLAYERS, player
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.parameters import ParameterStore
from tests.waiting import eventually_async

Array = npt.NDArray[Any]
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=4.0, start_seconds=0.0,
                  neutrals=False, roshan=False, runes=False)
AGENT = TeamPlayer("version-3", version=3)


class Noop:
    """Inference server whose policy does nothing, and which may lose its sessions once."""

    def __init__(self, forget_at: int = -1) -> None:
        self.calls = 0
        self.known: set[int] = set()
        self.closed: set[int] = set()
        self.policies: set[int] = set()
        self.is_closed = False
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

    async def close(self) -> None:
        self.is_closed = True


async def play(inference: Noop, pairings: list[Pairing], slots: int = 2) -> list[PairingResult]:
    games = VecGame(GAME, slots, 5)
    results: list[PairingResult] = []
    left = iter(pairings)
    await Matches(games, inference, 1).play(lambda: next(left, None), results.append)
    return results


async def test_every_pairing_is_played_once_from_its_side() -> None:
    inference = Noop()
    pairings = [Pairing(AGENT, PLAYERS["random"], i % 2) for i in range(5)]
    results = await play(inference, pairings)
    assert sorted(id(r.pairing) for r in results) == sorted(id(p) for p in pairings)
    # Four seconds decide nothing: draws.
    assert [r.score for r in results] == [0.5] * 5
    assert all(r.game_seconds == pytest.approx(4.0, abs=0.2) for r in results)
    assert inference.policies == {3}
    assert inference.closed == inference.known and len(inference.known) == 5


async def test_empty_slot_is_refilled_when_a_game_ends() -> None:
    """Pairings that become available after a game's end are played in every slot, not only in the last one."""
    games, results, most = VecGame(GAME, 3, 5), [], 0  # type: ignore[var-annotated]
    matches = Matches(games, Noop(), 1)
    waiting = [Pairing(AGENT, PLAYERS["random"], 0, seed=1)]

    def on_result(result: PairingResult) -> None:
        results.append(result)
        if len(results) == 1:
            waiting.extend(Pairing(AGENT, PLAYERS["random"], 0, seed=i) for i in range(3))

    def on_start(slot: int) -> None:
        nonlocal most
        assert matches.pairing(slot) is not None
        most = max(most, matches.in_progress)

    await matches.play(lambda: waiting.pop() if waiting else None, on_result, on_start=on_start)
    assert len(results) == 4 and most == 3


async def test_two_versions_use_a_session_each() -> None:
    inference = Noop()
    await play(inference, [Pairing(AGENT, TeamPlayer("version-1", version=1), 0)])
    assert inference.policies == {1, 3} and len(inference.known) == 2


async def test_games_with_lost_states_restart() -> None:
    inference = Noop(forget_at=4)
    results = await play(inference, [Pairing(AGENT, PLAYERS["random"], 0)], slots=1)
    assert len(results) == 1 and len(inference.known) == 1
    assert inference.calls > 30 + 4


class FailsToClose(Noop):
    """Inference server that fails when sessions end."""

    async def act(self, sessions: Array, policies: Array, flags: Array, observations: Mapping[str, Array]) -> ActResult:
        if (flags & CLOSE).any():
            raise CallFailed(StatusCode.UNAVAILABLE, "inference:7003", "Act", "refused by the test")
        return await super().act(sessions, policies, flags, observations)


async def test_game_with_a_result_is_not_in_progress() -> None:
    """It would count as dropped if its session cannot be closed."""
    results: list[PairingResult] = []
    matches = Matches(VecGame(GAME, 1, 5), FailsToClose(), 1)
    left = iter([Pairing(AGENT, PLAYERS["random"], 0)])
    with pytest.raises(CallFailed):
        await matches.play(lambda: next(left, None), results.append)
    assert len(results) == 1 and matches.in_progress == 0


async def test_bots_need_no_inference() -> None:
    inference = Noop()
    results = await play(inference, [Pairing(PLAYERS["scripted"], PLAYERS["random"], 1)])
    assert len(results) == 1 and inference.calls == 0


def test_opponents_are_bots_or_versions() -> None:
    assert player("scripted").controller == Controller.SCRIPTED
    assert player("12").version == 12
    with pytest.raises(ValueError, match="scripted-hard"):
        player("human")


def test_newest_version_outside_a_warm_up_is_rated(redis_client: redis.Redis, tmp_path: Path) -> None:
    store = ParameterStore(redis_client, redis_client, "trial", StoreConfig(archive_every=2), BlobStore(str(tmp_path)))
    for version in range(8):
        store.publish(version, {"x": np.array([version])}, {"warming": version >= 5})
    assert newest_archived(store, 2) == 4
    store.publish(8, {"x": np.array([8])}, {})
    assert newest_archived(store, 2) == 8


async def test_a_pause_holds_games_between_two_steps() -> None:
    games, inference, results = VecGame(GAME, 2, 5), Noop(), []  # type: ignore[var-annotated]
    left = iter([Pairing(AGENT, PLAYERS["random"], i % 2) for i in range(2)])
    matches, held = Matches(games, inference, 1), asyncio.Event()
    assert matches.is_idle
    playing = asyncio.create_task(matches.play(lambda: next(left, None), results.append, held.is_set))
    await eventually_async(lambda: inference.calls >= 5, 10.0, every=0.001)
    assert not matches.is_idle and matches.in_progress == 2
    held.set()
    await eventually_async(lambda: matches.is_idle, 10.0, every=0.001)
    calls, times = inference.calls, games.game_time.tolist()
    await asyncio.sleep(0.3)
    assert (inference.calls, games.game_time.tolist()) == (calls, times) and not results
    held.clear()
    await playing
    assert matches.is_idle and matches.in_progress == 0 and len(results) == 2 and len(inference.known) == 2


async def test_a_pause_ends_the_sleep_after_a_step() -> None:
    games, held, delays = VecGame(GAME, 1, 5), asyncio.Event(), [30.0]
    left = iter([Pairing(AGENT, PLAYERS["random"], 0)])
    matches, results = Matches(games, Noop(), 1), []  # type: ignore[var-annotated]
    playing = asyncio.create_task(matches.play(lambda: next(left, None), results.append, held.is_set,
                                               lambda: delays.pop() if delays else 0.0))
    await eventually_async(lambda: not delays, 10.0, every=0.001)
    assert not matches.is_idle
    held.set()
    await eventually_async(lambda: matches.is_idle, 15.0, every=0.001)
    held.clear()
    await asyncio.wait_for(playing, 20.0)
    assert len(results) == 1
