from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dota.picture import Picture
from five.cli import watch
from five.cli.watch import FILM_RATE, STEP_SECONDS, pictures

GAME_SECONDS = 4.0


@pytest.mark.parametrize("speed", [1.0, 2.0, 8.0])
def test_film_has_the_requested_speed(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    """A slow film repeats pictures, and a fast one skips timesteps."""
    steps = round(GAME_SECONDS / STEP_SECONDS)
    monkeypatch.setattr(watch, "Replay", SimpleNamespace(
        load=lambda path: SimpleNamespace(config=SimpleNamespace(patch=""))))
    monkeypatch.setattr(watch, "FilmMap", lambda patch: None)
    monkeypatch.setattr(watch, "render_frame", lambda ground, frame: frame)
    monkeypatch.setattr(watch.playback, "run", lambda path: iter(range(steps + 1)))
    film = [int(picture) for picture in pictures("x", speed, None)]
    assert len(film) == pytest.approx(GAME_SECONDS * FILM_RATE / speed, abs=1)
    assert film == sorted(film) and film[0] == 0 and film[-1] >= steps - speed / FILM_RATE / STEP_SECONDS - 1
    assert len(list(pictures("x", speed, 0.2))) == min(len(film), round(0.2 * FILM_RATE))
    assert len(list(pictures("x", speed, 0.01))) == 1


@pytest.mark.parametrize("name", ["game.gif", "game.mp4"])
def test_failed_film_leaves_the_earlier_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules have changed since the replay was recorded: playback ends within it."""
    replay, target = tmp_path / "game.replay", tmp_path / name
    replay.touch()

    def changed(path: Path, speed: float, seconds: float | None) -> Iterator[Picture]:
        yield from np.zeros((3, 48, 48, 3), np.uint8)
        raise RuntimeError("the game has changed")

    monkeypatch.setattr(watch, "pictures", lambda *arguments: iter(np.zeros((3, 48, 48, 3), np.uint8)))
    assert watch.watch(str(replay), str(target), 8.0, None) == 0
    first = target.read_bytes()
    monkeypatch.setattr(watch, "pictures", changed)
    with pytest.raises(RuntimeError, match="has changed"):
        watch.watch(str(replay), str(target), 8.0, None)
    assert target.read_bytes() == first and {path.name for path in tmp_path.iterdir()} == {"game.replay", name}


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=f"there is no folder {tmp_path}/films$"):
        watch.watch(str(tmp_path / "game.replay"), str(tmp_path / "films" / "game.mp4"), 8.0, None)
