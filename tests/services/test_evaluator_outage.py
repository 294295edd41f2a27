"""Rated games while inference fails: an outage costs none of them, a version that cannot be loaded costs its games."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from dota.config import RewardConfig
from five.run.config.evaluator import EvaluatorConfig
from five.services.evaluator import __main__ as evaluator
from five.services.evaluator.guard_loop import GuardLoop
from five.services.evaluator.rating_loop import TRIES, RatingLoop
from five.services.evaluator.recording import StoredRecordings
from five.services.evaluator.uploads import UploadQueue
from rapid.blobs import BlobStore
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.state import RunState
from rapid.telemetry.metrics import snapshot
from tests.services.test_evaluator import GAME, Noop
from tests.services.test_rating_loop import CONFIG
from tests.services.test_rating_loop import loop as rating_loop


class Failing(Noop):
    """Inference servers whose next ``failures`` requests fail; ``responds``: whether they answer otherwise."""

    def __init__(self, failures: int, responds: bool) -> None:
        super().__init__()
        self.failures = failures
        self._responds = responds

    async def act(self, *arguments: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise CallFailed(StatusCode.UNAVAILABLE, "inference:7003", "Act", "refused by the test")
        return await super().act(*arguments)

    async def responds(self) -> bool:
        return self._responds


class Lifecycle:
    """Lifecycle of an active run, which drains after its first rating."""

    active = True

    def __init__(self, loop: RatingLoop) -> None:
        self._loop = loop

    @property
    def draining(self) -> bool:
        return self._loop.ladder.last_rated is not None

    async def wait_active(self) -> bool:
        return True


async def rate(client: redis.Redis, inference: Failing, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rate a version and return the number of aborted games."""
    loop = rating_loop(client)
    service: Any = SimpleNamespace(
        config=SimpleNamespace(name="trial", seed=1, rewards=RewardConfig(), services=SimpleNamespace(
            evaluator=EvaluatorConfig(games=2))),
        lifecycle=Lifecycle(loop), blobs=BlobStore(str(folder / "blobs")))
    source: Any = SimpleNamespace(wants=lambda game: False, put=lambda *arguments, **facts: None)
    guard = GuardLoop(lambda: None, RunState(client, "trial").table("pairs"), lambda: None, GAME)
    pools: Any = inference
    monkeypatch.setattr(evaluator, "asyncio", SimpleNamespace(
        sleep=lambda seconds: asyncio.sleep(0), to_thread=asyncio.to_thread))
    before = snapshot()["five_evaluator_aborted_games_total"]
    await asyncio.wait_for(evaluator.rate(service, loop, guard, pools, GAME, set(), folder,
                                          StoredRecordings(service.blobs, "trial"), UploadQueue(), source, []), 60.0)
    aborted = int(snapshot()["five_evaluator_aborted_games_total"] - before)
    standing = loop.ladder.standings["version-3"]
    assert (standing.games, standing.aborted) == (CONFIG.first_rating_games - aborted, aborted)
    return aborted


async def test_outage_of_inference_aborts_no_game(redis_client: redis.Redis, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    assert await rate(redis_client, Failing(5, responds=False), tmp_path, monkeypatch) == 0


async def test_games_that_servers_refuse_are_aborted(redis_client: redis.Redis, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that a server cannot load is UNAVAILABLE as well."""
    assert await rate(redis_client, Failing(TRIES, responds=True), tmp_path, monkeypatch) == 2


@pytest.mark.parametrize("code", [StatusCode.NOT_FOUND, StatusCode.FAILED_PRECONDITION])
async def test_refusal_is_no_outage(code: StatusCode) -> None:
    pools: Any = Failing(0, responds=False)
    assert not await evaluator.is_outage(CallFailed(code, "inference:7003", "Act", "refused by the test"), pools)
