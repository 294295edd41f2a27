"""Draft tables: the progress that is reported, and which unfinished tables are resumed."""

import contextlib
import errno
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.draft.leaves import HeroPool
from five.agent.model.policy import Policy
from five.evaluation import draft_table
from five.evaluation.draft_table import make
from five.run.load import load

HEROES = ["sniper", "lion", "nevermore", "sven"]
POOL = HeroPool(tuple(HEROES), 1)


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def agent() -> tuple[Policy, GameConfig]:
    config = load("laptop-5v5")
    game = config.game.model_copy(update={"hero_pool": HEROES, "heroes_per_team": 1})
    torch.manual_seed(1)
    return Policy(Layout(game), config.model).eval().requires_grad_(False), game


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_table, "CHUNK", 4)  # of 12 line-ups


@pytest.mark.parametrize(("pool", "version", "computed"), [
    (POOL, 4, 8), (POOL, 5, 12), (HeroPool(tuple(reversed(HEROES)), 1), 4, 12),
    (HeroPool(tuple(HEROES[:3]), 1), 4, 6)], ids=["same", "other-version", "other-order", "other-size"])
def test_only_a_table_of_the_same_version_and_pool_resumes(
        agent: tuple[Policy, GameConfig], tmp_path: Path, pool: HeroPool, version: int, computed: int) -> None:
    partial = tmp_path / "new" / "folder" / "table.partial"

    def interrupt(done: int, seconds: float) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        make(*agent, POOL, {"version": 4}, partial=partial, on_progress=interrupt)
    assert partial.exists(), "an interrupted table is saved"
    progress: list[int] = []
    found = make(*agent, pool, {"version": version}, partial=partial,
                 on_progress=lambda done, seconds: progress.append(done))
    assert progress[-1] == computed, "line-ups that were computed after the interruption"
    assert found.pool == pool and found.facts["version"] == version
    np.testing.assert_allclose(found.win, make(*agent, pool, {"version": version}).win, atol=2e-6)


def test_progress_reports_seconds_since_the_start(agent: tuple[Policy, GameConfig]) -> None:
    reports: list[tuple[int, float, float]] = []
    began = time.monotonic()
    make(*agent, POOL, {"version": 4},
         on_progress=lambda done, seconds: reports.append((done, seconds, time.monotonic() - began)))
    assert [done for done, _, _ in reports] == [4, 8, 12]
    for _, seconds, elapsed in reports:
        assert 0 <= seconds <= elapsed, f"{seconds} s reported, {elapsed} s after the call"


@pytest.mark.parametrize("ends", [False, True], ids=["finished", "interrupted"])
def test_full_disk_stops_no_computation(agent: tuple[Policy, GameConfig], tmp_path: Path, ends: bool,
                                        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(table: object) -> list[memoryview]:
        raise OSError(errno.ENOSPC, "No space left on device")

    def interrupt(done: int, seconds: float) -> None:
        if ends and done == 8:
            raise Interrupted

    monkeypatch.setattr(draft_table, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr("five.run.draft_tables.serialize", full)
    partial = tmp_path / "table.partial"
    expected: contextlib.AbstractContextManager[object] = pytest.raises(Interrupted) if ends else \
        contextlib.nullcontext()
    with expected:
        assert np.isfinite(make(*agent, POOL, {"version": 4}, partial=partial, on_progress=interrupt).win).all()
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == (2 if ends else 3) and all(
        str(partial) in line and "No space left" in line for line in warnings)
    assert not list(tmp_path.iterdir()), "a half-written file remains"
