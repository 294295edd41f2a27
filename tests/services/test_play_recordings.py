"""Recordings of people's games: equal to a camera's recording, and bounded."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from dota.spectator.camera import Camera
from dota.spectator.recording import Recording
from dota.spectator.schema import same
from five.services.play.players import Filler, NewGame
from five.services.play.recordings import GameRecorder, GameRecording, RecordingStore
from rapid.atomic_file import PARTIAL
from rapid.rpc.errors import Unavailable
from tests.services.test_play_outbox import GAME, Filmed

BEGIN = NewGame("0" * 32, "ada", GAME, 3, None, (Filler("version-7", version=7), Filler("scripted", 2)), "run")
STEPS = 75  # two chunks and a half


def taken(recorder: GameRecorder, steps: int = STEPS) -> tuple[GameRecording, list[bytes]]:
    """Return a bot game's recording, and the chunks of a camera on it."""
    film, chunks = Filmed(), list[bytes]()
    camera = Camera(GAME, {}, lambda chunk, facts: chunks.append(chunk))
    for step in range(steps):
        film.games.step()
        events = [{"kind": "step", "number": step}]
        film.whole.record(film.write, 4 * (step + 1), events)
        recorder.add(film.whole)
        camera.record_frame(film.write, events)
    camera.end()
    return recorder.recorded(BEGIN, {"players": ["ada", "scripted"]}, ["ada"], 1), chunks


def test_recording_equals_that_of_a_camera() -> None:
    recorded, chunks = taken(GameRecorder(1 << 20))
    found = Recording(recorded.data)
    assert [found.chunk(k) for k in range(len(found.spans))] == chunks and len(chunks) == 3
    steps = list(found.steps())
    assert [event["number"] for step in steps for event in step.events] == list(range(STEPS))
    index = found.index()
    assert [row[3] for row in index["chunks"]] == [30, 30, 15] and len(index["track"]) == 3 + 3 + 2
    assert [row[0] for row in index["chunks"]] == [start for start, _ in found.spans]
    assert found.header["about"]["players"] == ["ada", "scripted"] == recorded.players
    assert recorded.seconds == pytest.approx(index["track"][0][0] + (STEPS - 1) * 4 / 30, abs=0.02)
    assert recorded.winner == 1 and recorded.kills == [0, 0] and recorded.people == ["ada"]


def test_recording_clock_counts_timesteps() -> None:
    """A camera records after each step instead."""
    recorder, film = GameRecorder(1 << 20), Filmed()
    film.games.step()
    film.whole.record(film.write, 4, [])
    recorder.add(film.whole)
    eight = GAME.model_copy(update={"frameskip": 8})
    recorded = recorder.recorded(replace(BEGIN, config=eight), {"players": ["ada", "scripted"]}, ["ada"], 1)
    assert Recording(recorded.data).header["steps_per_second"] == 7.5
    assert Camera(eight, {}, lambda chunk, facts: None).header["steps_per_second"] == 3.75


def test_recording_stops_at_its_size_limit() -> None:
    whole, chunks = taken(GameRecorder(1 << 20))
    cut, _ = taken(GameRecorder(len(chunks[0])))
    steps = list(Recording(cut.data).steps())
    assert len(steps) == 30 and cut.seconds == whole.seconds  # the length of the whole game
    for a, b in zip(steps, Recording(whole.data).steps(), strict=False):
        assert same(a.frame, b.frame)


def entry(number: int, size: int) -> GameRecording:
    return GameRecording(f"{number:032x}", ["ada", "version-7"], ["ada"], 0.0, float(number), 1, [3, 4], size,
                         bytes(size))


def test_oldest_recordings_are_removed_above_the_limits() -> None:
    kept = RecordingStore(3, 1000)
    for number in range(5):
        kept.store(entry(number, 100))
    assert [r.at for r in kept.all()] == [4, 3, 2]
    assert kept.piece(f"{1:032x}", 0, 10) is None and kept.piece(f"{4:032x}", 95, 10) == (bytes(5), 100)
    kept.store(entry(5, 850))
    assert [r.at for r in kept.all()] == [5, 4]
    kept.store(entry(6, 5000))  # the newest is stored even if it alone exceeds the limit
    assert [r.at for r in kept.all()] == [6]


