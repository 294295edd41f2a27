"""Stored recordings: each run has its own, and the configured number, age and size bound them."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dota.config import GameConfig, RewardConfig
from dota.replay import Replay
from dota.vec_game import VecGame
from five.services.controller.games.recordings import RecordingReader
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.matches import Pairing, TeamPlayer
from five.services.evaluator.recording import (
    ReplayRecorder,
    SpectatorRecordings,
    StoredRecordings,
    remove_unfinished,
    tidy,
)
from rapid.blobs import BlobMissing, BlobStore

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=1.0, start_seconds=0.0,
                  neutrals=False, roshan=False, runes=False)
DAY = 86400.0
LARGE = 1e9


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def view(folder: Path, content: bytes = b"x" * 1000) -> Path:
    path = folder / "game.view"
    path.write_bytes(content)
    return path


def facts(run: str = "trial", days: float = 0.0) -> dict[str, Any]:
    return {"run": run, "at": time.time() - days * DAY}


def put_old(blobs: BlobStore, name: str, run: str) -> None:
    """Store a recording as release 0.9 did."""
    blobs.put(run.encode(), f"replays/{name}.view")
    blobs.put(json.dumps(facts(run, days=1.0)).encode(), f"replays/{name}.json")


def play(games: VecGame, cameras: Cameras, recorder: ReplayRecorder, version: int) -> None:
    """Play and record a rated game."""
    player = TeamPlayer(f"version-{version}", version=version)
    games.reset()
    cameras.began(0, Pairing(player, TeamPlayer("scripted", 2), 0, game="a"), "a")
    recorder.began(0, player.name)
    while not games.winner.all():
        games.step()
        cameras.record_step([0])
    recorder.ended(0)


def record(blobs: BlobStore, folder: Path, version: int, keep: int) -> None:
    """Record a rated game as an evaluator that has just started."""
    games = VecGame(GAME, 1, version)
    stored, cameras = StoredRecordings(blobs, "trial"), Cameras(games, "trial", RewardConfig())
    recorder = ReplayRecorder(games.record, games.hash, folder, SpectatorRecordings(cameras, stored, folder),
                              lambda: tidy(folder, stored, keep, 30, LARGE))
    play(games, cameras, recorder, version)


def names(blobs: BlobStore, run: str = "trial") -> list[str]:
    return sorted(entry["name"] for entry in RecordingReader(lambda: blobs, run).all())


def test_two_runs_in_one_store_keep_their_recordings(blobs: BlobStore, tmp_path: Path) -> None:
    for run in ("one", "two"):
        StoredRecordings(blobs, run).put("version-1", view(tmp_path, run.encode()), facts(run))
    assert all(RecordingReader(lambda: blobs, run).read("version-1") == run.encode() for run in ("one", "two"))
    StoredRecordings(blobs, "one").remove("version-1")
    assert names(blobs, "one") == [] and blobs.refs("one/") == []
    assert names(blobs, "two") == ["version-1"]


def test_evaluator_with_an_empty_folder_removes_old_views(blobs: BlobStore, tmp_path: Path) -> None:
    for version in (9, 10, 11):
        record(blobs, tmp_path / str(version), version, keep=2)
    assert names(blobs) == ["version-10", "version-11"]
    assert len(blobs.refs("trial/replays/")) == 4


def test_slow_upload_is_not_overwritten_by_the_next_recording(blobs: BlobStore, tmp_path: Path) -> None:
    games = VecGame(GAME, 1, 1)
    stored, cameras = StoredRecordings(blobs, "trial"), Cameras(games, "trial", RewardConfig())
    waiting: list[Callable[[], None]] = []
    recorder = ReplayRecorder(games.record, games.hash, tmp_path, SpectatorRecordings(cameras, stored, tmp_path),
                              submit=lambda run, discard: waiting.append(run))
    for version in (1, 2):
        play(games, cameras, recorder, version)
    assert names(blobs) == [] and len(waiting) == 2
    for work in waiting:
        work()
    assert names(blobs) == ["version-1", "version-2"] and not list(tmp_path.glob(".game-*"))
    assert len({blobs.ref(f"trial/replays/version-{version}.view").digest for version in (1, 2)}) == 2


def test_discarded_upload_leaves_no_file(blobs: BlobStore, tmp_path: Path) -> None:
    games = VecGame(GAME, 1, 1)
    stored, cameras = StoredRecordings(blobs, "trial"), Cameras(games, "trial", RewardConfig())
    recorder = ReplayRecorder(games.record, games.hash, tmp_path, SpectatorRecordings(cameras, stored, tmp_path),
                              submit=lambda run, discard: discard())
    play(games, cameras, recorder, 1)
    assert names(blobs) == [] and [path.name for path in tmp_path.glob("*.*")] == ["version-1.replay"]


def test_view_of_a_replay_that_is_not_stored_is_removed(blobs: BlobStore, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(replay: Replay, path: Path, final_hash: int) -> None:
        raise OSError("no space left on the device")

    monkeypatch.setattr(Replay, "save", fail)
    games = VecGame(GAME, 1, 1)
    stored, cameras = StoredRecordings(blobs, "trial"), Cameras(games, "trial", RewardConfig())
    play(games, cameras, ReplayRecorder(games.record, games.hash, tmp_path,
                                        SpectatorRecordings(cameras, stored, tmp_path)), 1)
    cameras.ended(0)
    assert names(blobs) == [] and not list(tmp_path.glob(".game-*"))


def test_restarted_games_share_a_file(blobs: BlobStore, tmp_path: Path) -> None:
    games = VecGame(GAME, 1, 0)
    cameras = Cameras(games, "trial", RewardConfig())
    recorder = ReplayRecorder(games.record, games.hash, tmp_path / "r",
                              SpectatorRecordings(cameras, StoredRecordings(blobs, "trial"), tmp_path / "r"))
    player = TeamPlayer("version-1", version=1)
    for _ in range(3):
        games.reset()
        cameras.began(0, Pairing(player, TeamPlayer("scripted", 2), 0, game="a"), "a")
        recorder.began(0, player.name)
        games.step()
        cameras.record_step([0])
    assert len(list((tmp_path / "r").glob(".game-*"))) == 1


def test_recordings_of_an_earlier_release_get_their_run(blobs: BlobStore) -> None:
    put_old(blobs, "version-1", "trial")
    put_old(blobs, "version-2", "another")
    blobs.put(b"no facts", "replays/version-3.view")
    assert list(StoredRecordings(blobs, "trial").all()) == ["version-1"]
    assert names(blobs) == ["version-1"]
    assert RecordingReader(lambda: blobs, "trial").read("version-1") == b"trial"
    assert blobs.refs("replays/") == ["replays/version-2.json", "replays/version-2.view", "replays/version-3.view"]


def test_interrupted_renaming_continues(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put_old(blobs, "version-1", "trial")
    removed: list[str] = []

    def fail(name: str) -> None:
        removed.append(name)
        raise OSError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(blobs, "remove_ref", fail)
        stored = StoredRecordings(blobs, "trial")
        with pytest.raises(OSError, match="away"):
            stored.all()
    assert removed == ["replays/version-1.view"]
    assert stored.all()["version-1"][0] == pytest.approx(time.time() - DAY, abs=60)
    assert blobs.refs("replays/") == [] and names(blobs) == ["version-1"]


def test_renaming_does_not_replace_a_newer_recording(blobs: BlobStore, tmp_path: Path) -> None:
    StoredRecordings(blobs, "trial").put("version-1", view(tmp_path, b"newer"), facts())
    put_old(blobs, "version-1", "trial")
    assert list(StoredRecordings(blobs, "trial").all()) == ["version-1"]
    assert RecordingReader(lambda: blobs, "trial").read("version-1") == b"newer" and blobs.refs("replays/") == []


def test_recordings_are_removed_by_age_and_size(blobs: BlobStore, tmp_path: Path) -> None:
    """Two recordings are views in the store, one is a replay in the folder, and one is both."""
    folder, stored = tmp_path / "replays", StoredRecordings(blobs, "trial")
    folder.mkdir()
    entries = ("version-9-random-0", "version-8-random-0", "version-8", "version-7")
    for days, name in enumerate(entries):
        if name != "version-8":
            stored.put(name, view(tmp_path), facts(days=days))
        if name in ("version-8", "version-7"):
            (folder / f"{name}.replay").write_bytes(b"x" * 1000)
            os.utime(folder / f"{name}.replay", (time.time() - days * DAY,) * 2)
    assert tidy(folder, stored, 2, 30, 10_000) == []
    assert tidy(folder, stored, 2, 0.5, 10_000) == ["version-8-random-0"]  # rated ones are kept by number, not by age
    assert tidy(folder, stored, 2, 30, 3500) == ["version-7"]
    assert tidy(folder, stored, 2, 30, 10) == ["version-8"]  # the newest was just requested
    assert list(folder.iterdir()) == [] and names(blobs) == ["version-9-random-0"]


def test_damaged_recordings_do_not_stop_the_removal(blobs: BlobStore, tmp_path: Path) -> None:
    stored = StoredRecordings(blobs, "trial")
    for version in range(4):
        stored.put(f"version-{version}", view(tmp_path), facts(days=9 - version))
    refs = tmp_path / "blobs/refs/trial/replays"
    (refs / "version-0.view").write_text("{")
    (refs / "version-1.json").write_text("{")
    blobs.put(b'{"at": 1%s}' % (b"0" * 400), "trial/replays/version-2.json")
    blobs.put(b'{"at": NaN}', "trial/replays/version-3.json")
    stored = StoredRecordings(blobs, "trial")
    assert [at > 0 for _, (at, _) in sorted(stored.all().items())] == [False, True, False]
    assert tidy(tmp_path / "replays", stored, 1, 30, LARGE) == ["version-1"]  # version 2 claims to be the newest
    with pytest.raises(BlobMissing):
        blobs.ref("trial/replays/version-1.view")


def test_unfinished_recordings_are_removed_at_the_start(tmp_path: Path) -> None:
    games = VecGame(GAME, 1, 1)
    cameras = Cameras(games, "trial", RewardConfig())
    cameras.began(0, Pairing(TeamPlayer("version-1", version=1), TeamPlayer("scripted", 2), 0, game="a"), "a")
    SpectatorRecordings(cameras, StoredRecordings(BlobStore(str(tmp_path / "blobs")), "trial"), tmp_path).begin(0)
    (tmp_path / "version-1.replay").write_bytes(b"x")
    assert len(list(tmp_path.glob(".game-*"))) == 1
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["version-1.replay"]
