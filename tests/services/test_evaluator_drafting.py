"""Draft tables of the evaluator, with real games and a simulated inference server."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dota.config import GameConfig
from dota.vec_game import VecGame
from five.agent.draft.leaves import LeafTable
from five.clients.inference import CLOSE, RESET, WANT_STATE, ActResult
from five.run.draft_tables import DraftTableStore
from five.services.evaluator import drafting
from five.services.evaluator.drafting import DraftReader
from five.services.evaluator.uploads import UploadQueue
from rapid.blobs import BlobStore
from rapid.store.errors import Corrupt
from tests.services.test_evaluator import GAME
from tests.waiting import eventually_async

Array = npt.NDArray[Any]
POOL = GAME.model_copy(update={"hero_pool": ["nevermore", "sniper", "lion", "sven"]})


class Heads:
    """Server that derives each team's win probability from its observation, so that line-ups differ."""

    def __init__(self) -> None:
        self.versions: set[int] = set()
        self.rows = 0

    async def act(self, sessions: Array, policies: Array, flags: Array, observations: Mapping[str, Array]) -> ActResult:
        assert (flags == RESET | WANT_STATE | CLOSE).all() and len(np.unique(sessions)) == len(sessions)
        self.versions |= set(policies.tolist())
        self.rows += len(sessions)
        await asyncio.sleep(0)
        return ActResult(np.zeros(0, np.int64), auxiliary={"win_probability": chance(observations)[:, None]})

    async def close(self) -> None: ...


def chance(observations: Mapping[str, Array]) -> Array:
    total = sum(np.asarray(a, np.float64).reshape(len(a), -1).sum(1) for a in observations.values())
    return np.asarray(0.5 + 0.4 * np.sin(total), np.float32)


async def made(reader: DraftReader, seconds: float, active: bool = True) -> None:
    running = asyncio.create_task(reader.run(lambda: active, lambda: False))
    await asyncio.sleep(seconds)
    running.cancel()


async def test_a_rated_version_gets_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "POLL_SECONDS", 0.02)
    heads, tables = Heads(), DraftTableStore(BlobStore(str(tmp_path)), "trial")
    rated = -1
    reader = DraftReader(POOL, heads, tables, 12, lambda: rated, UploadQueue())
    running = asyncio.create_task(reader.run(lambda: True, lambda: False))
    await asyncio.sleep(0.1)
    assert tables.names() == []
    rated = 20
    await eventually_async(lambda: len(tables.names()) == 1)
    rated = 30
    await eventually_async(lambda: len(tables.names()) == 2)
    running.cancel()
    assert tables.names() == ["version-30", "version-20"] and heads.versions == {20, 30} and heads.rows == 2 * 2 * 12
    leaves = tables.read("version-30")
    games = VecGame(POOL, 1)
    for (radiant, dire), win in zip(leaves.pool.teams(np.arange(12)).tolist(), leaves.win.reshape(-1), strict=True):
        names = leaves.pool.heroes
        games.reset_as(0, 3, games.lineup([[names[h] for h in radiant], [names[h] for h in dire]]))
        ours, theirs = chance({name: array[0] for name, array in games.obs.items()})
        assert win == pytest.approx((ours + 1 - theirs) / 2, abs=1e-6)


async def test_large_and_mirrored_pools_get_no_table(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "POLL_SECONDS", 0.02)
    heads, tables = Heads(), DraftTableStore(BlobStore(str(tmp_path)), "trial")
    mirrored: GameConfig = POOL.model_copy(update={"mirror_match": True})
    for game, most in ((POOL, 11), (mirrored, 99)):
        reader = DraftReader(game, heads, tables, most, lambda: 5, UploadQueue())
        await reader.run(lambda: True, lambda: False)  # ends at once
    paused = DraftReader(POOL, heads, tables, 12, lambda: 5, UploadQueue())
    await made(paused, 0.1, active=False)
    assert paused.is_idle and heads.rows == 0 and tables.names() == []


async def test_a_damaged_store_does_not_end_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "POLL_SECONDS", 0.02)
    tables, rated, failures = DraftTableStore(BlobStore(str(tmp_path)), "trial"), 20, 0
    with monkeypatch.context() as patched:
        def fail() -> None:
            nonlocal failures
            failures += 1
            raise Corrupt("the name trial/draft/version-1 is damaged")

        patched.setattr(tables, "forget_old", fail)
        reader = DraftReader(POOL, Heads(), tables, 12, lambda: rated, UploadQueue())
        running = asyncio.create_task(reader.run(lambda: True, lambda: False))
        await eventually_async(lambda: failures > 0)
    rated = 30
    await eventually_async(lambda: tables.names() == ["version-30", "version-20"])
    running.cancel()


async def test_slow_store_does_not_delay_the_process_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables, answers = DraftTableStore(BlobStore(str(tmp_path)), "trial"), threading.Event()
    threads: list[threading.Thread] = []

    def put(name: str, leaves: LeafTable) -> None:
        threads.append(threading.current_thread())
        answers.wait(30)

    monkeypatch.setattr(tables, "put", put)
    running = asyncio.create_task(DraftReader(POOL, Heads(), tables, 12, lambda: 20, UploadQueue()).run(
        lambda: True, lambda: False))
    await eventually_async(lambda: bool(threads))
    running.cancel()
    await asyncio.wait([running], timeout=10.0)
    daemon = threads[0].daemon
    answers.set()
    assert running.cancelled() and daemon, "the exit waits"
