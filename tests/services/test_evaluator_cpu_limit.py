"""The evaluator's CPU limit, with simulated clocks."""

from pathlib import Path

import pytest

from dota.config import GameConfig
from dota.playback import play
from dota.replay import Replay
from dota.vec_game import Controller, VecGame
from five.services.evaluator.cpu_limit import BURST_SECONDS, MAX_DELAY_SECONDS, CpuLimit
from five.services.evaluator.recording import ReplayRecorder, StoredRecordings, tidy
from rapid.blobs import BlobStore


class Clocks:
    """Process with simulated CPU and wall time."""

    def __init__(self, share: float) -> None:
        self.cpu = self.wall = 0.0
        self.limit = CpuLimit(share, lambda: self.cpu, lambda: self.wall)

    def step(self, cpu: float, wall: float) -> float:
        self.cpu += cpu
        self.wall += wall
        delay = self.limit.delay()
        self.wall += delay
        return delay


def test_cpu_time_stays_within_the_share() -> None:
    clocks = Clocks(0.25)
    for _ in range(1000):
        clocks.step(0.01, 0.01)
    assert clocks.cpu / clocks.wall == pytest.approx(0.25, rel=0.01)


def test_starved_process_does_not_sleep() -> None:
    """Training takes the CPU, so that a step of 10 ms lasts 100 ms. Sleeping for that long would halve the remaining
    share."""
    clocks = Clocks(0.25)
    assert sum(clocks.step(0.01, 0.1) for _ in range(1000)) == 0.0


def test_unused_share_is_used_later_within_a_limit() -> None:
    clocks = Clocks(0.5)
    clocks.step(0.0, 3600.0)  # nothing to rate for an hour
    delays = [clocks.step(0.1, 0.1) for _ in range(200)]
    assert delays[0] == 0.0 and delays[-1] == pytest.approx(0.1)
    assert 0.1 * sum(delay == 0.0 for delay in delays) < 2.2 * BURST_SECONDS


def test_unlimited_work_delays_later_games_within_a_limit() -> None:
    """The first rating and requested matches may take any CPU time."""
    clocks = Clocks(0.5)
    assert clocks.step(3600.0, 1800.0) == MAX_DELAY_SECONDS
    assert clocks.step(0.1, 0.1) == pytest.approx(0.1)


def test_zero_share_disables_the_limit() -> None:
    clocks = Clocks(0.0)
    assert sum(clocks.step(1.0, 1.0) for _ in range(10)) == 0.0


GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=3.0, start_seconds=0.0,
                  neutrals=False, roshan=False, runes=False)


def finish(games: VecGame) -> None:
    while not games.winner.all():
        games.step()


def test_newest_versions_keep_one_replay_each(tmp_path: Path) -> None:
    games = VecGame(GAME, 2, 1)
    games.controllers[:] = Controller.SCRIPTED
    stored, folder = StoredRecordings(BlobStore(str(tmp_path / "blobs")), "trial"), tmp_path / "replays"
    folder.mkdir()
    (folder / "version-1-scripted-7.replay").write_bytes(b"a match on request")
    recorder = ReplayRecorder(games.record, games.hash, folder, tidy=lambda: tidy(folder, stored, 2, 1.0, 1e9))
    for version in range(4):
        games.reset()
        for slot in (0, 1):
            recorder.began(slot, f"version-{version}")
        finish(games)
        for slot in (0, 1):
            recorder.ended(slot)
    assert sorted(p.name for p in folder.iterdir()) == ["version-1-scripted-7.replay", "version-2.replay",
                                                        "version-3.replay"]
    assert sum(1 for _ in play(Replay.load(folder / "version-3.replay"))) > 10  # the final state equals the game's


def test_restarted_game_is_recorded_again_and_lost_one_dropped(tmp_path: Path) -> None:
    games = VecGame(GAME, 1, 1)
    recorder = ReplayRecorder(games.record, games.hash, tmp_path)
    recorder.began(0, "version-1")
    games.step()
    recorder.drop()
    recorder.ended(0)
    assert not list(tmp_path.iterdir())
    games.reset_as(0, 5)
    recorder.began(0, "version-1")
    games.step()
    games.reset_as(0, 5)
    recorder.began(0, "version-1")
    steps = 0
    while not games.winner.all():
        games.step()
        steps += 1
    recorder.ended(0)
    assert sum(1 for _ in play(Replay.load(tmp_path / "version-1.replay"))) == steps + 1
