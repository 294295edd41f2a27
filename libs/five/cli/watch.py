"""`five watch`: render a replay as a film on the real map."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dota import playback
from dota.picture import BUILDINGS, SIZES, TEAMS, Picture, ground_of
from dota.replay import Replay
from five.cli.film import SUFFIXES, write_film

STEP_SECONDS = 4 / 30
SIDE = 720  # pixels of the map
PANEL = 44  # pixels of the line below it
FILM_RATE = 25


class FilmMap:
    """Picture of a patch's map, with world coordinates."""

    def __init__(self, patch: str) -> None:
        self._ground = ground_of(patch)
        self.picture = Image.fromarray(self._ground.picture).resize((SIDE, SIDE), Image.Resampling.NEAREST)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a position; north is up."""
        ground = self._ground
        return (x - ground.west) / ground.extent * SIDE, SIDE - (y - ground.south) / ground.extent * SIDE

    def length(self, units: float) -> float:
        """Return a length in world units as pixels."""
        return units / self._ground.extent * SIDE


def render_frame(ground: FilmMap, frame: dict[str, Any]) -> Picture:
    """Return the picture of a spectator's frame, uint8 [SIDE + PANEL, SIDE, 3]."""
    image = Image.new("RGB", (SIDE, SIDE + PANEL), (24, 26, 30))
    image.paste(ground.picture)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default()
    for place_x, place_y, radius, team in frame["areas"]:
        x, y = ground.at(place_x, place_y)
        r = ground.length(radius)
        pen.ellipse((x - r, y - r, x + r, y + r), outline=TEAMS[team])
    for unit in sorted(frame["units"], key=lambda u: u["kind"] == "hero"):
        if not unit["alive"]:
            continue
        x, y = ground.at(unit["x"], unit["y"])
        size = SIZES.get(unit["kind"], 3)
        colour = TEAMS[unit["team"]]
        box = (x - size, y - size, x + size, y + size)
        if unit["kind"] in BUILDINGS:
            pen.rectangle(box, fill=colour, outline=(0, 0, 0))
        else:
            pen.ellipse(box, fill=colour, outline=(0, 0, 0) if unit["kind"] == "hero" else None)
        if unit["kind"] in ("hero", "tower", "fort", "roshan") and unit["max_hp"] > 0:
            share = max(0.0, unit["hp"] / unit["max_hp"])
            pen.rectangle((x - 10, y - size - 6, x + 10, y - size - 3), fill=(40, 0, 0))
            pen.rectangle((x - 10, y - size - 6, x - 10 + 20 * share, y - size - 3), fill=(90, 230, 90))
        if unit["kind"] == "hero":
            name = unit["name"].removeprefix("npc_dota_hero_")
            pen.text((x + size + 2, y - 6), name, fill=(255, 255, 255), font=font)
    for place_x, place_y, *_ in frame["projectiles"]:
        x, y = ground.at(place_x, place_y)
        pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill=(250, 240, 160))
    pen.text((10, SIDE + 8), caption(frame), fill=(230, 230, 230), font=font)
    return np.asarray(image)


def caption(frame: dict[str, Any]) -> str:
    """Return the line below the map: clock, score, and each hero's level and gold."""
    time = int(frame["time"])
    clock = f"{'-' if time < 0 else ''}{abs(time) // 60}:{abs(time) % 60:02d}"
    heroes = [f"{u['name'].removeprefix('npc_dota_hero_')} lvl {u['level']} {u['gold']:.0f}g"
              for u in frame["units"] if u["kind"] == "hero"]
    return f"{clock}   {frame['kills'][0]} : {frame['kills'][1]}   " + "   ".join(heroes)


def pictures(path: str | Path, speed: float, seconds: float | None) -> Iterator[Picture]:
    """Yield the film's pictures: ``speed`` game seconds a second, at most ``seconds`` long, at least one.

    Raises ValueError for a file that is not a replay.
    """
    patch = Replay.load(path).config.patch
    ground = FilmMap(patch)
    due, shown = 0.0, 0
    for step, frame in enumerate(playback.run(path)):
        picture: Picture | None = None
        while due <= step * STEP_SECONDS:  # several times in a slow film
            due += speed / FILM_RATE
            shown += 1
            if seconds is not None and shown > max(seconds * FILM_RATE, 1):
                return
            picture = render_frame(ground, frame) if picture is None else picture
            yield picture


def newest(folder: Path) -> Path:
    """Return the newest replay of a folder. Raises RuntimeError for a folder without replays."""
    found = max(folder.glob("*.replay"), key=lambda p: p.stat().st_mtime, default=None)
    if found is None:
        raise RuntimeError(f"{folder} has no replay yet: each rated version and each `five eval` leaves one")
    return found


def watch_agent(name: str, out: str | None, speed: float, seconds: float | None) -> int:
    """Render the replay of a packed agent, by default into NAME.mp4 here. Return the exit status.

    Raises AgentUnavailable, and RuntimeError if the game has changed since the replay was recorded.
    """
    from five.packed_agents.folder import find_agent  # imports torch, which takes a second

    agent = find_agent(name)
    try:
        return watch(str(agent.replay), out or f"{agent.card.name}.mp4", speed, seconds)
    except RuntimeError as error:
        raise RuntimeError(f"{error}. `five eval --agent {name} --games 2 --replay FILE` records another game"
                           ) from None


def watch(path: str, out: str | None, speed: float, seconds: float | None) -> int:
    """Write the film and print its path. Return the exit status.

    After an error or Ctrl-C an earlier film remains. Raises RuntimeError for an unreadable replay or a wrong name of
    the film, OSError.
    """
    source = Path(path)
    target = Path(out) if out else source.with_suffix(".mp4")
    if target.suffix not in SUFFIXES:
        raise RuntimeError(f"{target}: the file to write must end in {' or '.join(SUFFIXES)}")
    if not target.parent.is_dir():
        raise RuntimeError(f"{target}: there is no folder {target.parent}")
    if not source.is_file():
        raise RuntimeError(f"{source}: no such replay file")
    try:
        write_film(target, pictures(source, speed, seconds), FILM_RATE)
    except ValueError as error:
        raise RuntimeError(str(error)) from None
    print(target)
    return 0
