from types import SimpleNamespace

import pytest

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
