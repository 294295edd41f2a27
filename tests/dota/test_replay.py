"""Replays: a recording reproduces the same state, and damaged files are refused with a reason."""

import errno
import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from dota import playback
from dota.replay import CHECK_EVERY, Replay
from dota.tables import made_by
from dota.vec_game import Controller, VecGame
from tests.dota.watching import duel


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, int, VecGame]:
    game = VecGame(duel(), 2, seed=6)
    game.controllers[:] = [[Controller.SCRIPTED, Controller.RANDOM]] * 2
    tape = game.record(1)
    for _ in range(300):
        game.step()
    path = tmp_path / "game.replay"
    tape.save(path, game.hash(1))
    return path, game.hash(1), game


def test_replay_ends_in_the_same_state(recorded: tuple[Path, int, VecGame]) -> None:
    path, end, game = recorded
    tape = Replay.load(path)
    assert len(tape) == 300 and tape.orders.shape == (300, 10, 8) and tape.final_hash == end
    last = list(playback.play(tape))[-1]
    assert last.hash(0) == end
    np.testing.assert_array_equal(last.obs["shared"][0], game.obs["shared"][1])


def test_frames_show_the_game(recorded: tuple[Path, int, VecGame]) -> None:
    path, _, game = recorded
    frames = list(playback.run(path))
    assert len(frames) == 301
    assert frames[0]["time"] == 0 and frames[-1]["time"] == pytest.approx(40, abs=0.01)
    assert frames[-1]["units"] == game.spectate(1)["units"]
    kinds = {u["kind"] for u in frames[-1]["units"]}
    assert {"hero", "creep", "tower", "fort", "courier"} <= kinds


def test_saving_leaves_no_half_file(recorded: tuple[Path, int, VecGame]) -> None:
    assert [p.name for p in recorded[0].parent.iterdir()] == ["game.replay"]


def test_failed_save_leaves_no_part(recorded: tuple[Path, int, VecGame], monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = recorded

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    tape, before = Replay.load(path), path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tape.save(path)
    assert list(path.parent.iterdir()) == [path] and path.read_bytes() == before


def test_recording_begins_with_the_game() -> None:
    game = VecGame(duel(), 1, seed=6)
    game.step()
    with pytest.raises(ValueError, match="has begun"):
        game.record(0)
    game.reset()
    tape = game.record(0)
    game.step()
    game.reset()
    game.step()
    assert len(tape) == 1  # the reset ended it


def test_recording_stops_when_the_game_is_over() -> None:
    game = VecGame(duel(max_game_seconds=1.0), 1, seed=6)
    tape = game.record(0)
    for _ in range(20):
        game.step()
    assert game.winner[0] and len(tape) == 8


def damaged(path: Path, how: str) -> None:
    head, _, body = path.read_bytes().partition(b"\n")
    fields = json.loads(head)
    if how == "not json":
        head = b"hello"
    elif how == "another format":
        head = json.dumps(fields | {"format": "other"}).encode()
    elif how == "newer":
        head = json.dumps(fields | {"version": 99}).encode()
    elif how == "huge":
        head = json.dumps(fields | {"steps": 10**12}).encode()
    elif how == "bomb":
        body = zlib.compress(bytes(10_000_000))
    elif how == "cut":
        body = body[:-20]
    elif how == "garbled":
        body = b"\x00" + body[1:]
    elif how == "lineup":
        head = json.dumps(fields | {"lineup": [[1, 2], [3, 4]]}).encode()
    elif how == "config":
        head = json.dumps(fields | {"config": {"surprise": 1}}).encode()
    elif how == "key":
        head = json.dumps({k: v for k, v in fields.items() if k != "seed"}).encode()
    path.write_bytes(head + b"\n" + body)


@pytest.mark.parametrize("how", ["not json", "another format", "newer", "huge", "bomb", "cut", "garbled", "lineup",
                                 "config", "key"])
def test_damaged_files_are_refused(recorded: tuple[Path, int, VecGame], how: str) -> None:
    path = recorded[0]
    damaged(path, how)
    with pytest.raises(ValueError, match=r"game\.replay is not a readable replay"):
        Replay.load(path)


def test_changed_orders_do_not_pass_for_the_same_game(recorded: tuple[Path, int, VecGame]) -> None:
    tape = Replay.load(recorded[0])
    orders = tape.orders.copy()
    orders[50, :, 0] = 2  # everyone walks
    orders[50, :, 6:] = 4
    changed = Replay(tape.config, tape.seed, tape.lineup, orders, tape.final_hash)
    with pytest.raises(ValueError, match="diverged"):
        list(playback.play(changed))


def test_a_diverged_replay_names_the_changes(recorded: tuple[Path, int, VecGame]) -> None:
    path = recorded[0]
    head, _, body = path.read_bytes().partition(b"\n")
    fields = json.loads(head)
    assert fields["made_by"] == [f"{of:016x}" for of in made_by("7.21d")]
    fields["hash"] = "0" * 16
    for changed, said in (({}, "orders were changed"), ({0: "1" * 16}, "the core changed since"),
                          ({1: "2" * 16}, r"the data of patch 7\.21d changed since"),
                          ({0: "1" * 16, 1: "2" * 16}, r"the core and the data of patch 7\.21d changed")):
        prints = [changed.get(i, of) for i, of in enumerate(fields["made_by"])]
        path.write_bytes(json.dumps(fields | {"made_by": prints}).encode() + b"\n" + body)
        with pytest.raises(ValueError, match=said):
            list(playback.play(Replay.load(path)))


@pytest.mark.parametrize(("frameskip", "seconds"), [(4, 60), (8, 60), (12, 60), (16, 120)])
def test_another_game_is_noticed_on_the_way(frameskip: int, seconds: int, tmp_path: Path) -> None:
    """A policy's steps of four timesteps end at every 900th only."""
    game = VecGame(duel(frameskip=frameskip), 1, seed=6, observations=False)
    game.controllers[:] = Controller.SCRIPTED
    tape = game.record(0)
    for _ in range(4 * (2 * CHECK_EVERY + 10) // frameskip):
        game.step()
    assert len(tape.checks) == 2 * 60 // seconds
    tape.save(tmp_path / "game.replay", game.hash(0))
    tape = Replay.load(tmp_path / "game.replay")
    assert sum(1 for _ in playback.play(tape)) == len(tape) + 1
    tape.checks[0] ^= 1
    with pytest.raises(ValueError, match=f"after {seconds} s of game time"):
        list(playback.play(tape))


def test_orders_out_of_range_are_refused(recorded: tuple[Path, int, VecGame]) -> None:
    tape = Replay.load(recorded[0])
    for column, value in ((0, 3000), (1, 4), (2, 5000), (6, 9)):
        orders = tape.orders.copy()
        orders[3, 0, column] = value
        with pytest.raises(ValueError):
            list(playback.play(Replay(tape.config, tape.seed, tape.lineup, orders)))