def test_recordings_in_a_folder_survive_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "played"
    recorded, _ = taken(GameRecorder(1 << 20))
    first = RecordingStore(3, 1 << 20, folder)
    assert first.all() == [] and not folder.exists()  # the first recording creates it
    first.store(entry(1, 100))
    first.store(recorded)
    assert all(not r.data for r in first.all())  # not also in memory

    again = RecordingStore(3, 1 << 20, folder)
    assert again.all() == first.all() and again.all()[0] == replace(recorded, data=b"")
    data = b""
    while (piece := again.piece(recorded.game, len(data), 1000)) is not None and piece[0]:
        data += piece[0]
    assert data == recorded.data and piece == (b"", recorded.size)
    # The limits apply to existing recordings, and a removed one leaves no file.
    assert [r.game for r in RecordingStore(1, 1 << 20, folder).all()] == [recorded.game]
    assert sorted(path.name for path in folder.iterdir()) == [f"{recorded.game}.json", f"{recorded.game}.view"]


def test_slow_disk_delays_no_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The games' event loop lists the recordings."""
    kept = RecordingStore(2, 1000, tmp_path)
    kept.store(entry(1, 100))
    writing, goes_on, write = threading.Event(), threading.Event(), kept._write

    def write_slowly(folder: Path, recorded: GameRecording) -> None:
        writing.set()
        goes_on.wait(30)
        write(folder, recorded)

    monkeypatch.setattr(kept, "_write", write_slowly)
    with ThreadPoolExecutor(3) as threads:
        try:
            storing = threads.submit(kept.store, entry(2, 100))
            assert writing.wait(10)
            assert [r.at for r in threads.submit(kept.all).result(10)] == [1]
            assert threads.submit(kept.piece, f"{1:032x}", 0, 5).result(10) == (bytes(5), 100)
        finally:
            goes_on.set()
        storing.result(10)
    assert [r.at for r in kept.all()] == [2, 1]


def test_other_files_in_the_folder_are_ignored(tmp_path: Path) -> None:
    kept = RecordingStore(8, 1 << 20, tmp_path)
    for number in range(4):
        kept.store(entry(number, 10))
    names = [f"{number:032x}" for number in range(4)]
    (tmp_path / f"{names[1]}.view").unlink()  # the process ended between the two files
    (tmp_path / f"{names[2]}.json").write_text('{"game": "../../etc/passwd"}')
    (tmp_path / f".{names[3]}.view{PARTIAL}").write_bytes(b"half")
    (tmp_path / "mine.view").write_bytes(b"somebody's own")
    (tmp_path / "mine.json").write_text(json.dumps({**entry(9, 1).facts(), "at": float("nan")}))
    others = ("settings.json", f".settings.json.{PARTIAL}")
    for name in others:
        (tmp_path / name).write_text("{}")
    again = RecordingStore(8, 1 << 20, tmp_path)
    assert [r.game for r in again.all()] == [names[3], names[0]]
    left = {path.name for path in tmp_path.iterdir()}
    assert f"{names[1]}.json" not in left and f".{names[3]}.view{PARTIAL}" not in left
    assert left >= {"mine.view", *others}
    (tmp_path / f"{names[0]}.view").unlink()  # a recording that somebody else removed is no longer listed
    assert again.piece(names[0], 0, 10) is None and [r.game for r in again.all()] == [names[3]]


def test_unwritable_folder_keeps_recordings_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "played"
    folder.write_text("a file is in the way")
    kept = RecordingStore(2, 1000, folder)
    kept.store(entry(1, 100))
    assert kept.piece(f"{1:032x}", 0, 200) == (bytes(100), 100)
    for number in (2, 3):
        kept.store(entry(number, 100))
    assert [r.at for r in kept.all()] == [3, 2]


def test_unreadable_file_costs_no_recording(tmp_path: Path) -> None:
    kept = RecordingStore(2, 1000, tmp_path)
    kept.store(entry(1, 100))
    file = tmp_path / f"{1:032x}.view"
    data = file.read_bytes()
    file.unlink()
    file.mkdir()
    with pytest.raises(Unavailable, match="cannot be read"):
        kept.piece(f"{1:032x}", 0, 10)
    file.rmdir()
    file.write_bytes(data)
    assert kept.piece(f"{1:032x}", 0, 10) == (bytes(10), 100)


def test_partial_file_that_cannot_be_removed_is_ignored(tmp_path: Path) -> None:
    kept = RecordingStore(2, 1000, tmp_path)
    kept.store(entry(1, 100))
    (tmp_path / f".{2:032x}.view{PARTIAL}").mkdir()  # a directory cannot be unlinked
    assert [r.at for r in RecordingStore(2, 1000, tmp_path).all()] == [1]
